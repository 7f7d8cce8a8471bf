// golang-github-bradfitz-gomemcache-dev
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

var client *memcache.Client
var seen *memcache.Item

// What has no such call in the client.
var errNone = errors.New("none")

// Releases before 2023 have no such calls.
type appender interface {
	Append(item *memcache.Item) error
	Prepend(item *memcache.Item) error
}

func text(item *memcache.Item) string {
	if item == nil {
		return "missing"
	}
	return "<" + string(item.Value) + ">"
}

func number(word string) uint64 {
	value, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		panic(err)
	}
	return value
}

func yesNo(err error) (string, error) {
	switch err {
	case nil:
		return "yes", nil
	case memcache.ErrCacheMiss, memcache.ErrNotStored, memcache.ErrCASConflict:
		return "no", nil
	}
	return "", err
}

func count(value uint64, err error) (string, error) {
	if err == memcache.ErrCacheMiss {
		return "missing", nil
	}
	return strconv.FormatUint(value, 10), err
}

func get(key string) (string, error) {
	item, err := client.Get(key)
	if err == memcache.ErrCacheMiss {
		item, err = nil, nil
	}
	seen = item
	return text(item), err
}

func multi(keys []string) (string, error) {
	found, err := client.GetMulti(keys)
	words := make([]string, len(keys))
	for i, key := range keys {
		words[i] = text(found[key])
	}
	return strings.Join(words, "\t"), err
}

func store(verb string, words []string) (string, error) {
	item := &memcache.Item{Key: words[0], Value: []byte(words[1])}
	if len(words) > 2 {
		item.Expiration = int32(number(words[2]))
	}
	if verb == "add" {
		return yesNo(client.Add(item))
	}
	return yesNo(client.Set(item))
}

func add(verb, key, data string) (string, error) {
	appending, ok := interface{}(client).(appender)
	if !ok {
		return "", errNone
	}
	item := &memcache.Item{Key: key, Value: []byte(data)}
	if verb == "append" {
		return yesNo(appending.Append(item))
	}
	return yesNo(appending.Prepend(item))
}

// The item has the token, whatever the key.
func swap(key, data string) (string, error) {
	seen.Key = key
	seen.Value = []byte(data)
	return yesNo(client.CompareAndSwap(seen))
}

func answer(verb string, words []string) (string, error) {
	switch verb {
	case "get", "gets":
		return get(words[0])
	case "multi":
		return multi(words)
	case "set", "add":
		return store(verb, words)
	case "append", "prepend":
		return add(verb, words[0], words[1])
	case "cas":
		return swap(words[0], words[1])
	case "incr":
		return count(client.Increment(words[0], number(words[1])))
	case "decr":
		return count(client.Decrement(words[0], number(words[1])))
	case "touch":
		return yesNo(client.Touch(words[0], int32(number(words[1]))))
	case "delete":
		return yesNo(client.Delete(words[0]))
	}
	return "", errNone
}

func main() {
	client = memcache.New("127.0.0.1:" + os.Args[1])
	client.Timeout = time.Minute
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\v", "\n")
		words := strings.Split(line, "\t")
		reply, err := answer(words[0], words[1:])
		switch err {
		case nil:
			fmt.Println(strings.ReplaceAll(reply, "\n", "\v"))
		case errNone:
			fmt.Println("none")
		default:
			fmt.Println("error: " + strings.Join(strings.Fields(err.Error()), " "))
		}
	}
}
