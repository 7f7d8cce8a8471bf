/*
 * The waist: what commands ask of memcached, and what comes back, in no dialect. Commands speak calls and results; dialects
 * turn calls into bytes and bytes into results.
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
	CALL_META, /* a client's own meta command, passed on as it is */
	/* what a new connection is asked: */
	CALL_VERSION,
	CALL_NOOP,
	CALL_STATS
};

/* What a GET or GAT should bring beside the fact that the item is there. */
enum { WANT_VALUE = 1, WANT_CAS = 2, WANT_TTL = 4, WANT_SIZE = 8 };

enum { CALL_ANY_SERVER = -1 };

/* One call. The slices are borrowed until the call was sent (encoded), not until its result. */
struct call {
	enum call_verb verb;
	unsigned want;      /* WANT_ bits of a GET or GAT */
	int server;         /* its index, or CALL_ANY_SERVER: the one that holds the key */
	struct slice key;   /* decides the server */
	struct slice value; /* the data block of a storage verb; of a META, when has_value */
	struct slice line;  /* META: the line without its end; STATS: the group */
	bool has_value;     /* META: a data block follows */
	uint32_t flags;
	int64_t exptime;
	uint64_t number;     /* CAS: the token; INCR, DECR: the delta */
	uint64_t connection; /* CAS: the connection on which the token was read, 0 when a client brought it */
};

enum result_status {
	RESULT_HIT,         /* GET, GAT: value, flags, cas, ttl, size as wanted */
	RESULT_MISS,        /* END, NOT_FOUND */
	RESULT_DONE,        /* STORED, DELETED, TOUCHED, OK */
	RESULT_NOT_STORED,  /* ADD, REPLACE, APPEND, PREPEND */
	RESULT_EXISTS,      /* CAS lost */
	RESULT_NUMBER,      /* INCR, DECR: number */
	RESULT_TEXT,        /* META: line and value; VERSION, NOOP, STATS: line */
	RESULT_REFUSED,     /* the server answered an error: line */
	RESULT_TOO_LARGE,   /* not sent: more than the server stores */
	RESULT_BUSY,        /* not sent: too many calls wait for the server */
	RESULT_UNAVAILABLE, /* not sent: the server is down */
	RESULT_TIMED_OUT,   /* sent, no reply in time: outcome unknown */
	RESULT_LOST         /* sent, then the connection was lost: outcome unknown */
};

enum { TTL_NEVER = -1, TTL_UNKNOWN = -2 };

/* One result. The slices are borrowed until the function that was given the result returns. */
struct result {
	enum result_status status;
	bool suspect; /* an error after which the connection cannot be trusted */
	struct slice value, line;
	uint32_t flags;
	int64_t ttl; /* seconds, TTL_NEVER or TTL_UNKNOWN */
	uint64_t cas, size, number;
	const char *server;  /* "host:port", for errors */
	uint64_t connection; /* on which connection it came: a cas id is worth nothing on another */
};

/*
 * Who waits for a result. Each call gets exactly one, and never inside the function that sent it. The waiter and its key
 * belong to whoever made the call and stay where they are until then.
 */
struct waiter {
	void (*done)(struct waiter *waiter, const struct result *result);
	struct slice key;
};

/* True when no server did what was asked, or it is not known whether one did. */
static inline bool result_failed(const struct result *r)
{
	return r->status >= RESULT_REFUSED;
}

static inline bool call_stores(enum call_verb verb)
{
	return verb >= CALL_SET && verb <= CALL_CAS;
}

#endif
