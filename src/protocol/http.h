/*
 * Parses requests of HTTP/1.1 and HTTP/1.0 that have no body. Anything in which RFC 9112 lets two
 * recipients see different requests is refused. Pure functions without I/O.
 */
#ifndef PROTOCOL_HTTP_H
#define PROTOCOL_HTTP_H

#include "util/slice.h"

/* Maximum bytes of a request line with its header, and maximum number of header fields. */
enum { HTTP_HEAD_MAX = 8192, HTTP_FIELDS_MAX = 100 };

/* Why a request is refused: the status with its reason, and a sentence. */
struct http_refusal {
	const char *status, *why;
};

/* A request. All slices are borrowed. */
struct http_request {
	struct slice method, path, host; /* `path` excludes the query. */
	bool keeps;                      /* Keep the connection open for another request. */
	/* NULL, or the reason; then only `method` is set, if it is known. */
	const struct http_refusal *refusal;
};

/* The answers to a request that ends early: no byte was received in time, or no more are sent. */
extern const struct http_refusal http_late, http_cut_off;

/*
 * Parses the request at the front of `in`. Returns its length; 0 if it is incomplete, which it is
 * not if `in` has HTTP_HEAD_MAX bytes. A request is refused at its first wrong line. The
 * connection must then be closed, since the beginning of the next request is unknown.
 */
size_t http_parse(struct slice in, struct http_request *out);

#endif
