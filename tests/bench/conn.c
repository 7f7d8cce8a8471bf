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
#include <sys/un.h>
#include <unistd.h>

static bool find_socket(struct place *place, const char *path)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&place->address;

	if (strlen(path) >= sizeof(address->sun_path)) {
		fprintf(stderr, "loadgen: %s: too long\n", path);
		return false;
	}
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	place->address_size = sizeof(*address);
	return true;
}

bool place_find(struct place *place, const char *socket, const char *host, uint16_t number)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
	char port[8];
	int error;

	*place = (struct place){ .from.sin_family = AF_UNSPEC };
	if (socket)
		return find_socket(place, socket);
	snprintf(port, sizeof(port), "%u", number);
	error = getaddrinfo(host, port, &hints, &list);
	if (error) {
		fprintf(stderr, "loadgen: %s:%s: %s\n", host, port, gai_strerror(error));
		return false;
	}
	memcpy(&place->address, list->ai_addr, list->ai_addrlen);
	place->address_size = list->ai_addrlen;
	freeaddrinfo(list);
	return true;
}

void place_spread(struct place *place, size_t number)
{
	enum { ADDRESSES = 200 };
	const struct sockaddr_in *to = (const struct sockaddr_in *)&place->address;

	if (to->sin_family != AF_INET || to->sin_addr.s_addr != htonl(INADDR_LOOPBACK))
		return;
	place->from.sin_family = AF_INET;
	place->from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)(number % ADDRESSES));
}

static int connect_to(const struct place *place)
{
	const int on = 1;
	int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = fd >= 0;

	if (good && place->from.sin_family == AF_INET) {
		/* The port is chosen with the connection: one of another peer may be used at the same time. */
		good = setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) == 0 &&
			bind(fd, (const struct sockaddr *)&place->from, sizeof(place->from)) == 0;
	}
	if (good && connect(fd, (const struct sockaddr *)&place->address, place->address_size) == 0) {
		if (place->address.ss_family != AF_UNIX)
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		return fd;
	}
	fprintf(stderr, "loadgen: cannot connect: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
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

bool conn_open(struct conn *conn, const struct place *place, size_t depth, SSL_CTX *tls)
{
	uint64_t slots = 1;

	while (slots < depth)
		slots *= 2;
	*conn = (struct conn){ .fd = connect_to(place), .place = place, .mask = slots - 1 };
	if (conn->fd < 0)
		return false;
	if (tls && !shake_hands(conn, tls)) {
		conn_close(conn);
		return false;
	}
	if (tls)
		fcntl(conn->fd, F_SETFL, O_NONBLOCK);
	conn->times = calloc(slots, sizeof(*conn->times));
	if (conn->times == NULL) {
		fprintf(stderr, "loadgen: out of memory\n");
		exit(1);
	}
	return true;
}

bool conn_reopen(struct conn *conn)
{
	close(conn->fd);
	conn->wants_write = false;
	conn->fd = connect_to(conn->place);
	return conn->fd >= 0;
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
		return send(conn->fd, conn->unwritten, conn->unwritten_size, MSG_NOSIGNAL | MSG_DONTWAIT);
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
