#include "admin.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "measure/admin_measures.h"
#include "measure/measures.h"
#include "measure/snapshot.h"
#include "protocol/reply.h"
#include "util/log.h"
#include "util/num.h"

/* The version if no server has been up: it has all commands that setlistd has. */
static const unsigned unknown_version = 1u << 16 | 6u << 8;

static void print_version(const struct snapshot *s, struct buf *out)
{
	unsigned v = s->version ? s->version : unknown_version;

	buf_printf(out, "%u.%u.%u setlistd/%s\r\n", v >> 16, v >> 8 & 255, v & 255, DAEMON_VERSION);
}

static void print_general(struct worker *w, const struct snapshot *s, struct buf *out)
{
	reply_stat(out, "pid", (uint64_t)getpid());
	reply_stat(out, "uptime", (uint64_t)(w->loop.unix_time - s->started));
	reply_stat(out, "time", (uint64_t)w->loop.unix_time);
	BUF_ADD(out, "STAT version ");
	print_version(s, out);
	reply_stat(out, "pointer_size", 8 * sizeof(void *));
	reply_stat(out, "threads", s->threads);
	buf_printf(out, "STAT ring %016" PRIx64 "\r\n", s->ring);
	reply_stat(out, "curr_connections", s->connections);
	reply_stat(out, "client_bytes", s->client_bytes);
	reply_stat(out, "total_connections", s->accepted);
	reply_stat(out, "rejected_connections", s->rejected);
}

static void print_counters(const struct snapshot *s, enum counter from, enum counter to, struct buf *out)
{
	for (enum counter i = from; i <= to; i++)
		reply_stat(out, snapshot_counter_name(i), s->counters[i]);
}

static void print_upstream(const struct worker *w, struct buf *out)
{
	size_t count;
	struct snapshot_server *servers = snapshot_servers(w->daemon, w, &count);

	for (size_t i = 0; i < count; i++) {
		const struct snapshot_server *s = &servers[i];
		unsigned v = s->version;

		buf_printf(out, "STAT %s:state %s\r\n", s->name, s->up ? "up" : "down");
		buf_printf(out, "STAT %s:version %u.%u.%u\r\n", s->name, v >> 16, v >> 8 & 255, v & 255);
		buf_printf(out, "STAT %s:connections %d\r\n", s->name, s->up);
		buf_printf(out, "STAT %s:connects %" PRIu64 "\r\n", s->name, s->connects);
		buf_printf(out, "STAT %s:calls %" PRIu64 "\r\n", s->name, s->calls);
		buf_printf(out, "STAT %s:unavailable %" PRIu64 "\r\n", s->name, s->unavailable);
		buf_printf(out, "STAT %s:busy %" PRIu64 "\r\n", s->name, s->busy);
		buf_printf(out, "STAT %s:timeouts %" PRIu64 "\r\n", s->name, s->timeouts);
		buf_printf(out, "STAT %s:lost_connections %" PRIu64 "\r\n", s->name, s->lost);
	}
	free(servers);
}

static void reset(struct daemon *d)
{
	snapshot_reset(d);
	measures_reset(d);
}

void admin_stats(struct client *client, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, group = slice_token(&rest);
	struct worker *w = client->worker;
	struct daemon *d = w->daemon;
	struct snapshot s;

	if (slice_equal(group, SLICE("reset"))) {
		reset(d);
		reply_text(out, "RESET");
		return;
	}
	if (slice_equal(group, SLICE("slow")) && slice_equal(slice_token(&rest), SLICE("reset"))) {
		measures_reset_slow(d);
		reply_text(out, "RESET");
		return;
	}
	snapshot_take(d, w, &s);
	if (group.n == 0) {
		print_general(w, &s, out);
		print_counters(&s, 0, COUNT_bytes_written, out);
	} else if (slice_equal(group, SLICE("upstream"))) {
		print_upstream(w, out);
	} else if (slice_equal(group, SLICE("collections"))) {
		print_counters(&s, COUNT_bytes_written + 1, COUNTERS - 1, out);
	} else if (slice_equal(group, SLICE("settings"))) {
		config_print(worker_config(w), out);
	} else if (!admin_measures(d, w->current->servers, group, out)) {
		reply_text(out, "CLIENT_ERROR unknown stats group");
		return;
	}
	reply_text(out, "END");
}

static void help_line(const struct command *command, struct buf *out)
{
	buf_printf(out, "%-66s %s\r\n", command->usage, command->summary);
}

void admin_help(struct client *client, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, name = slice_token(&rest);
	const struct command_set *denied = &client_config(client)->deny;
	const struct command *command = command_lookup(name);

	if (name.n && !command) {
		reply_text(out, "CLIENT_ERROR no such command");
		return;
	}
	if (command && command_set_has(denied, command->id)) {
		reply_text(out, command_denied(command->id));
		return;
	}
	if (command)
		help_line(command, out);
	for (int id = 0; !command && id < COMMAND_COUNT; id++) {
		if (!command_set_has(denied, (enum command_id)id))
			help_line(command_get((enum command_id)id), out);
	}
	reply_text(out, "END");
}

void admin_route(struct client *client, const struct request *request, struct buf *out)
{
	const struct generation *g = client->generation;
	const struct server *s = servers_get(g->servers, ring_lookup(g->settings->ring, request->key));
	struct slice rest = request->rest;

	if (slice_token(&rest).n) {
		reply_text(out, "CLIENT_ERROR bad command line format");
		return;
	}
	BUF_ADD(out, "ROUTE ");
	buf_add_slice(out, request->key);
	BUF_ADD(out, " ");
	reply_text(out, s->name);
}

void admin_verbosity(struct client *client, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, word = slice_token(&rest);
	uint32_t level;

	(void)client;
	if (!num_parse_u32(word, &level) || slice_token(&rest).n) {
		reply_text(out, "CLIENT_ERROR bad command line format");
	} else {
		log_set_level(LOG_LEVEL_WARN + (int)(level < 2 ? level : 2));
		reply_text(out, "OK");
	}
}

void admin_version(struct client *client, const struct request *request, struct buf *out)
{
	struct snapshot s;

	(void)request;
	snapshot_take(client->worker->daemon, client->worker, &s);
	BUF_ADD(out, "VERSION ");
	print_version(&s, out);
}

void admin_mn(struct client *client, const struct request *request, struct buf *out)
{
	(void)client;
	(void)request;
	reply_text(out, "MN");
}

void admin_quit(struct client *client, const struct request *request, struct buf *out)
{
	(void)request;
	(void)out;
	client->closing = true;
}

void admin_answer(struct client *client, const struct request *request, struct buf *out)
{
	static admin_command *const starts[COMMAND_COUNT] = {
#define PROXY_COMMAND(id, name, grammar, start, ...) [COMMAND_##id] = start,
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND
	};

	starts[request->command->id](client, request, out);
}

void admin_start(struct client *client, const struct request *request)
{
	struct task *task = task_new(&client->generation->host, request, client, sizeof(*task));

	admin_answer(client, request, task_reply(task));
	task_done(task);
}
