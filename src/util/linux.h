/*
 * Everything specific to Linux. A port begins here: `make lint` reports Linux code elsewhere,
 * except in process/sandbox.c.
 *
 *   process/sandbox.c  seccomp; configure --without-seccomp builds no_sandbox.c instead.
 *   net/listener.c     With SO_REUSEPORT, connections to a port are distributed over its sockets.
 *                      FreeBSD calls that SO_REUSEPORT_LB. Without it a process cannot take over
 *                      the port of another one.
 *   process/serve.c    A NOTIFY_SOCKET that begins with @ is in the abstract namespace, which only
 *                      systemd uses.
 *   util/heap.c        mallopt and malloc_trim are glibc's and left out without it. net/tls.c calls
 *                      malloc_usable_size.
 *   LINUX_COARSE       A clock that is read faster and tells the time of the last tick.
 *
 * libevent chooses between epoll and its alternatives.
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
#include <time.h>

/* Files. A reader must work without a file that cannot be opened. */
#define LINUX_PROCESSORS "/proc/stat"     /* Idle time of the processors. */
#define LINUX_MEMORY "/proc/self/statm"   /* Memory of the process. */
#define LINUX_DESCRIPTORS "/proc/self/fd" /* Open descriptors of the process. */

#define LINUX_COARSE CLOCK_MONOTONIC_COARSE
enum { LINUX_TICK_MS = 10 }; /* Maximum time between two ticks. */

/* Stores the user at the other end of a Unix socket in `user`. Returns false on failure. */
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
 * Probes an idle connection after `idle` seconds and then every `pause` seconds. The connection
 * fails after `count` unanswered probes. Sockets inherit this from the listening socket that
 * accepts them.
 */
static inline void linux_keep_alive(int fd, int idle, int pause, int count)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/*
 * Stores how many bytes the peer has not acknowledged, sent or not, in `bytes`. Returns false
 * on failure.
 */
static inline bool linux_unsent(int fd, int *bytes)
{
	return ioctl(fd, SIOCOUTQ, bytes) == 0;
}

/*
 * Of the sockets that listen on one port, makes the second one get all new connections
 * (linux_prefer_second), or distributes them again (linux_prefer_none). Sockets are numbered in
 * the order in which they began to listen; if there is no second one, connections are
 * distributed. linux_prefer_second() returns false on failure.
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
