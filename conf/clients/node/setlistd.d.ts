/* The types of setlistd.js. Methods have the names and arguments of the commands. */
import type { ConnectionOptions } from "tls";

export type Element = string | Buffer | number;
export type Key = string | Buffer;
export type End = "left" | "right";

export interface Options {
	host?: string; // 127.0.0.1
	port?: number; // 11311
	path?: string; // Of a Unix socket.
	timeout?: number; // Seconds, 3 by default.
	login?: [user: string, password: string];
	tls?: ConnectionOptions;
	encoding?: "utf8" | "latin1"; // latin1: each character of an element is a byte.
}

export interface Job {
	key: Key;
	ticket: string;
	element: string;
	deliveries: number; // How often it was reserved.
}

/* setlistd has refused a command. The message is that of setlistd. */
export class SetlistdError extends Error {}
/* Another client was loading the key for the whole time. */
export class Busy extends SetlistdError {}

export class Setlistd {
	constructor(options?: Options);

	/* Sets. false: the set is missing. */
	sadd(key: Key, ...members: Element[]): Promise<boolean>;
	/* After these seconds the members expire; 0: never. */
	saddex(key: Key, seconds: number, ...members: Element[]): Promise<boolean>;
	/* The number of them that are in the set; null: it is missing. */
	sexpire(key: Key, seconds: number, ...members: Element[]): Promise<number | null>;
	/* The seconds until it expires, -1: never; null: it is not in the set. */
	sttl(key: Key, member: Element): Promise<number | null>;
	saddx(key: Key, ...members: Element[]): Promise<boolean>;
	srem(key: Key, ...members: Element[]): Promise<boolean>;
	sset(key: Key, ...members: Element[]): Promise<boolean>;
	smove(source: Key, target: Key, member: Element): Promise<boolean>;
	/* Whether this call has added it, for one client only. */
	sclaim(key: Key, member: Element): Promise<boolean>;
	/* null: the set is missing. */
	smembers(key: Key): Promise<Set<string> | null>;
	scard(key: Key): Promise<number | null>;
	scount(key: Key, from: Element, to: Element): Promise<number | null>;
	sismember(key: Key, member: Element): Promise<boolean | null>;
	smismember(key: Key, ...members: Element[]): Promise<boolean[] | null>;
	sunion(...keys: Key[]): Promise<Set<string>>;
	sinter(...keys: Key[]): Promise<Set<string>>;
	sdiff(...keys: Key[]): Promise<Set<string>>;
	sunioncard(n: number, ...keys: (Key | number)[]): Promise<number>;
	sintercard(n: number, ...keys: (Key | number)[]): Promise<number>;
	sdiffcard(n: number, ...keys: (Key | number)[]): Promise<number>;
	sunionstore(target: Key, ...keys: Key[]): Promise<number>;
	sinterstore(target: Key, ...keys: Key[]): Promise<number>;
	sdiffstore(target: Key, ...keys: Key[]): Promise<number>;
	srange(key: Key, from: Element, to: Element, count: number): Promise<string[]>;
	sscan(key: Key, count: number, after?: Element): Promise<string[]>;
	spop(key: Key): Promise<string | null>;
	spop(key: Key, count: number): Promise<string[]>;
	srandmember(key: Key): Promise<string | null>;
	srandmember(key: Key, count: number): Promise<string[]>;
	/* Removes all members, each for one client only. Repeat it until the result is empty. */
	stake(key: Key, count?: number): Promise<string[]>;

	/* Lists. false: the list is missing. */
	rpush(key: Key, ...elements: Element[]): Promise<boolean>;
	lpush(key: Key, ...elements: Element[]): Promise<boolean>;
	rpushx(key: Key, ...elements: Element[]): Promise<boolean>;
	lpushx(key: Key, ...elements: Element[]): Promise<boolean>;
	lset(key: Key, index: number, element: Element): Promise<boolean>;
	lrem(key: Key, count: number, element: Element): Promise<boolean>;
	ltrim(key: Key, start: number, stop: number): Promise<boolean>;
	lack(key: Key, ticket: string): Promise<boolean>;
	lfail(key: Key, ticket: string): Promise<boolean>;
	linsert(key: Key, where: "before" | "after", pivot: Element, element: Element):
		Promise<number | null>;
	llen(key: Key): Promise<number | null>;
	lpos(key: Key, element: Element): Promise<number | null>;
	lindex(key: Key, index: number): Promise<string | null>;
	lrange(key: Key, start: number, stop: number): Promise<string[]>;
	lpop(key: Key): Promise<string | null>;
	lpop(key: Key, count: number): Promise<string[]>;
	rpop(key: Key): Promise<string | null>;
	rpop(key: Key, count: number): Promise<string[]>;
	lmpop(count: number, end: End, ...keys: Key[]): Promise<string[]>;
	lmove(source: Key, target: Key, take: End, put: End): Promise<string | null>;
	rpoplpush(source: Key, target: Key): Promise<string | null>;
	/* null after so many seconds; 0 waits for ever. */
	blpop(seconds: number, ...keys: Key[]): Promise<string | null>;
	brpop(seconds: number, ...keys: Key[]): Promise<string | null>;
	blmove(seconds: number, source: Key, target: Key, take: End, put: End): Promise<string | null>;

	/* Counters. */
	evincr(event: Key, delta?: number, time?: number): Promise<number>;
	/* 0: above the limit. */
	evlimit(event: Key, limit: number, seconds: number): Promise<number>;
	evcount(event: Key, from?: string | number, to?: string | number):
		Promise<{ [bucket: string]: number }>;

	/* Queues. A job is given back after so many seconds, unless it is done; wait: see blpop. */
	reserve(key: Key, seconds: number, wait?: number): Promise<Job | null>;
	/* false: the time of the job is over, and another client may have it. */
	done(job: Job): Promise<boolean>;
	/* Gives it back at once, to the other end of the list. */
	fail(job: Job): Promise<boolean>;

	/* Plain items. */
	get(key: Key): Promise<string | null>;
	set(key: Key, value: Element, ttl?: number): Promise<boolean>;
	delete(key: Key): Promise<boolean>;

	/*
	 * The value of the item. If it is missing, it is rendered, and stored for ttl seconds, 0: for
	 * ever. Each tag is the key of a set, which has the keys of such items.
	 */
	remember(
		key: Key, tags: Key[], ttl: number, render: () => Element | Promise<Element>,
	): Promise<string>;
	/* Deletes all items with this tag. Call it after the data have changed. */
	invalidate(tag: Key): Promise<void>;

	/* The members of the set; if it is missing, one client calls its loader and all others wait. */
	load(
		key: Key, loader: () => Iterable<Element> | Promise<Iterable<Element>>,
		options?: { timeout?: number, lease?: number },
	): Promise<Set<string>>;
}
