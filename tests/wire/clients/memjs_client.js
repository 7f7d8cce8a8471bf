// memjs, from npm
'use strict';
const memjs = require('memjs');
const { play } = require('./steps.js');

const quiet = { log() {} };
const client = memjs.Client.create(`127.0.0.1:${process.argv[2]}`, { timeout: 60, conntimeout: 60, retries: 1, logger: quiet });
const value = (found) => (found.value === null ? null : found.value.toString());

play({
    get: async (key) => value(await client.get(key)),
    set: (key, data, ttl = 0) => client.set(key, data, { expires: Number(ttl) }),
    add: (key, data) => client.add(key, data, {}),
    append: (key, data) => client.append(key, data),
    prepend: (key, data) => client.prepend(key, data),
    incr: async (key, number) => (await client.increment(key, Number(number), {})).value,
    decr: async (key, number) => (await client.decrement(key, Number(number), {})).value,
    touch: (key, ttl) => client.touch(key, Number(ttl)),
    delete: (key) => client.delete(key),
}, () => client.close());
