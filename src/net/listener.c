#include "net/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
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
	void (*accepted)(int fd, struct tls *tls, void *arg);
	void *arg;
	struct tls_context *tls;                                   /* or NULL */
	bool failing;                                              /* since the last connection that was accepted */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "" for TCP */
};

static void on_accept(struct evconnlistener *events, evutil_socket_t fd, struct sockaddr *from, int n, void *arg)
{
	struct listener *l = arg;
	int on = 1;

	(void)events;
	(void)n;
	l->failing = false;
	if (from->sa_family != AF_UNIX)
		setsockopt((int)fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	l->accepted((int)fd, l->tls ? tls_accept(l->tls) : NULL, l->arg);
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
	evconnlistener_enable(l->events);
}

static int open_unix(const char *path, mode_t mode, char error[256])
{
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
	mask = umask(0777 & ~mode);
	rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (rc == 0)
		return fd;
	snprintf(error, 256, "unix:%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int open_tcp(const char *host, uint16_t port, char error[256])
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
	char service[8];
	int fd = -1, on = 1, rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, service, &hints, &found);
	if (rc != 0) {
		snprintf(error, 256, "%s:%u: %s", host, port, gai_strerror(rc));
		return -1;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0) {
		snprintf(error, 256, "%s:%u: %s", host, port, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

struct listener *listener_create(struct event_base *base, const char *host, uint16_t port, mode_t mode,
	void (*accepted)(int fd, struct tls *tls, void *arg), void *arg, char error[256])
{
	int fd = port ? open_tcp(host, port, error) : open_unix(host, mode, error);
	struct listener *l;

	if (fd < 0)
		return NULL;
	l = xcalloc(1, sizeof(*l));
	l->accepted = accepted;
	l->arg = arg;
	if (!port)
		strncpy(l->path, host, sizeof(l->path) - 1);
	l->events = evconnlistener_new(
		base, on_accept, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, BACKLOG, fd);
	l->again = evtimer_new(base, on_again, l);
	if (!l->events || !l->again) {
		snprintf(error, 256, "%s:%u: %s", host, port, strerror(errno));
		listener_destroy(l);
		return NULL;
	}
	evconnlistener_set_error_cb(l->events, on_error);
	return l;
}

void listener_use_tls(struct listener *l, struct tls_context *tls)
{
	struct tls_context *before = l->tls;

	l->tls = tls_context_hold(tls);
	tls_context_drop(before);
}

void listener_destroy(struct listener *l)
{
	if (!l)
		return;
	if (l->events)
		evconnlistener_free(l->events);
	if (l->again)
		event_free(l->again);
	if (l->path[0])
		unlink(l->path);
	tls_context_drop(l->tls);
	free(l);
}
