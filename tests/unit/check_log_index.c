/* The index of a log: its tokens, malformed logs, and sharing. */
#include "collection/text/log_index.h"

#include "protocol/element.h"
#include "unit.h"

static const struct {
	const char *log;
	size_t count, removals;
	const char *items[4];
} good[] = {
	{ "", 0, 0, { NULL } },
	{ "+a ", 1, 0, { "a" } },
	{ "-a ", 1, 1, { "a" } },
	{ "+a -bc +a ", 3, 1, { "a", "bc", "a" } },
	{ "-a -b ", 2, 2, { "a", "b" } },
	{ "++ +- -+ -- ", 4, 2, { "+", "-", "+", "-" } },
	{ "+\xc3\xa4 +@list ", 2, 0, { "\xc3\xa4", "@list" } },
};

static const char *const malformed[] = { "a", "a ", "+", "-", "+a", "+a -b", "+ ", "- ", "+a  ",
	" +a ", "+a  +b ", "+a\n", "+a\t ", "+a\x01 ", "+a b ", "@list ", "+a @list ", "+a *b " };

/* Each log ends right before a page that traps, so a read past its end crashes. */
TEST(tokens)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct log_index *log_index = log_index_create(guard_text(good[i].log), NULL);
		ck_assert_msg(log_index, "\"%s\"", good[i].log);
		ck_assert_uint_eq(log_index->count, good[i].count);
		ck_assert_uint_eq(log_index->removals, good[i].removals);
		for (size_t j = 0; j < log_index->count; j++)
			assert_bytes(log_index_element(log_index, j), good[i].items[j]);
		assert_bytes(log_index_tokens(log_index, 0, log_index->count), good[i].log);
		log_index_release(log_index);
	}
}

TEST(some_tokens)
{
	struct log_index *log_index = log_index_create(guard_text("+a -bc +def "), NULL);

	ck_assert(!log_index_removes(log_index, 0) && log_index_removes(log_index, 1) &&
		!log_index_removes(log_index, 2));
	assert_bytes(log_index_tokens(log_index, 0, 2), "+a -bc ");
	assert_bytes(log_index_tokens(log_index, 1, 1), "-bc ");
	assert_bytes(log_index_tokens(log_index, 1, 2), "-bc +def ");
	assert_bytes(log_index_tokens(log_index, 0, 0), "");
	assert_bytes(log_index_tokens(log_index, 3, 0), "");
	log_index_release(log_index);
}

TEST(refused)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		ck_assert_msg(
			!log_index_create(guard_text(malformed[i]), NULL), "\"%s\"", malformed[i]);
}

static struct buf one_token(size_t length)
{
	struct buf log = BUF_EMPTY;

	BUF_ADD(&log, "+");
	memset(buf_reserve(&log, length), 'x', length);
	buf_commit(&log, length);
	BUF_ADD(&log, " ");
	return log;
}

TEST(the_longest_member)
{
	struct buf fits = one_token(ELEMENT_WORD_MAX), longer = one_token(ELEMENT_WORD_MAX + 1);
	struct log_index *log_index = log_index_create(guard_place(buf_slice(&fits)), NULL);

	ck_assert(log_index && log_index_element(log_index, 0).n == ELEMENT_WORD_MAX);
	log_index_release(log_index);
	ck_assert_ptr_null(log_index_create(guard_place(buf_slice(&longer)), NULL));
	buf_free(&fits);
	buf_free(&longer);
}

/* Enough tokens that the table of offsets must grow. */
TEST(many_tokens)
{
	enum { TOKENS = 1000 };
	struct buf log = BUF_EMPTY;
	struct log_index *log_index;

	for (int i = 0; i < TOKENS; i++)
		buf_printf(&log, "%cm%d ", i % 7 ? '+' : '-', i);
	log_index = log_index_create(buf_slice(&log), NULL);
	ck_assert(
		log_index && log_index->count == TOKENS && log_index->removals == (TOKENS + 6) / 7);
	for (int i = 0; i < TOKENS; i++) {
		struct slice item = log_index_element(log_index, (size_t)i);
		struct buf name = BUF_EMPTY;
		buf_printf(&name, "m%d", i);
		ck_assert(slice_equal(item, buf_slice(&name)) &&
			log_index_removes(log_index, (size_t)i) == (i % 7 == 0));
		buf_free(&name);
	}
	ck_assert_uint_ge(log_index_memory(log_index), (TOKENS + 1) * sizeof(uint32_t));
	log_index_release(log_index);
	buf_free(&log);
}

/* The bytes of an owned log stay until its last user releases the index, and count as its memory. */
TEST(sharing)
{
	struct buf own = BUF_EMPTY;
	struct log_index *log_index, *borrowing = log_index_create(SLICE("+a +b "), NULL);

	BUF_ADD(&own, "+a +b ");
	log_index = log_index_create(buf_slice(&own), &own);
	ck_assert_ptr_null(own.data);
	ck_assert_uint_ge(log_index_memory(log_index), log_index_memory(borrowing) + 6);
	ck_assert_ptr_eq(log_index_share(log_index), log_index);
	ck_assert_uint_eq(log_index->users, 2);
	log_index_release(log_index);
	ck_assert_uint_eq(log_index->users, 1);
	assert_bytes(log_index_element(log_index, 1), "b");
	log_index_release(log_index);
	log_index_release(borrowing);
	log_index_release(NULL);
}

/* A malformed log is accepted, too. */
TEST(refused_and_taken)
{
	struct buf own = BUF_EMPTY;

	BUF_ADD(&own, "+a +b");
	ck_assert_ptr_null(log_index_create(buf_slice(&own), &own));
	ck_assert_ptr_null(own.data);
}
