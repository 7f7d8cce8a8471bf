<?php
/* php-memcached with the binary protocol. What comes of a `set` and a `get`. */
$client = new Memcached();
$client->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
$client->addServer('127.0.0.1', (int)$argv[1]);
if ($client->set('key', 'value')) {
    echo 'served: ', var_export($client->get('key'), true), "\n";
} else {
    echo 'refused: ', $client->getResultMessage(), "\n";
}
