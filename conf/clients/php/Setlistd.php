<?php
/**
 * A client for setlistd, over php-memcached: sets, lists, counters, leases, and cache tags.
 *
 *     $c = new Setlistd('127.0.0.1', 11311);
 *     $c->sadd('topic-1', 'ann', 'bob');      // true
 *     $c->smembers('topic-1');                // ['ann', 'bob']
 *     $c->load('topic-2', fn() => $database->members('topic-2'));
 *
 * The methods have the names and arguments of the commands in setlistd-protocol(7), and return
 * arrays, numbers and booleans; null if the key or an element is missing. Every error is a
 * SetlistdException with the text of setlistd or php-memcached. Elements are strings of any bytes.
 * setlistd needs the option commands = "q|"; for its limits see setlistd-clients(7).
 *
 * @method bool sadd(string $key, string ...$members) also saddx, srem: false if the set is missing
 * @method bool saddex(string $key, int $seconds, string ...$members) adds members that expire
 * @method ?array smembers(string $key) null if the set is missing
 * @method bool sclaim(string $key, string $member) whether this call has added it
 * @method string|array|null lpop(string $key, int $count = null) also rpop, spop, srandmember
 * @method ?string blpop(float $seconds, string ...$keys) also brpop; 0 seconds: waits for ever
 */
class SetlistdException extends RuntimeException {}
/** Another client was loading the key for the whole time. */
class SetlistdBusy extends SetlistdException {}

class Setlistd
{
    /** The ways to call a command and to read its reply; see the methods with these names. */
    private const WAYS = [
        'add' => 'sadd saddex saddx srem sset rpush rpushx lpush lpushx',
        'change' => 'sclaim smove lset lrem ltrim lack lfail',
        'number' => 'scard scount sunioncard sintercard sdiffcard sunionstore sinterstore sdiffstore
            llen lpos linsert evincr evlimit sexpire sttl',
        'members' => 'smembers sunion sinter sdiff',
        'elements' => 'lrange lmpop srange sscan stake',
        'ask' => 'lindex lmove rpoplpush blpop brpop blmove',
        'oneOrList' => 'lpop rpop spop srandmember',
    ];
    private const RENDERING = 60; // Seconds for rendering an item with tags; then it is not stored.
    private Memcached $client;

    /** login: [user, password]. persistent: the id of connections that outlive the request. */
    public function __construct(
        string $host = '127.0.0.1', int $port = 11311, private string $prefix = 'q|',
        private float $timeout = 3.0, private ?array $login = null, ?string $persistent = null
    ) {
        $this->client = $persistent === null ? new Memcached() : new Memcached($persistent);
        if (!$this->client->getServerList())
            $this->client->addServer($host, $port);
        $this->client->setOptions([
            Memcached::OPT_COMPRESSION => false,
            Memcached::OPT_TCP_NODELAY => true,
            Memcached::OPT_CONNECT_TIMEOUT => (int) (1000 * $timeout),
            Memcached::OPT_RETRY_TIMEOUT => 0,
        ]);
    }

    public function __call(string $verb, array $words)
    {
        foreach (self::WAYS as $way => $names)
            if (preg_match("/\b$verb\b/", $names))
                return $this->$way($verb, ...$words);
        throw new BadMethodCallException("there is no method $verb");
    }

    public function sismember(string $key, string $member): ?bool
    {
        return $this->smismember($key, $member)[0] ?? null;
    }

    /** Returns an array of booleans. */
    public function smismember(string $key, string ...$members): ?array
    {
        if (!in_array('', $members, true) &&
            strlen($this->key('smismember', [$key, ...$members])) <= 250) {
            $found = $this->ask('smismember', $key, ...$members);
            return $found === null ? null : array_map('boolval', explode(' ', $found));
        }
        $found = array_map(fn($member) => $this->put('sismember1', [$key], $member), $members);
        return in_array(true, $found, true) || $this->scard($key) !== null ? $found : null;
    }

    /** Returns the counts by their buckets, oldest first. */
    public function evcount(string $event, string $first = 'now', ?string $last = null): array
    {
        $text = $this->ask('evcount', $event, $first, $last ?? $first);
        preg_match_all('/^COUNT (\S+) (\d+)/m', $text, $found);
        return array_map('intval', array_combine($found[1], $found[2]));
    }

    public function get(string $key): ?string { return $this->call('get', [$key]); }

    public function set(string $key, string $value, int $ttl = 0): bool
    {
        return $this->call('set', [$key, $value, $ttl]);
    }

    public function delete(string $key): bool { return $this->call('delete', [$key]) ?? false; }

    /** Returns the value of the item. If missing, it is rendered, and stored for `ttl` seconds,
     * 0: for ever. Each tag is the key of a set, which has the keys of such items. */
    public function remember(string $key, array $tags, int $ttl, callable $render): string
    {
        $get = fn() => $this->call('get', [$key, null, Memcached::GET_EXTENDED]);
        if (!$item = $get()) {
            $this->call('add', [$key, '', self::RENDERING]);
            $item = $get();
        }
        if ($item && $item['value'] !== '')
            return $item['value'];
        foreach ($tags as $tag) // Before it is rendered, so that each later `invalidate` finds it.
            $this->saddex($tag, $ttl ? $ttl + 2 * self::RENDERING : 0, $key);
        $value = (string) $render();
        if ($item) // It is not stored if the empty item was deleted meanwhile.
            $this->call('cas', [$item['cas'], $key, $value, $ttl]);
        return $value;
    }

    /** Deletes all items with this tag. Call it after the data have changed. */
    public function invalidate(string $tag): void
    {
        while ($keys = $this->stake($tag))
            array_map([$this, 'delete'], $keys);
    }

    /** Returns a job, an element that is given back after so many seconds unless it is done; null
     * if there is none within `wait` seconds (0: no end). `deliveries` counts its reservations. */
    public function reserve(string $key, int $seconds, float $wait = 0.001): ?object
    {
        $found = $this->elements('blhold', $wait, $key, $seconds);
        return $found ? (object) ['key' => $key, 'ticket' => $found[0],
            'deliveries' => (int) $found[1], 'element' => $found[2]] : null;
    }

    /** Returns false if the time of the job is over: another client may have it. */
    public function done(object $job): bool { return $this->lack($job->key, $job->ticket); }

    /** Gives the job back at once, to the other end of the list. */
    public function fail(object $job): bool { return $this->lfail($job->key, $job->ticket); }

    /** Returns the members of the set. If it is missing, one client calls its loader, which has
     * `lease` seconds to return them. All others wait, for at most `timeout` seconds. */
    public function load(string $key, callable $loader, float $timeout = 10, int $lease = 60): array
    {
        $end = microtime(true) + $timeout;
        for ($wait = 10; ($found = $this->smembers($key)) === null; $wait = min(2 * $wait, 100)) {
            $answer = explode(' ', $this->ask('slease', $key, $lease));
            if ($answer[0] === 'LEASE')
                return $this->fill($key, $loader, $answer[1]);
            if (microtime(true) > $end)
                throw new SetlistdBusy("another client is loading $key");
            if ($answer[0] === 'WAIT')
                usleep(1000 * $wait);
        }
        return $found;
    }

    private function fill(string $key, callable $loader, string $token): array
    {
        try {
            $loaded = [...$loader()];
            $this->add('sload', [$key, $token], ...$loaded);
            $this->put('sfill', [$key, $token], '');
        } catch (Throwable $error) {
            $this->delete($key); // The next client need not wait until the lease ends.
            throw $error;
        }
        return $this->smembers($key) ?? $loaded; // Others may have changed it meanwhile.
    }

    /** Returns null for a miss, false if not stored. wait: seconds of a command; 0: for ever. */
    private function call(string $method, array $args, ?float $wait = null)
    {
        $limit = $wait === 0.0 ? -1 : (int) (1000 * ($wait + $this->timeout));
        $this->client->setOption(Memcached::OPT_POLL_TIMEOUT, $limit);
        $found = $this->client->$method(...$args);
        $code = $this->client->getResultCode();
        if ($found !== false || $code === Memcached::RES_NOTSTORED ||
            $code === Memcached::RES_DATA_EXISTS)
            return $found;
        if ($code === Memcached::RES_NOTFOUND && !$this->client->getLastErrorCode())
            return null;
        $text = preg_replace('/^\(0x\w+\) |,  host.*/s', '', $this->client->getLastErrorMessage());
        if ($this->login && $text === 'unauthenticated' &&
            $this->client->set('auth', implode(' ', $this->login)))
            return $this->call($method, $args, $wait);
        $known = $text === 'SUCCESS' ? $this->client->getResultMessage() : $text;
        throw new SetlistdException($known, $code);
    }

    /** Returns the key that is this command. */
    private function key(string $verb, array $words): string
    {
        $words = array_map('rawurlencode', $words);
        if (in_array('', $words, true))
            throw new SetlistdException('an empty element cannot be a word of a key');
        return $this->prefix . implode(substr($this->prefix, -1), [$verb, ...$words]);
    }

    private function ask(string $verb, ...$words): ?string
    {
        if ($wait = $verb[0] === 'b' ? (float) $words[0] : null)
            $words[0] = sprintf('%.3F', $wait);
        return $this->call('get', [$this->key($verb, $words)], $wait);
    }

    private function put(string $verb, array $words, string $data): bool
    {
        return $this->call('set', [$this->key($verb, $words), $data]);
    }

    /** Elements with newlines, which separate the others, take a command each. */
    private function add(string $verb, string|array $words, string ...$elements): bool
    {
        if ($verb === 'saddex' && !is_array($words))
            $words = [$words, array_shift($elements)];
        if (!str_contains(implode($elements), "\n"))
            return $this->put($verb, (array) $words, implode("\n", [...$elements, '']));
        if ($verb !== 'sset')
            return !in_array(false, array_map(
                fn($element) => $this->put("{$verb}1", (array) $words, $element), $elements), true);
        $other = $words . '-' . bin2hex(random_bytes(6));
        $this->add('sadd', $other, ...$elements);
        $this->ask('sunionstore', $words, $other);
        return $this->delete($other);
    }

    private function change(string $verb, ...$words): bool
    {
        return $this->put("{$verb}1", array_slice($words, 0, -1), end($words));
    }

    private function number(string $verb, ...$words): ?int { return $this->ask($verb, ...$words); }

    private function members(string $verb, ...$words): ?array
    {
        $text = $this->ask("$verb*", ...$words);
        if (!$text || !str_contains($text, '"'))
            return $text === null ? null : ($text === '' ? [] : explode(' ', $text));
        preg_match_all('/"((?:[^"\\\\]++|\\\\.)*+)"|[^ ]+/', $text, $found, PREG_SET_ORDER);
        return array_map(fn($m) => isset($m[1]) ? stripcslashes($m[1]) : $m[0], $found);
    }

    private function elements(...$words): array { return $this->members(...$words) ?? []; }

    private function oneOrList(string $verb, string $key, int ...$count): string|array|null
    {
        return $count ? $this->elements($verb, $key, ...$count) : $this->ask($verb, $key);
    }
}
