#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include "reply.h"

#include <stdbool.h>

/*
 * A request as text, with
 *   %k a key        %v a value    %n the bytes of a value
 *   %m a member     %M a run of up to OPS_RUN members    %l the bytes of "+<member> "
 * In memcache it goes out as it stands, with CRLF behind it. For RESP the words become an array. "%b" alone is a get of the
 * binary protocol, with nothing behind it.
 */
struct form {
	const char *text; /* NULL: the protocol has no such request */
	enum reply_kind kind;
};

#define OPS_RUN 100

/* What an op needs to find on the server. */
enum load {
	LOAD_NOTHING,
	LOAD_VALUE,   /* each key holds a value */
	LOAD_COUNTER, /* each key holds a number */
	LOAD_LOG,     /* each key holds a short log */
	LOAD_MEMBER,  /* each key holds a set of one member */
	LOAD_MEMBERS, /* each key holds a set of all members */
	LOAD_ITEM,    /* each key holds a list of one item */
	LOAD_ITEMS,   /* each key holds a list of all members */
	LOAD_APART,   /* somebody else has stored what makes for replies of all members */
	LOADS,
};

/* The forms of one op or load, by protocol. */
struct op {
	const char *name;
	enum load load;
	struct form major[2]; /* memcache, RESP */
	struct form minor[2];
	unsigned minor_percent; /* this many of a hundred requests, drawn at random, are ${minor} */
	bool alternating;       /* instead, each second one is ${minor} */
	bool new_members;       /* members are not of those that were loaded */
	bool keyed;             /* the key is a command: its value is any number */
	unsigned keys;          /* keys named by one request; 0: others than the workload's */
	unsigned items;         /* members in a reply, where it is not all that there are */
};

/* All ops, ended by one without a name. */
extern const struct op ops[];

/* How to bring each load about. */
extern const struct op loads[LOADS];

#endif
