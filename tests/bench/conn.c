/* Opening, reading and writing. Requests are written straight from the pool, never copied. */
#include "conn.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static void find_socket(struct conn *conn, const char *path)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&conn->to;

	if (strlen(path) >= sizeof(address->sun_path))
		errx(1, "%s: too long", path);
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	conn->to_size = sizeof(*address);
}

static void find_host(struct conn *conn, const char *host, uint16_t number)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
	char port[8];
	int error;

	snprintf(port, sizeof(port), "%u", number);
	error = getaddrinfo(host, port, &hints, &list);
	if (error)
		errx(1, "%s:%s: %s", host, port, gai_strerror(error));
	memcpy(&conn->to, list->ai_addr, list->ai_addrlen);
	conn->to_size = list->ai_addrlen;
	freeaddrinfo(list);
}

/*
 * Makes connection ${number} to 127.0.0.1 originate from a separate address: each address has its
 * own ports, and a port cannot be reused for a while.
 */
static void spread(struct conn *conn, size_t number)
{
	enum { ADDRESSES = 200 };
	const struct sockaddr_in *to = (const struct sockaddr_in *)&conn->to;

	if (to->sin_family != AF_INET || to->sin_addr.s_addr != htonl(INADDR_LOOPBACK))
		return;
	conn->from.sin_family = AF_INET;
	conn->from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)(number % ADDRESSES));
}

static void connect_to(struct conn *conn)
{
	const int on = 1;
	int fd = socket(conn->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = fd >= 0;

	if (good && conn->from.sin_family == AF_INET) {
		/*
		 * The port is chosen on connecting: a port for another peer may be reused at the
		 * same time.
		 */
		good = setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) == 0 &&
			bind(fd, (const struct sockaddr *)&conn->from, sizeof(conn->from)) == 0;
	}
	if (!good || connect(fd, (const struct sockaddr *)&conn->to, conn->to_size) != 0)
		err(1, "cannot connect");
	if (conn->to.ss_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn->fd = fd;
}

/* Certificates are not verified, since only speed is measured. */
static void shake_hands(struct conn *conn, SSL_CTX *context)
{
	conn->tls = SSL_new(context);
	if (conn->tls == NULL || !SSL_set_fd(conn->tls, conn->fd) || SSL_connect(conn->tls) != 1)
		errx(1, "TLS: %s", ERR_reason_error_string(ERR_peek_error()));
	fcntl(conn->fd, F_SETFL, O_NONBLOCK);
}

void conn_open(struct conn *conn, const struct options *options, size_t number, SSL_CTX *tls)
{
	uint64_t slots = 1;

	while (slots < options->depth)
		slots *= 2;
	*conn = (struct conn){ .from.sin_family = AF_UNSPEC, .mask = slots - 1 };
	if (options->socket)
		find_socket(conn, options->socket);
	else
		find_host(conn, options->host,
			(uint16_t)options->ports.list[number % options->ports.count]);
	if (options->reconnect)
		spread(conn, number);
	connect_to(conn);
	if (tls)
		shake_hands(conn, tls);
	conn->times = must(calloc(slots, sizeof(*conn->times)));
}

void conn_reopen(struct conn *conn)
{
	close(conn->fd);
	conn->wants_write = false;
	connect_to(conn);
}

void conn_close(struct conn *conn)
{
	SSL_free(conn->tls);
	close(conn->fd);
	free(conn->times);
}

/* Converts the result of an OpenSSL call to that of send and recv. */
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
		return send(conn->fd, conn->unwritten, conn->unwritten_size,
			MSG_NOSIGNAL | MSG_DONTWAIT);
	ERR_clear_error();
	return result_of(conn, SSL_write(conn->tls, conn->unwritten, (int)size));
}

ssize_t conn_receive(struct conn *conn, char *to, size_t size)
{
	size_t all = 0;
	ssize_t got;

	if (conn->tls == NULL)
		return recv(conn->fd, to, size, MSG_DONTWAIT);
	do {
		ERR_clear_error();
		got = result_of(conn, SSL_read(conn->tls, to + all, (int)(size - all)));
		if (got > 0)
			all += (size_t)got;
	} while (got > 0 && all < size);
	return all ? (ssize_t)all : got;
}

void conn_flush(struct conn *conn)
{
	ssize_t written;

	if (conn->unwritten_size == 0)
		return;
	written = send_some(conn);
	if (written >= 0) {
		conn->unwritten += written;
		conn->unwritten_size -= (size_t)written;
	} else if (errno != EAGAIN && errno != EINTR) {
		err(1, "send");
	}
}

void conn_send(struct conn *conn, struct pool *pool, uint64_t count, uint64_t time)
{
	/* Unsent bytes must be contiguous in the pool, so a new piece waits for the old one. */
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
		conn_flush(conn);
	}
}
