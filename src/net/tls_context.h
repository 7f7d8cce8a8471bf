/*
 * What all TLS sessions of a configuration have in common: certificates, keys, and the CAs that are trusted. All files are read
 * when a context is made. It is never changed after that, so any thread may use it. A new configuration makes a new context, and
 * the sessions of the old one keep that until they end.
 */
#ifndef NET_TLS_CONTEXT_H
#define NET_TLS_CONTEXT_H

#include <stdbool.h>

struct bio_method_st;
struct ssl_ctx_st;
struct tls_context;

/* A PEM file, and the option that names it, for errors. The path is "" if there is none. */
struct tls_file {
	const char *option, *path;
};

struct tls_files {
	struct tls_file certificate, key; /* both or none; a certificate may be followed by its chain */
	struct tls_file ca;               /* of the CAs that are trusted */
};

/* Has OpenSSL allocate as util/alloc.h does. Called once, before anything else uses OpenSSL. */
void tls_init(void);

/*
 * Reads the files for clients, which must present a certificate if there is a `ca`, and those for servers. NULL is for none of
 * them. `verify`: a server's certificate and its name are checked, without a `ca` against the CAs of the system. The caller holds
 * the context. On failure gives NULL, with the option, the file and the reason in `error`.
 */
struct tls_context *tls_context_create(
	const struct tls_files *clients, const struct tls_files *servers, bool verify, char error[256]);

/* Counts a holder, and gives the context. From any thread. */
struct tls_context *tls_context_hold(struct tls_context *context);

/* Ends a hold; the last one frees the context. NULL does nothing. From any thread. */
void tls_context_drop(struct tls_context *context);

/* For tls.c. The first two are NULL if the context was made without their files. */
struct ssl_ctx_st *tls_context_clients(const struct tls_context *context);
struct ssl_ctx_st *tls_context_servers(const struct tls_context *context);
const struct bio_method_st *tls_context_wire(const struct tls_context *context);

#endif
