/*
 * A client for setlistd: sets, lists, counters, leases, cache tags. It needs no other module.
 *
 *     const { Setlistd } = require("./setlistd");
 *     const c = new Setlistd({ port: 11311 });
 *     await c.sadd("topic-1", "ann", "bob");      // true
 *     await c.smembers("topic-1");                // Set { "ann", "bob" }
 *     await c.load("topic-2", () => database.members("topic-2"));
 *
 * The methods have the names and arguments of the commands in setlistd-protocol(7); setlistd.d.ts
 * describes them. They resolve to sets, arrays, numbers and booleans, or to null if the key or an
 * element is missing. They reject with a SetlistdError, which has the text of setlistd, or with the
 * error of the connection. Calls share a connection and are pipelined; one that waits, such as
 * blpop, has its own. Elements are strings, Buffers or numbers, and strings in results, which have
 * a character for each byte with encoding: "latin1"; otherwise only UTF-8 is possible.
 */
"use strict";
const net = require("net");
const tls = require("tls");

class SetlistdError extends Error {}
class Busy extends SetlistdError {}

const RENDERING = 60; // Seconds within which an item with tags is rendered; later it is not stored.
const found = (read) => ({ line }) => line === "NOT_FOUND" ? null : read(line);
const one = ({ values, text }) => values.length ? text(values[0]) : null;
const list = ({ values, text }) => values.length ? split(values[0]).map(text) : [];

/* Functions that return the result of a reply, by the names of commands. */
const READERS = {
	"sadd saddex saddx srem sset smove rpush rpushx lpush lpushx lset lrem ltrim lack lfail delete":
		({ line }) => line !== "NOT_FOUND",
	"sclaim": ({ line }) => line === "1",
	"sexpire sttl scard scount llen lpos linsert evincr evlimit": found(Number),
	"sunioncard sintercard sdiffcard sunionstore sinterstore sdiffstore": found(Number),
	"sismember": found((line) => line === "1"),
	"smismember": found((line) => line.split(" ").map((bit) => bit === "1")),
	"smembers sunion sinter sdiff": (reply) => reply.values.length ? new Set(list(reply)) : null,
	"lrange lmpop srange sscan stake": list,
	"get lindex lmove rpoplpush blpop brpop blmove": one,
	"lpop rpop spop srandmember": (reply, words) => words.length > 1 ? list(reply) : one(reply),
	"evcount": ({ values }) => Object.fromEntries(values.map((line) => line.split(" ").slice(1))
		.map(([bucket, count]) => [bucket, Number(count)])),
};
/* In these commands, quotes and literals are ordinary bytes. */
const PLAIN = /^(s(members|et|(union|inter|diff)\w*)|lmpop|b.*|gets?|add|cas|delete|ev.*)$/;
const UTF8 = new TextDecoder("utf-8", { fatal: true });
const LETTERS = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\x07" };

/* Returns the elements of a reply: words, some of which are in quotes. */
function split(text) {
	const unescape = (_, hex, byte) =>
		hex ? String.fromCharCode(parseInt(hex, 16)) : LETTERS[byte] ?? byte;
	if (!text.includes('"'))
		return text === "" ? [] : text.split(" ");
	return Array.from(text.matchAll(/"((?:[^"\\]|\\.)*)"|[^ ]+/g), ([word, quoted]) =>
		quoted === undefined ? word : quoted.replace(/\\(?:x([0-9a-f]{2})|(.))/g, unescape));
}

/* A long element, or one with other bytes, is sent as a literal: its size, then its bytes. */
function argument(word, plain) {
	const isWord = /^[^\0-\x20\x7f]+$/.test(word);
	if (plain && !isWord)
		throw new SetlistdError("a key is a word");
	return isWord && (plain || (word.length < 64 && !/^["'{]|^noreply$/.test(word)))
		? ` ${word}` : ` {${word.length}}\r\n${word}`;
}

/* Requests and replies are strings with a character for each byte. */
class Connection {
	constructor({ tls: secure, login, timeout, ...where }) {
		this.queue = [];
		this.values = [];
		this.data = Buffer.alloc(0);
		this.socket = secure ? tls.connect({ ...where, ...secure }) : net.connect(where);
		this.socket.setNoDelay(true);
		this.socket.on("data", (chunk) => this.receive(chunk));
		this.socket.on("error", (error) => this.fail(error));
		this.socket.on("close", () => this.fail(new Error("setlistd has closed the connection")));
		if (login)
			this.send(`set auth 0 0 ${login.join(" ").length}\r\n${login.join(" ")}\r\n`, timeout)
				.catch((error) => this.fail(error));
	}

	/* limit: seconds until the call and the connection fail; 0: never. */
	send(request, limit) {
		const late = () => this.fail(new Error("setlistd has not answered in time"));
		const timer = limit ? setTimeout(late, 1000 * limit) : undefined;
		this.socket.ref();
		this.socket.write(request, "latin1");
		return new Promise((resolve, reject) => this.queue.push({ resolve, reject }))
			.finally(() => clearTimeout(timer));
	}

	fail(error) {
		this.failure ??= error;
		this.queue.splice(0).forEach(({ reject }) => reject(this.failure));
		this.socket.destroy();
	}

	/* The values of a reply are data, each with its cas id if the request was for that. */
	receive(chunk) {
		let data = Buffer.concat([this.data, chunk]), end;
		while ((end = data.indexOf("\r\n")) >= 0) {
			const line = data.latin1Slice(0, end);
			const [word, , , bytes, ...cas] = line.split(" ");
			const size = word === "VALUE" ? Number(bytes) + 2 : 0;
			if (end + 2 + size > data.length)
				break;
			if (size)
				this.values.push(data.latin1Slice(end + 2, end + size), ...cas);
			else if (word === "COUNT")
				this.values.push(line);
			else
				this.finish(line, this.values.splice(0));
			data = data.subarray(end + 2 + size);
		}
		this.data = data;
	}

	finish(line, values) {
		const { resolve, reject } = this.queue.shift() ?? {};
		const error = /^(?:CLIENT_|SERVER_)?ERROR ?(.*)/.exec(line);
		if (error)
			reject?.(new SetlistdError(error[1] || "no such command"));
		resolve?.({ line, values });
		if (this.queue.length === 0)
			this.socket.unref(); // The process can end.
	}
}

class Setlistd {
	constructor({ encoding = "utf8", ...where } = {}) {
		this.where = { host: "127.0.0.1", port: 11311, timeout: 3, ...where };
		this.encoding = encoding;
		this.idle = []; // Connections of calls that wait.
	}

	set(key, value, ttl = 0) {
		return this.store("set", key, this.bytes(value), ttl).then(() => true);
	}

	async remember(key, tags, ttl, render) {
		const item = async () => (await this.ask("gets", [key])).values;
		let [value, cas] = await item();
		if (value === undefined) {
			await this.store("add", key, "", RENDERING);
			[value, cas] = await item();
		}
		if (value)
			return this.text(value);
		// Before it is rendered, so that each later `invalidate` finds it.
		await Promise.all(tags.map((tag) => this.saddex(tag, ttl && ttl + 2 * RENDERING, key)));
		value = this.bytes(await render());
		if (cas) // It is not stored if the empty item was deleted meanwhile.
			await this.store("cas", key, value, ttl, cas);
		return this.text(value);
	}

	async invalidate(tag) {
		const text = (bytes) => Buffer.from(bytes, "latin1");
		let keys;
		do {
			keys = list({ ...await this.ask("stake", [tag]), text });
			await Promise.all(keys.map((key) => this.delete(key)));
		} while (keys.length);
	}

	async reserve(key, seconds, wait = 0.001) {
		const { values } = await this.ask("blhold", [wait, key, seconds]);
		const [ticket, deliveries, element] = values.length ? split(values[0]) : [];
		return ticket
			? { key, ticket, deliveries: Number(deliveries), element: this.text(element) } : null;
	}

	done({ key, ticket }) { return this.lack(key, ticket); }
	fail({ key, ticket }) { return this.lfail(key, ticket); }

	async load(key, loader, { timeout = 10, lease = 60 } = {}) {
		const end = Date.now() + 1000 * timeout;
		for (let pause = 10, found; ; pause = Math.min(2 * pause, 100)) {
			if ((found = await this.smembers(key)) !== null)
				return found;
			const [answer, token] = (await this.ask("slease", [key, lease])).line.split(" ");
			if (answer === "LEASE") {
				found = await this.fill(key, token, loader);
				return await this.smembers(key) ?? found; // Others may have changed it meanwhile.
			}
			if (Date.now() > end)
				throw new Busy(`another client is loading ${key}`);
			if (answer === "WAIT")
				await new Promise((resolve) => setTimeout(resolve, pause));
		}
	}

	async fill(key, token, loader) {
		try {
			const loaded = [...await loader()];
			await this.ask("sfill", [key, token, ...loaded]);
			return new Set(loaded.map((element) => this.text(this.bytes(element))));
		} catch (error) {
			await this.delete(key); // The next client need not wait until the lease ends.
			throw error;
		}
	}

	store(verb, key, data, ttl, ...cas) {
		return this.ask(verb, [key, 0, ttl, data.length, ...cas], `${data}\r\n`);
	}

	/* A command that waits, for ever if it is for 0 seconds, has a connection of its own. */
	async ask(verb, words, data = "") {
		const plain = PLAIN.test(verb);
		const line = verb + words.map((word) => argument(this.bytes(word), plain)).join("");
		const request = `${line}\r\n${data}`;
		const limit = this.where.timeout;
		if (!verb.startsWith("b")) {
			if (!this.connection || this.connection.failure)
				this.connection = new Connection(this.where);
			return this.connection.send(request, limit);
		}
		const connection = this.idle.pop() ?? new Connection(this.where);
		try {
			return await connection.send(request, words[0] && Number(words[0]) + limit);
		} finally {
			if (!connection.failure)
				this.idle.push(connection);
		}
	}

	bytes(element) {
		const bytes = Buffer.isBuffer(element) ? element : Buffer.from(`${element}`, this.encoding);
		return bytes.latin1Slice();
	}

	text(bytes) {
		const plain = this.encoding === "latin1" || !/[\x80-\xff]/.test(bytes);
		return plain ? bytes : UTF8.decode(Buffer.from(bytes, "latin1"));
	}
}

for (const [names, read] of Object.entries(READERS))
	for (const name of names.split(" "))
		Setlistd.prototype[name] = async function (...words) {
			const reply = await this.ask(name, words);
			return read({ ...reply, text: (bytes) => this.text(bytes) }, words);
		};

module.exports = { Setlistd, SetlistdError, Busy };
