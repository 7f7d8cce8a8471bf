// Runs calls of conf/clients/go/setlistd.go; see driver.py.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"setlistd"
)

var client *setlistd.Client
var jobs []*setlistd.Job

// The method for each command.
var kinds = map[string]string{}

func init() {
	for kind, names := range map[string]string{
		"add":      "sadd saddx srem sset rpush rpushx lpush lpushx",
		"change":   "saddex sclaim smove lset lrem ltrim",
		"number":   "scard sintercard sinterstore sunionstore llen lpos linsert evincr evlimit sexpire sismember sttl",
		"elements": "smembers sunion sinter sdiff lrange srange sscan stake",
		"element":  "lindex lmove lpop rpop spop srandmember blpop brpop blmove",
	} {
		for _, name := range strings.Fields(names) {
			kinds[name] = kind
		}
	}
}

// In JSON each character is a byte.
func fromJSON(value interface{}) interface{} {
	switch typed := value.(type) {
	case string:
		bytes := make([]byte, 0, len(typed))
		for _, char := range typed {
			bytes = append(bytes, byte(char))
		}
		return string(bytes)
	case float64:
		if typed == float64(int64(typed)) {
			return int64(typed)
		}
	case []interface{}:
		for i := range typed {
			typed[i] = fromJSON(typed[i])
		}
	}
	return value
}

func toJSON(value string) string {
	chars := make([]rune, len(value))
	for i := range chars {
		chars[i] = rune(value[i])
	}
	return string(chars)
}

func all(list []string) []string {
	result := make([]string, len(list))
	for i := range list {
		result[i] = toJSON(list[i])
	}
	return result
}

func strs(values []interface{}) []string {
	result := make([]string, len(values))
	for i := range values {
		result[i] = fmt.Sprint(values[i])
	}
	return result
}

func seconds(value interface{}) float64 {
	number, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	if err != nil {
		panic(err)
	}
	return number
}

func load(args []interface{}) (interface{}, error) {
	limit := time.Duration(seconds(args[3]) * float64(time.Second))
	list, err := client.Load(args[0].(string), func() ([]string, error) {
		if _, _, err := client.Number("evincr", "loads"); err != nil {
			return nil, err
		}
		if args[2] == "fail" {
			return nil, errors.New("the database has failed")
		}
		if args[2] == "wait" {
			if _, _, err := client.Element("blpop", 0, "go"); err != nil {
				return nil, err
			}
		}
		return strs(args[1].([]interface{})), nil
	}, limit)
	return all(list), err
}

func call(name string, args []interface{}) (result interface{}, err error) {
	found := true
	kind := kinds[name]
	if kind == "element" && len(args) > 1 && strings.Contains("lpop rpop spop srandmember", name) {
		kind = "elements"
	}
	switch kind {
	case "add":
		return client.Add(name, args[0].(string), strs(args[1:])...)
	case "change":
		return client.Change(name, args...)
	case "number":
		var number int64
		number, found, err = client.Number(name, args...)
		if result = number; name == "sismember" {
			result = number == 1
		}
	case "elements":
		var list []string
		list, found, err = client.Elements(name, args...)
		result = all(list)
		found = found || kinds[name] != "elements" || strings.Contains("lrange srange sscan stake", name)
	case "element":
		var one string
		one, found, err = client.Element(name, args...)
		result = toJSON(one)
	default:
		switch name {
		case "load":
			return load(args)
		case "evcount":
			return client.EvCount(args[0].(string), "now", "now")
		case "reserve":
			wait := time.Duration(seconds(args[2]) * float64(time.Second))
			job, err := client.Reserve(args[0].(string), int(args[1].(int64)), wait)
			jobs = append(jobs, job)
			if job == nil {
				return nil, err
			}
			return []interface{}{toJSON(job.Element), job.Deliveries}, err
		case "done":
			return client.Done(jobs[args[0].(int64)])
		case "fail":
			return client.Fail(jobs[args[0].(int64)])
		case "delete":
			return client.Delete(args[0].(string))
		default:
			panic(name)
		}
	}
	if !found {
		result = nil
	}
	return result, err
}

func main() {
	var options struct {
		Timeout float64
		Login   []string
	}
	if err := json.Unmarshal([]byte(os.Args[2]), &options); err != nil {
		panic(err)
	}
	client = setlistd.New("127.0.0.1:" + os.Args[1])
	client.Timeout = time.Duration(options.Timeout * float64(time.Second))
	client.Login = strings.Join(options.Login, " ")
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var words []interface{}
		if err := json.Unmarshal([]byte(line), &words); err != nil {
			panic(err)
		}
		reply := map[string]interface{}{}
		result, err := call(words[0].(string), fromJSON(words[1:]).([]interface{}))
		reply["ok"] = result
		if err != nil {
			reply = map[string]interface{}{"error": err.Error(), "kind": "other"}
			if err == setlistd.ErrBusy {
				reply["kind"] = "busy"
			} else if _, ok := err.(setlistd.Error); ok {
				reply["kind"] = "setlistd"
			}
		}
		text, err := json.Marshal(reply)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
