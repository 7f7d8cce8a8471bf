#ifndef BENCH_CONN_H
#define BENCH_CONN_H

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
	const struct place *place;
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

/* Where to connect to, and from where. */
struct place {
	struct sockaddr_storage address;
	socklen_t address_size;
	struct sockaddr_in from; /* of many short connections; else AF_UNSPEC */
};

/* Finds the address of ${socket}, or if it is NULL of ${host} and ${port}; false with a message on stderr. */
bool place_find(struct place *place, const char *socket, const char *host, uint16_t port)
	__attribute__((warn_unused_result));

/*
 * Has connection ${number} come from an address of its own, if the place is 127.0.0.1: each has ports of its own, and a port
 * cannot be used again for a while.
 */
void place_spread(struct place *place, size_t number);

/* Connects, with TLS unless ${tls} is NULL; false with a message on stderr. ${depth} is the most that will be in flight. */
bool conn_open(struct conn *conn, const struct place *place, size_t depth, struct ssl_ctx_st *tls)
	__attribute__((warn_unused_result));

/* Closes a connection without requests in flight or TLS, and connects anew. False with a message on stderr. */
bool conn_reopen(struct conn *conn) __attribute__((warn_unused_result));

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
