/*
 * Calls to memcached and their results, independent of the dialect. Commands make calls and
 * receive results. A dialect converts calls to bytes, and bytes to results.
 */
#ifndef PROTOCOL_CALL_H
#define PROTOCOL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/call_role.h"
#include "util/slice.h"

struct account;

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
	CALL_DISCARD, /* Deletes an item whose new value is too large. */
	CALL_META,    /* A client's meta command, passed on. */
	/* The greeting of a new connection. */
	CALL_VERSION,
	CALL_NOOP,
	CALL_STATS
};

/* The parts of an item that a GET or GAT reads. */
enum { WANT_VALUE = 1, WANT_CAS = 2, WANT_TTL = 4, WANT_SIZE = 8 };

/*
 * No-ops around a META command. FLUSH: a no-op before it, which makes a server write all
 * pending replies and release their items. FENCE: a no-op after it, as the command may have no
 * reply; then the line of the result is MN.
 */
enum { WANT_FLUSH = 16, WANT_FENCE = 32 };

/* For a GET, a GAT or a write: the key has spaces or control bytes, and is sent in base64. */
enum { WANT_ENCODED = 64 };

enum { CALL_ANY_SERVER = -1 };

/* For call.only_reads. */
enum { READS_ONLY = 1, READS_LATEST = 2 };

/* A call. Its slices are borrowed until the function that sends it returns. */
struct call {
	enum call_verb verb;
	/* WANT_ bits. A write may have WANT_CAS, to return the new CAS id of the item. */
	unsigned want;
	/* The index of a server, or CALL_ANY_SERVER for the server that holds the key. */
	int server;
	struct slice key;   /* The key, which also selects the server of a META. */
	struct slice value; /* The data block of a storage verb, or of a META with has_value. */
	struct slice line;  /* META: the line without its end. STATS: the group. */
	bool has_value;     /* META: a data block follows. */
	bool discards;      /* SET, META: the call becomes a DISCARD if the value is too large. */
	/* INCR, DECR with WANT_CAS: creates a missing item, with `initial` and `exptime`. */
	bool vivifies;
	uint32_t flags;
	/*
	 * Estimated bytes of a value that is rewritten, or of a large value in the reply; else
	 * 0.
	 */
	uint32_t expected;
	/*
	 * GET, TOUCH, DELETE: may be sent after later calls, once the server has room for it
	 * and it is the turn of its account. `key` must be waiter->key.
	 */
	bool patient;
	/*
	 * Of a patient call: the account of its client, which must stay valid until the result.
	 * NULL: background work.
	 */
	struct account *account;
	/*
	 * GET: no write depends on the CAS id, so the reply may be from a server that the item
	 * is moved away from, or from setlistd's memory; with READS_LATEST, not from memory.
	 */
	uint8_t only_reads;
	struct call_role role;
	int64_t exptime;
	uint64_t number;  /* CAS: the CAS id. INCR, DECR: the delta. */
	uint64_t initial; /* The value of a created item. */
	/* A write with WANT_CAS: only if the item has this CAS id. 0: unconditional. */
	uint64_t compare;
	/* CAS: the connection on which the CAS id was read; 0 if a client sent it. */
	uint64_t connection;
};

enum result_status {
	RESULT_HIT,        /* GET, GAT: value, flags, cas, ttl, size as in `want`. */
	RESULT_MISS,       /* END, NOT_FOUND. */
	RESULT_DONE,       /* STORED, DELETED, TOUCHED, OK. */
	RESULT_NOT_STORED, /* ADD, REPLACE, APPEND, PREPEND. */
	RESULT_EXISTS,     /* CAS, or a call with `compare`: the item has changed. */
	RESULT_NUMBER,     /* INCR, DECR: `number` is set. */
	RESULT_TEXT,       /* META: `line` and `value`. VERSION, NOOP, STATS: `line`. */
	RESULT_REFUSED,    /* The server replied the error in `line`. */
	/* Not sent: larger than the server's item size. DISCARD: done, or a miss. */
	RESULT_TOO_LARGE,
	RESULT_BUSY,        /* Not sent: the server's queue is full. */
	RESULT_UNAVAILABLE, /* Not sent: the server is down. */
	RESULT_TIMED_OUT,   /* Sent, but timed out: outcome unknown. */
	RESULT_LOST         /* Sent, then the connection was lost: outcome unknown. */
};

enum { TTL_NEVER = -1, TTL_UNKNOWN = -2 };

/* A result. Its slices are valid until waiter->done returns. */
struct result {
	enum result_status status;
	bool suspect;  /* An error after which the connection must be closed. */
	bool recalled; /* It is from setlistd's memory, and may not be the latest state. */
	struct slice value, line;
	uint32_t flags;
	int64_t ttl; /* Seconds, TTL_NEVER or TTL_UNKNOWN. */
	uint64_t cas, size, number;
	const char *server; /* "host:port", for error lines. */
	/* The number of the connection; a CAS id is valid only on this connection. */
	uint64_t connection;
};

/*
 * The callback of a call. `done` is called exactly once, and never inside the function that
 * sends the call. The caller owns the waiter and the bytes of its key, and must not move or
 * free them before that.
 */
struct waiter {
	void (*done)(struct waiter *waiter, const struct result *result);
	struct slice key;
};

/* Returns the result without its slices, which are borrowed. */
static inline struct result result_bare(const struct result *r)
{
	struct result bare = *r;

	bare.value = bare.line = SLICE("");
	return bare;
}

/* Returns whether the call was not carried out, or may not have been. */
static inline bool result_failed(const struct result *r)
{
	return r->status >= RESULT_REFUSED;
}

/*
 * Returns whether a failed write has certainly stored nothing. Of the errors that a server
 * replies, only memcached's two errors for lack of room for the value are certain. Other errors
 * may come from a proxy that lost its server after the write was sent.
 */
static inline bool result_stored_nothing(const struct result *r)
{
	if (r->status == RESULT_REFUSED)
		return slice_equal(r->line, SLICE("SERVER_ERROR out of memory storing object")) ||
			slice_equal(r->line, SLICE("SERVER_ERROR object too large for cache"));
	return r->status == RESULT_TOO_LARGE || r->status == RESULT_BUSY ||
		r->status == RESULT_UNAVAILABLE;
}

/* Returns whether the verb changes one item, and `want` requires a server with meta commands. */
static inline bool call_is_meta_write(enum call_verb verb, unsigned want)
{
	return (want & (WANT_CAS | WANT_ENCODED)) && verb >= CALL_SET && verb <= CALL_DELETE;
}

/*
 * Returns whether only a server with meta commands can carry out the call. A write that only
 * wants the CAS id needs no meta commands; without them the CAS id is 0.
 */
static inline bool call_needs_meta(const struct call *call)
{
	return call->verb == CALL_META || call->compare || call->vivifies ||
		call->want & WANT_ENCODED;
}

/* Returns whether the verb is followed by a data block of its own. */
static inline bool call_stores(enum call_verb verb)
{
	return verb >= CALL_SET && verb <= CALL_CAS;
}

#endif
