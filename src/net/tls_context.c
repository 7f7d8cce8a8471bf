#include "net/tls_context.h"

#include <dirent.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/tls_wire.h"
#include "util/alloc.h"

struct tls_context {
	atomic_uint holders;
	SSL_CTX *clients, *servers;
	BIO_METHOD *wire;
};

static void *allocate(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return xmalloc(size);
}

static void *reallocate(void *p, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return xrealloc(p, size);
}

static void release(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

void tls_init(void)
{
	/* Fails only if OpenSSL has allocated before, which then goes on as it did. */
	(void)CRYPTO_set_mem_functions(allocate, reallocate, release);
}

/* --- reading files --- */

/* Says what is wrong with a file: the first error of OpenSSL is the cause of the others. */
static bool refuse(const struct tls_file *file, char error[256])
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);

#ifdef ERR_SYSTEM_ERROR
	if (ERR_SYSTEM_ERROR(code))
		reason = strerror(ERR_GET_REASON(code));
#else
	if (ERR_GET_LIB(code) == ERR_LIB_SYS)
		reason = strerror(ERR_GET_REASON(code));
#endif
	snprintf(error, 256, "%s: %s: %s", file->option, file->path, reason ? reason : "not usable");
	ERR_clear_error();
	return false;
}

static bool lacks(const struct tls_file *file, const struct tls_file *other, char error[256])
{
	snprintf(error, 256, "%s: needed with %s", file->option, other->option);
	return false;
}

static bool is_named(const struct tls_file *file)
{
	return file->path[0] != '\0';
}

/* Without this OpenSSL would ask the terminal for the passphrase of a key. */
static int no_passphrase(char *to, int size, int rwflag, void *arg)
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
	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	if (!is_named(&files->certificate) && !is_named(&files->key))
		return true;
	if (!is_named(&files->certificate))
		return lacks(&files->certificate, &files->key, error);
	if (!is_named(&files->key))
		return lacks(&files->key, &files->certificate, error);
	if (SSL_CTX_use_certificate_chain_file(ctx, files->certificate.path) != 1)
		return refuse(&files->certificate, error);
	if (SSL_CTX_use_PrivateKey_file(ctx, files->key.path, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_check_private_key(ctx) != 1)
		return refuse(&files->key, error);
	return true;
}

static bool read_ca(SSL_CTX *ctx, const struct tls_file *ca, char error[256])
{
	ERR_clear_error();
	return SSL_CTX_load_verify_locations(ctx, ca->path, NULL) == 1 || refuse(ca, error);
}

/* The names of files in a folder of CAs that OpenSSL would look at: 8 hexadecimal digits, a dot, a number. */
static int is_ca_name(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return strspn(name, "0123456789abcdef") == 8 && name[8] == '.' && strspn(name + 9, "0123456789") > 0;
}

/*
 * OpenSSL by itself would read the folder during handshakes. By then the process may have switched to a user who may not, and the
 * loop of a worker must not wait for a disk.
 */
static bool read_system_ca(SSL_CTX *ctx, const struct tls_file *ca, char error[256])
{
	const char *file = getenv(X509_get_default_cert_file_env()), *folder = getenv(X509_get_default_cert_dir_env());
	bool found = SSL_CTX_load_verify_locations(ctx, file ? file : X509_get_default_cert_file(), NULL) == 1;
	struct dirent **entries = NULL;
	char path[4096];
	int count;

	folder = folder ? folder : X509_get_default_cert_dir();
	count = found ? 0 : scandir(folder, &entries, is_ca_name, NULL);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		found |= SSL_CTX_load_verify_locations(ctx, path, NULL) == 1;
		free(entries[i]);
	}
	free(entries);
	ERR_clear_error();
	if (!found)
		snprintf(error, 256, "%s: not set, and there is no CA of the system in %s", ca->option, folder);
	return found;
}

/* --- contexts --- */

/* For a session's buffers, `SSL_MODE_RELEASE_BUFFERS`: an idle connection has none. */
static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		abort();
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
	/* Requests and replies say where they end. So whoever cuts off a connection cannot make one of them mean something else. */
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
	SSL_CTX_set_read_ahead(ctx, 1);
	return ctx;
}

/* Clients keep their sessions themselves, in tickets. */
static SSL_CTX *read_clients(const struct tls_files *files, char error[256])
{
	static const unsigned char id[] = "setlistd";
	SSL_CTX *ctx = new_ctx(TLS_server_method());
	bool good = read_certificate(ctx, files, error);

	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
	if (good && is_named(&files->ca)) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		good = read_ca(ctx, &files->ca, error);
		if (good)
			SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(files->ca.path));
	}
	if (good)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static SSL_CTX *read_servers(const struct tls_files *files, bool verify, char error[256])
{
	SSL_CTX *ctx = new_ctx(TLS_client_method());
	bool good = read_certificate(ctx, files, error);

	if (verify)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (good && is_named(&files->ca))
		good = read_ca(ctx, &files->ca, error);
	else if (good && verify)
		good = read_system_ca(ctx, &files->ca, error);
	if (good)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

struct tls_context *tls_context_create(
	const struct tls_files *clients, const struct tls_files *servers, bool verify, char error[256])
{
	struct tls_context *context = xcalloc(1, sizeof(*context));

	atomic_init(&context->holders, 1);
	context->wire = tls_wire_method();
	if (clients)
		context->clients = read_clients(clients, error);
	if (servers && (context->clients || !clients))
		context->servers = read_servers(servers, verify, error);
	if ((context->clients || !clients) && (context->servers || !servers))
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

SSL_CTX *tls_context_clients(const struct tls_context *context)
{
	return context->clients;
}

SSL_CTX *tls_context_servers(const struct tls_context *context)
{
	return context->servers;
}

const BIO_METHOD *tls_context_wire(const struct tls_context *context)
{
	return context->wire;
}
