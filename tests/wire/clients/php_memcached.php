<?php
/* php-memcached. It refuses to append while it compresses. What it does is said in scenario.py. */
$client = new Memcached();
$client->setOption(Memcached::OPT_COMPRESSION, false);
$client->setOption(Memcached::OPT_CONNECT_TIMEOUT, 60000);
$client->setOption(Memcached::OPT_POLL_TIMEOUT, 60000);
$client->addServer('127.0.0.1', (int)$argv[1]);
[, , $one, $other, $items] = $argv;

function reply($what, $good)
{
    echo "$what: ", $good ? 'yes' : 'no', "\n";
}

function value($what, $text)
{
    echo "$what: ", is_string($text) ? "<$text>" : 'missing', "\n";
}

function gets($key)
{
    global $client;
    $found = $client->get($key, null, Memcached::GET_EXTENDED);
    return [$found['value'] ?? null, $found['cas'] ?? 0];
}

value('missing set', $client->get($one));
reply('append to what is missing', $client->append($one, 'ann,bob,'));
reply('add', $client->add($one, 'ann,bob,'));
reply('append', $client->append($one, 'cyd'));
value('set', $client->get($one));
reply('prepend removes', $client->prepend($one, 'bob,'));
value('set', $client->get($one));
[, $token] = gets($one);
reply('cas', $client->cas($token, $one, 'dee,eve,'));
reply('cas with an old token', $client->cas($token, $one, 'fay,'));
[$text, $token] = gets($one);
value('gets', $text);
reply('append', $client->append($one, 'gus,'));
reply('cas after a change', $client->cas($token, $one, 'fay,'));
value('set', $client->get($one));
reply('set replaces', $client->set($other, 'hal,hal,ida'));
reply('append to what is missing', $client->append($items, '1,2,'));
reply('add', $client->add($items, '1,2,'));
reply('append to the list', $client->append($items, '2,3,'));
reply('prepend to the list', $client->prepend($items, '0,'));
value('list', $client->get($items));
[, $token] = gets($items);
reply('cas of the list', $client->cas($token, $items, '9,8,9,'));
reply('cas of the list with an old token', $client->cas($token, $items, '7,'));
$found = $client->getMulti([$one, $other, "$one-missing", $items]);
echo 'found: ', count($found), "\n";
foreach (['set' => $one, 'other set' => $other, 'list' => $items] as $what => $key) {
    value($what, $found[$key] ?? null);
}
foreach ([$one, $other, $items] as $key) {
    reply('delete', $client->delete($key));
    value('deleted', $client->get($key));
}
