#include "admin.h"

#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "admin_measures.h"
#include "measures.h"
#include "protocol/reply.h"
#include "util/log.h"
#include "util/num.h"

/* The version if no server has been up: it has all commands that setlistd has. */
static const unsigned unknown_version = 1u << 16 | 6u << 8;

/* The lowest version of all servers, so that a client uses no command that one of them lacks. */
static unsigned oldest_version(struct daemon *d)
{
	unsigned oldest = 0;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		const struct servers *servers = d->workers[i]->current->servers;
		for (int j = 0; j < servers_count(servers); j++) {
			unsigned version =
				atomic_load_explicit(&servers_get(servers, j)->stats.version, memory_order_relaxed);
			if (version && (!oldest || version < oldest))
				oldest = version;
		}
	}
	pthread_mutex_unlock(&d->lock);
	return oldest ? oldest : unknown_version;
}

static void print_version(struct daemon *d, struct buf *out)
{
	unsigned v = oldest_version(d);

	buf_printf(out, "%u.%u.%u setlistd/%s\r\n", v >> 16, v >> 8 & 255, v & 255, DAEMON_VERSION);
}

static void sum_counters(const struct daemon *d, uint64_t sums[COUNTERS])
{
	for (int i = 0; i < COUNTERS; i++)
		sums[i] = 0;
	for (size_t w = 0; w < d->threads; w++) {
		for (int i = 0; i < COUNTERS; i++)
			sums[i] += atomic_load_explicit(&d->workers[w]->counters[i], memory_order_relaxed);
	}
}

static void print_general(struct worker *w, struct buf *out)
{
	struct daemon *d = w->daemon;

	reply_stat(out, "pid", (uint64_t)getpid());
	reply_stat(out, "uptime", (uint64_t)(w->loop.unix_time - d->started));
	reply_stat(out, "time", (uint64_t)w->loop.unix_time);
	BUF_ADD(out, "STAT version ");
	print_version(d, out);
	reply_stat(out, "pointer_size", 8 * sizeof(void *));
	reply_stat(out, "threads", d->threads);
	buf_printf(out, "STAT ring %016" PRIx64 "\r\n", w->current->settings->ring_hash);
	reply_stat(out, "curr_connections", (uint64_t)atomic_load(&d->connections));
	reply_stat(out, "client_bytes", atomic_load_explicit(&d->client_bytes, memory_order_relaxed));
	reply_stat(out, "total_connections", atomic_load(&d->accepted));
	reply_stat(out, "rejected_connections", atomic_load(&d->rejected));
}

static void print_counters(struct daemon *d, enum counter from, enum counter to, struct buf *out)
{
	static const char *const names[COUNTERS] = {
#define COUNTER(name) #name,
#include "counters.def"
#undef COUNTER
	};
	uint64_t sums[COUNTERS];

	sum_counters(d, sums);
	pthread_mutex_lock(&d->lock);
	for (enum counter i = from; i <= to; i++)
		reply_stat(out, names[i], sums[i] - (i == COUNT_cache_bytes ? 0 : d->baseline[i]));
	pthread_mutex_unlock(&d->lock);
}

struct upstream_sum {
	uint64_t calls, unavailable, busy, timeouts, lost, connects;
	int up; /* workers that are connected */
};

static uint64_t load(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Another worker has the same servers in the same order, except while a reload changes them. */
static const struct server *counterpart(const struct servers *servers, const struct server *s, int index)
{
	const struct server *other = index < servers_count(servers) ? servers_get(servers, index) : NULL;

	if (other && strcmp(other->name, s->name) == 0)
		return other;
	for (int i = 0; i < servers_count(servers); i++) {
		other = servers_get(servers, i);
		if (strcmp(other->name, s->name) == 0)
			return other;
	}
	return NULL;
}

static struct upstream_sum sum_upstream(struct daemon *d, const struct server *server, int index)
{
	struct upstream_sum sum = { 0 };

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		const struct server *other = counterpart(d->workers[i]->current->servers, server, index);
		if (!other)
			continue;
		sum.calls += load(&other->stats.calls);
		sum.unavailable += load(&other->stats.unavailable);
		sum.busy += load(&other->stats.busy);
		sum.timeouts += load(&other->stats.timeouts);
		sum.lost += load(&other->stats.lost);
		sum.connects += load(&other->stats.connects);
		sum.up += atomic_load_explicit(&other->stats.state, memory_order_relaxed) == SERVER_UP;
	}
	pthread_mutex_unlock(&d->lock);
	return sum;
}

static void print_upstream(const struct worker *w, struct buf *out)
{
	const struct servers *servers = w->current->servers;

	for (int i = 0; i < servers_count(servers); i++) {
		const struct server *s = servers_get(servers, i);
		struct upstream_sum sum = sum_upstream(w->daemon, s, i);
		unsigned v = atomic_load_explicit(&s->stats.version, memory_order_relaxed);

		buf_printf(out, "STAT %s:state %s\r\n", s->name, sum.up ? "up" : "down");
		buf_printf(out, "STAT %s:version %u.%u.%u\r\n", s->name, v >> 16, v >> 8 & 255, v & 255);
		buf_printf(out, "STAT %s:connections %d\r\n", s->name, sum.up);
		buf_printf(out, "STAT %s:connects %" PRIu64 "\r\n", s->name, sum.connects);
		buf_printf(out, "STAT %s:calls %" PRIu64 "\r\n", s->name, sum.calls);
		buf_printf(out, "STAT %s:unavailable %" PRIu64 "\r\n", s->name, sum.unavailable);
		buf_printf(out, "STAT %s:busy %" PRIu64 "\r\n", s->name, sum.busy);
		buf_printf(out, "STAT %s:timeouts %" PRIu64 "\r\n", s->name, sum.timeouts);
		buf_printf(out, "STAT %s:lost_connections %" PRIu64 "\r\n", s->name, sum.lost);
	}
}

static void reset(struct daemon *d)
{
	pthread_mutex_lock(&d->lock);
	sum_counters(d, d->baseline);
	pthread_mutex_unlock(&d->lock);
	measures_reset(d);
}

void admin_stats(struct client *client, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, group = slice_token(&rest);
	struct worker *w = client->worker;
	struct daemon *d = w->daemon;

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
	if (group.n == 0) {
		print_general(w, out);
		print_counters(d, 0, COUNT_bytes_written, out);
	} else if (slice_equal(group, SLICE("upstream"))) {
		print_upstream(w, out);
	} else if (slice_equal(group, SLICE("collections"))) {
		print_counters(d, COUNT_bytes_written + 1, COUNTERS - 1, out);
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
	const struct command_set *denied = &client_config(client)->denied;
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
	(void)request;
	BUF_ADD(out, "VERSION ");
	print_version(client->worker->daemon, out);
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

void admin_start(struct client *client, const struct request *request)
{
	static admin_command *const starts[COMMAND_COUNT] = {
#define PROXY_COMMAND(id, name, grammar, start, ...) [COMMAND_##id] = start,
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND
	};
	struct task *task = task_new(&client->generation->host, request, client, sizeof(*task));

	starts[request->command->id](client, request, task_reply(task));
	task_done(task);
}
