<?php
/* php-memcache. It reports most errors of a server as false and a notice. */
require __DIR__ . '/steps.php';

ini_set('memcache.protocol', $argv[2] === 'binary' ? 'binary' : 'ascii');
$client = new Memcache();
$client->addServer('127.0.0.1', (int)$argv[1], true, 1, 60, 0);
if (($argv[3] ?? '') !== 'defaults') {
    $client->setCompressThreshold(0);
}
$token = null;
$notice = null;
set_error_handler(function ($level, $text) {
    global $notice;
    $notice = $text;
    return true;
});

/* The notice that came with it is the error. */
function checked($outcome)
{
    global $notice;
    $text = $notice;
    $notice = null;
    if ($text !== null) {
        throw new RuntimeException($text);
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
        $flags = 0;
        $token = 0;
        return value($client->get($key, $flags, $token));
    },
    'multi' => function (...$keys) {
        global $client;
        $found = checked($client->get($keys));
        return array_map(fn($key) => $found[$key] ?? null, $keys);
    },
    'set' => fn($key, $data, $ttl = 0) => checked($client->set($key, $data, 0, (int)$ttl)),
    'add' => fn($key, $data) => checked($client->add($key, $data)),
    'append' => fn($key, $data) => checked($client->append($key, $data)),
    'prepend' => fn($key, $data) => checked($client->prepend($key, $data)),
    'cas' => function ($key, $data) {
        global $client, $token;
        return checked($client->cas($key, $data, 0, 0, $token));
    },
    'incr' => fn($key, $number) => value($client->increment($key, (int)$number)),
    'decr' => fn($key, $number) => value($client->decrement($key, (int)$number)),
    'delete' => fn($key) => checked($client->delete($key)),
]);
