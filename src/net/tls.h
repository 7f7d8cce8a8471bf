/*
 * TLS: the context that all sessions of a configuration share, and the session of one
 * connection. A session reads and writes the socket itself and never blocks. Only stream.c uses
 * sessions; other files create them or pass them on.
 *
 *     tls_read <- OpenSSL <- socket
 *     tls_write -> OpenSSL -> records (a batch) -> socket
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* --- contexts --- */

/*
 * The certificates, keys and trusted CAs of all sessions of a configuration. All files are read
 * when a context is created. It is immutable, so any thread may use it. A new configuration
 * creates a new context; existing sessions keep the old one.
 */
struct tls_context;

/* A PEM file and the option that names it, for error messages. The path is "" if there is none. */
struct tls_file {
	const char *option, *path;
};

struct tls_files {
	/* Both or neither. The certificate may be followed by its chain. */
	struct tls_file certificate, key;
	struct tls_file ca; /* The trusted CAs. */
};

/*
 * Makes OpenSSL allocate with the functions of util/alloc.h. Must be called once, before any
 * other use of OpenSSL.
 */
void tls_init(void);

/*
 * Reads the files for connections from clients and to servers; NULL for none. Clients must
 * present a certificate if `clients` has a `ca`. If `verify` is set, the certificate and name
 * of each server are checked, against the CAs of the system if `servers` has no `ca`. Returns a
 * context with one reference, owned by the caller. On failure returns NULL, with the option, a
 * colon, the file and the reason in `error`.
 */
struct tls_context *tls_context_create(const struct tls_files *clients,
	const struct tls_files *servers, bool verify, char error[256]);

/* Adds a reference and returns the context. May be called from any thread. */
struct tls_context *tls_context_hold(struct tls_context *context);

/*
 * Drops a reference; the last one frees the context. NULL does nothing. May be called from any
 * thread.
 */
void tls_context_drop(struct tls_context *context);

/* --- sessions --- */

struct tls;

/*
 * A server across connections: its name, and its last session, which the next connection
 * resumes.
 */
struct tls_peer;

/*
 * `host` is the name or IP address that the certificate must match; it is copied without a
 * trailing dot. The caller owns the result.
 */
struct tls_peer *tls_peer_create(const char *host);
void tls_peer_destroy(struct tls_peer *peer);

/*
 * Create a session with a client or with a server. The handshake starts with the first
 * tls_read(); with a client, once the socket has input. The session adds a reference to
 * `context`, which must have the files it needs. `peer` is borrowed until the session is
 * destroyed. The caller owns the result.
 */
struct tls *tls_accept(struct tls_context *context);
struct tls *tls_connect(struct tls_context *context, struct tls_peer *peer);

/*
 * Sends a close notification if that is possible without blocking, and frees the session. NULL
 * does nothing.
 */
void tls_destroy(struct tls *tls);

/* Sets the socket that the session uses; it is borrowed. */
void tls_attach(struct tls *tls, int fd);

/*
 * As recv(): returns the number of bytes, 0 at the end, or -1 with an errno; for EPROTO see
 * tls_reason(). Continues the handshake if it is not complete.
 */
ssize_t tls_read(struct tls *tls, void *to, size_t size);

/*
 * As writev(), but a batch of bytes may take several calls. The next call must pass the bytes
 * that were not taken, and may append more. The vectors are modified. Takes no bytes during a
 * handshake. Also sends OpenSSL's own pending records. If `together` is not NULL, it returns
 * how many bytes, at most `max`, go into one record after the first `skip` bytes of the
 * vectors.
 */
ssize_t tls_write(struct tls *tls, struct iovec *vectors, int count,
	size_t (*together)(void *arg, size_t skip, size_t max), void *arg);

/* Returns whether the handshake is complete. */
bool tls_is_ready(const struct tls *tls);

/*
 * Returns whether a handshake with a client is in progress: a tls_read() may then take
 * milliseconds for a private key operation.
 */
bool tls_is_accepting(const struct tls *tls);

/*
 * Returns whether OpenSSL's session exists: always for a server; for a client, since the first
 * tls_read().
 */
bool tls_has_begun(const struct tls *tls);

/* Returns whether a read may return data at once although the socket may have none. */
bool tls_has_input(const struct tls *tls);

/* Returns whether the last read stopped before it had read everything. */
bool tls_stopped(const struct tls *tls);

/* Returns whether records are pending because the socket was not writable. */
bool tls_has_output(const struct tls *tls);

/* Queues a close notification. */
void tls_finish(struct tls *tls);

/* Returns why the session failed, or NULL if it has not. Valid while the session exists. */
const char *tls_reason(const struct tls *tls);

/* Returns the bytes of memory that the session uses, including OpenSSL's allocations. */
size_t tls_memory(const struct tls *tls);

#endif
