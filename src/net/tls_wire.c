#include "net/tls_wire.h"

#include <errno.h>
#include <openssl/bio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
	OUT_MAX = 1 << 20 /* bytes; a peer that keeps requesting new keys and reads nothing reaches them */
};

static int read_socket(BIO *bio, char *to, int size)
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

static int write_buffer(BIO *bio, const char *from, int size)
{
	struct tls_wire *wire = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (buf_size(&wire->out) > OUT_MAX)
		return -1;
	buf_add(&wire->out, from, (size_t)size);
	return size;
}

static long control(BIO *bio, int command, long number, void *pointer)
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

BIO_METHOD *tls_wire_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "wire");

	if (!method || !BIO_meth_set_read(method, read_socket) || !BIO_meth_set_write(method, write_buffer) ||
		!BIO_meth_set_ctrl(method, control))
		abort();
	return method;
}

BIO *tls_wire_bio(struct tls_wire *wire, const BIO_METHOD *method)
{
	BIO *bio = BIO_new(method);

	if (!bio)
		abort();
	BIO_set_data(bio, wire);
	BIO_set_init(bio, 1);
	return bio;
}
