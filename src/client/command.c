#include "client/command.h"

#include "client/state.h"
#include "command/start.h"
#include "command/task.h"
#include "protocol/commands.h"

/* The task of a PROXY_COMMAND. */
struct client_command {
	struct task task;
	struct clients_wait wait;
	struct clients *clients;
};

static void finish_command(struct client_command *command, const struct request *request)
{
	struct buf text = BUF_EMPTY;
	struct reply last = command->clients->ops->command(command->clients->arg, request, &text);
	struct reply lines = { .kind = REPLY_LINES, .more = true, .bytes = buf_slice(&text) };

	if (buf_size(&text) && last.bytes.p != lines.bytes.p)
		task_say(&command->task, &lines);
	task_say(&command->task, &last);
	buf_free(&text);
}

/*
 * Only `stats` without arguments waits, so the rest of the line is empty. If the client has
 * disconnected, there is no report, as at a shutdown the meters of other workers may be freed.
 */
static void command_on_sums(struct clients_wait *wait)
{
	struct client_command *command =
		(struct client_command *)((char *)wait - offsetof(struct client_command, wait));

	if (task_is_abandoned(&command->task))
		task_done(&command->task);
	else
		finish_command(command,
			&(struct request){ .command = command->task.command, .rest = SLICE("") });
}

/*
 * Returns whether the reply has sums of the servers' statistics, which only the general
 * statistics have.
 */
static bool has_sums(const struct request *request)
{
	struct slice rest = request->rest;

	return request->command->id == COMMAND_STATS && slice_token(&rest).n == 0;
}

void client_start_command(struct client *c, const struct request *request)
{
	struct client_command *command = task_new(client_host(c), request, c, sizeof(*command));
	const struct clients *all = c->clients;

	command->wait = (struct clients_wait){ .done = command_on_sums };
	command->clients = c->clients;
	if (request->command->id == COMMAND_QUIT)
		client_stop(c);
	if (!has_sums(request) || !all->ops->must_wait(all->arg)) {
		finish_command(command, request);
		return;
	}
	/*
	 * Later requests of this connection must not run before it: its counters must not
	 * include them.
	 */
	if (!command->task.nest) {
		command->task.order.writes_later = true;
		c->order.later_writes++;
	}
	all->ops->await(all->arg, &command->wait);
}

void client_start(struct client *c, struct request *request)
{
	if (!task_start(client_host(c), request, c))
		client_start_command(c, request);
}
