#ifndef BENCH_CONN_H
#define BENCH_CONN_H

#include "reply.h"
#include "workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The longest line of a reply that may arrive in pieces. */
#define CONN_STASH_SIZE 2048

struct ssl_st;
struct ssl_ctx_st;

/* One connection. Requests sent and not answered are a run of the pool's requests. */
struct conn {
	int fd;
	struct ssl_st *tls; /* NULL for plain text */
	bool wants_write;   /* epoll watches for room to write */
	uint64_t sent;
	uint64_t received;
	uint64_t quota;   /* requests to send in all */
	size_t next_send; /* indices into the pool */
	size_t next_reply;
	const char *unwritten;
	size_t unwritten_size;
	uint64_t *times; /* ring: when each request in flight was sent, or was due */
	uint64_t mask;
	struct reply reply;
	size_t stash_size;
	char stash[CONN_STASH_SIZE]; /* a piece of a line, kept for the next read */
};

/* Connects, with TLS unless ${tls} is NULL; false with a message on stderr. ${depth} is the most that will be in flight. */
bool conn_open(struct conn *conn, const char *host, uint16_t port, size_t depth, struct ssl_ctx_st *tls)
	__attribute__((warn_unused_result));

void conn_close(struct conn *conn);

static inline uint64_t conn_in_flight(const struct conn *conn)
{
	return conn->sent - conn->received;
}

/* Hands ${count} requests to the socket, which became due at ${time}. False on a lost connection.
 */
bool conn_send(struct conn *conn, struct pool *pool, uint64_t count, uint64_t time) __attribute__((warn_unused_result));

/* As recv. With TLS it gives all that has come, if that is less than ${size}. */
ssize_t conn_receive(struct conn *conn, char *to, size_t size);

/* Writes what conn_send could not. False on a lost connection. */
bool conn_flush(struct conn *conn) __attribute__((warn_unused_result));

#endif
