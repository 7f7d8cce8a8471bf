#include "client/client.h"
#include "protocol/commands.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

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

void client_free_task(struct task *task)
{
	generation_leave(generation_of(task->host));
	task_free(task);
}

static void finish(struct client_command *command, const struct request *request)
{
	struct buf text = BUF_EMPTY;

	command->clients->ops->command(command->clients->arg, request, &text);
	command->reply(command, buf_slice(&text));
	buf_free(&text);
	task_done(&command->task);
}

/* The client may be gone. A request that waits has no more words than its name. */
static void on_news(struct clients_wait *wait)
{
	struct client_command *command =
		(struct client_command *)((char *)wait - offsetof(struct client_command, wait));

	finish(command, &(struct request){ .command = command->task.command, .rest = SLICE("") });
}

void client_start_command(struct client *c, const struct request *request, const struct binary_head *head,
	void (*reply)(struct client_command *command, struct slice text))
{
	struct client_command *command = task_new(client_host(c), request, c, sizeof(*command));
	const struct clients *all = c->clients;

	command->wait = (struct clients_wait){ .done = on_news };
	command->clients = c->clients;
	command->reply = reply;
	command->head = head ? *head : (struct binary_head){ 0 };
	c->closing |= request->command->id == COMMAND_QUIT;
	if (all->ops->must_wait(all->arg, request))
		all->ops->await(all->arg, &command->wait);
	else
		finish(command, request);
}

void client_reply_text(struct client_command *command, struct slice text)
{
	buf_add_slice(task_reply(&command->task), text);
}
