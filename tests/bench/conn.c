/* Opening and writing. Requests are written straight from the pool, never copied. */
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

bool conn_open(struct conn *conn, const char *host, uint16_t port, size_t depth)
{
	const int on = 1;
	uint64_t slots = 1;

	while (slots < depth)
		slots *= 2;
	*conn = (struct conn){ .fd = connect_to(host, port), .mask = slots - 1 };
	if (conn->fd < 0)
		return false;
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
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
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	free(conn->times);
	conn->times = NULL;
}

bool conn_flush(struct conn *conn)
{
	ssize_t written;

	if (conn->unwritten_size == 0)
		return true;
	written = send(conn->fd, conn->unwritten, conn->unwritten_size, MSG_NOSIGNAL);
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
