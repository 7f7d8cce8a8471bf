#include "net/tls.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "util/alloc.h"
#include "util/buf.h"

enum {
	RECORD = 16384, /* Maximum bytes of data in a record. */
	/* With the overhead of encryption, this just fits a buffer of 64 KB. */
	BATCH = 3 * RECORD,
	/* Maximum bytes written in one call, for fairness to other sessions. */
	WRITE_MOST = 1 << 20,
	/* Maximum bytes other than data that one call reads, for the same reason. */
	READ_SPARE = RECORD,
	SILENT_MOST = 4 * RECORD, /* Maximum bytes received without data. */
	/*
	 * Maximum bytes of pending records, in case a peer keeps requesting new keys and reads
	 * nothing.
	 */
	OUT_MAX = 1 << 20,
	CERTIFICATES_MOST = 32 << 10, /* Maximum bytes of a client's certificate with its chain. */
	/* Bytes of a session if they cannot be measured: about as many as during a handshake. */
	MEMORY_GUESSED = 48 << 10
};

struct tls_context {
	atomic_uint holders;
	SSL_CTX *clients, *servers;
	BIO_METHOD *wire;
};

/*
 * A session reads its records from the socket, and writes them to a buffer. So it never blocks
 * on a write, and several records are sent with one system call.
 */
struct tls_wire {
	int fd;         /* -1 before there is a socket. */
	struct buf out; /* Records to be sent. */
	bool empty;     /* The socket has no more input. Set by a read, reset by read_data(). */
	/*
	 * Bytes that may still be read; negative if a read took more. Set by read_data(), which
	 * adds the bytes of data it gets.
	 */
	long left;
	size_t silent; /* Bytes read since the last data. */
	bool ended;    /* The peer has closed the connection. */
	int error;     /* The errno of a failed read; 0 for none. */
};

/*
 * A batch is encrypted as a whole and sent in parts. The share of its data that counts as taken
 * is the share of its records that was sent. So no data is left only when all records are sent.
 */
struct batch {
	size_t data, records; /* Total bytes. */
	size_t taken, sent;   /* Bytes of these that were taken and sent. */
};

struct tls {
	SSL *ssl; /* NULL for a client from which nothing was read yet. */
	struct tls_context *context;
	struct tls_peer *peer; /* NULL for a client. */
	struct tls_wire wire;
	struct batch batch;
	size_t held; /* Bytes of OpenSSL's memory. */
	bool ready, ended, stopped;
	int error;        /* An errno; 0 for none. */
	char reason[160]; /* "" for none. */
};

struct tls_peer {
	SSL_SESSION *last;           /* Or NULL. */
	struct tls_context *context; /* Context that verified the server for `last`. */
	char host[];
};

/* --- the wire --- */

static int tls_read_socket(BIO *bio, char *to, int size)
{
	struct tls_wire *wire = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (wire->empty || wire->left <= 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	n = recv(wire->fd, to, (size_t)size, 0);
	wire->empty = n < size;
	if (n > 0) {
		wire->left -= n;
		wire->silent += (size_t)n;
	}
	if (n == 0)
		wire->ended = true;
	else if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	else if (n < 0)
		wire->error = errno;
	return (int)n;
}

static int tls_write_buffer(BIO *bio, const char *from, int size)
{
	struct tls_wire *wire = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (buf_size(&wire->out) > OUT_MAX)
		return -1;
	buf_add(&wire->out, from, (size_t)size);
	return size;
}

static long tls_control(BIO *bio, int command, long number, void *pointer)
{
	const struct tls_wire *wire = BIO_get_data(bio);

	(void)number;
	(void)pointer;
	switch (command) {
	case BIO_CTRL_EOF:
		return wire->ended;
	case BIO_CTRL_FLUSH:
		return 1;
	default:
		return 0;
	}
}

/* Returns OpenSSL's methods for a wire. The caller frees them, after all their BIOs. */
static BIO_METHOD *new_wire_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "wire");

	if (!method || !BIO_meth_set_read(method, tls_read_socket) ||
		!BIO_meth_set_write(method, tls_write_buffer) ||
		!BIO_meth_set_ctrl(method, tls_control))
		abort();
	return method;
}

/* Creates a BIO that borrows both arguments. */
static BIO *new_bio(struct tls_wire *wire, const BIO_METHOD *method)
{
	BIO *bio = BIO_new(method);

	if (!bio)
		abort();
	BIO_set_data(bio, wire);
	BIO_set_init(bio, 1);
	return bio;
}

/* --- memory --- */

/*
 * Bytes allocated less bytes freed by OpenSSL in the calls of this thread. The difference made
 * by a call belongs to its session. A session may be freed by another thread than the one that
 * created it, so the number may wrap; only differences are meaningful.
 */
static _Thread_local size_t allocated;
static bool is_measured;

static size_t size_of(void *p)
{
	return p ? malloc_usable_size(p) + sizeof(size_t) : 0;
}

static void *count_allocated(void *p)
{
	allocated += size_of(p);
	return p;
}

static void *tls_allocate(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return count_allocated(xmalloc(size));
}

static void *tls_reallocate(void *p, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	allocated -= size_of(p);
	return count_allocated(xrealloc(p, size));
}

static void tls_release(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	allocated -= size_of(p);
	free(p);
}

void tls_init(void)
{
	/* Fails only if OpenSSL has allocated memory before; it then keeps its own functions. */
	is_measured = CRYPTO_set_mem_functions(tls_allocate, tls_reallocate, tls_release);
}

/* --- reading files --- */

/*
 * Writes why a file is not usable to `error`, and returns false. The first error in OpenSSL's
 * queue is the cause of the others.
 */
static bool refuse_file(const struct tls_file *file, char error[256])
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);

	if (ERR_GET_LIB(code) == ERR_LIB_SYS)
		reason = strerror(ERR_GET_REASON(code));
	snprintf(
		error, 256, "%s: %s: %s", file->option, file->path, reason ? reason : "not usable");
	ERR_clear_error();
	return false;
}

static bool is_named(const struct tls_file *file)
{
	return file->path[0] != '\0';
}

/* Without this, OpenSSL would read the passphrase of a key from the terminal. */
static int tls_no_passphrase(char *to, int size, int rwflag, void *arg)
{
	(void)to;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}

static bool read_certificate(SSL_CTX *ctx, const struct tls_files *files, char error[256])
{
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb(ctx, tls_no_passphrase);
	if (!is_named(&files->certificate))
		return true;
	if (SSL_CTX_use_certificate_chain_file(ctx, files->certificate.path) != 1)
		return refuse_file(&files->certificate, error);
	if (SSL_CTX_use_PrivateKey_file(ctx, files->key.path, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_check_private_key(ctx) != 1)
		return refuse_file(&files->key, error);
	return true;
}

static bool read_ca(SSL_CTX *ctx, const struct tls_file *ca, char error[256])
{
	ERR_clear_error();
	return SSL_CTX_load_verify_locations(ctx, ca->path, NULL) == 1 || refuse_file(ca, error);
}

/*
 * Returns whether OpenSSL would read this file in a folder of CAs: 8 hexadecimal digits, a dot,
 * a number.
 */
static int tls_is_ca_name(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return strspn(name, "0123456789abcdef") == 8 && name[8] == '.' &&
		strspn(name + 9, "0123456789") > 0;
}

/*
 * Reads the CAs of the system. By itself, OpenSSL would read the folder during handshakes. By
 * then the process may have switched to a user without permission, and a worker's loop must not
 * block on a disk.
 */
static bool read_system_ca(SSL_CTX *ctx, const struct tls_file *ca, char error[256])
{
	const char *file = getenv(X509_get_default_cert_file_env()),
		   *folder = getenv(X509_get_default_cert_dir_env());
	bool found = SSL_CTX_load_verify_locations(
			     ctx, file ? file : X509_get_default_cert_file(), NULL) == 1;
	struct dirent **entries = NULL;
	char path[4096];
	int count;

	folder = folder ? folder : X509_get_default_cert_dir();
	count = found ? 0 : scandir(folder, &entries, tls_is_ca_name, NULL);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		found |= SSL_CTX_load_verify_locations(ctx, path, NULL) == 1;
		free(entries[i]);
	}
	free(entries);
	ERR_clear_error();
	if (!found)
		snprintf(error, 256, "%s: not set, and no system CAs were found in %s", ca->option,
			folder);
	return found;
}

/* --- contexts --- */

/* SSL_MODE_RELEASE_BUFFERS frees the buffers of idle connections. */
static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		abort();
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
	/*
	 * Requests and replies have an explicit end, so a truncated connection cannot change
	 * their meaning.
	 */
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
	SSL_CTX_set_read_ahead(ctx, 1);
	return ctx;
}

/* Clients keep their sessions themselves, in tickets. */
static bool read_clients(SSL_CTX *ctx, const struct tls_files *files, char error[256])
{
	static const unsigned char id[] = "setlistd";

	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
	SSL_CTX_set_max_cert_list(ctx, CERTIFICATES_MOST);
	if (!read_certificate(ctx, files, error))
		return false;
	if (!is_named(&files->ca))
		return true;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (!read_ca(ctx, &files->ca, error))
		return false;
	SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(files->ca.path));
	return true;
}

static bool read_servers(SSL_CTX *ctx, const struct tls_files *files, bool verify, char error[256])
{
	if (verify)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (!read_certificate(ctx, files, error))
		return false;
	if (is_named(&files->ca))
		return read_ca(ctx, &files->ca, error);
	return !verify || read_system_ca(ctx, &files->ca, error);
}

struct tls_context *tls_context_create(const struct tls_files *clients,
	const struct tls_files *servers, bool verify, char error[256])
{
	struct tls_context *context = xcalloc(1, sizeof(*context));

	atomic_init(&context->holders, 1);
	context->wire = new_wire_method();
	context->clients = clients ? new_ctx(TLS_server_method()) : NULL;
	context->servers = servers ? new_ctx(TLS_client_method()) : NULL;
	if ((!clients || read_clients(context->clients, clients, error)) &&
		(!servers || read_servers(context->servers, servers, verify, error)))
		return context;
	tls_context_drop(context);
	return NULL;
}

struct tls_context *tls_context_hold(struct tls_context *context)
{
	atomic_fetch_add_explicit(&context->holders, 1, memory_order_relaxed);
	return context;
}

void tls_context_drop(struct tls_context *context)
{
	if (!context || atomic_fetch_sub_explicit(&context->holders, 1, memory_order_acq_rel) > 1)
		return;
	SSL_CTX_free(context->clients);
	SSL_CTX_free(context->servers);
	BIO_meth_free(context->wire);
	free(context);
}

/* --- sessions --- */

struct tls_peer *tls_peer_create(const char *host)
{
	size_t n = strlen(host);
	struct tls_peer *peer = xcalloc(1, sizeof(*peer) + n + 1);

	memcpy(peer->host, host, n > 1 && host[n - 1] == '.' ? n - 1 : n);
	return peer;
}

/* Takes ownership of the session. */
static void keep_session(struct tls_peer *peer, SSL_SESSION *session, struct tls_context *context)
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
	keep_session(peer, NULL, NULL);
	free(peer);
}

static struct tls *new_session(struct tls_context *context)
{
	struct tls *tls = xcalloc(1, sizeof(*tls));

	tls->context = tls_context_hold(context);
	tls->wire.fd = -1;
	tls->held = is_measured ? 0 : MEMORY_GUESSED;
	return tls;
}

static void create_ssl(struct tls *tls, SSL_CTX *ctx)
{
	BIO *bio = new_bio(&tls->wire, tls->context->wire);

	tls->ssl = SSL_new(ctx);
	if (!tls->ssl)
		abort();
	SSL_set_bio(tls->ssl, bio, bio);
}

/*
 * A client that connects and sends nothing costs almost nothing, since OpenSSL's session is
 * created by the first read.
 */
struct tls *tls_accept(struct tls_context *context)
{
	return new_session(context);
}

struct tls *tls_connect(struct tls_context *context, struct tls_peer *peer)
{
	struct tls *tls = new_session(context);

	tls->peer = peer;
	create_ssl(tls, context->servers);
	SSL_set_connect_state(tls->ssl);
	if (!X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), peer->host)) {
		SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		if (!SSL_set1_host(tls->ssl, peer->host) ||
			!SSL_set_tlsext_host_name(tls->ssl, peer->host))
			abort();
	}
	/*
	 * A resumed session is not verified again, so a session that was verified by another
	 * configuration is not resumed.
	 */
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
	/* Otherwise OpenSSL would not resume the session of a connection that has failed. */
	if (tls->ssl)
		SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	/* Tickets arrive after the handshake; the last one is used. */
	if (tls->peer && tls->ready && !tls->reason[0])
		keep_session(tls->peer, SSL_get1_session(tls->ssl), tls->context);
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

/* Stores why OpenSSL failed. The first error in its queue is the cause of the others. */
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
		snprintf(tls->reason, sizeof(tls->reason), "TLS: certificate refused: %s: %s",
			kind_of(verdict), X509_verify_cert_error_string(verdict));
		break;
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
		snprintf(tls->reason, sizeof(tls->reason), "it does not speak TLS");
		break;
	default:
		snprintf(tls->reason, sizeof(tls->reason), "TLS: %s",
			text ? text : "protocol error");
	}
	ERR_clear_error();
}

const char *tls_reason(const struct tls *tls)
{
	return tls->reason[0] ? tls->reason : NULL;
}

/* Handles a read that returned no data. */
static void note_outcome(struct tls *tls)
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

/*
 * Returns the number of bytes, 0 for none. OpenSSL continues to read as long as only key
 * updates and the like arrive.
 */
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

/*
 * A key update costs more than a small request, and requires no password. No legitimate client
 * sends many of them without data in between.
 */
static void refuse_silence(struct tls *tls)
{
	if (!tls->ready)
		tls->wire.silent = 0;
	if (tls->wire.silent <= SILENT_MOST || tls->ended || tls->error)
		return;
	tls->error = EPROTO;
	snprintf(tls->reason, sizeof(tls->reason), "TLS: too many records without data");
}

ssize_t tls_read(struct tls *tls, void *to, size_t size)
{
	size_t all = 0, before = allocated;

	if (!tls->ssl) {
		create_ssl(tls, tls->context->clients);
		SSL_set_accept_state(tls->ssl);
	}
	if (!tls->ended && !tls->error) {
		all = read_data(tls, to, size);
		if (all < size)
			note_outcome(tls);
		refuse_silence(tls);
		tls->ready = tls->ready || SSL_is_init_finished(tls->ssl);
	}
	tls->stopped = all > 0 && (all == size || tls->ended || tls->error);
	tls->held += allocated - before;
	if (all || tls->ended)
		return (ssize_t)all;
	errno = tls->error ? tls->error : EAGAIN;
	return -1;
}

bool tls_is_ready(const struct tls *tls)
{
	return tls->ready;
}

bool tls_is_accepting(const struct tls *tls)
{
	return !tls->peer && !tls->ready;
}

bool tls_has_begun(const struct tls *tls)
{
	return tls->ssl;
}

bool tls_has_input(const struct tls *tls)
{
	return tls->stopped || (tls->ssl && SSL_has_pending(tls->ssl));
}

bool tls_stopped(const struct tls *tls)
{
	return tls->stopped;
}

/* --- writing --- */

/* The vectors that are left; none is empty. `together` and `arg` are as in tls_write(). */
struct pieces {
	struct iovec *first;
	int count;
	size_t passed; /* Bytes. */
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

/*
 * Returns the data of the next record. Small pieces are copied to `space` and joined, so that
 * each does not become a record.
 */
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
	size_t n, before = allocated;

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
	tls->held += allocated - before;
	return true;
}

/* Records that `n` bytes of records were sent. Returns the bytes of data that count as taken. */
static size_t advance(struct batch *b, size_t n)
{
	size_t before = b->taken;

	b->sent += n;
	b->taken =
		b->sent < b->records ? (size_t)((uint64_t)b->data * b->sent / b->records) : b->data;
	return b->taken - before;
}

ssize_t tls_write(struct tls *tls, struct iovec *vectors, int count,
	size_t (*together)(void *arg, size_t skip, size_t max), void *arg)
{
	struct pieces p = { vectors, tls->ready ? count : 0, 0, together, arg };
	size_t all = 0;
	ssize_t n;

	/* If a part of the batch is unsent, the front of the data is already encrypted. */
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
	return sizeof(*tls) + tls->held + tls->wire.out.cap;
}
