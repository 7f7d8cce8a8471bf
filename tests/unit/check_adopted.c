/*
 * Compactions that a client requests, where any gain justifies a rewrite, and deletions, in
 * adopted encodings.
 */
#include "collection/adopted/encodings/encodings.h"
#include "serving.h"

static const struct collection_rule rules[] = {
	{ .prefix = BYTES("csv-"), .encoding = ENCODING_CSV, .delimiter = ',' },
	{ .prefix = BYTES("flip-"),
		.encoding = ENCODING_FLIP,
		.pointer = true,
		.plain_verbs = true },
	{ .prefix = BYTES("indexed-"), .encoding = ENCODING_INDEXED },
	{ .prefix = BYTES("mark-"), .encoding = ENCODING_FLIP },
	{ .prefix = BYTES("paired-"),
		.encoding = ENCODING_PAIRED,
		.delimiter = ',',
		.removed = BYTES("un") },
	{ .prefix = BYTES("signed-"), .encoding = ENCODING_SIGNED },
	{ .prefix = BYTES("tombstone-"), .encoding = ENCODING_TOMBSTONE, .delimiter = ',' },
};
static const struct collection_options options = { .base_size = 16384,
	.segment_size = 65536,
	.log_size = 4096,
	.table_size = 65536,
	.merges = 1 };

static void setup(void)
{
	serving_setup(&options);
	fake.rules = (struct rules){ .collections = rules,
		.collection_count = sizeof(rules) / sizeof(rules[0]) };
}

/* Each wastes less than a tenth: one member of some bytes in a text that is twenty times as long. */
#define LONG "member_with_a_name_that_is_quite_long"

struct form {
	const char *key;
	struct form_item {
		const char *key, *before, *after; /* NULL for one that is not there */
	} items[3];
};

static const struct form forms[] = {
	{ "oplog-k", { { "oplog-k", "+" LONG " +a +a ", "+" LONG " +a " } } },
	{ "signed-k", { { "signed-k", "+" LONG "+a-a", "+" LONG } } },
	{ "csv-k", { { "csv-k", LONG ",a,a,", LONG ",a," } } },
	{ "tombstone-k", { { "tombstone-k", "|" LONG ",a,a,", "|" LONG ",a," } } },
	{ "paired-k", { { "paired-k", LONG ",a,", LONG "," }, { "unk", "a,", "" } } },
	{ "flip-k",
		{ { "flip-k.a", "+" LONG "+a-a", "" }, { "flip-k.b", NULL, "+" LONG },
			{ "flip-k.active", "flip-k.a", "flip-k.b" } } },
	{ "mark-k", { { "mark-k.a", "+" LONG "+a-a", "^" }, { "mark-k.b", NULL, "+" LONG } } },
	{ "indexed-k",
		{ { "indexed-k", "+0", "+0" }, { "indexed-k.0", "+" LONG "+a-a", "+" LONG } } },
};

static struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

LOOP_TEST(whatever_it_gains, FORMS)
{
	const struct form *form = &forms[_i];
	char request[64];

	for (size_t i = 0; i < 3 && form->items[i].key; i++) {
		if (form->items[i].before)
			server_put(&server, text(form->items[i].key), text(form->items[i].before));
	}
	snprintf(request, sizeof(request), "scompact %s\r\n", form->key);
	asks_and_hears(request, "OK\r\n");
	for (size_t i = 0; i < 3 && form->items[i].key; i++) {
		const struct memcached_item *item = server_find(&server, text(form->items[i].key));
		ck_assert_msg(item, "%s is gone", form->items[i].key);
		assert_bytes(buf_slice(&item->value), form->items[i].after);
	}
	ck_assert_uint_ge(lanes_statistics(fake.host.lanes)->compactions, 1);
}

/* A text that cannot become shorter is not written again. */
LOOP_TEST(nothing_to_gain, FORMS)
{
	struct form form = forms[_i];
	char request[64];

	server_put(&server, SLICE("signed-k"), SLICE("+a"));
	server_put(&server, SLICE("oplog-k"), SLICE("+a "));
	server_put(&server, SLICE("csv-k"), SLICE("a,"));
	server_put(&server, SLICE("tombstone-k"), SLICE("|a,"));
	server_put(&server, SLICE("paired-k"), SLICE("a,"));
	server_put(&server, SLICE("flip-k.a"), SLICE("+a"));
	server_put(&server, SLICE("flip-k.active"), SLICE("flip-k.a"));
	server_put(&server, SLICE("mark-k.a"), SLICE("+a"));
	server_put(&server, SLICE("indexed-k"), SLICE("+0"));
	server_put(&server, SLICE("indexed-k.0"), SLICE("+a"));
	snprintf(request, sizeof(request), "scompact %s\r\n", form.key);
	asks_and_hears(request, "OK\r\n");
	for (size_t i = 0; i < fake.count; i++)
		ck_assert_int_eq(fake.calls[i].call.verb, CALL_GET);
}

/* A compaction without a request must save a tenth. */
TEST(by_itself)
{
	struct snapshot s = { .forced = false };

	ck_assert(!worth_rewriting(&s, 100, 90));
	ck_assert(worth_rewriting(&s, 101, 90));
	s.forced = true;
	ck_assert(worth_rewriting(&s, 100, 99));
	ck_assert(!worth_rewriting(&s, 100, 100));
}

/*
 * A pointer without lists is no set. The first who adds to it writes a list and leaves the pointer for now; others add to that list.
 * So a deletion that finds no set leaves the pointer.
 */
TEST(deleted_without_a_list)
{
	server_put(&server, SLICE("flip-k.active"), SLICE("flip-k.a"));
	asks_and_hears("delete flip-k\r\n", "NOT_FOUND\r\n");
	ck_assert_ptr_nonnull(server_find(&server, SLICE("flip-k.active")));
	server_put(&server, SLICE("flip-k.a"), SLICE("+ann"));
	asks_and_hears("delete flip-k\r\n", "DELETED\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("flip-k.active")));
	ck_assert_ptr_null(server_find(&server, SLICE("flip-k.a")));
}

FIXTURE(setup, serving_teardown)
