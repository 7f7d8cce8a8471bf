/*
 * What setlistd uses of Linux alone. A port begins here: `make lint` finds what is elsewhere, except in process/sandbox.c.
 *
 *     process/sandbox.c    seccomp. configure --without-seccomp builds no_sandbox.c in its place
 *     net/listener.c       a port with several sockets, SO_REUSEPORT, shares its connections out among them. FreeBSD calls that
 *                          SO_REUSEPORT_LB. Without it a process cannot take over the port of another one
 *     process/serve.c      a name of NOTIFY_SOCKET that begins with @ is in the abstract namespace, which only systemd uses
 *     util/heap.c          mallopt and malloc_trim, which are glibc's, and are left out without it. net/tls.c asks malloc_usable_size
 *
 * libevent chooses between epoll and what else there is.
 */
#ifndef UTIL_LINUX_H
#define UTIL_LINUX_H

#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Files. Whoever reads one does without it where it cannot be opened. */
#define LINUX_PROCESSORS "/proc/stat"     /* how long the processors were idle */
#define LINUX_MEMORY "/proc/self/statm"   /* how much memory the process has */
#define LINUX_DESCRIPTORS "/proc/self/fd" /* which descriptors are open */

/* The user at the other end of a Unix socket. */
static inline bool linux_peer(int fd, uid_t *user)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return false;
	*user = peer.uid;
	return true;
}

/*
 * Probes an idle connection after `idle` seconds, and then every `pause` seconds. It has failed after `count` probes without an answer. The
 * sockets that a listening socket accepts inherit this.
 */
static inline void linux_keep_alive(int fd, int idle, int pause, int count)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* How many bytes the kernel has still to send, or has sent and the peer has not acknowledged. */
static inline bool linux_unsent(int fd, int *bytes)
{
	return ioctl(fd, SIOCOUTQ, bytes) == 0;
}

/*
 * Of the sockets that listen on one port, the second takes all new connections; or each its share again. Sockets are numbered in the order
 * in which they began to listen. A number that does not exist is no choice.
 */
static inline bool linux_prefer_second(int fd)
{
	struct sock_filter second[] = { BPF_STMT(BPF_RET | BPF_K, 1) };
	struct sock_fprog program = { 1, second };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) == 0;
}

static inline void linux_prefer_none(int fd)
{
	int none = 0;

	setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &none, sizeof(none));
}

#endif
