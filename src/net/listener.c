#include "net/listener.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/tls.h"
#include "util/alloc.h"
#include "util/linux.h"
#include "util/log.h"

enum { BACKLOG = 1024, PAUSE_MS = 100 };

/*
 * TCP keepalive, so that a client whose host has vanished does not keep a connection slot or
 * receive an element: seconds idle, seconds between probes, number of probes.
 */
enum { KEEPALIVE_IDLE = 60, KEEPALIVE_PAUSE = 10, KEEPALIVE_COUNT = 6 };

struct listener {
	int fd;
	bool started;  /* If set, the next five members are set, too. */
	unsigned most; /* Maximum number of connections accepted in a turn. */
	listener_accepted *accepted;
	void *arg;
	struct event ready, again; /* `again` ends a pause. */
	struct tls_context *tls;   /* Or NULL. */
	/* Other processes may listen on its port. */
	bool shared;
	/* Accepting has failed since the last accepted connection. */
	bool failing;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "" for TCP. */
	mode_t mode;                                               /* Mode of the file at `path`. */
};

/* Returns a new socket, or -1 with an errno. */
static int accept_one(const struct listener *l)
{
	int fd;

	do
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return fd;
}

static void accept_client(struct listener *l, int fd)
{
	l->failing = false;
	l->accepted(fd, l->tls ? tls_accept(l->tls) : NULL, l->arg);
}

/*
 * Most likely the process has run out of file descriptors. Without a pause, the level-triggered
 * loop would spin.
 */
static void pause_accepting(struct listener *l)
{
	static const struct timeval pause = { 0, PAUSE_MS * 1000 };

	if (!l->failing)
		log_warn("cannot accept connections, retrying: %s", strerror(errno));
	l->failing = true;
	event_del(&l->ready);
	event_add(&l->again, &pause);
}

static void listener_on_ready(evutil_socket_t listening, short what, void *arg)
{
	struct listener *l = arg;
	int fd = -1;

	(void)listening;
	(void)what;
	for (unsigned i = 0; i < l->most && (fd = accept_one(l)) >= 0; i++)
		accept_client(l, fd);
	if (fd < 0 && errno != EAGAIN)
		pause_accepting(l);
}

static void listener_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	event_add(&l->ready, NULL);
}

void listener_start(struct listener *l, struct event_base *base, unsigned most,
	listener_accepted *accepted, void *arg)
{
	assert(!l->started);
	l->started = true;
	l->most = most;
	l->accepted = accepted;
	l->arg = arg;
	event_assign(&l->ready, base, l->fd, EV_READ | EV_PERSIST, listener_on_ready, l);
	event_assign(&l->again, base, -1, 0, listener_on_again, l);
	event_add(&l->ready, NULL);
}

static int open_unix(const struct listener_place *place, char error[256])
{
	const char *path = place->host;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;
	struct stat st;
	mode_t mask;

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (fd >= 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
			errno == EAGAIN) {
			snprintf(error, 256,
				"unix:%s: in use; a process that takes over must use another path, "
				"or none",
				path);
			close(fd);
			return -1;
		}
		unlink(path);
	}
	mask = umask(0777 & ~place->mode);
	rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (rc == 0)
		return fd;
	snprintf(error, 256, "unix:%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool has_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Returns a socket that is bound to the address with this port, or with any port if it is 0.
 * Returns -1 on failure, with the reason in `error`.
 */
static int open_tcp(const struct listener_place *place, uint16_t port, char error[256])
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE },
			*found = NULL;
	bool every = strcmp(place->host, "*") == 0;
	char service[8];
	int fd = -1, on = 1, off = 0, rc;

	/* An IPv6 socket accepts IPv4 connections, too. */
	if (every)
		hints.ai_family = has_ipv6() ? AF_INET6 : AF_INET;
	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(every ? NULL : place->host, service, &hints, &found);
	if (rc != 0) {
		snprintf(error, 256, "%s:%u: %s", place->host, place->port, gai_strerror(rc));
		return -1;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd >= 0 && every && found->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (fd >= 0 && place->reuseport)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0) {
		snprintf(error, 256, "%.150s:%u: %s%s", place->host, place->port, strerror(errno),
			errno == EADDRINUSE
				? "; to take over from another setlistd, both need reuseport = true"
				: "");
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

static bool check_path(const char *path, char error[256])
{
	const char *slash = strrchr(path, '/');
	char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = ".";
	struct stat st;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
			path);
	if (stat(folder, &st) < 0)
		snprintf(error, 256, "unix:%s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		snprintf(error, 256, "unix:%s: %s", path, strerror(ENOTDIR));
	else if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		snprintf(error, 256, "unix:%s: %s", path, strerror(EADDRINUSE));
	else
		return true;
	return false;
}

bool listener_check(const struct listener_place *place, char error[256])
{
	int fd;

	if (!place->port)
		return check_path(place->host, error);
	fd = open_tcp(place, 0, error);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Takes ownership of the socket. On Linux, accepted sockets inherit its options. */
static struct listener *new_listener(int fd, char error[256])
{
	struct listener *l;
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	linux_keep_alive(fd, KEEPALIVE_IDLE, KEEPALIVE_PAUSE, KEEPALIVE_COUNT);
	if (listen(fd, BACKLOG) < 0) {
		snprintf(error, 256, "%s", strerror(errno));
		close(fd);
		return NULL;
	}
	l = xcalloc(1, sizeof(*l));
	l->fd = fd;
	return l;
}

struct listener *listener_create(const struct listener_place *place, char error[256])
{
	int fd = place->port ? open_tcp(place, place->port, error) : open_unix(place, error);
	struct listener *l = fd < 0 ? NULL : new_listener(fd, error);

	if (!l)
		return NULL;
	if (!place->port)
		strncpy(l->path, place->host, sizeof(l->path) - 1);
	l->mode = place->mode;
	l->shared = place->port && place->reuseport;
	return l;
}

struct listener *listener_adopt(int fd, char error[256])
{
	evutil_make_socket_nonblocking(fd);
	return new_listener(fd, error);
}

void listener_use_tls(struct listener *l, struct tls_context *tls)
{
	struct tls_context *before = l->tls;

	l->tls = tls ? tls_context_hold(tls) : NULL;
	tls_context_drop(before);
}

void listener_set_mode(struct listener *l, mode_t mode)
{
	/*
	 * If the user was switched after the file was created, even setting its current mode
	 * would fail.
	 */
	if (!l->path[0] || mode == l->mode)
		return;
	if (chmod(l->path, mode) == 0)
		l->mode = mode;
	else
		log_warn("%s: cannot change its mode: %s", l->path, strerror(errno));
}

void listener_share(struct listener *l)
{
	int on = 1;

	if (l->path[0] || l->shared)
		return;
	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		log_warn("cannot set reuseport on an open port: %s", strerror(errno));
	l->shared = true;
}

bool listener_step_aside(struct listener *l)
{
	return l->shared && linux_prefer_second(l->fd);
}

static void accept_all(struct listener *l)
{
	int fd;

	if (l->shared)
		linux_prefer_none(l->fd);
	while ((fd = accept_one(l)) >= 0)
		accept_client(l, fd);
}

void listener_destroy(struct listener *l)
{
	if (!l)
		return;
	if (l->started) {
		event_del(&l->ready);
		event_del(&l->again);
		accept_all(l);
	}
	close(l->fd);
	if (l->path[0])
		unlink(l->path);
	tls_context_drop(l->tls);
	free(l);
}
