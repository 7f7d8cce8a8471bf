/*
 * The costs of every command, from the table of commands, are bounded: two clients pipeline its
 * largest requests, in each form and encoding, on keys that are in memory or not, that move or not,
 * and read the replies or not. Counted are the calls in flight of a client, the work between two
 * pauses, and the bytes that are held for it; the calls and slices that precede the reply to a third
 * client, however much these have sent; and what is still done after they have disconnected. Time
 * is not measured.
 */
#include "box.h"
#include "collection/lane/queue.h"
#include "command_lines.h"
#include "costs.h"
#include "protocol/command_key.h"
#include "protocol/commands.h"
#include "unit.h"
#include "util/alloc.h"

/* The clients: two that attack, one with few requests, and one that prepares the keys. */
enum { FIRST, SECOND, MODEST, OWNER };

enum { MEMBERS = 1500, TIMES = 16, OPLOG = BOX_FORMS, FORMS };

/* Bounds, in addition to those of costs.h. */
enum {
	FLYING_MOST = 2 * COSTS_SHARE, /* One request may begin when the share is almost used up. */
	BURST_MOST = 64,
	BLOCKS_MOST = 400 * 1000,
	/* In an adopted encoding, with the state of each call in flight and its items. */
	HELD_MOST = (1 << 20) + COSTS_SHARE * 6 * 1024,
	UNPAID_MOST = 2 * FLYING_MOST * 3 * 1024,
	READ_MOST = 16 << 10,
	SLICES_OTHER = 32,
	SLICES_EACH = 64, /* of one batch that rewrites, or one answer */
	ROUNDS = 36,      /* round trips of three batches */
	GONE_MOST = 64,   /* calls of the batches in progress */
	PARTS = 32,       /* of a set */
	SCENES_LEAST = 100
};

static struct costs *proxy;
static struct collection_rule rule;

/* A combination in which a command is sent. */
struct scene {
	unsigned encoding; /* a form of box.h, or OPLOG */
	bool list, warm, reads, moves, leaves;
	enum line_form form;
	enum line_size size;
	const struct command *command;
};

static void put(void *arg, const char *key, struct slice value)
{
	(void)arg;
	costs_put(proxy, key, value);
}

static void ask(const char *line)
{
	costs_send(proxy, OWNER, slice_of(line, strlen(line)), false, 1);
	costs_finish(proxy);
}

static void fill_oplog(bool list)
{
	struct buf line = BUF_EMPTY;

	buf_printf(&line, "%s sk", list ? "rpush" : "sset");
	for (unsigned i = 0; i < MEMBERS; i++)
		buf_printf(&line, " m%06u", i);
	BUF_ADD(&line, "\r\n\0");
	ask(buf_slice(&line).p);
	ask("scompact sk\r\n");
	buf_free(&line);
}

/* The types of the current bucket: the counters of 100 buckets are as many as evtop may read. */
static void fill_types(void)
{
	struct buf base = BUF_EMPTY;

	for (unsigned i = 0; i < 500; i++)
		buf_printf(&base, "+e%03u ", i);
	costs_put(proxy, "e::2015022016::types", buf_slice(&base));
	buf_free(&base);
}

static void begin(const struct scene *s)
{
	static const struct collection_options options = { .base_size = 16384,
		.segment_size = 4096,
		.log_size = 4096,
		.table_size = 1024,
		.cache = 1 << 20,
		.result_max = 1 << 18,
		.merges = 1,
		.lease_time = 10 };
	static const struct event_rule events = { .prefix = BYTES("e"),
		.bucket = GRANULARITY_HOUR,
		.separator = BYTES("::"),
		.lookback = 200,
		.types = true };
	struct rules rules = { .collections = &rule,
		.collection_count = 1,
		.events = &events,
		.event_count = 1,
		.commands = { SLICE(LINE_PREFIX), ' ' } };
	struct box box;
	static char large[16384];

	box_init(&box, s->encoding == OPLOG ? 0 : s->encoding);
	rule = box.rule;
	if (s->encoding == OPLOG)
		rule.encoding = ENCODING_OPLOG;
	rule.type = s->list ? COLLECTION_LIST : COLLECTION_SET;
	rule.compact_waste = 1;
	box_free(&box);
	proxy = xmalloc(sizeof(*proxy));
	costs_init(proxy, &rules, &options);
	if (s->encoding == OPLOG)
		fill_oplog(s->list);
	else
		box_fill(&rule, s->encoding, MEMBERS, put, NULL);
	memset(large, 'x', sizeof(large));
	fill_types();
	costs_put(proxy, "v", SLICE("small"));
	costs_put(proxy, "c", SLICE("5"));
	costs_put(proxy, "b", slice_of(large, sizeof(large)));
	costs_forget(proxy);
	if (s->moves)
		costs_move(proxy);
	if (s->warm)
		ask(s->list ? "lrange sk 0 -1\r\n" : "smembers sk\r\n");
	proxy->clients[FIRST].reads = proxy->clients[SECOND].reads = s->reads;
	costs_count(proxy);
}

/* What is done before the reply to a request. */
struct before {
	size_t answers, slices;
	size_t flying; /* most calls in flight, of all */
	size_t before; /* requests and keys of the other clients, when it is sent */
};

/* Sends a request of the modest client. */
static struct before precede(const char *line)
{
	struct before before = { .flying = 1,
		.before = proxy->clients[FIRST].order.calls + proxy->clients[SECOND].order.calls };

	costs_send(proxy, MODEST, slice_of(line, strlen(line)), false, 1);
	costs_slice(proxy);
	while (costs_waits(proxy, MODEST)) {
		size_t flying = costs_calls(proxy);
		bool answered = costs_answer(proxy), worked = costs_slice(proxy);
		before.flying = flying > before.flying ? flying : before.flying;
		before.answers += answered;
		before.slices += worked;
		costs_pass(proxy, !answered && !worked);
	}
	return before;
}

/* The clients that attack disconnect. Returns the calls after the time in which writes are carried out. */
static size_t leave(void)
{
	size_t made;

	costs_leave(proxy, FIRST);
	costs_leave(proxy, SECOND);
	costs_pass(proxy, QUEUE_GRACE_MS);
	made = proxy->counts.made;
	costs_finish(proxy);
	return proxy->counts.made - made;
}

static const char *describe(const struct scene *s)
{
	static const char *const forms[] = { "text", "key", "meta", "binary" },
				 *const sizes[] = { "few words", "many words", "equal words" };
	static char text[200];

	snprintf(text, sizeof(text), "%.*s, encoding %u, %s, %s%s%s%s%s%s", (int)s->command->name.n,
		s->command->name.p, s->encoding, forms[s->form], sizes[s->size],
		s->list ? ", list" : "", s->warm ? ", warm" : "",
		s->reads ? "" : ", replies are not read", s->moves ? ", keys move" : "",
		s->leaves ? ", disconnects" : "");
	return text;
}

/* Reports each bound that is exceeded, and counts them. */
static unsigned broken;

static void at_most(const struct scene *s, const char *what, size_t n, size_t most)
{
	if (n <= most)
		return;
	broken++;
	fprintf(stderr, "%s: %s: %zu, more than %zu\n", describe(s), what, n, most);
}

/*
 * The most calls for a key, which a share counts as one: a call on a key that moves is sent to both
 * servers, and may be repeated; a set or list in an adopted encoding has up to three items.
 */
static size_t each_key(const struct scene *s)
{
	return (s->moves ? 2 : 1) * (s->encoding == OPLOG ? 1 : 3);
}

/* Returns whether the values that are read are those of a set or list, which is folded each time. */
static bool is_folded(const struct scene *s)
{
	enum grammar_subject subject = command_traits(s->command)->subject;

	return s->encoding != OPLOG && !s->moves &&
		(subject == SUBJECT_SET || subject == SUBJECT_LIST);
}

static void check_counts(const struct scene *s)
{
	const struct costs_counts *n = &proxy->counts;
	/* Calls that wait for the move of a key are sent together, and so are polls. */
	enum grammar grammar = s->command->grammar;
	bool polls = grammar == GRAMMAR_WAIT_KEYS || grammar == GRAMMAR_WAIT_POP_KEYS;
	size_t burst = s->moves ? 3 * COSTS_SHARE : polls ? COSTS_SHARE : BURST_MOST;

	at_most(s, "calls of a client in flight", n->flying, FLYING_MOST * each_key(s));
	at_most(s, "calls without a pause", n->burst, burst);
	at_most(s, "checks after a slice was over", n->overs, COSTS_SHARE);
	at_most(s, "basic blocks without a pause", n->blocks, BLOCKS_MOST);
	at_most(s, "bytes of a client", n->held, HELD_MOST);
	at_most(s, "bytes that no client pays for", n->unpaid, UNPAID_MOST);
	if (is_folded(s))
		at_most(s, "bytes that are read in a slice", n->bytes / (n->slices + 1), READ_MOST);
	at_most(s, "keys of blocked commands", n->waiting, COSTS_WAITING);
}

/*
 * The most calls after the clients have gone, when so many were in flight: those of a batch in
 * progress; or of the keys that a request has begun to read or touch.
 */
static size_t gone_most(const struct scene *s, size_t flying)
{
	if (s->command->order == ORDER_TOUCH_KEYS)
		return PARTS * FLYING_MOST;
	if (command_has_keys(s->command))
		return FLYING_MOST * each_key(s);
	/* Calls that wait for the move of their key are not in flight. */
	return GONE_MOST + 4 * flying + (s->moves ? 8 * TIMES : 0);
}

static void check_before(
	const struct scene *s, const struct before *other, const struct before *same)
{
	/* Reads of a set share a batch, whose answers are made one after the other. */
	size_t reads = order_class_changes(s->command->order) ? 0 : same->before;

	at_most(s, "answers before that of another key", other->answers, 2 * other->flying + 2);
	at_most(s, "slices before the reply for another key", other->slices, SLICES_OTHER);
	at_most(s, "answers before that of the same key", same->answers,
		ROUNDS * same->flying + 2 * reads);
	at_most(s, "slices before the reply for the same key", same->slices,
		SLICES_EACH * (reads + 4));
}

static bool run(const struct scene *s)
{
	bool again = s->form == LINE_KEY && s->size == LINE_EQUAL;
	struct buf line = BUF_EMPTY;
	struct before other, same;
	size_t flying;

	if (!command_line(s->command, s->form, s->size, &line))
		return false;
	begin(s);
	for (size_t i = FIRST; i <= SECOND; i++)
		costs_send(proxy, i, buf_slice(&line), s->form == LINE_BINARY, again ? 2 : TIMES);
	costs_settle(proxy);
	other = precede("get v\r\n");
	same = precede(s->list ? "llen sk\r\n" : "scard sk\r\n");
	check_before(s, &other, &same);
	flying = costs_calls(proxy);
	if (s->leaves)
		at_most(s, "calls for clients that are gone", leave(), gone_most(s, flying));
	proxy->clients[FIRST].reads = proxy->clients[SECOND].reads = true;
	costs_finish(proxy);
	check_counts(s);
	costs_fini(proxy);
	free(proxy);
	buf_free(&line);
	return true;
}

/* Returns whether the cost of a command depends on the encoding of this type. */
static bool is_of(const struct command *command, unsigned encoding, bool list)
{
	enum { CSV = 1 };
	enum grammar_subject subject = command_traits(command)->subject;

	if (encoding == OPLOG)
		return list == (subject == SUBJECT_LIST);
	if (list)
		return encoding == CSV && subject == SUBJECT_LIST;
	return subject == SUBJECT_SET || command->grammar == GRAMMAR_TOUCH_KEYS ||
		command->grammar == GRAMMAR_TOUCH || command->grammar == GRAMMAR_DELETE;
}

/*
 * Runs the command in each form and size, with one of the 16 other combinations, another one each
 * time; or with all, if COSTS_ALL is set. Returns the number of scenes.
 */
static unsigned run_all(const struct command *command, unsigned encoding, bool list)
{
	enum { BITS = 16 };
	unsigned count = 0, bits = 5 * command->id + 3 * encoding;

	for (unsigned i = 0; i < LINE_FORMS * LINE_SIZES; i++) {
		unsigned all = getenv("COSTS_ALL") ? BITS : 1;
		for (bits += 7; all-- > 0; bits++)
			count += run(&(struct scene){ .encoding = encoding,
				.list = list,
				.warm = bits & 1,
				.reads = bits & 2,
				.moves = bits & 4,
				.leaves = bits & 8,
				.form = i % LINE_FORMS,
				.size = i / LINE_FORMS,
				.command = command });
	}
	return count;
}

LOOP_TEST(every_command, FORMS)
{
	unsigned count = 0;

	for (command_id id = 0; id < COMMAND_COUNT; id++) {
		const struct command *command = command_get(id);
		ck_assert_msg(command_line_small(command), "no arguments for the grammar of %.*s",
			(int)command->name.n, command->name.p);
		for (int list = 0; list < 2; list++) {
			if (is_of(command, (unsigned)_i, list))
				count += run_all(command, (unsigned)_i, list);
		}
	}
	ck_assert_msg(
		broken == 0, "encoding %d: %u bounds of %u scenes are exceeded", _i, broken, count);
	ck_assert_uint_ge(count, SCENES_LEAST);
}

/* A new encoding or protocol needs a form here: in box_init, or in enum line_form. */
TEST(tables)
{
	static const enum encoding_id encodings[] = {
#define ENCODING(id, name) ENCODING_##id,
#include "collection/encodings.def"
#undef ENCODING
	};
	static const char *const protocols[] = {
#define PROTOCOL(name, ...) name,
#include "client/protocols.def"
#undef PROTOCOL
	};

	for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
		bool found = false;
		for (unsigned form = 0; form < BOX_FORMS; form++) {
			struct box box;
			box_init(&box, form);
			found |= box.rule.encoding == encodings[i];
			box_free(&box);
		}
		ck_assert_msg(found, "no box for encoding %zu", i);
	}
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		ck_assert_msg(
			strcmp(protocols[i], "text") == 0 || strcmp(protocols[i], "binary") == 0,
			"no form of line for the protocol %s", protocols[i]);
}
