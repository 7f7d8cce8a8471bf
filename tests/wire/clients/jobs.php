<?php
/* A queue of jobs, with php-memcached. jobs.py describes the arguments. */
$queue = new Memcached();
$queue->setOption(Memcached::OPT_COMPRESSION, false);
$queue->setOption(Memcached::OPT_CONNECT_TIMEOUT, 60000);
$queue->setOption(Memcached::OPT_POLL_TIMEOUT, 60000);
$queue->addServer('127.0.0.1', (int)$argv[1]);

/* getResultCode is RES_NOTFOUND after an error, too. */
function check($queue)
{
    if ($queue->getLastErrorCode() !== 0) {
        fwrite(STDERR, $queue->getLastErrorMessage() . "\n");
        exit(1);
    }
}

function put($queue)
{
    while (($line = fgets(STDIN)) !== false) {
        $queue->set('q|rpush1|jobs', base64_decode($line));
        check($queue);
    }
}

function take($queue)
{
    while (($job = $queue->get('q|blpop|5|jobs')) !== 'end') {
        check($queue);
        if ($job !== false)
            echo base64_encode($job), "\n";
    }
}

$argv[2] === 'put' ? put($queue) : take($queue);
