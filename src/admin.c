#include "admin.h"

#include "collection/event/time_bucket.h"
#include "collection/text/part_key.h"
#include "measure/collect.h"
#include "measure/report.h"
#include "protocol/commands.h"
#include "protocol/metaflags.h"
#include "protocol/reply.h"
#include "util/log.h"
#include "util/near.h"
#include "util/num.h"

static struct reply error(const char *line)
{
	return reply_error(slice_of(line, strlen(line)));
}

static struct reply usage(const struct request *request)
{
	return error(command_usage(request->command->id));
}

/*
 * Returns the end of a group of memcached's item statistics, for tools that read them, or an
 * error. The proxy holds no items, so the groups are empty.
 */
static struct reply end_of_items(
	const struct request *request, struct slice group, struct slice rest)
{
	static const struct slice groups[] = { { "items", 5 }, { "slabs", 5 }, { "sizes", 5 },
		{ "conns", 5 }, { "cachedump", 9 }, { "extstore", 8 } };
	struct slice what = slice_token(&rest);
	struct reply unknown = usage(request);

	unknown.word = WORD_NOT_FOUND;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (slice_equal(group, groups[i]))
			return reply_word(WORD_END);
	}
	/* memccapable sends this, and has room for only 80 bytes of the error. */
	if (slice_equal(group, SLICE("noreply")))
		return error("ERROR");
	if (!slice_equal(group, SLICE("detail")))
		return unknown;
	if (slice_equal(what, SLICE("on")) || slice_equal(what, SLICE("off")))
		return reply_word(WORD_OK);
	if (slice_equal(what, SLICE("dump")))
		return reply_word(WORD_END);
	return error("CLIENT_ERROR usage: stats detail on|off|dump");
}

static struct reply admin_stats(struct worker *w, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, group = slice_token(&rest);
	struct daemon *d = w->daemon;

	if (slice_equal(group, SLICE("reset"))) {
		collect_reset(d);
		return reply_word(WORD_RESET);
	} else if (slice_equal(group, SLICE("slow")) &&
		slice_equal(slice_token(&rest), SLICE("reset"))) {
		collect_reset_slow(d);
		return reply_word(WORD_RESET);
	} else if (slice_equal(group, SLICE("settings"))) {
		config_print(worker_config(w), out);
	} else if (!report_stats(d, &w->meter, group, out)) {
		return end_of_items(request, group, rest);
	}
	return reply_word(WORD_END);
}

/* memcached-tool reads up to the end of a list of keys. The list is always empty. */
static struct reply admin_lru_crawler(
	struct worker *w, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest;

	(void)w;
	(void)out;
	return slice_equal(slice_token(&rest), SLICE("metadump")) ? reply_word(WORD_END)
								  : error("ERROR");
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
	switch (command_traits(command)->subject) {
	case SUBJECT_SET:
		return GROUP_SETS;
	case SUBJECT_LIST:
		return GROUP_LISTS;
	case SUBJECT_EVENTS:
		return GROUP_EVENTS;
	default:
		return GROUP_ITEMS;
	}
}

static const struct command *find_command(struct slice name)
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

static void help_on_group(
	enum group group, const char *name, const struct command_set *denied, struct buf *out)
{
	buf_printf(out, "%s:\r\n", name);
	for (int id = 0; id < COMMAND_COUNT; id++) {
		const struct command *one = command_get((command_id)id);
		if (group_of(one) == group && !command_set_has(denied, one->id))
			help_on(one, "  ", out);
	}
}

static struct reply help_near(struct slice name, struct buf *out)
{
	struct near near = { .word = name };
	char hint[NEAR_HINT];

	for (int id = 0; id < COMMAND_COUNT; id++)
		near_offer(&near, command_get((command_id)id)->name);
	near_hint(&near, hint);
	buf_printf(out, "CLIENT_ERROR no such command%s", *hint ? hint : "; help lists all");
	return reply_error(buf_slice(out));
}

static struct reply admin_help(struct worker *w, const struct request *request, struct buf *out)
{
	const struct slice names[GROUPS] = { SLICE("sets"), SLICE("lists"), SLICE("events"),
		SLICE("items"), SLICE("proxy") };
	struct slice rest = request->rest, name = slice_token(&rest);
	const struct command_set *denied = &worker_config(w)->deny;
	const struct command *command = find_command(name);
	bool found = command != NULL;

	if (command && command_set_has(denied, command->id))
		return error(command_denied(command->id));
	if (command)
		help_on(command, "", out);
	for (int group = 0; group < GROUPS; group++) {
		if (name.n == 0 || near_same(name, names[group])) {
			help_on_group((enum group)group, names[group].p, denied, out);
			found = true;
		}
	}
	return found ? reply_word(WORD_END) : help_near(name, out);
}

/* Stores the key of `<key> [b]`. Returns false with the error line in `failed`. */
static bool take_key(const struct request *request, char decoded[static KEY_MAX], struct slice *key,
	struct reply *failed)
{
	struct slice rest = request->rest, flag = slice_token(&rest);
	bool encoded = slice_equal(flag, SLICE("b"));

	*key = request->key;
	if (encoded)
		*key = slice_of(decoded, metaflags_decode_key(*key, decoded));
	if ((flag.n && !encoded) || slice_token(&rest).n)
		*failed = usage(request);
	else if (key->n == 0)
		*failed = error("CLIENT_ERROR the key is not base64");
	else
		return true;
	return false;
}

enum { NO_COPY, SET_COPIED, COUNTER_COPIED };

/* Returns what kind of key with two copies it is. */
static int kind_of_copies(const struct generation *g, struct slice key)
{
	const struct rules *rules = g->host.env.rules;
	const struct event_rule *rule;

	if (!g->copies || part_key_is_second(key))
		return NO_COPY;
	if (rules_collection(rules, part_key_first_base(key))->copies > 1)
		return SET_COPIED;
	rule = time_bucket_rule(rules, key);
	return rule && rule->copies > 1 ? COUNTER_COPIED : NO_COPY;
}

static void add_servers(const struct worker *w, struct slice key, struct buf *out)
{
	const struct generation *g = w->generations.current;
	bool moved = w->loop.unix_time >= g->settings->move_at;
	int index = servers_index(g->servers, key), other = index;

	if (g->settings->former) {
		int former, here = servers_place(g->servers, key, &former);
		other = moved ? former : here;
	}
	if (other == index)
		buf_printf(out, "%s", servers_name(g->servers, index));
	else
		buf_printf(out, "%s %s %s", servers_name(g->servers, index), moved ? "from" : "to",
			servers_name(g->servers, other));
}

static struct reply admin_route(struct worker *w, const struct request *request, struct buf *out)
{
	struct slice key;
	struct reply failed;
	char decoded[KEY_MAX];

	if (!take_key(request, decoded, &key, &failed))
		return failed;
	BUF_ADD(out, "ROUTE ");
	buf_add_word(out, request->key);
	add_servers(w, key, out);
	if (kind_of_copies(w->generations.current, key)) {
		struct buf second = BUF_EMPTY;
		part_key_second(key, &second);
		BUF_ADD(out, " copy ");
		add_servers(w, buf_slice(&second), out);
		buf_free(&second);
	}
	return reply_line(buf_slice(out));
}

static struct reply admin_repair(struct worker *w, const struct request *request, struct buf *out)
{
	const struct generation *g = w->generations.current;
	struct slice key;
	struct reply failed;
	char decoded[KEY_MAX];
	int kind;

	(void)out;
	if (!take_key(request, decoded, &key, &failed))
		return failed;
	kind = kind_of_copies(g, key);
	if (kind == NO_COPY || part_key_first_base(key).n < key.n)
		return error("CLIENT_ERROR no rule gives this key two copies");
	if (!copies_repair(g->copies, key, kind == COUNTER_COPIED))
		return error("SERVER_ERROR too many keys are waiting for repair");
	return reply_word(WORD_OK);
}

static struct reply admin_verbosity(
	struct worker *w, const struct request *request, struct buf *out)
{
	struct slice rest = request->rest, word = slice_token(&rest);
	uint32_t level;

	(void)w;
	(void)out;
	if (!num_parse_u32(word, &level) || slice_token(&rest).n)
		return usage(request);
	log_set_verbose(level);
	return reply_word(WORD_OK);
}

static struct reply admin_version(struct worker *w, const struct request *request, struct buf *out)
{
	struct reply r = reply_word(WORD_VERSION);

	(void)request;
	report_version(w->daemon, out);
	r.bytes = buf_slice(out);
	return r;
}

static struct reply admin_mn(struct worker *w, const struct request *request, struct buf *out)
{
	(void)w;
	(void)request;
	(void)out;
	return reply_word(WORD_MN);
}

static struct reply admin_quit(struct worker *w, const struct request *request, struct buf *out)
{
	(void)w;
	(void)request;
	(void)out;
	/* The connection is closed by the client code. */
	return (struct reply){ .kind = REPLY_NOTHING };
}

struct reply admin_answer(struct worker *w, const struct request *request, struct buf *out)
{
	static struct reply (*const starts[COMMAND_COUNT])(
		struct worker *, const struct request *, struct buf *) = {
#define PROXY_COMMAND(id, name, grammar, start, ...) [COMMAND_##id] = start,
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND
	};

	return starts[request->command->id](w, request, out);
}
