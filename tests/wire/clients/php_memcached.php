<?php
/* php-memcached. It refuses to append while it compresses. */
require __DIR__ . '/steps.php';

$client = new Memcached();
$client->setOption(Memcached::OPT_BINARY_PROTOCOL, $argv[2] === 'binary');
$client->setOption(Memcached::OPT_COMPRESSION, ($argv[3] ?? '') === 'defaults');
$client->setOption(Memcached::OPT_CONNECT_TIMEOUT, 60000);
$client->setOption(Memcached::OPT_POLL_TIMEOUT, 60000);
$client->addServer('127.0.0.1', (int)$argv[1]);
$token = null;

/* What was not found or not stored is no error; all else is. */
function checked($outcome)
{
    global $client;
    $ordinary = [Memcached::RES_SUCCESS, Memcached::RES_NOTFOUND, Memcached::RES_NOTSTORED, Memcached::RES_DATA_EXISTS];
    if ($outcome === false && !in_array($client->getResultCode(), $ordinary, true)) {
        $text = $client->getLastErrorMessage();
        throw new RuntimeException($text && $text !== 'SUCCESS' ? $text : $client->getResultMessage());
    }
    return $outcome;
}

function value($outcome)
{
    return checked($outcome) === false ? null : $outcome;
}

play([
    'get' => fn($key) => value($client->get($key)),
    'gets' => function ($key) {
        global $client, $token;
        $found = checked($client->get($key, null, Memcached::GET_EXTENDED));
        $token = $found['cas'] ?? null;
        return $found['value'] ?? null;
    },
    'multi' => function (...$keys) {
        global $client;
        $found = checked($client->getMulti($keys));
        return array_map(fn($key) => $found[$key] ?? null, $keys);
    },
    'set' => fn($key, $data, $ttl = 0) => checked($client->set($key, $data, (int)$ttl)),
    'add' => fn($key, $data) => checked($client->add($key, $data)),
    'append' => fn($key, $data) => checked($client->append($key, $data)),
    'prepend' => fn($key, $data) => checked($client->prepend($key, $data)),
    'cas' => function ($key, $data) {
        global $client, $token;
        return checked($client->cas($token, $key, $data));
    },
    'incr' => fn($key, $number) => value($client->increment($key, (int)$number)),
    'decr' => fn($key, $number) => value($client->decrement($key, (int)$number)),
    'touch' => fn($key, $ttl) => checked($client->touch($key, (int)$ttl)),
    'delete' => fn($key) => checked($client->delete($key)),
]);
