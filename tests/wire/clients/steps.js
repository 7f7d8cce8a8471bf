// Reads steps and prints answers for the Node clients. steps.py says what they are.
'use strict';
const readline = require('readline');

const text = (value) => (value === null || value === undefined ? 'missing' : `<${value}>`);

function answer(verb, outcome) {
    switch (verb) {
    case 'multi':
        return outcome.map(text).join('\t');
    case 'get':
    case 'gets':
        return text(outcome);
    case 'incr':
    case 'decr':
        return outcome === null || outcome === false ? 'missing' : String(outcome);
    default:
        return outcome ? 'yes' : 'no';
    }
}

// verbs are functions that give promises.
exports.play = async (verbs, close) => {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const [verb, ...words] = line.replaceAll('\v', '\n').split('\t');
        try {
            console.log(verbs[verb] ? answer(verb, await verbs[verb](...words)).replaceAll('\n', '\v') : 'none');
        } catch (error) {
            console.log(`error: ${String(error.message || error).split(/\s+/).join(' ')}`);
        }
    }
    close();
};
