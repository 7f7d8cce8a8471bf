#include "admin.h"

#include "measure/collect.h"
#include "measure/report.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/log.h"
#include "util/near.h"
#include "util/num.h"

/* The line that ends a group of memcached's which tells of its items, or NULL. We have none: memcached's tools wait for this line. */
static const char *end_of_items(struct slice group, struct slice rest)
{
	static const struct slice groups[] = { { "items", 5 }, { "slabs", 5 }, { "sizes", 5 }, { "conns", 5 },
		{ "cachedump", 9 }, { "extstore", 8 } };
	struct slice what = slice_token(&rest);

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (slice_equal(group, groups[i]))
			return "END";
	}
	/* memccapable asks this, and has room for 80 bytes of the error. */
	if (slice_equal(group, SLICE("noreply")))
		return "ERROR";
	if (!slice_equal(group, SLICE("detail")))
		return NULL;
	if (slice_equal(what, SLICE("on")) || slice_equal(what, SLICE("off")))
		return "OK";
	return slice_equal(what, SLICE("dump")) ? "END" : "CLIENT_ERROR usage: stats detail on|off|dump";
}

static void admin_stats(struct worker *w, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, group = slice_token(&rest);
	struct daemon *d = w->daemon;
	const char *end = "END";

	if (slice_equal(group, SLICE("reset"))) {
		collect_reset(d);
		end = "RESET";
	} else if (slice_equal(group, SLICE("slow")) && slice_equal(slice_token(&rest), SLICE("reset"))) {
		collect_reset_slow(d);
		end = "RESET";
	} else if (slice_equal(group, SLICE("settings"))) {
		config_print(worker_config(w), out);
	} else if (!report_stats(d, &w->meter, group, out)) {
		end = end_of_items(group, rest);
	}
	reply_text(out, end ? end : command_usage(request->command->id));
}

/* memcached-tool waits for the end of a list of keys, whatever comes before it. */
static void admin_lru_crawler(struct worker *w, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest;

	(void)w;
	reply_text(out, slice_equal(slice_token(&rest), SLICE("metadump")) ? "END" : "ERROR");
}

/* --- help --- */

enum group { GROUP_SETS, GROUP_LISTS, GROUP_EVENTS, GROUP_ITEMS, GROUP_PROXY, GROUPS };

static enum group group_of(const struct command *command)
{
	static const bool of_proxy[COMMAND_COUNT] = {
#define PROXY_COMMAND(id, ...) [COMMAND_##id] = true,
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND
	};

	if (of_proxy[command->id])
		return GROUP_PROXY;
	if (command->grammar >= GRAMMAR_LIST || command->grammar == GRAMMAR_WAIT_KEYS ||
		command->grammar == GRAMMAR_WAIT_MOVE || command->grammar == GRAMMAR_POP_KEYS)
		return GROUP_LISTS;
	if (command_takes_args(command) || command->grammar == GRAMMAR_COLLECTION_KEYS ||
		command->grammar == GRAMMAR_COUNTED_KEYS)
		return GROUP_SETS;
	return command->grammar == GRAMMAR_EVENT_DATA || command->grammar == GRAMMAR_KEY_ARGS ? GROUP_EVENTS
											      : GROUP_ITEMS;
}

static const struct command *find(struct slice name)
{
	for (int id = 0; id < COMMAND_COUNT; id++) {
		if (near_same(command_get((command_id)id)->name, name))
			return command_get((command_id)id);
	}
	return NULL;
}

static void help_on(const struct command *command, const char *indent, struct buf *out)
{
	buf_printf(out, "%s%-46s  %s\r\n", indent, command->usage, command->summary);
}

static void help_on_group(enum group group, const char *name, const struct command_set *denied, struct buf *out)
{
	buf_printf(out, "%s:\r\n", name);
	for (int id = 0; id < COMMAND_COUNT; id++) {
		const struct command *one = command_get((command_id)id);
		if (group_of(one) == group && !command_set_has(denied, one->id))
			help_on(one, "  ", out);
	}
}

static void help_near(struct slice name, struct buf *out)
{
	struct near near = { .word = name };
	char hint[NEAR_HINT];

	for (int id = 0; id < COMMAND_COUNT; id++)
		near_offer(&near, command_get((command_id)id)->name);
	near_hint(&near, hint);
	BUF_ADD(out, "CLIENT_ERROR no such command");
	reply_text(out, *hint ? hint : "; help lists all");
}

static void admin_help(struct worker *w, const struct request *request, struct buf *out)
{
	const struct slice names[GROUPS] = { SLICE("sets"), SLICE("lists"), SLICE("events"), SLICE("items"),
		SLICE("proxy") };
	struct slice rest = request->rest, name = slice_token(&rest);
	const struct command_set *denied = &worker_config(w)->deny;
	const struct command *command = find(name);
	bool found = command != NULL;

	if (command && command_set_has(denied, command->id)) {
		reply_text(out, command_denied(command->id));
		return;
	}
	if (command)
		help_on(command, "", out);
	for (int group = 0; group < GROUPS; group++) {
		if (name.n == 0 || near_same(name, names[group])) {
			help_on_group((enum group)group, names[group].p, denied, out);
			found = true;
		}
	}
	if (found)
		reply_text(out, "END");
	else
		help_near(name, out);
}

static void admin_route(struct worker *w, const struct request *request, struct buf *out)
{
	const struct generation *g = w->generations.current;
	int index = servers_index(g->servers, request->key), other = index;
	struct slice rest = request->rest;
	bool moved = w->loop.unix_time >= g->settings->move_at;

	if (slice_token(&rest).n) {
		reply_text(out, command_usage(request->command->id));
		return;
	}
	BUF_ADD(out, "ROUTE ");
	buf_add_word(out, request->key);
	if (g->settings->former) {
		int former, here = servers_place(g->servers, request->key, &former);
		other = moved ? former : here;
	}
	if (other == index)
		reply_text(out, servers_name(g->servers, index));
	else
		buf_printf(out, "%s %s %s\r\n", servers_name(g->servers, index), moved ? "from" : "to",
			servers_name(g->servers, other));
}

static void admin_verbosity(struct worker *w, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, word = slice_token(&rest);
	uint32_t level;

	(void)w;
	if (!num_parse_u32(word, &level) || slice_token(&rest).n) {
		reply_text(out, command_usage(request->command->id));
	} else {
		log_set_verbose(level);
		reply_text(out, "OK");
	}
}

static void admin_version(struct worker *w, const struct request *request, struct buf *out)
{
	(void)request;
	BUF_ADD(out, "VERSION ");
	report_version(w->daemon, out);
}

static void admin_mn(struct worker *w, const struct request *request, struct buf *out)
{
	(void)w;
	(void)request;
	reply_text(out, "MN");
}

static void admin_quit(struct worker *w, const struct request *request, struct buf *out)
{
	(void)w;
	(void)request;
	(void)out;
	/* The client closes itself. */
}

void admin_answer(struct worker *w, const struct request *request, struct buf *out)
{
	static void (*const starts[COMMAND_COUNT])(struct worker *, const struct request *, struct buf *) = {
#define PROXY_COMMAND(id, name, grammar, start, ...) [COMMAND_##id] = start,
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND
	};

	starts[request->command->id](w, request, out);
}
