/*
 * TLS: what all sessions of a configuration share, and the session of one connection. A session reads and writes the socket itself, and
 * nothing here waits. Sessions are used by stream.c alone, except the functions that make one: others only pass it along.
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
 * The certificates, keys and trusted CAs that all sessions of a configuration share. All files are read when a context is made. It
 * is never changed after that, so any thread may use it. A new configuration makes a new context, and the sessions of the old one
 * keep it.
 */
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
 * the context. On failure gives NULL, with the option, a colon, the file and the reason in `error`.
 */
struct tls_context *tls_context_create(
	const struct tls_files *clients, const struct tls_files *servers, bool verify, char error[256]);

/* Counts a holder, and gives the context. From any thread. */
struct tls_context *tls_context_hold(struct tls_context *context);

/* Ends a hold; the last one frees the context. NULL does nothing. From any thread. */
void tls_context_drop(struct tls_context *context);

/* --- sessions --- */

struct tls;

/* A server, from one connection to the next: its name, and the last session with it, which the next connection resumes. */
struct tls_peer;

/*
 * `host` is the name or IP address that the certificate must match; copied without a trailing dot. The caller owns
 * the result.
 */
struct tls_peer *tls_peer_create(const char *host);
void tls_peer_destroy(struct tls_peer *peer);

/*
 * Make a session with a client, or with a server. The handshake begins with the first tls_read: one with a client once the
 * socket has something. They hold the context, which has
 * the files that they need; `peer` is borrowed as long as the session is there. The caller owns the result.
 */
struct tls *tls_accept(struct tls_context *context);
struct tls *tls_connect(struct tls_context *context, struct tls_peer *peer);

/* Tells the peer that nothing more comes, if that is possible at once, and frees the session. NULL does nothing. */
void tls_destroy(struct tls *tls);

/* Says which socket the session uses from now on; borrowed. */
void tls_attach(struct tls *tls, int fd);

/* As recv: gives the number of bytes, 0 at the end, or -1 with an errno. EPROTO: see tls_reason. Also carries on the handshake. */
ssize_t tls_read(struct tls *tls, void *to, size_t size);

/*
 * As writev, but several calls may be needed for a batch of bytes. The next call must bring those that were not taken, and may
 * add more behind them. Changes the vectors. During a handshake takes none. Also sends what OpenSSL itself has to say. If `together`
 * is not NULL, it says how many bytes go into a record: behind the first `skip` of the vectors, and not more than `max`.
 */
ssize_t tls_write(struct tls *tls, struct iovec *vectors, int count,
	size_t (*together)(void *arg, size_t skip, size_t max), void *arg);

/* The handshake is done. */
bool tls_is_ready(const struct tls *tls);

/* The handshake is one with a client, and not done: a tls_read may take milliseconds for a private key. */
bool tls_is_accepting(const struct tls *tls);

/* Something was read or, with a server, may be. */
bool tls_has_begun(const struct tls *tls);

/* A read may give something at once, though the socket may have nothing. */
bool tls_has_input(const struct tls *tls);

/* The last read stopped before it had everything. */
bool tls_stopped(const struct tls *tls);

/* Records wait for the socket. */
bool tls_has_output(const struct tls *tls);

/* Queues the message that nothing more will be written. */
void tls_finish(struct tls *tls);

/* Why the session failed, or NULL if it did not. Valid as long as the session is there. */
const char *tls_reason(const struct tls *tls);

/* Bytes of memory that it takes, with OpenSSL's, which are measured. */
size_t tls_memory(const struct tls *tls);

#endif
