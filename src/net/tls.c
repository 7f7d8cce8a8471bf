#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tls_context.h"
#include "net/tls_wire.h"
#include "util/alloc.h"

enum {
	RECORD = 16384,           /* bytes of data in a record at most */
	BATCH = 3 * RECORD,       /* with what encryption adds, it just fits a buffer of 64 KB */
	WRITE_MOST = 1 << 20,     /* bytes in one call, so that others have their turn */
	READ_SPARE = RECORD,      /* bytes that one call reads beside data, for the same reason */
	SILENT_MOST = 4 * RECORD, /* bytes without data */
	MEMORY_IDLE = 16 * 1024   /* what OpenSSL keeps for a connection that waits */
};

/*
 * A batch is encrypted as a whole and sent in parts. Of its data, the share is taken that has been sent of its records. So none is
 * left only when all records are sent.
 */
struct batch {
	size_t data, records; /* bytes */
	size_t taken, sent;   /* of these */
};

struct tls {
	SSL *ssl;
	struct tls_context *context;
	struct tls_peer *peer; /* NULL with a client */
	struct tls_wire wire;
	struct batch batch;
	bool ready, ended, stopped;
	int error;        /* an errno; 0 for none */
	char reason[160]; /* "" for none */
};

struct tls_peer {
	SSL_SESSION *last;           /* or NULL */
	struct tls_context *context; /* of `last`: what it trusted */
	char host[];
};

/* --- making one --- */

struct tls_peer *tls_peer_create(const char *host)
{
	struct tls_peer *peer = xcalloc(1, sizeof(*peer) + strlen(host) + 1);

	strcpy(peer->host, host);
	return peer;
}

/* Takes the session. */
static void remember(struct tls_peer *peer, SSL_SESSION *session, struct tls_context *context)
{
	SSL_SESSION_free(peer->last);
	tls_context_drop(peer->context);
	peer->last = session;
	peer->context = context ? tls_context_hold(context) : NULL;
}

void tls_peer_destroy(struct tls_peer *peer)
{
	if (!peer)
		return;
	remember(peer, NULL, NULL);
	free(peer);
}

static struct tls *new_session(struct tls_context *context, SSL_CTX *ctx)
{
	struct tls *tls = xcalloc(1, sizeof(*tls));
	BIO *bio = tls_wire_bio(&tls->wire, tls_context_wire(context));

	tls->context = tls_context_hold(context);
	tls->wire.fd = -1;
	tls->ssl = SSL_new(ctx);
	if (!tls->ssl)
		abort();
	SSL_set_bio(tls->ssl, bio, bio);
	return tls;
}

struct tls *tls_accept(struct tls_context *context)
{
	struct tls *tls = new_session(context, tls_context_clients(context));

	SSL_set_accept_state(tls->ssl);
	return tls;
}

struct tls *tls_connect(struct tls_context *context, struct tls_peer *peer)
{
	struct tls *tls = new_session(context, tls_context_servers(context));

	tls->peer = peer;
	SSL_set_connect_state(tls->ssl);
	if (!X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), peer->host)) {
		SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		if (!SSL_set1_host(tls->ssl, peer->host) || !SSL_set_tlsext_host_name(tls->ssl, peer->host))
			abort();
	}
	/* A resumed session is not verified again, so one that another configuration has verified does not count. */
	if (peer->last && peer->context == context)
		SSL_set_session(tls->ssl, peer->last);
	ERR_clear_error();
	return tls;
}

void tls_attach(struct tls *tls, int fd)
{
	tls->wire.fd = fd;
}

static ssize_t send_records(struct tls *tls)
{
	struct slice out = buf_slice(&tls->wire.out);
	ssize_t n = send(tls->wire.fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n <= 0)
		return n;
	buf_consume(&tls->wire.out, (size_t)n);
	if (buf_size(&tls->wire.out) == 0)
		buf_free(&tls->wire.out);
	return n;
}

void tls_destroy(struct tls *tls)
{
	if (!tls)
		return;
	if (!tls_has_output(tls))
		tls_finish(tls);
	if (tls_has_output(tls) && tls->wire.fd >= 0)
		(void)send_records(tls);
	/* Otherwise OpenSSL takes a connection that broke as a reason not to resume the session. */
	SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	/* Tickets come after the handshake: the last one is the one to use. */
	if (tls->peer && tls->ready && !tls->reason[0])
		remember(tls->peer, SSL_get1_session(tls->ssl), tls->context);
	SSL_free(tls->ssl);
	buf_free(&tls->wire.out);
	tls_context_drop(tls->context);
	free(tls);
}

/* --- failure --- */

static const char *kind_of(long verdict)
{
	switch (verdict) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return "expired";
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return "not valid yet";
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		return "self-signed";
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return "wrong name";
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
		return "unknown CA";
	default:
		return "not trusted";
	}
}

/* Notes why OpenSSL gave up. The first error in its queue is the cause of the others. */
static void note_failure(struct tls *tls)
{
	unsigned long code = ERR_peek_error();
	const char *text = ERR_reason_error_string(code);
	long verdict = SSL_get_verify_result(tls->ssl);

	tls->error = EPROTO;
	if (ERR_GET_LIB(code) != ERR_LIB_SSL)
		code = 0;
	switch (ERR_GET_REASON(code)) {
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		snprintf(tls->reason, sizeof(tls->reason), "TLS: certificate refused: %s: %s", kind_of(verdict),
			X509_verify_cert_error_string(verdict));
		break;
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
		snprintf(tls->reason, sizeof(tls->reason), "it does not speak TLS");
		break;
	default:
		snprintf(tls->reason, sizeof(tls->reason), "TLS: %s", text ? text : "protocol error");
	}
	ERR_clear_error();
}

const char *tls_reason(const struct tls *tls)
{
	return tls->reason[0] ? tls->reason : NULL;
}

/* Says what a read that gave nothing means. */
static void judge(struct tls *tls)
{
	switch (SSL_get_error(tls->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		return;
	case SSL_ERROR_ZERO_RETURN:
		tls->ended = true;
		return;
	default:
		if (tls->wire.error)
			tls->error = tls->wire.error;
		else if (tls->wire.ended)
			tls->ended = true;
		else
			note_failure(tls);
		ERR_clear_error();
	}
}

/* --- reading --- */

/* Gives the number of bytes, 0 for none. OpenSSL goes on reading as long as nothing but key updates and the like comes. */
static size_t read_data(struct tls *tls, char *to, size_t size)
{
	size_t all = 0, n;

	ERR_clear_error();
	tls->wire.empty = false;
	tls->wire.left = READ_SPARE;
	while (all < size && SSL_read_ex(tls->ssl, to + all, size - all, &n)) {
		all += n;
		tls->wire.left += (long)n;
		tls->wire.silent = 0;
	}
	return all;
}

/* A key update costs more than a small request, and needs no password. Nobody has a use for many of them without data in between. */
static void refuse_silence(struct tls *tls)
{
	if (!tls->ready)
		tls->wire.silent = 0;
	if (tls->wire.silent <= SILENT_MOST || tls->ended || tls->error)
		return;
	tls->error = EPROTO;
	snprintf(tls->reason, sizeof(tls->reason), "TLS: records without data");
}

ssize_t tls_read(struct tls *tls, void *to, size_t size)
{
	size_t all = 0;

	if (!tls->ended && !tls->error) {
		all = read_data(tls, to, size);
		if (all < size)
			judge(tls);
		refuse_silence(tls);
		tls->ready = tls->ready || SSL_is_init_finished(tls->ssl);
	}
	tls->stopped = all > 0 && (all == size || tls->ended || tls->error);
	if (all || tls->ended)
		return (ssize_t)all;
	errno = tls->error ? tls->error : EAGAIN;
	return -1;
}

bool tls_is_ready(const struct tls *tls)
{
	return tls->ready;
}

bool tls_has_input(const struct tls *tls)
{
	return tls->stopped || SSL_has_pending(tls->ssl);
}

bool tls_stopped(const struct tls *tls)
{
	return tls->stopped;
}

/* --- writing --- */

/* Vectors to go through; none is empty. The last two say how to cut, as in tls_write. */
struct pieces {
	struct iovec *first;
	int count;
	size_t passed; /* bytes */
	size_t (*together)(void *arg, size_t skip, size_t max);
	void *arg;
};

static void skip(struct pieces *p, size_t n)
{
	p->passed += n;
	while (p->count && n >= p->first->iov_len) {
		n -= p->first->iov_len;
		p->first++;
		p->count--;
	}
	if (p->count) {
		p->first->iov_base = (char *)p->first->iov_base + n;
		p->first->iov_len -= n;
	}
}

/* Takes the data of a record. Small pieces are copied together in `space`, so that each does not become a record. */
static struct slice next_record(struct pieces *p, char space[static RECORD])
{
	size_t limit = p->together ? p->together(p->arg, p->passed, RECORD) : RECORD, all = 0;

	if (p->count == 1 || p->first->iov_len >= limit) {
		size_t n = p->first->iov_len < limit ? p->first->iov_len : limit;
		struct slice whole = slice_of(p->first->iov_base, n);
		skip(p, n);
		return whole;
	}
	while (p->count && all < limit) {
		size_t n = p->first->iov_len < limit - all ? p->first->iov_len : limit - all;
		memcpy(space + all, p->first->iov_base, n);
		all += n;
		skip(p, n);
	}
	return slice_of(space, all);
}

static bool encrypt(struct tls *tls, struct pieces *p)
{
	char space[RECORD];
	size_t n;

	tls->batch = (struct batch){ 0 };
	while (p->count && tls->batch.data < BATCH) {
		struct slice record = next_record(p, space);
		ERR_clear_error();
		if (!SSL_write_ex(tls->ssl, record.p, record.n, &n)) {
			note_failure(tls);
			return false;
		}
		tls->batch.data += record.n;
	}
	tls->batch.records = buf_size(&tls->wire.out);
	return true;
}

/* Says that `n` bytes of records were sent. Gives the bytes of data that are taken by that. */
static size_t advance(struct batch *b, size_t n)
{
	size_t before = b->taken;

	b->sent += n;
	b->taken = b->sent < b->records ? (size_t)((uint64_t)b->data * b->sent / b->records) : b->data;
	return b->taken - before;
}

ssize_t tls_write(struct tls *tls, struct iovec *vectors, int count,
	size_t (*together)(void *arg, size_t skip, size_t max), void *arg)
{
	struct pieces p = { vectors, tls->ready ? count : 0, 0, together, arg };
	size_t all = 0;
	ssize_t n;

	/* The front of the data is encrypted already, if a part of the batch is unsent. */
	skip(&p, tls->batch.data - tls->batch.taken);
	do {
		if (!tls_has_output(tls) && !encrypt(tls, &p)) {
			errno = EPROTO;
			return -1;
		}
		if (!tls_has_output(tls))
			break;
		n = send_records(tls);
		if (n < 0)
			return all && (errno == EAGAIN || errno == EINTR) ? (ssize_t)all : n;
		all += advance(&tls->batch, (size_t)n);
	} while (!tls_has_output(tls) && p.count && all < WRITE_MOST);
	return (ssize_t)all;
}

bool tls_has_output(const struct tls *tls)
{
	return buf_size(&tls->wire.out) > 0;
}

void tls_finish(struct tls *tls)
{
	if (tls->ready && !tls->error)
		(void)SSL_shutdown(tls->ssl);
	ERR_clear_error();
}

size_t tls_memory(const struct tls *tls)
{
	return MEMORY_IDLE + tls->wire.out.end;
}
