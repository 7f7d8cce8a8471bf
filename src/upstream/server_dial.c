#include "upstream/server_dial.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct server_dial *dial = arg;
	int error = 0;
	socklen_t n = sizeof(error);

	(void)what;
	loop_enter(dial->loop);
	if (getsockopt((int)fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error) {
		close((int)fd);
		dial->done(dial, -1, strerror(error));
		return;
	}
	dial->done(dial, (int)fd, NULL);
}

static void connect_to(struct server_dial *dial, const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0) {
		dial->done(dial, -1, strerror(errno));
		return;
	}
	if (address->sa_family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
	if (connect(fd, address, length) < 0 && errno != EINPROGRESS) {
		int error = errno;
		close(fd);
		dial->done(dial, -1, strerror(error));
		return;
	}
	event_assign(&dial->connected, dial->loop->base, fd, EV_WRITE, on_connected, dial);
	event_add(&dial->connected, NULL);
}

static void on_resolved(int error, struct evutil_addrinfo *found, void *arg)
{
	struct server_dial *dial = arg;
	struct evutil_addrinfo *choice;
	unsigned count = 0, skip;

	dial->resolving = NULL;
	if (error == EVUTIL_EAI_CANCEL)
		return;
	loop_enter(dial->loop);
	for (choice = found; choice; choice = choice->ai_next)
		count++;
	if (error || count == 0) {
		dial->done(dial, -1, error ? evutil_gai_strerror(error) : "no address");
		return;
	}
	/* Each attempt tries the next address of the name. */
	choice = found;
	for (skip = dial->attempts++ % count; skip > 0; skip--)
		choice = choice->ai_next;
	connect_to(dial, choice->ai_addr, (socklen_t)choice->ai_addrlen);
	evutil_freeaddrinfo(found);
}

static void connect_unix(struct server_dial *dial, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		dial->done(dial, -1, "path too long");
		return;
	}
	strcpy(address.sun_path, path);
	connect_to(dial, (struct sockaddr *)&address, sizeof(address));
}

void server_dial_init(struct server_dial *dial, struct loop *loop, struct evdns_base *dns,
	void (*done)(struct server_dial *dial, int fd, const char *why))
{
	*dial = (struct server_dial){ .loop = loop, .dns = dns, .done = done };
}

void server_dial_start(struct server_dial *dial, const struct ring_server *where)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	char port[8];

	if (where->port == 0) {
		connect_unix(dial, where->host);
		return;
	}
	snprintf(port, sizeof(port), "%u", where->port);
	/* A numeric address, or a name in the hosts file, is resolved within this call. */
	dial->resolving = evdns_getaddrinfo(dial->dns, where->host, port, &hints, on_resolved, dial);
}

void server_dial_cancel(struct server_dial *dial)
{
	if (dial->resolving)
		evdns_getaddrinfo_cancel(dial->resolving);
	dial->resolving = NULL;
	if (event_initialized(&dial->connected) && event_pending(&dial->connected, EV_WRITE, NULL)) {
		event_del(&dial->connected);
		close(event_get_fd(&dial->connected));
	}
}
