/* Opening and writing. Requests are written straight from the pool, never copied. */
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const char *host, uint16_t number)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int fd = -1, error;
	char port[8];

	snprintf(port, sizeof(port), "%u", number);
	error = getaddrinfo(host, port, &hints, &list);
	if (error) {
		fprintf(stderr, "loadgen: %s:%s: %s\n", host, port, gai_strerror(error));
		return -1;
	}
	for (struct addrinfo *one = list; one != NULL && fd < 0; one = one->ai_next) {
		fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
		if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) != 0) {
			error = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		fprintf(stderr, "loadgen: cannot connect to %s:%s: %s\n", host, port, strerror(error));
	return fd;
}

/* Certificates are not checked: it is speed that is measured. */
static bool shake_hands(struct conn *conn, SSL_CTX *context)
{
	conn->tls = SSL_new(context);
	if (conn->tls && SSL_set_fd(conn->tls, conn->fd) && SSL_connect(conn->tls) == 1)
		return true;
	fprintf(stderr, "loadgen: TLS: %s\n", ERR_reason_error_string(ERR_peek_error()));
	return false;
}

bool conn_open(struct conn *conn, const char *host, uint16_t port, size_t depth, SSL_CTX *tls)
{
	const int on = 1;
	uint64_t slots = 1;

	while (slots < depth)
		slots *= 2;
	*conn = (struct conn){ .fd = connect_to(host, port), .mask = slots - 1 };
	if (conn->fd < 0)
		return false;
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (tls && !shake_hands(conn, tls)) {
		conn_close(conn);
		return false;
	}
	fcntl(conn->fd, F_SETFL, O_NONBLOCK);
	conn->times = calloc(slots, sizeof(*conn->times));
	if (conn->times == NULL) {
		fprintf(stderr, "loadgen: out of memory\n");
		exit(1);
	}
	return true;
}

void conn_close(struct conn *conn)
{
	SSL_free(conn->tls);
	conn->tls = NULL;
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	free(conn->times);
	conn->times = NULL;
}

/* The result of a call of OpenSSL, as send and recv would give it. */
static ssize_t result_of(const struct conn *conn, int done)
{
	if (done > 0)
		return done;
	switch (SSL_get_error(conn->tls, done)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		errno = EPROTO;
		return -1;
	}
}

static ssize_t send_some(const struct conn *conn)
{
	size_t size = conn->unwritten_size < INT_MAX ? conn->unwritten_size : INT_MAX;

	if (conn->tls == NULL)
		return send(conn->fd, conn->unwritten, conn->unwritten_size, MSG_NOSIGNAL);
	ERR_clear_error();
	return result_of(conn, SSL_write(conn->tls, conn->unwritten, (int)size));
}

ssize_t conn_receive(struct conn *conn, char *to, size_t size)
{
	size_t all = 0;
	ssize_t got;

	if (conn->tls == NULL)
		return recv(conn->fd, to, size, 0);
	do {
		ERR_clear_error();
		got = result_of(conn, SSL_read(conn->tls, to + all, (int)(size - all)));
		if (got > 0)
			all += (size_t)got;
	} while (got > 0 && all < size);
	return all ? (ssize_t)all : got;
}

bool conn_flush(struct conn *conn)
{
	ssize_t written;

	if (conn->unwritten_size == 0)
		return true;
	written = send_some(conn);
	if (written < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		fprintf(stderr, "loadgen: send: %s\n", strerror(errno));
		return false;
	}
	conn->unwritten += written;
	conn->unwritten_size -= (size_t)written;
	return true;
}

bool conn_send(struct conn *conn, struct pool *pool, uint64_t count, uint64_t time)
{
	/* What is unwritten must be one piece of the pool, so a new piece waits for the old. */
	while (count && conn->unwritten_size == 0) {
		size_t first = conn->next_send;
		size_t last = pool->count - first < count ? pool->count : first + (size_t)count;

		for (size_t i = first; i < last; i++)
			conn->times[conn->sent++ & conn->mask] = time;
		pool_redraw(pool, first, last);
		count -= last - first;
		conn->next_send = last == pool->count ? 0 : last;
		conn->unwritten = pool->bytes + pool->requests[first].offset;
		conn->unwritten_size = pool->requests[last].offset - pool->requests[first].offset;
		if (!conn_flush(conn))
			return false;
	}
	return true;
}
