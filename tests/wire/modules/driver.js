/* Runs calls of conf/clients/node/setlistd.js; see driver.py. */
"use strict";
const readline = require("readline");
const { Setlistd, SetlistdError, Busy } = require("../../../conf/clients/node/setlistd.js");

const { timeout, login } = JSON.parse(process.argv[3]);
const client = new Setlistd({ port: Number(process.argv[2]), timeout, login: login ?? undefined, encoding: "latin1" });

const jobs = [];

function loader(mode, result, counter) {
    return async () => {
        await client.evincr(counter);
        if (mode === "fail")
            throw new Error("the database has failed");
        if (mode === "wait")
            await client.blpop(0, "go");
        return result;
    };
}

async function call(name, ...args) {
    if (name === "reserve") {
        const job = await client.reserve(...args);
        jobs.push(job);
        return job && [job.element, job.deliveries];
    }
    if (name === "done" || name === "fail")
        return client[name](jobs[args[0]]);
    if (name === "load") {
        const [key, members, mode, seconds] = args;
        return client.load(key, loader(mode, members, "loads"), { timeout: seconds });
    }
    if (name === "remember") {
        const [key, tags, ttl, value, mode] = args;
        return client.remember(key, tags, ttl, loader(mode, value, "renderings"));
    }
    return client[name](...args);
}

(async () => {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        let reply;
        try {
            const result = await call(...JSON.parse(line));
            reply = result instanceof Set ? { set: [...result].sort() } : { ok: result ?? null };
        } catch (error) {
            const kind = error instanceof Busy ? "busy" : error instanceof SetlistdError ? "setlistd" : "other";
            reply = { error: error.message, kind };
        }
        console.log(JSON.stringify(reply));
    }
})();
