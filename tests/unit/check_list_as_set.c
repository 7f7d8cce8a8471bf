/* Set commands on lists with segments: their reads, and that the result of a pop is a list. */
#include "protocol/element.h"
#include "serving.h"

#define SEGMENT "s0a00000001x.6.1"
#define OTHER "s0a00000002x.2.1"
#define LONG "s0a00000003x.400.4"
#define WIDE "s0a00000004x.3.2"
#define LIST "@list @" SEGMENT " +e "

static const struct collection_options options = { .base_size = 64,
	.segment_size = 4096,
	.log_size = 4096,
	.table_size = 4096,
	.cache = 1 << 20,
	.merges = 1 };

static void put(const char *key, const char *value)
{
	server_put(&server, slice_of(key, strlen(key)), slice_of(value, strlen(value)));
}

static void setup(void)
{
	serving_setup(&options);
	put("k." SEGMENT, "+a +b +a +c +d +b ");
	put("k." OTHER, "+x +y ");
	put("k", LIST);
}

static void is_stored(const char *base)
{
	assert_bytes(buf_slice(&server_find(&server, SLICE("k"))->value), base);
}

/* Answers all. Returns the only member in the reply. */
static char popped(void)
{
	const char *reply;

	server_answer_all(&server);
	reply = fake_told(&fake);
	ck_assert_msg(strlen(reply) == strlen("VALUE k 0 1\r\nx\r\nEND\r\n"), "%s", reply);
	return reply[strlen("VALUE k 0 1\r\n")];
}

/* The mark, the segments, the order and duplicates stay. */
TEST(stays_a_list)
{
	static const char items[] = "abacdbe";
	char log[64], left[64];
	size_t n = 0;
	char member;

	client_asks("spop k\r\n");
	member = popped();
	snprintf(log, sizeof(log), LIST "-%c ", member);
	is_stored(log);
	for (const char *item = items; *item; item++)
		n += *item == member ? 0
				     : (size_t)snprintf(left + n, sizeof(left) - n, "%c ", *item);
	snprintf(log, sizeof(log), "VALUE k 0 %zu\r\n%.*s\r\nEND\r\n", n - 1, (int)n - 1, left);
	asks_and_hears("lrange k 0 -1\r\n", log);
	asks_and_hears("scard k\r\n", "4\r\n");
}

/* Elements that were prepended meanwhile stay in front. */
TEST(loses_to_a_push)
{
	char base[64];

	asks_up_to("spop k\r\n", CALL_CAS);
	put("k", "+z " LIST);
	snprintf(base, sizeof(base), "+z " LIST "-%c ", popped());
	is_stored(base);
}

/* The key has another value now: nothing of the list returns. */
TEST(loses_to_another_value)
{
	static const char *const others[] = { "+x +y ", "@list +x +y +x ", "@list @" OTHER " ",
		"@list @" OTHER ":0:1 +y ", "+a +b +a +c +d +b +e +x +y -a -b -c -d -e " };
	char base[100];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put("k", LIST);
		asks_up_to("spop k\r\n", CALL_CAS);
		put("k", others[i]);
		snprintf(base, sizeof(base), "%s-%c ", others[i], popped());
		is_stored(base);
	}
}

/* A list whose segment is missing is unknown, even if its base could not be removed. */
TEST(a_segment_is_gone)
{
	struct buf base = BUF_EMPTY;

	BUF_ADD(&base, LIST);
	for (int i = 0; i < 200; i++)
		buf_printf(&base, "+i%d ", i);
	server_put(&server, SLICE("k"), buf_slice(&base));
	server_find(&server, SLICE("k." SEGMENT))->used = false;
	client_asks("scard k\r\n");
	for (int i = 0; i < 3; i++)
		ck_assert(server_answer_one(&server));
	fake_fail(&fake, RESULT_TIMED_OUT);
	server_answer_all(&server);
	ck_assert_int_eq(strncmp(fake_told(&fake), "SERVER_ERROR ", 13), 0);
	asks_and_hears("scard k\r\n", "NOT_FOUND\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("k")));
	buf_free(&base);
}

/* The same if another client has overwritten the segment. */
TEST(a_segment_is_changed)
{
	put("k", "@list @" SEGMENT ".cce0bdec59232f14 +e ");
	asks_and_hears("scard k\r\n", "5\r\n");
	put("k." SEGMENT, "+a +b +a +c +d +x ");
	asks_and_hears("sadd k f\r\n", "STORED\r\n");
	asks_and_hears("smembers k\r\n", "END\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("k")));
	assert_bytes(
		buf_slice(&server_find(&server, SLICE("k." SEGMENT))->value), "+a +b +a +c +d +x ");
}

/* Before removals fill the base, they go. */
TEST(pops_are_compacted)
{
	struct buf log = BUF_EMPTY;

	for (int i = 0; i < 200; i++)
		buf_printf(&log, "+item-%03d +twice ", i);
	server_put(&server, SLICE("k." LONG), buf_slice(&log));
	put("k", "@list @" LONG " ");
	for (int i = 0; i < 201; i++) {
		client_asks("spop k\r\n");
		server_answer_all(&server);
		ck_assert_int_eq(strncmp(fake_told(&fake), "VALUE k 0 ", 10), 0);
		ck_assert_uint_lt(
			buf_size(&server_find(&server, SLICE("k"))->value), 3 * options.base_size);
	}
	ck_assert_uint_gt(lanes_statistics(fake.host.lanes)->compactions, 5);
	asks_and_hears("llen k\r\n", "0\r\n");
	is_stored("@list ");
	buf_free(&log);
}

/* Puts a list with an element of `size` bytes, in its base or in a segment. */
static void put_with_element_of(int size, bool in_segment)
{
	struct buf value = BUF_EMPTY;

	buf_printf(&value, "%s+%0*d +b +b ", in_segment ? "" : "@list ", size, 0);
	server_put(&server, in_segment ? SLICE("k." WIDE) : SLICE("k"), buf_slice(&value));
	if (in_segment)
		put("k", "@list.3 @" WIDE " ");
	buf_free(&value);
}

static void is_described(void)
{
	const char *reply;

	client_asks("sinfo k\r\n");
	server_answer_all(&server);
	reply = fake_told(&fake);
	ck_assert_msg(strstr(reply, "STAT members 2\r\nSTAT items 3\r\n") &&
			strstr(reply, "STAT tokens 3\r\n"),
		"%s", reply);
}

/* Such an element cannot be a member of a set, but sinfo is about lists too. */
TEST(has_an_element_too_long_for_a_member)
{
	static const char not_a_set[] = "CLIENT_ERROR value is not a collection\r\n";

	for (int in_segment = 0; in_segment < 2; in_segment++) {
		put_with_element_of(MEMBER_WORD_MAX, in_segment);
		asks_and_hears("scard k\r\n", "2\r\n");
		put_with_element_of(MEMBER_WORD_MAX + 1, in_segment);
		for (int again = 0; again < 2; again++) {
			asks_and_hears("scard k\r\n", not_a_set);
			asks_and_hears("spop k\r\n", not_a_set);
			asks_and_hears("smembers k\r\n", not_a_set);
			asks_and_hears("llen k\r\n", "3\r\n");
			is_described();
		}
		asks_and_hears("sset k a\r\n", "STORED\r\n");
		asks_and_hears("scard k\r\n", "1\r\n");
	}
}

/* The same bytes are not a set, whatever is read or rewritten. */
TEST(is_no_list)
{
	struct buf value = BUF_EMPTY;

	buf_printf(&value, "+%0*d +b ", MEMBER_WORD_MAX + 1, 0);
	server_put(&server, SLICE("k"), buf_slice(&value));
	asks_and_hears("sinfo k\r\n", "CLIENT_ERROR value is not a collection\r\n");
	asks_and_hears("scompact k\r\n", "CLIENT_ERROR value is not a collection\r\n");
	ck_assert(slice_equal(
		buf_slice(&server_find(&server, SLICE("k"))->value), buf_slice(&value)));
	buf_free(&value);
}

FIXTURE(setup, serving_teardown)
