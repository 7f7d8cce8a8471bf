<?php
/* Reads steps and prints answers for the PHP clients. steps.py says what they are. */

/* verb => function(key, ...); a value is a string or null, an answer true or false; an error is a RuntimeException. */
function play(array $verbs)
{
    while (($line = fgets(STDIN)) !== false) {
        $words = explode("\t", strtr(rtrim($line, "\n"), "\v", "\n"));
        $verb = array_shift($words);
        try {
            $answer = isset($verbs[$verb]) ? answer($verb, $verbs[$verb](...$words)) : 'none';
            echo strtr($answer, "\n", "\v"), "\n";
        } catch (RuntimeException $error) {
            echo 'error: ', preg_replace('/\s+/', ' ', $error->getMessage()), "\n";
        }
    }
}

function text($value)
{
    return $value === null ? 'missing' : "<$value>";
}

function answer($verb, $outcome)
{
    switch ($verb) {
    case 'multi':
        return implode("\t", array_map('text', $outcome));
    case 'get':
    case 'gets':
        return text($outcome);
    case 'incr':
    case 'decr':
        return $outcome === null ? 'missing' : (string)$outcome;
    default:
        return $outcome ? 'yes' : 'no';
    }
}
