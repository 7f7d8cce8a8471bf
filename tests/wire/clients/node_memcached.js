// memcached, from npm
'use strict';
const { promisify } = require('util');
const Memcached = require('memcached');
const { play } = require('./steps.js');

const client = new Memcached(`127.0.0.1:${process.argv[2]}`, { timeout: 60000, retries: 0, failures: 1000000 });
const call = (verb) => promisify(client[verb]).bind(client);
// It reports what was not stored or not found as an error of these words.
const asked = (verb) => (...words) => call(verb)(...words).catch((error) => {
    if (/^Item is not stored$/.test(error.message)) {
        return false;
    }
    throw error;
});
let token;

play({
    get: asked('get'),
    gets: async (key) => {
        const found = await call('gets')(key);
        token = found && found.cas;
        return found && found[key];
    },
    multi: async (...keys) => {
        const found = await call('getMulti')(keys);
        return keys.map((key) => found[key]);
    },
    set: (key, data, ttl = 0) => asked('set')(key, data, Number(ttl)),
    add: (key, data) => asked('add')(key, data, 0),
    append: asked('append'),
    prepend: asked('prepend'),
    cas: (key, data) => asked('cas')(key, data, token, 0),
    incr: (key, number) => asked('incr')(key, Number(number)),
    decr: (key, number) => asked('decr')(key, Number(number)),
    touch: (key, ttl) => asked('touch')(key, Number(ttl)),
    delete: asked('del'),
}, () => client.end());
