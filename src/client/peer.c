#include "client/peer.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/log.h"

void client_peer(const struct client *c, char name[static CLIENT_PEER])
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un path;
	} a;
	socklen_t n = sizeof(a);
	char host[INET6_ADDRSTRLEN] = "?";

	a.any.sa_family = AF_UNSPEC;
	if (getpeername(c->stream.fd, &a.any, &n) == 0 && a.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		sprintf(name, "%s:%u", host, ntohs(a.v4.sin_port));
	} else if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr)) {
		/* A client of IPv4 has one name, on whichever socket it was accepted. */
		inet_ntop(AF_INET, &a.v6.sin6_addr.s6_addr[12], host, sizeof(host));
		sprintf(name, "%s:%u", host, ntohs(a.v6.sin6_port));
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		sprintf(name, "[%s]:%u", host, ntohs(a.v6.sin6_port));
	} else {
		sprintf(name, "%s", a.any.sa_family == AF_UNIX ? "unix" : "unknown");
	}
}

static bool may_connect(const struct config *config, uid_t uid)
{
	if (uid == 0 || uid == geteuid())
		return true;
	for (size_t i = 0; i < config->socket_users.count; i++) {
		if (config->socket_users.at[i] == uid)
			return true;
	}
	return false;
}

bool client_peer_admit(const struct config *config, int fd)
{
	static const char refused[] = "ERROR this user may not connect\r\n";
	struct ucred peer = { .uid = (uid_t)-1 };
	int domain = AF_UNIX;
	socklen_t n = sizeof(domain), size = sizeof(peer);

	if (config->socket_users.count == 0)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain != AF_UNIX)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && may_connect(config, peer.uid))
		return true;
	log_info("connection refused: user %u is not in socket_users", (unsigned)peer.uid);
	(void)!send(fd, refused, sizeof(refused) - 1, MSG_NOSIGNAL);
	close(fd);
	return false;
}
