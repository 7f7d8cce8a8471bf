/* Runs calls of conf/clients/node/setlistd.js; see driver.py. */
"use strict";
const readline = require("readline");
const { Setlistd, SetlistdError, Busy } = require("../../../conf/clients/node/setlistd.js");

const { timeout, login } = JSON.parse(process.argv[3]);
const client = new Setlistd({ port: Number(process.argv[2]), timeout, login: login ?? undefined, encoding: "latin1" });

const jobs = [];

async function call(name, ...args) {
    if (name === "reserve") {
        const job = await client.reserve(...args);
        jobs.push(job);
        return job && [job.element, job.deliveries];
    }
    if (name === "done" || name === "fail")
        return client[name](jobs[args[0]]);
    if (name !== "load")
        return client[name](...args);
    const [key, members, mode, seconds] = args;
    return client.load(key, async () => {
        await client.evincr("loads");
        if (mode === "fail")
            throw new Error("the database has failed");
        if (mode === "wait")
            await client.blpop(0, "go");
        return members;
    }, { timeout: seconds });
}

(async () => {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        let reply;
        try {
            const result = await call(...JSON.parse(line));
            reply = result instanceof Set ? { set: [...result].sort() } : { ok: result };
        } catch (error) {
            const kind = error instanceof Busy ? "busy" : error instanceof SetlistdError ? "setlistd" : "other";
            reply = { error: error.message, kind };
        }
        console.log(JSON.stringify(reply));
    }
})();
