/*
 * The calls of sinter, sunion and sdiff, how much they may collect, and the memory that they
 * report.
 */
#include "conversations.h"

static const struct collection_options options = {
	.log_size = 4096, .table_size = 65536, .result_max = 20
};

/* However often a set is named, it is read once. */
TEST(sets_named_twice)
{
	client_asks("sunion k l k l k\r\n");
	serves(FETCH("k") FETCH("l"), FOUND("k", 6, "+a +b "));
	relays(FOUND("l", 6, "+b +c "), "VALUE sunion 0 5\r\na b c\r\nEND\r\n");
	talks("sinter k k k\r\n", FETCH("k"), FOUND("k", 6, "+a +b "),
		"VALUE sinter 0 3\r\na b\r\nEND\r\n");
}

TEST(too_large)
{
	fake_takes(&options);
	client_asks("sunion k l\r\n");
	server_answers(FOUND("k", 20, "+member-1 +member-2 "));
	relays(FOUND("l", 20, "+member-3 +member-4 "), "SERVER_ERROR result too large\r\n");
	client_asks("sinter k l\r\n");
	server_answers(FOUND("k", 20, "+member-1 +member-2 "));
	relays(FOUND("l", 20, "+member-2 +member-4 "), "VALUE sinter 0 8\r\nmember-2\r\nEND\r\n");
}

enum { MANY = 8000, MEMBER = 12, BLOCK = 32 * 1024 };

/* A log of MANY members is not compacted. */
static const struct collection_options roomy = {
	.base_size = 1 << 20, .log_size = 1 << 20, .table_size = 65536
};
static const struct collection_options small_result = {
	.base_size = 1 << 20, .log_size = 1 << 20, .table_size = 65536, .result_max = 20
};

/* The next read is answered with a set of MANY members: a few blocks. */
static void next_is_large(void)
{
	struct buf log = BUF_EMPTY;

	for (int i = 0; i < MANY; i++)
		buf_printf(&log, "+member-%04d ", i);
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){
			.status = RESULT_HIT, .value = buf_slice(&log), .cas = 5, .ttl = -1 });
	buf_free(&log);
}

static void starts(const char *line)
{
	client_asks(line);
	ck_assert_uint_eq(fake_used(&fake), 0);
	next_is_large();
	ck_assert_uint_ge(fake_used(&fake), BLOCK - MEMBER);
}

/* All blocks count, one of each set, and the result while it grows. */
TEST(memory)
{
	size_t blocks;

	fake_takes(&roomy);
	starts("sunion k l\r\n");
	ck_assert_uint_le(fake_used(&fake), 2 * BLOCK + MEMBER);
	blocks = 2 * fake_used(&fake);
	next_is_large();
	ck_assert_uint_ge(fake_used(&fake), BLOCK - MEMBER);
	for (int reads = 2; fake_waiting(&fake); reads += 2) {
		next_is_large();
		ck_assert_uint_ge(fake_used(&fake), (size_t)reads / 2 * (BLOCK - MEMBER));
		ck_assert_uint_le(fake_used(&fake), blocks + 2 * (size_t)MANY * MEMBER);
		if (fake_waiting(&fake))
			next_is_large();
	}
	ck_assert_uint_eq(fake_used(&fake), 0);
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "member-7999\r\nEND\r\n"));
}

TEST(memory_of_failures)
{
	/* Of one set, while the other one is there. */
	fake_takes(&roomy);
	starts("sinter k l\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	/* Of the second block, when a part of the result is there. */
	starts("sunion k l\r\n");
	next_is_large();
	next_is_large();
	ck_assert_uint_ge(fake_used(&fake), BLOCK - MEMBER);
	fake_fail(&fake, RESULT_UNAVAILABLE);
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	/* There is more than max_result. */
	fake_takes(&small_result);
	starts("sunion k l\r\n");
	next_is_large();
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_is_told("SERVER_ERROR result too large\r\n");
}

/*
 * A set that is missing after its first block is not a shorter set. One that is missing from the
 * start is empty.
 */
TEST(missing_meanwhile)
{
	static const char *const verbs[] = { "sunion k l\r\n", "sinter k l\r\n", "sdiff k l\r\n" };

	fake_takes(&roomy);
	for (size_t i = 0; i < 3; i++) {
		client_asks(verbs[i]);
		next_is_large();
		next_is_large();
		server_answers("EN\r\n");
		/* The other set continues to the end of its block. */
		if (fake_waiting(&fake))
			next_is_large();
		client_is_told("SERVER_ERROR set lost or deleted meanwhile\r\n");
		ck_assert_uint_eq(fake_waiting(&fake), 0);
	}
	client_asks("sunion k l\r\n");
	server_answers("EN\r\n");
	while (fake_waiting(&fake))
		next_is_large();
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "member-7999\r\nEND\r\n"));
}

/* A limit is reached in the first blocks: no more are read. Nothing is collected, so a result may be as large as it likes. */
TEST(counting)
{
	static const char *const lines[] = { "sunioncard 2 k l limit 5\r\n",
		"sintercard 2 k l limit 5\r\n" };

	fake_takes(&small_result);
	for (size_t i = 0; i < 2; i++) {
		client_asks(lines[i]);
		next_is_large();
		next_is_large();
		ck_assert_uint_eq(fake_waiting(&fake), 0);
		client_is_told("5\r\n");
	}
	client_asks("sdiffcard 2 k l limit 5\r\n");
	next_is_large();
	relays("EN\r\n", "5\r\n");
	client_asks("sintercard 2 k l\r\n");
	while (fake_waiting(&fake)) {
		next_is_large();
		ck_assert_uint_le(fake_used(&fake), 2 * (BLOCK + MEMBER));
	}
	client_is_told("8000\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_asks("sintercard 2 k l\r\n");
	next_is_large();
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
}

/* The client goes: no more blocks are read. */
TEST(abandoned)
{
	fake_takes(&roomy);
	starts("sunion k l\r\n");
	fake.account.gone = true;
	next_is_large();
	ck_assert_uint_eq(fake_waiting(&fake), 0);
	ck_assert_uint_eq(fake_used(&fake), 0);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
}
