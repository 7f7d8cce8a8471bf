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
    if ($name !== 'load') {
        return $client->$name(...$args);
    }
    [$key, $members, $mode, $seconds] = $args;
    return $client->load($key, function () use ($client, $mode, $members) {
        $client->evincr('loads');
        if ($mode === 'fail') {
            throw new RuntimeException('the database has failed');
        }
        if ($mode === 'wait') {
            $client->blpop(0, 'go');
        }
        return $members;
    }, timeout: $seconds);
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
