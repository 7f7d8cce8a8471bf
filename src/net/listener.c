#include "net/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <linux/filter.h>
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
#include "net/tls_context.h"
#include "util/alloc.h"
#include "util/log.h"

enum { BACKLOG = 1024 };

struct listener {
	struct evconnlistener *events;
	struct event *again; /* after a pause */
	listener_accepted *accepted;
	void *arg;
	struct tls_context *tls; /* or NULL */
	bool started, reuseport;
	bool failing;                                              /* since the last connection that was accepted */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "" for TCP */
};

static void take(struct listener *l, int fd, sa_family_t family)
{
	int on = 1;

	l->failing = false;
	if (family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	l->accepted(fd, l->tls ? tls_accept(l->tls) : NULL, l->arg);
}

static void on_accept(struct evconnlistener *events, evutil_socket_t fd, struct sockaddr *from, int n, void *arg)
{
	(void)events;
	(void)n;
	take(arg, (int)fd, from->sa_family);
}

/* Most likely no file descriptor is left. Without a pause, the level-triggered loop would spin. */
static void on_error(struct evconnlistener *events, void *arg)
{
	struct listener *l = arg;
	struct timeval pause = { 0, 100000 };

	if (!l->failing)
		log_warn("accepting pauses until it succeeds again: %s", strerror(errno));
	l->failing = true;
	evconnlistener_disable(events);
	event_add(l->again, &pause);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	listener_start(arg);
}

void listener_start(struct listener *l)
{
	l->started = true;
	evconnlistener_enable(l->events);
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
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN) {
			snprintf(error, 256, "unix:%s: in use", path);
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

int listener_bind(const struct listener_place *place, char error[256])
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
	char service[8];
	int fd = -1, on = 1, rc;

	snprintf(service, sizeof(service), "%u", place->port);
	rc = getaddrinfo(strcmp(place->host, "*") == 0 ? NULL : place->host, service, &hints, &found);
	if (rc != 0) {
		snprintf(error, 256, "%s:%u: %s", place->host, place->port, gai_strerror(rc));
		return -1;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd >= 0 && place->reuseport)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0) {
		snprintf(error, 256, "%s:%u: %s", place->host, place->port, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* Owns the socket. */
static struct listener *new_listener(
	struct event_base *base, int fd, listener_accepted *accepted, void *arg, char error[256])
{
	struct listener *l = xcalloc(1, sizeof(*l));

	l->accepted = accepted;
	l->arg = arg;
	l->events = evconnlistener_new(
		base, on_accept, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, BACKLOG, fd);
	l->again = evtimer_new(base, on_again, l);
	if (!l->events || !l->again) {
		snprintf(error, 256, "%s", strerror(errno));
		if (!l->events)
			close(fd);
		listener_destroy(l);
		return NULL;
	}
	evconnlistener_set_error_cb(l->events, on_error);
	return l;
}

struct listener *listener_create(struct event_base *base, const struct listener_place *place,
	listener_accepted *accepted, void *arg, char error[256])
{
	int fd = place->port ? listener_bind(place, error) : open_unix(place, error);
	struct listener *l = fd < 0 ? NULL : new_listener(base, fd, accepted, arg, error);

	if (!l)
		return NULL;
	if (!place->port)
		strncpy(l->path, place->host, sizeof(l->path) - 1);
	l->reuseport = place->port && place->reuseport;
	return l;
}

struct listener *listener_adopt(
	struct event_base *base, int fd, listener_accepted *accepted, void *arg, char error[256])
{
	evutil_make_socket_nonblocking(fd);
	return new_listener(base, fd, accepted, arg, error);
}

void listener_use_tls(struct listener *l, struct tls_context *tls)
{
	struct tls_context *before = l->tls;

	l->tls = tls ? tls_context_hold(tls) : NULL;
	tls_context_drop(before);
}

void listener_set_mode(struct listener *l, mode_t mode)
{
	if (l->path[0] && chmod(l->path, mode) < 0)
		log_warn("%s: its mode stays: %s", l->path, strerror(errno));
}

/* Sockets of one port are numbered in the order in which they began to listen. A number that does not exist is no choice. */
bool listener_step_aside(struct listener *l)
{
	struct sock_filter second[] = { BPF_STMT(BPF_RET | BPF_K, 1) };
	struct sock_fprog program = { 1, second };

	return l->reuseport &&
		setsockopt(evconnlistener_get_fd(l->events), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
			sizeof(program)) == 0;
}

static void accept_all(struct listener *l)
{
	int listening = evconnlistener_get_fd(l->events), fd;
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);

	if (l->reuseport)
		setsockopt(listening, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &n, sizeof(n));
	while ((fd = accept4(listening, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		take(l, fd, from.ss_family);
		n = sizeof(from);
	}
}

void listener_destroy(struct listener *l)
{
	if (!l)
		return;
	if (l->started)
		accept_all(l);
	if (l->events)
		evconnlistener_free(l->events);
	if (l->again)
		event_free(l->again);
	if (l->path[0])
		unlink(l->path);
	tls_context_drop(l->tls);
	free(l);
}
