/*
 * Calls to memcached and their results, independent of the dialect. Commands make calls and get results. A dialect turns calls
 * into bytes, and bytes into results.
 */
#ifndef PROTOCOL_CALL_H
#define PROTOCOL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

enum call_verb {
	CALL_GET,
	CALL_GAT,
	CALL_SET,
	CALL_ADD,
	CALL_REPLACE,
	CALL_APPEND,
	CALL_PREPEND,
	CALL_CAS,
	CALL_INCR,
	CALL_DECR,
	CALL_DELETE,
	CALL_TOUCH,
	CALL_FLUSH_ALL,
	CALL_DISCARD, /* deletes an item whose new value is too large */
	CALL_META,    /* a client's meta command, passed on */
	/* the greeting of a new connection: */
	CALL_VERSION,
	CALL_NOOP,
	CALL_STATS
};

/* The parts of an item that a GET or GAT reads. */
enum { WANT_VALUE = 1, WANT_CAS = 2, WANT_TTL = 4, WANT_SIZE = 8 };

/*
 * What a META command needs around it. FLUSH: a no-op in front, at which a server writes all pending replies, and releases their
 * items. FENCE: a no-op behind, as the command may have no reply; then the line of the result is MN.
 */
enum { WANT_FLUSH = 16, WANT_FENCE = 32 };

/* Of a GET, a GAT or a write: the key has spaces or control bytes, and goes to the server in base64. */
enum { WANT_ENCODED = 64 };

enum { CALL_ANY_SERVER = -1 };

/* One call. Its slices are borrowed until the function that sends it returns. */
struct call {
	enum call_verb verb;
	unsigned want;      /* WANT_ bits; a write may have WANT_CAS, for the cas id that the item gets */
	int server;         /* the index of a server, or CALL_ANY_SERVER for the one that holds the key */
	struct slice key;   /* also decides the server of a META */
	struct slice value; /* the data block of a storage verb, or of a META with has_value */
	struct slice line;  /* META: the line without its end; STATS: the group */
	bool has_value;     /* META: a data block follows */
	bool discards;      /* SET, META: if the value is too large, the call becomes a DISCARD */
	bool vivifies;      /* INCR, DECR with WANT_CAS: a missing item is made, with `initial` and `exptime` */
	uint32_t flags;
	uint32_t expected; /* bytes of a value that is rewritten, or of a large one in the reply, as a guess; else 0 */
	bool patient;      /* GET: is sent once the server has room for what is expected. The key is the waiter's */
	bool only_reads; /* GET: no write depends on the cas id, so the reply may come from a server that the item leaves */
	/* GET, STATS: a write of the same key follows, and no other call may come between. If the write waits, so does this. */
	bool leads;
	int64_t exptime;
	uint64_t number;     /* CAS: the cas id; INCR, DECR: the delta */
	uint64_t initial;    /* of an item that is made */
	uint64_t compare;    /* a write with WANT_CAS: only if the item has this cas id; 0: whatever it has */
	uint64_t connection; /* CAS: the connection on which the cas id was read; 0 if a client sent it */
};

enum result_status {
	RESULT_HIT,         /* GET, GAT: value, flags, cas, ttl, size as in `want` */
	RESULT_MISS,        /* END, NOT_FOUND */
	RESULT_DONE,        /* STORED, DELETED, TOUCHED, OK */
	RESULT_NOT_STORED,  /* ADD, REPLACE, APPEND, PREPEND */
	RESULT_EXISTS,      /* CAS, or a call that compares: the item has changed */
	RESULT_NUMBER,      /* INCR, DECR: number */
	RESULT_TEXT,        /* META: line and value; VERSION, NOOP, STATS: line */
	RESULT_REFUSED,     /* the server replied an error: line */
	RESULT_TOO_LARGE,   /* not sent: above the server's item size; DISCARD: done, or a miss */
	RESULT_BUSY,        /* not sent: the server's queue is full */
	RESULT_UNAVAILABLE, /* not sent: the server is down */
	RESULT_TIMED_OUT,   /* sent, no reply in time: outcome unknown */
	RESULT_LOST         /* sent, then the connection broke: outcome unknown */
};

enum { TTL_NEVER = -1, TTL_UNKNOWN = -2 };

/* One result. Its slices are valid until waiter->done returns. */
struct result {
	enum result_status status;
	bool suspect; /* an error after which the connection must be closed */
	struct slice value, line;
	uint32_t flags;
	int64_t ttl; /* seconds, TTL_NEVER or TTL_UNKNOWN */
	uint64_t cas, size, number;
	const char *server;  /* "host:port", for error lines */
	uint64_t connection; /* its number; a cas id is valid on this connection only */
};

/*
 * The callback of a call. `done` is called exactly once, and never inside the function that sends the call. The caller owns the
 * waiter and the bytes of its key, and must not move or free them before that.
 */
struct waiter {
	void (*done)(struct waiter *waiter, const struct result *result);
	struct slice key;
};

/* Whether the call was not carried out, or may not have been. */
static inline bool result_failed(const struct result *r)
{
	return r->status >= RESULT_REFUSED;
}

/*
 * Whether a write that failed has stored nothing for certain. Of the errors that a server replies, only those are certain by which
 * memcached says that it has no room for the value. Others may come from a proxy that has lost its server after the write was sent.
 */
static inline bool result_stored_nothing(const struct result *r)
{
	if (r->status == RESULT_REFUSED)
		return slice_equal(r->line, SLICE("SERVER_ERROR out of memory storing object")) ||
			slice_equal(r->line, SLICE("SERVER_ERROR object too large for cache"));
	return r->status == RESULT_TOO_LARGE || r->status == RESULT_BUSY || r->status == RESULT_UNAVAILABLE;
}

/* Whether it changes one item, and says so in a way that only a server with meta commands understands. */
static inline bool call_is_meta_write(enum call_verb verb, unsigned want)
{
	return (want & (WANT_CAS | WANT_ENCODED)) && verb >= CALL_SET && verb <= CALL_DELETE;
}

/* Whether a server without meta commands cannot carry it out. If it only asks for the cas id of a write, it gets 0. */
static inline bool call_needs_meta(const struct call *call)
{
	return call->verb == CALL_META || call->compare || call->vivifies || call->want & WANT_ENCODED;
}

/* Whether the verb is followed by a data block of its own. */
static inline bool call_stores(enum call_verb verb)
{
	return verb >= CALL_SET && verb <= CALL_CAS;
}

#endif
