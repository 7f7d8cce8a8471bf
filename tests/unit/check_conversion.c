/*
 * Elements of any bytes in replies of commands, in each form; large texts are converted in
 * slices.
 */
#include "conversations.h"
#include "protocol/elements.h"

#define A_B \
	"a\x01\x42" \
	"b" /* The word of "a b". */

static void setup(void)
{
	fake_setup();
	fake.rules.commands = (struct command_keys){ SLICE("q|"), '\n' };
}

TEST(sets)
{
	exchanges("smembers k\r\n", FOUND("k", 9, "+" A_B " +x "),
		"VALUE k 0 7\r\n\"a b\" x\r\nEND\r\n");
	exchanges("smembers k l\r\n", FOUND("k", 9, "+" A_B " +x ") FOUND("l", 3, "+y "),
		"VALUE k 0 7\r\n\"a b\" x\r\nVALUE l 0 1\r\ny\r\nEND\r\n");
	exchanges("srandmember k\r\n", FOUND("k", 6, "+" A_B " "), "VALUE k 0 3\r\na b\r\nEND\r\n");
	exchanges("srandmember k 1\r\n", FOUND("k", 6, "+" A_B " "),
		"VALUE k 0 5\r\n\"a b\"\r\nEND\r\n");
	exchanges("srandmember k -2\r\n", FOUND("k", 6, "+" A_B " "),
		"VALUE k 0 11\r\n\"a b\" \"a b\"\r\nEND\r\n");
	exchanges("srange k a b 9\r\n", FOUND("k", 6, "+" A_B " "),
		"VALUE k 0 5\r\n\"a b\"\r\nEND\r\n");
	exchanges("sscan k 9 \"a a\"\r\n", FOUND("k", 6, "+" A_B " "),
		"VALUE k 0 5\r\n\"a b\"\r\nEND\r\n");
	exchanges("sunion k l\r\n", FOUND("k", 6, "+" A_B " ") "EN\r\n",
		"VALUE sunion 0 5\r\n\"a b\"\r\nEND\r\n");
	exchanges("smismember k \"a b\" a\r\n", FOUND("k", 6, "+" A_B " "), "1 0\r\n");
	exchanges("sismember k 'a b'\r\n", FOUND("k", 6, "+" A_B " "), "1\r\n");
}

#define LIST FOUND("k", 9, "+" A_B " +x ")

TEST(lists)
{
	exchanges("lrange k 0 -1\r\n", LIST, "VALUE k 0 7\r\n\"a b\" x\r\nEND\r\n");
	exchanges("lrange k 0 0\r\n", LIST, "VALUE k 0 5\r\n\"a b\"\r\nEND\r\n");
	exchanges("lindex k 0\r\n", LIST, "VALUE k 0 3\r\na b\r\nEND\r\n");
	exchanges("lpos k 'a b'\r\n", LIST, "0\r\n");
	exchanges("lpos k 'a b' count 0\r\n", LIST, "VALUE k 0 1\r\n0\r\nEND\r\n");
}

static void popped(const char *request, const char *reply)
{
	client_asks(request);
	server_answers(LIST "STORED\r\n");
	client_is_told(reply);
}

TEST(pops)
{
	popped("lpop k\r\n", "VALUE k 0 3\r\na b\r\nEND\r\n");
	popped("lpop k 1\r\n", "VALUE k 0 5\r\n\"a b\"\r\nEND\r\n");
	popped("rpop k\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
	popped("rpop k 2\r\n", "VALUE k 0 7\r\nx \"a b\"\r\nEND\r\n");
	popped("lmpop 1 left k\r\n", "VALUE k 0 5\r\n\"a b\"\r\nEND\r\n");
	popped("get q|lpop|k\r\n", "VALUE q|lpop|k 0 3\r\na b\r\nEND\r\n");
	popped("get q|lpop|k|2\r\n", "VALUE q|lpop|k|2 0 5\r\na b\nx\r\nEND\r\n");
	popped("lmove k k left right\r\n", "VALUE k 0 3\r\na b\r\nEND\r\n");
}

#define REFUSAL \
	"CLIENT_ERROR an element contains the delimiter: read single elements with lindex, lpop, " \
	"rpop, srandmember or spop, or use the text protocol\r\n"

TEST(keys)
{
	exchanges("get q|smembers|k\r\n", LIST, "VALUE q|smembers|k 0 5\r\na b\nx\r\nEND\r\n");
	exchanges("get q|lrange|k|0|-1\r\n", FOUND("k", 7, "+\x01! +x "),
		"VALUE q|lrange|k|0|-1 0 2\r\n\nx\r\nEND\r\n");
	exchanges("get q|lrange|k|0|-1\r\n",
		FOUND("k", 9,
			"+a\x01\x2c"
			"b +x "),
		REFUSAL);
	exchanges("get q|lindex|k|0\r\n",
		FOUND("k", 9,
			"+a\x01\x2c"
			"b +x "),
		"VALUE q|lindex|k|0 0 3\r\na\nb\r\nEND\r\n");
	exchanges("get q|lrange|k|0|-1 q|scard|k\r\n",
		FOUND("k", 9,
			"+a\x01\x2c"
			"b +x ") FOUND("k", 9,
			"+a\x01\x2c"
			"b +x "),
		"VALUE q|scard|k 0 1\r\n2\r\n" REFUSAL);
	exchanges("mg q|smembers|k v s\r\n", LIST, "VA 5 s5\r\na b\nx\r\n");
	/* Replies with several values are those of the text protocol. */
	exchanges("get q|smembers|k|l\r\n", LIST "EN\r\n",
		"VALUE q|smembers|k|l 0 20\r\nVALUE k 0 7\r\n\"a b\" x\r\nEND\r\n");
}

/* --- large texts --- */

enum { MEMBERS = 20000, SLICE_STEPS = 2000 };

static const struct collection_options roomy = {
	.base_size = 1 << 20, .log_size = 1 << 20, .table_size = 65536
};

/* The next read is answered with a list: this element after MEMBERS that begin with `first`. */
static void next_is_large(const char *first, const char *last)
{
	struct buf log = BUF_EMPTY;

	for (int i = 0; i < MEMBERS; i++)
		buf_printf(&log, "+%s-%06d ", first, i);
	buf_printf(&log, "+%s ", last);
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){
			.status = RESULT_HIT, .value = buf_slice(&log), .cas = 5, .ttl = -1 });
	buf_free(&log);
}

/* Returns in how many slices this list is read. The reply ends with `end`. */
static size_t slices(const char *request, const char *first, const char *last, const char *end)
{
	size_t count = 0, n;
	struct slice told;

	client_asks(request);
	next_is_large(first, last);
	while ((n = fake_pass(&fake, 0)))
		count += n;
	ck_assert_uint_eq(fake_used(&fake), 0);
	told.p = fake_told(&fake);
	told.n = strlen(told.p);
	ck_assert_uint_ge(told.n, strlen(end));
	ck_assert_str_eq(told.p + told.n - strlen(end), end);
	return count;
}

TEST(large)
{
	enum { CONVERSION = MEMBERS * 13 / ELEMENTS_PORTION * ELEMENTS_STEPS / SLICE_STEPS / 2 };
	const char *keyed = "get q|lrange|k|0|-1\r\n", *direct = "lrange k 0 -1\r\n";
	size_t plain;

	fake_takes(&roomy);
	fake.slice = SLICE_STEPS;
	fake_has_time(&fake);
	plain = slices(direct, "plain", "x", "019999 x\r\nEND\r\n");
	ck_assert_uint_ge(
		slices(direct, A_B, "x", "\"a b-019999\" x\r\nEND\r\n"), plain + CONVERSION);
	ck_assert_uint_ge(slices(keyed, "plain", "x", "019999\nx\r\nEND\r\n"), plain + CONVERSION);
	ck_assert_uint_ge(
		slices(keyed, A_B, "x", "\na b-019999\nx\r\nEND\r\n"), plain + CONVERSION);
	(void)slices(direct, "plain", A_B, "019999 \"a b\"\r\nEND\r\n");
	(void)slices(keyed, "plain",
		"a\x01\x2c"
		"b",
		REFUSAL);
}

/* A client that disconnects ends the conversion. */
TEST(abandoned)
{
	fake_takes(&roomy);
	fake.slice = 1;
	fake_has_time(&fake);
	client_asks("get q|lrange|k|0|-1\r\n");
	next_is_large("plain", "x");
	while (fake_pass(&fake, 0) && fake_used(&fake) == 0)
		;
	ck_assert_uint_gt(fake_used(&fake), 0);
	fake.account.gone = true;
	ck_assert_uint_eq(fake_pass(&fake, 0), 1);
	ck_assert_uint_eq(fake_pass(&fake, 0), 0);
	ck_assert_uint_eq(fake_used(&fake), 0);
	(void)fake_told(&fake);
}

FIXTURE(setup, fake_teardown)
