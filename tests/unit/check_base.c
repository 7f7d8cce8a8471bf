/* Rewriting a part of a base during concurrent appends and prepends. */
#include "collection/rewrite/base.h"
#include "serving.h"

static struct lanes lanes;
static struct lane lane;
static struct base_rewrite rewrite;
static enum outcome_status status;
static enum result_status failure;
static size_t ended;

/* At the start of a test, the base lives for another 100 seconds. */
enum { DATE = SERVER_NOW + 100 };
#define DATED "~t1424450196 "

static void setup(void)
{
	fake_setup();
	server_init(&server, &fake);
	lanes = (struct lanes){ .env = &fake.host.env };
	lane = (struct lane){ .lanes = &lanes, .hash = 5, .waiter.key = SLICE("k") };
}

static void after(struct lane *l, enum outcome_status s, const struct result *r)
{
	ck_assert_ptr_eq(l, &lane);
	ck_assert(!!r == (s == OUTCOME_FAILED));
	status = s;
	failure = r ? r->status : RESULT_DONE;
	ended++;
}

static struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

static void put(const char *base)
{
	server_put(&server, SLICE("k"), text(base));
	server_find(&server, SLICE("k"))->expires = DATE;
	server_find(&server, SLICE("k"))->flags = 7;
}

static void holds(const char *base)
{
	const struct memcached_item *item = server_find(&server, SLICE("k"));

	struct slice value = buf_slice(&item->value);
	size_t n = strlen(DATED);

	if (value.n >= n && slice_equal(slice_skip(value, value.n - n), SLICE(DATED)))
		value.n -= n;
	assert_bytes(value, base);
	ck_assert_int_eq(item->expires, DATE);
	ck_assert_uint_eq(item->flags, 7);
}

static void ends_with(enum outcome_status expected)
{
	server_answer_all(&server);
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(status, expected);
	ck_assert_uint_eq(fake_waiting(&fake), 0);
	ended = 0;
}

static void begin_head(const char *prefix, const char *replacement)
{
	base_rewrite_head(&rewrite, &lane, text(prefix), text(replacement), NULL, DATE_NONE, after);
	ck_assert_uint_eq(ended, 0);
}

static void begin_part(const char *part, const char *replacement)
{
	base_rewrite_anywhere(&rewrite, &lane, text(part), text(replacement), after);
	ck_assert_uint_eq(ended, 0);
}

static size_t casses(void)
{
	size_t count = 0;

	for (size_t i = 0; i < fake.count; i++)
		count += fake.calls[i].call.verb == CALL_CAS;
	return count;
}

TEST(head)
{
	put("+a +b +c ");
	begin_head("+a +b ", "+ab ");
	ends_with(OUTCOME_DONE);
	holds("+ab +c ");
	ck_assert_int_eq(rewrite.date, DATE);
	/* The whole of it, and nothing instead. */
	begin_head("+ab +c ", "");
	ends_with(OUTCOME_DONE);
	holds("");
	ck_assert_uint_eq(lanes.stats.conflicts, 0);
}

/* If the caller has read the base, it is not read again, except after a lost race. */
TEST(head_that_was_read)
{
	struct result read = { .status = RESULT_HIT,
		.value = SLICE("+a +b "),
		.flags = 7,
		.ttl = 100,
		.connection = 1 };

	put("+a +b ");
	read.cas = server_find(&server, SLICE("k"))->cas;
	base_rewrite_head(&rewrite, &lane, SLICE("+a +b "), SLICE("+ab "), &read, DATE, after);
	ends_with(OUTCOME_DONE);
	holds("+ab ");
	ck_assert_uint_eq(fake.count, 1);
	put("+a +b +c ");
	base_rewrite_head(&rewrite, &lane, SLICE("+a +b "), SLICE("+ab "), &read, DATE, after);
	ends_with(OUTCOME_DONE);
	holds("+ab +c ");
	ck_assert_uint_eq(fake.count, 1 + 1 + 1 + 1);
	ck_assert_uint_eq(lanes.stats.conflicts, 1);
}

/* A log was joined with a base of another server, which has a block of its own. */
TEST(head_before_a_block)
{
	put("+a +b @set.1 +c ");
	begin_head("+a +b ", "@set.1 +ab ");
	ends_with(OUTCOME_BUSY);
	holds("+a +b @set.1 +c ");
	ck_assert_uint_eq(casses(), 0);
}

/* The oldest runs were merged while others were added. */
TEST(head_before_more_references)
{
	put("@set.1 @b @c @d +e ");
	begin_head("@set.1 @b @c ", "@set.1 @bc ");
	ends_with(OUTCOME_DONE);
	holds("@set.1 @bc @d +e ");
}

TEST(head_that_is_gone)
{
	put("+x +a +b ");
	begin_head("+a +b ", "+ab ");
	ends_with(OUTCOME_BUSY);
	holds("+x +a +b ");
	ck_assert_uint_eq(casses(), 0);
	ck_assert_uint_eq(lanes.stats.conflicts, 1);
	ck_assert_uint_eq(crowd_share(&lanes.crowds, lane.hash, fake.host.env.now), 2);
}

#define BLOCK "@list @lAAAAAAAAAAA.1.1 "

TEST(part_anywhere)
{
	put("+x " BLOCK "+a +b +c ");
	begin_part(BLOCK "+a +b ", "@list ");
	ends_with(OUTCOME_DONE);
	holds("+x @list +c ");
	put("+x +a +b +y ");
	begin_part("+a +b ", "+ab ");
	ends_with(OUTCOME_DONE);
	holds("+x +ab +y ");
	/* At the end, and whole tokens only. */
	put("+x+a +a ");
	begin_part("+a ", "+b ");
	ends_with(OUTCOME_DONE);
	holds("+x+a +b ");
}

TEST(part_that_is_gone)
{
	static const char *const bases[] = { "", "+a ", "+x +y +a +c ", "+x+a +b " };

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		put(bases[i]);
		begin_part("+a +b ", "+ab ");
		ends_with(OUTCOME_BUSY);
		holds(bases[i]);
	}
	ck_assert_uint_eq(casses(), 0);
}

/*
 * The log of a base without references differs from the same tokens next to references: it is
 * another base by now.
 */
TEST(part_without_a_block)
{
	static const char *const bases[] = { BLOCK "+a +b ", "+a +b " BLOCK,
		"+a +b " BLOCK "+a +b " };

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		put(bases[i]);
		begin_part("+a +b ", "@list @lBBBBBBBBBBB.2.1 ");
		ends_with(OUTCOME_BUSY);
		holds(bases[i]);
	}
	ck_assert_uint_eq(casses(), 0);
}

/* Others append before each CAS. Their tokens are kept, and the retries are limited. */
static void race(size_t losses)
{
	put("+a +b ");
	begin_head("+a +b ", "+ab ");
	while (fake_waiting(&fake)) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		if (call->verb == CALL_CAS && losses > 0) {
			losses--;
			put("+a +b +c ");
		}
		server_answer_one(&server);
	}
}

TEST(lost_races)
{
	race(LANE_ATTEMPTS);
	ends_with(OUTCOME_DONE);
	holds("+ab +c ");
	ck_assert_uint_eq(casses(), LANE_ATTEMPTS + 1);
	ck_assert_uint_eq(lanes.stats.conflicts, LANE_ATTEMPTS);
	race(LANE_ATTEMPTS + 1);
	ends_with(OUTCOME_BUSY);
	holds("+a +b +c ");
	ck_assert_uint_eq(casses(), 2 * (LANE_ATTEMPTS + 1));
}

/* A crowd halves when a rewrite succeeds at the first attempt, and only then. */
TEST(crowds)
{
	crowd_lost(&lanes.crowds, lane.hash, fake.host.env.now, true);
	crowd_lost(&lanes.crowds, lane.hash, fake.host.env.now, true);
	ck_assert_uint_eq(crowd_share(&lanes.crowds, lane.hash, fake.host.env.now), 4);
	race(1);
	ends_with(OUTCOME_DONE);
	ck_assert_uint_eq(crowd_share(&lanes.crowds, lane.hash, fake.host.env.now), 4);
	race(0);
	ends_with(OUTCOME_DONE);
	ck_assert_uint_eq(crowd_share(&lanes.crowds, lane.hash, fake.host.env.now), 2);
}

/* A time to live that cannot be kept: nothing is written. */
TEST(unknown_time_to_live)
{
	static const int64_t ttls[] = { TTL_UNKNOWN, 0 };

	put("+a +b ");
	for (size_t i = 0; i < 2; i++) {
		begin_head("+a +b ", "+ab ");
		fake_result(&fake, fake_oldest(&fake),
			&(struct result){
				.status = RESULT_HIT, .value = SLICE("+a +b "), .ttl = ttls[i] });
		ends_with(OUTCOME_BUSY);
	}
	ck_assert_uint_eq(casses(), 0);
}

TEST(missing)
{
	begin_head("+a +b ", "+ab ");
	ends_with(OUTCOME_MISSING);
	put("+a +b ");
	begin_head("+a +b ", "+ab ");
	server_answer_one(&server);
	server_find(&server, SLICE("k"))->used = false;
	ends_with(OUTCOME_MISSING);
	ck_assert_uint_eq(lanes.stats.conflicts, 0);
}

TEST(failures)
{
	put("+a +b ");
	begin_head("+a +b ", "+ab ");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	ends_with(OUTCOME_FAILED);
	ck_assert_int_eq(failure, RESULT_UNAVAILABLE);
	begin_part("+a +b ", "+ab ");
	server_answer_one(&server);
	fake_fail(&fake, RESULT_TIMED_OUT);
	ends_with(OUTCOME_FAILED);
	ck_assert_int_eq(failure, RESULT_TIMED_OUT);
}

/* As an operation of a lane: its outcome has the time to live that the base has then. */
static int64_t committed_ttl;

static void committed(struct op *op, const struct outcome *outcome)
{
	(void)op;
	status = outcome->status;
	committed_ttl = outcome->result->ttl;
	ended++;
}

TEST(commit)
{
	struct op op = { .kind = OP_COMMIT,
		.key = SLICE("k"),
		.prefix = SLICE("+a +b "),
		.log = SLICE("+ab "),
		.done = committed };

	put("+a +b +c ");
	lanes_submit(fake.host.lanes, &op);
	server_answer_one(&server);
	server_find(&server, SLICE("k"))->expires = DATE;
	ends_with(OUTCOME_DONE);
	holds("+ab +c ");
	ck_assert_int_eq(committed_ttl, 100);
}

FIXTURE(setup, serving_teardown)
