// Package setlistd is a client for setlistd, over gomemcache. Each method is for the commands of
// setlistd-protocol(7) with a kind of result. A bool after a result is false if the key or the
// element is missing. Every error is an Error with the text of setlistd, or one of gomemcache or
// the loader. Elements are strings of any bytes. Goroutines can share a Client.
// setlistd needs the option commands = "q|". A word that is sent in the key, such as the element of
// lpos, cannot be empty, and all of them together have at most 240 bytes.
package setlistd

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// Error is the text with which setlistd has refused a command.
type Error string

func (e Error) Error() string { return string(e) }

// ErrBusy is the error of a load for which another client had the lease for the whole time.
const ErrBusy = Error("another client is loading the key")

var refusal = regexp.MustCompile(`"(?:CLIENT_|SERVER_)?ERROR ?(.*?)(?:\\r)?(?:\\n)?"$`)
var quoted = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"|[^ ]+`)
var escape = regexp.MustCompile(`\\(?:x[0-9a-f]{2}|.)`)

type Client struct {
	Prefix  string        // The option commands of setlistd.
	Timeout time.Duration // A command that waits may take so much longer.
	Login   string        // A user, a space and the password.
	servers *memcache.ServerList
	clients sync.Map // By their timeout, which their connections have.
}

// New returns a client for host:port or the path of a Unix socket.
func New(server string) *Client {
	servers := new(memcache.ServerList)
	_ = servers.SetServers(server)
	return &Client{Prefix: "q|", Timeout: 3 * time.Second, servers: servers}
}

// Add is for sadd, saddx, srem, sset and the pushes. It returns false if the key is missing.
func (c *Client) Add(verb, key string, elements ...string) (all bool, err error) {
	defer catch(&err)
	return c.add(verb, words{key}, elements), nil
}

// Change is for saddex, sclaim, smove, lset, lrem and ltrim. It returns false for NOT_FOUND or 0.
func (c *Client) Change(verb string, arguments ...any) (done bool, err error) {
	defer catch(&err)
	last := len(arguments) - 1
	return c.set(verb+"1", arguments[:last], fmt.Sprint(arguments[last])), nil
}

// Number is for commands that return a number, such as scard, sttl, sinterstore and evlimit.
func (c *Client) Number(verb string, arguments ...any) (n int64, found bool, err error) {
	text, found, err := c.Element(verb, arguments...)
	if found {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	return n, found, err
}

// Elements is for commands that return several, such as smembers, stake, and lpop with a count.
func (c *Client) Elements(verb string, arguments ...any) ([]string, bool, error) {
	text, found, err := c.Element(verb+"*", arguments...)
	return split(text), found, err
}

// Element is for commands that return one, such as lindex, lmove, and lpop without a count. The
// time of blpop, brpop and blmove is in seconds; 0 is for ever.
func (c *Client) Element(verb string, arguments ...any) (one string, found bool, err error) {
	defer catch(&err)
	one, found = c.ask(verb, arguments...)
	return one, found, nil
}

// EvCount returns the count of each bucket.
func (c *Client) EvCount(event, first, last string) (map[string]int64, error) {
	text, _, err := c.Element("evcount", event, first, last)
	counts := map[string]int64{}
	for line := strings.Fields(text); len(line) >= 3; line = line[3:] {
		counts[line[1]], err = strconv.ParseInt(line[2], 10, 64)
	}
	return counts, err
}

// Delete deletes an item, a set or a list, and returns whether it was found.
func (c *Client) Delete(key string) (found bool, err error) {
	defer catch(&err)
	return c.call(c.Timeout, func(m *memcache.Client) error { return m.Delete(key) }), nil
}

// Job is an element of a list that is given back unless it is done in time.
type Job struct {
	Key, Element, Ticket string
	Deliveries           int64 // How often it was reserved.
}

// Reserve returns a job to be done in so many seconds; nil if there is none within the time.
func (c *Client) Reserve(key string, seconds int, wait time.Duration) (*Job, error) {
	list, found, err := c.Elements("blhold", fmt.Sprintf("%.3f", wait.Seconds()), key, seconds)
	if !found {
		return nil, err
	}
	deliveries, err := strconv.ParseInt(list[1], 10, 64)
	return &Job{key, list[2], list[0], deliveries}, err
}

// Done returns false if the time of the job is over: another client may have it.
func (c *Client) Done(job *Job) (bool, error) { return c.Change("lack", job.Key, job.Ticket) }

// Fail gives the job back at once, to the other end of the list.
func (c *Client) Fail(job *Job) (bool, error) { return c.Change("lfail", job.Key, job.Ticket) }

// Load returns the members of the set. If it is missing, one client calls its loader, which has a
// minute to return them. All others wait, for at most the timeout.
func (c *Client) Load(key string, loader func() ([]string, error), timeout time.Duration) (
	members []string, err error) {
	defer catch(&err)
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		if text, found := c.ask("smembers*", key); found {
			return split(text), nil
		}
		answer, _ := c.ask("slease", key, 60)
		if lease := strings.Fields(answer); lease[0] == "LEASE" {
			loaded, err := loader()
			if err != nil {
				_, _ = c.Delete(key) // The next client need not wait until the lease ends.
				return nil, err
			}
			c.add("sload", words{key, lease[1]}, loaded)
			c.set("sfill", words{key, lease[1]}, "")
			if text, found := c.ask("smembers*", key); found {
				return split(text), nil // Others may have changed it meanwhile.
			}
			return loaded, nil
		}
		if time.Now().After(end) {
			return nil, ErrBusy
		}
	}
}

type failure struct{ error } // The panic of an error, up to the method that was called.
type words = []any

func catch(err *error) {
	if cause := recover(); cause != nil {
		*err = cause.(failure).error // Any other panic goes on.
	}
}

func (c *Client) key(verb string, arguments words) string {
	name := c.Prefix + verb
	for i := range arguments {
		word := strings.ReplaceAll(url.QueryEscape(fmt.Sprint(arguments[i])), "+", "%20")
		if word == "" {
			panic(failure{Error("an empty element cannot be a word of a key")})
		}
		name += c.Prefix[len(c.Prefix)-1:] + word
	}
	return name
}

func (c *Client) ask(verb string, arguments ...any) (value string, found bool) {
	timeout := c.Timeout
	if verb[0] == 'b' { // It waits. There are only a few timeouts.
		seconds, _ := strconv.ParseFloat(fmt.Sprint(arguments[0]), 64)
		for seconds == 0 && timeout < 1e6*time.Hour || timeout.Seconds() < seconds+1 {
			timeout *= 2
		}
	}
	found = c.call(timeout, func(m *memcache.Client) error {
		item, err := m.Get(c.key(verb, arguments))
		if err == nil {
			value = string(item.Value)
		}
		return err
	})
	return value, found
}

func (c *Client) set(verb string, arguments words, data string) bool {
	item := &memcache.Item{Key: c.key(verb, arguments), Value: []byte(data)}
	return c.call(c.Timeout, func(m *memcache.Client) error { return m.Set(item) })
}

// Elements with newlines, which separate the others, take a command each.
func (c *Client) add(verb string, arguments words, elements []string) bool {
	text := strings.Join(append(elements[:len(elements):len(elements)], ""), "\n")
	if strings.Count(text, "\n") == len(elements) {
		return c.set(verb, arguments, text)
	}
	if verb == "sset" {
		other := fmt.Sprintf("%v-%d-%d", arguments[0], os.Getpid(), time.Now().UnixNano())
		defer c.Delete(other)
		c.add("sadd", words{other}, elements)
		_, done := c.ask("sunionstore", arguments[0], other)
		return done
	}
	all := true
	for _, element := range elements {
		all = c.set(verb+"1", arguments, element) && all
	}
	return all
}

// Returns whether the item was found, or stored.
func (c *Client) call(timeout time.Duration, action func(*memcache.Client) error) bool {
	made := memcache.NewFromSelector(c.servers)
	made.Timeout = timeout
	entry, _ := c.clients.LoadOrStore(timeout, made)
	client := entry.(*memcache.Client)
	for try := 0; ; try++ {
		err := action(client)
		if err == nil || err == memcache.ErrCacheMiss || err == memcache.ErrNotStored {
			return err == nil
		}
		if text := refusal.FindStringSubmatch(err.Error()); text != nil {
			err = Error(text[1])
		}
		if err != Error("unauthenticated") || c.Login == "" || try == 5 {
			panic(failure{err})
		}
		_ = client.Set(&memcache.Item{Key: "auth", Value: []byte(c.Login)}) // A new connection.
	}
}

// Returns the elements of a reply: words, some of which are in quotes.
func split(text string) []string {
	unescape := func(sequence string) string {
		code, _, _, _ := strconv.UnquoteChar(sequence, '"')
		return string([]byte{byte(code)})
	}
	list := quoted.FindAllString(text, -1)
	for i, word := range list {
		if word[0] == '"' {
			list[i] = escape.ReplaceAllStringFunc(word[1:len(word)-1], unescape)
		}
	}
	return list
}
