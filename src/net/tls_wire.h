/*
 * What a TLS session reads its records from and writes them to: the socket on one side, a buffer on the other. So a session never
 * waits to write, and several records go out in one call of the system.
 */
#ifndef NET_TLS_WIRE_H
#define NET_TLS_WIRE_H

#include <stdbool.h>

#include "util/buf.h"

struct bio_st;
struct bio_method_st;

struct tls_wire {
	int fd;         /* -1 before there is a socket */
	struct buf out; /* records to be sent */
	bool empty;     /* the socket has no more to read; set by a read, and reset by whoever reads again later */
	long left;      /* bytes to read; below 0 if a read took more. Set by whoever reads, and raised by the data */
	size_t silent;  /* bytes that were read; reset by whoever got data from them */
	bool ended;     /* the peer has closed the connection */
	int error;      /* of reading: an errno; 0 for none */
};

/* How OpenSSL reads and writes such a wire. The caller frees it, with BIO_meth_free, after all its BIOs. */
struct bio_method_st *tls_wire_method(void);

/* Gives a BIO, which borrows both arguments. */
struct bio_st *tls_wire_bio(struct tls_wire *wire, const struct bio_method_st *method);

#endif
