#include "client/client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/log.h"

void client_name(const struct client *c, char name[static CLIENT_NAME])
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
		/* A client of IPv4 has the same name on every socket that may have accepted it. */
		inet_ntop(AF_INET, &a.v6.sin6_addr.s6_addr[12], host, sizeof(host));
		sprintf(name, "%s:%u", host, ntohs(a.v6.sin6_port));
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		sprintf(name, "[%s]:%u", host, ntohs(a.v6.sin6_port));
	} else {
		sprintf(name, "%s", a.any.sa_family == AF_UNIX ? "unix" : "unknown");
	}
}

void client_free_task(struct task *task)
{
	struct client *c = client_of_account(task->account);
	bool is_left = !task->owner;

	generation_leave(generation_of(task->host));
	account_use(&c->account, 0, task->size + task->sent.bytes);
	task_free(task);
	if (is_left)
		client_release(c);
}

void client_release(struct client *c)
{
	if (--c->users > 0)
		return;
	assert(c->account.used == 0 && c->account.held == 0 && c->account.waiting == 0);
	free(c);
}
