<?php
/* Runs calls of conf/clients/php/Setlistd.php; see driver.py. */
require __DIR__ . '/../../../conf/clients/php/Setlistd.php';

$options = json_decode($argv[2], true);
$client = new Setlistd('127.0.0.1', (int)$argv[1], timeout: $options['timeout'], login: $options['login']);

/* In JSON each character is a byte. */
function convert($value, $from, $to)
{
    if (is_array($value)) {
        return array_map(fn($part) => convert($part, $from, $to), $value);
    }
    return is_string($value) ? iconv($from, $to, $value) : $value;
}

function loader($client, $mode, $result, $counter)
{
    return function () use ($client, $mode, $result, $counter) {
        $client->evincr($counter);
        if ($mode === 'fail') {
            throw new RuntimeException('the database has failed');
        }
        if ($mode === 'wait') {
            $client->blpop(0, 'go');
        }
        return $result;
    };
}

function call($client, $name, ...$args)
{
    global $jobs;
    if ($name === 'reserve') {
        $jobs[] = $job = $client->reserve(...$args);
        return $job ? [$job->element, $job->deliveries] : null;
    }
    if ($name === 'done' || $name === 'fail') {
        return $client->$name($jobs[$args[0]]);
    }
    if ($name === 'load') {
        [$key, $members, $mode, $seconds] = $args;
        return $client->load($key, loader($client, $mode, $members, 'loads'), timeout: $seconds);
    }
    if ($name === 'remember') {
        [$key, $tags, $ttl, $value, $mode] = $args;
        return $client->remember($key, $tags, $ttl, loader($client, $mode, $value, 'renderings'));
    }
    return $client->$name(...$args);
}

while (($line = fgets(STDIN)) !== false) {
    try {
        $reply = ['ok' => convert(call($client, ...convert(json_decode($line, true), 'UTF-8', 'ISO-8859-1')), 'ISO-8859-1', 'UTF-8')];
    } catch (SetlistdBusy $error) {
        $reply = ['error' => $error->getMessage(), 'kind' => 'busy'];
    } catch (SetlistdException $error) {
        $reply = ['error' => $error->getMessage(), 'kind' => $error->getCode() === Memcached::RES_TIMEOUT ? 'other' : 'setlistd'];
    } catch (RuntimeException $error) {
        $reply = ['error' => $error->getMessage(), 'kind' => 'other'];
    }
    echo json_encode($reply), "\n";
}
