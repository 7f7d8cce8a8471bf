#ifndef BENCH_CONN_H
#define BENCH_CONN_H

#include "options.h"
#include "reply.h"
#include "workload.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The longest line of a reply that may arrive in pieces. */
#define CONN_STASH_SIZE 2048

struct ssl_st;
struct ssl_ctx_st;

/* One connection. Requests sent and not answered are a run of the pool's requests. */
struct conn {
	int fd;
	struct sockaddr_storage to;
	socklen_t to_size;
	struct sockaddr_in from; /* of many short connections; otherwise AF_UNSPEC */
	struct ssl_st *tls;      /* NULL for plain text */
	bool wants_write;        /* epoll watches for room to write */
	uint64_t sent;
	uint64_t received;
	uint64_t quota;   /* total number of requests to send */
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

/* Opens connection ${number} according to ${options}, with TLS unless ${tls} is NULL. */
void conn_open(
	struct conn *conn, const struct options *options, size_t number, struct ssl_ctx_st *tls);

/* Closes a connection without requests in flight or TLS, and opens it again. */
void conn_reopen(struct conn *conn);

void conn_close(struct conn *conn);

static inline uint64_t conn_in_flight(const struct conn *conn)
{
	return conn->sent - conn->received;
}

/* Writes ${count} requests, which became due at ${time}, to the socket. */
void conn_send(struct conn *conn, struct pool *pool, uint64_t count, uint64_t time);

/* Like recv. With TLS it returns all received bytes, if they are fewer than ${size}. */
ssize_t conn_receive(struct conn *conn, char *to, size_t size);

/* Writes the bytes that conn_send could not write. */
void conn_flush(struct conn *conn);

#endif
