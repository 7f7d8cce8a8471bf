/*
 * Work on large collections in adopted encodings is done in slices: every command on a set or list, from the table of commands, in
 * every encoding. However much is read and written between two pauses, the reply and the items are those of work without pauses.
 */
#include "box.h"
#include "command_lines.h"
#include "protocol/commands.h"
#include "serving.h"

enum {
	MEMBERS = 6000,
	STEPS = 200,
	BYTES = 32 * 1024 /* at most this much is read and written in a slice */,
	SETS_MIN = 15 /* commands on sets that read much */
};

static const struct collection_options options = { .base_size = 16384,
	.segment_size = 65536,
	.log_size = 4096,
	.table_size = 32768,
	.merges = 1,
	.lease_time = 10 };

FIXTURE(NULL, NULL)

static void put(void *arg, const char *key, struct slice value)
{
	(void)arg;
	server_put(&server, slice_of(key, strlen(key)), value);
}

static struct collection_rule rule;
static size_t pauses, bytes;

static void begin(unsigned form, enum collection_type type, bool sliced)
{
	struct box box;

	box_init(&box, form);
	rule = box.rule;
	rule.type = type;
	rule.compact_waste = 1;
	box_free(&box);
	serving_setup(&options);
	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	fake.slice = STEPS;
	fake_has_time(&fake);
	if (!sliced)
		fake.host.env.is_over = NULL;
	box_fill(&rule, form, MEMBERS, put, NULL);
	pauses = bytes = 0;
}

/* Answers all calls, and counts the bytes of values that are read and written. */
static void answer(void)
{
	while (fake_waiting(&fake)) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		const struct memcached_item *item = server_find(&server, call->key);
		bytes += call->value.n;
		if (call->verb == CALL_GET && call->want & WANT_VALUE && item)
			bytes += buf_size(&item->value);
		server_answer_one(&server);
	}
}

/* Carries out a request, and appends the reply and what is stored then. */
static void carry_out(const char *request, struct buf *out)
{
	client_asks(request);
	answer();
	while (fake.turn_count) {
		pauses += fake_pass(&fake, 0);
		if (fake.turn_count && !fake_waiting(&fake))
			fake_pass(&fake, 1);
		answer();
	}
	ck_assert(STAILQ_EMPTY(&fake.tasks));
	buf_printf(out, "%s", fake_told(&fake));
	for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
		const struct memcached_item *item = &server.memcached.items[i];
		if (!item->used)
			continue;
		buf_add_slice(out, buf_slice(&item->key));
		BUF_ADD(out, "=");
		buf_add_slice(out, buf_slice(&item->value));
		BUF_ADD(out, "\n");
	}
	serving_teardown();
}

/* Returns whether the command reads or writes much. */
static bool compare(unsigned form, enum collection_type type, const struct command *command)
{
	struct buf whole = BUF_EMPTY, sliced = BUF_EMPTY;
	const char *line = command_line_small(command);
	char request[100];
	bool large;

	ck_assert_msg(
		line, "no line for the grammar of %.*s", (int)command->name.n, command->name.p);
	snprintf(request, sizeof(request), "%.*s %s\r\n", (int)command->name.n, command->name.p,
		line);
	begin(form, type, false);
	carry_out(request, &whole);
	begin(form, type, true);
	carry_out(request, &sliced);
	large = bytes > BYTES;
	ck_assert_msg(slice_equal(buf_slice(&whole), buf_slice(&sliced)),
		"form %u, list %d: slices change %s", form, type == COLLECTION_LIST, request);
	ck_assert_msg(pauses >= bytes / BYTES,
		"form %u, list %d: %zu bytes, but only %zu pauses in %s", form,
		type == COLLECTION_LIST, bytes, pauses, request);
	buf_free(&whole);
	buf_free(&sliced);
	return large;
}

static bool is_of(const struct command *command, enum collection_type type)
{
	enum grammar_subject subject = command_traits(command)->subject;

	if (command->grammar == GRAMMAR_TOUCH || command->grammar == GRAMMAR_DELETE)
		return true;
	return subject == (type == COLLECTION_LIST ? SUBJECT_LIST : SUBJECT_SET);
}

LOOP_TEST(every_command, BOX_FORMS)
{
	enum { CSV = 1 };
	size_t large = 0;

	for (command_id id = 0; id < COMMAND_COUNT; id++) {
		const struct command *command = command_get(id);
		if (is_of(command, COLLECTION_SET))
			large += compare((unsigned)_i, COLLECTION_SET, command);
		if (_i == CSV && is_of(command, COLLECTION_LIST))
			large += compare((unsigned)_i, COLLECTION_LIST, command);
	}
	ck_assert_uint_ge(large, _i == CSV ? 2 * SETS_MIN : SETS_MIN);
}
