/*
 * Turns of clients in a lane, and the operations that are dropped when a client has disconnected. The machine of this test only
 * records its batches, and ends them when the test says so.
 */
#include "collection/account.h"
#include "collection/lane/batch.h"
#include "collection/set_request.h"
#include "unit.h"

enum { CLIENTS = 4, QUEUED = 100 };

static struct fake fake;
static struct lanes *lanes;
static struct lane *running;
static struct account accounts[CLIENTS]; /* of the clients a, b, c and d */
static char batches[2048], dropped[2048];
static struct collection_rule rule;

/* A name for an operation in the records: its client, in upper case if it rewrites. */
static char name_of(const struct op *op)
{
	char name = op->account ? (char)('a' + (op->account - accounts)) : '.';

	return op_rewrites(op, &rule) ? (char)(name - 'a' + 'A') : name;
}

static void record(char *text, char c)
{
	size_t n = strlen(text);

	text[n] = c;
	text[n + 1] = '\0';
}

static void on_open(struct lanes *l)
{
	(void)l;
}

static void on_start(struct lane *lane, enum op_kind kind)
{
	const struct op *op;

	(void)kind;
	running = lane;
	STAILQ_FOREACH(op, &lane->batch, link)
		record(batches, name_of(op));
	record(batches, ' ');
}

static size_t on_log_size(const struct lane *lane)
{
	return lane_env(lane)->options->log_size;
}

static void on_done(struct op *op, const struct outcome *outcome)
{
	if (outcome->status != OUTCOME_DONE)
		record(dropped, name_of(op));
	if (op->kind == OP_READ)
		free(op->set);
	free(op);
}

static void setup(void)
{
	static const struct lane_machines recorder = { on_open, on_open, on_start, on_log_size };

	rule = (struct collection_rule){ .encoding = ENCODING_OPLOG };
	fake_init(&fake);
	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	lanes = lanes_create(&fake.host.env, &recorder);
}

static void teardown(void)
{
	ck_assert(lanes_idle(lanes));
	lanes_destroy(lanes);
	fake_fini(&fake);
}

FIXTURE(setup, teardown)

/* An operation of each client that `clients` names; upper case for a rewrite, lower case for a read. */
static void submit_kinds(
	const char *clients, enum op_kind rewrite, enum op_kind other, bool is_whole)
{
	for (; *clients; clients++) {
		bool rewrites = *clients < 'a';
		struct op *op = calloc(1, sizeof(*op));
		*op = (struct op){
			.kind = rewrites ? rewrite : other,
			.key = SLICE("k"),
			.log = SLICE("+m "),
			.account = &accounts[*clients - (rewrites ? 'A' : 'a')],
			.whole = is_whole,
			.done = on_done,
		};
		if (op->kind == OP_READ)
			op->set = calloc(1, sizeof(struct set_request));
		lanes_submit(lanes, op);
	}
}

static void submit(const char *clients)
{
	submit_kinds(clients, OP_REPLACE, OP_READ, true);
}

static void end_batch(void)
{
	struct lane *lane = running;

	ck_assert_ptr_nonnull(lane);
	running = NULL;
	lane_end(lane, OUTCOME_DONE, NULL);
}

static void end_all(void)
{
	while (running)
		end_batch();
}

static void were(const char *expected, const char *expected_dropped)
{
	end_all();
	ck_assert_str_eq(batches, expected);
	ck_assert_str_eq(dropped, expected_dropped);
	batches[0] = dropped[0] = '\0';
}

TEST(rewrites_take_turns)
{
	submit("AAAABBBC");
	were("A A B C A B A B ", "");
}

/* One operation waits for at most one batch of each other client, however many they have queued. */
TEST(one_among_many)
{
	for (int i = 0; i < QUEUED; i++) {
		submit_kinds("Aa", OP_COMPACT, OP_APPEND, true);
		submit_kinds("Bb", OP_COMPACT, OP_APPEND, true);
	}
	submit("C");
	for (int i = 0; i < 4; i++)
		end_batch();
	ck_assert_ptr_nonnull(strchr(batches, 'C'));
	end_all();
	ck_assert_uint_eq(strlen(dropped), 0);
}

/* The operations of a client keep their order. */
TEST(order_of_one_client)
{
	submit("AaAAaBb");
	were("A a B b A A a ", "");
}

/* After a rewrite, a read has precedence over the next rewrite, and shares its batch with other reads. */
TEST(reads_before_the_next_rewrite)
{
	submit("AABBcd");
	were("A cd A B B ", "");
}

/* But not for ever: each rewrite waits for one batch of reads at a time. */
TEST(rewrites_do_not_starve)
{
	submit("AAB");
	for (int i = 0; i < 3; i++) {
		submit("c");
		end_batch();
		submit("c");
		end_batch();
	}
	were("A c A cc B cc c ", "");
}

/* Operations of all clients share a batch, whatever is queued between them. */
TEST(batches_of_all_clients)
{
	submit_kinds("a", OP_POP, OP_COUNT, true);
	submit_kinds("aAbBcd", OP_POP, OP_COUNT, true);
	were("a abcd B A ", "");
}

static void close_client(size_t i)
{
	account_close(&accounts[i], fake.host.env.now);
}

static void open_again(size_t i)
{
	accounts[i] = (struct account){ 0 };
}

TEST(reads_of_the_gone_are_dropped)
{
	submit("CaabA");
	close_client(0);
	were("C b A ", "aa");
	submit_kinds("CAAB", OP_COMPACT, OP_READ, true);
	were("C B ", "AA");
	open_again(0);
}

/* What has begun is not dropped, nor is what was sent before the client has disconnected, for a time. */
TEST(writes_of_the_gone)
{
	submit("A");
	submit_kinds("aAaA", OP_REPLACE, OP_APPEND, true);
	close_client(0);
	fake.host.env.now += QUEUE_GRACE_MS - 1;
	were("A a A a A ", "");
	submit("C");
	submit_kinds("aAaA", OP_REPLACE, OP_APPEND, true);
	fake.host.env.now++;
	/* The first append costs little. Later ones must not take effect without the rewrite before. */
	were("C a ", "AaA");
	open_again(0);
}

/* Each sends three changes of its set, and disconnects. `log` is the second one. */
static void leave_changes(enum encoding_id encoding, struct slice log)
{
	rule.encoding = encoding;
	submit("C");
	submit_kinds("aaa", OP_REPLACE, OP_APPEND, true);
	STAILQ_NEXT(queue_first(&running->queue), link)->log = log;
	close_client(0);
	fake.host.env.now += QUEUE_GRACE_MS;
	end_all();
	open_again(0);
}

/* A change that reads or rewrites the whole set is dropped as any other rewrite is. */
TEST(changes_of_the_gone_in_encodings)
{
	const struct slice adds = SLICE("+m "), removes = SLICE("-m ");

	leave_changes(ENCODING_CSV, removes);
	were("C a ", "Aa");
	leave_changes(ENCODING_CSV, adds);
	were("C aaa ", "");
	leave_changes(ENCODING_TOMBSTONE, adds);
	were("C ", "AAA");
	leave_changes(ENCODING_PAIRED, adds);
	were("C ", "AAA");
	leave_changes(ENCODING_FLIP, adds);
	were("C ", "AAA");
	rule.pointer = true;
	leave_changes(ENCODING_FLIP, removes);
	were("C aaa ", "");
	leave_changes(ENCODING_SIGNED, removes);
	were("C aaa ", "");
	leave_changes(ENCODING_INDEXED, removes);
	were("C aaa ", "");
}

/* Compactions and the appends between them end a second after the client has disconnected. */
TEST(appends_between_compactions_of_the_gone)
{
	submit("C");
	submit_kinds("aAaAa", OP_COMPACT, OP_APPEND, true);
	close_client(0);
	fake.host.env.now += QUEUE_GRACE_MS - 1;
	were("C a a a ", "AA");
	submit("C");
	submit_kinds("aAaAa", OP_COMPACT, OP_APPEND, true);
	fake.host.env.now++;
	were("C a ", "AaAa");
	open_again(0);
}

/* A batch of another client takes no change that follows a dropped one. */
TEST(batches_without_later_changes_of_the_gone)
{
	submit("C");
	submit_kinds("A", OP_REPLACE, OP_APPEND, true);
	submit_kinds("a", OP_REPLACE, OP_APPEND, false);
	submit_kinds("a", OP_REPLACE, OP_APPEND, true);
	submit_kinds("b", OP_REPLACE, OP_APPEND, true);
	close_client(0);
	fake.host.env.now += QUEUE_GRACE_MS;
	were("C b a ", "Aa");
	open_again(0);
}

/* An element that was moved from one list must be pushed to the other. */
TEST(parts_of_requests_are_carried_out)
{
	submit("C");
	submit_kinds("A", OP_REPLACE, OP_APPEND, true);
	submit_kinds("Aa", OP_REPLACE, OP_APPEND, false);
	close_client(0);
	fake.host.env.now += QUEUE_GRACE_MS;
	were("C A a ", "A");
	open_again(0);
}

static void on_result(struct waiter *waiter, const struct result *r)
{
	(void)waiter;
	(void)r;
}

/* A plain call follows the operations of its own client, and no others. */
TEST(plain_calls)
{
	static struct waiter waiters[2];
	const struct call call = {
		.verb = CALL_DELETE, .server = CALL_ANY_SERVER, .key = SLICE("k")
	};

	submit("CAABB");
	for (size_t i = 0; i < 2; i++) {
		waiters[i] = (struct waiter){ on_result, call.key };
		lanes_call(lanes, &accounts[i == 0 ? 0 : 3], &call, &waiters[i]);
	}
	ck_assert_uint_eq(fake.count, 0);
	end_batch();
	ck_assert_uint_eq(fake.count, 1);
	end_batch();
	end_batch();
	ck_assert_uint_eq(fake.count, 1);
	end_batch();
	ck_assert_uint_eq(fake.count, 2);
	were("C A B A B ", "");
	for (size_t i = 0; i < 2; i++)
		fake_result(&fake, i, &(struct result){ .status = RESULT_DONE });
}
