/*
 * Gathering queued operations: which may be carried out together, and that each client's commands
 * keep their order.
 */
#include "collection/lane/gather.h"

#include "collection/account.h"
#include "collection/set_request.h"
#include "unit.h"
#include "util/random.h"

enum { ACTS_MAX = 6000, CLIENTS = 300, NAMES = 4 };

/* An operation, and its outcome. */
static struct act {
	struct op op; /* first, so that it is found again */
	struct set_request request;
	char text[64];
	size_t client;
	bool found; /* the set */
	char digits[NAMES + 1];
	bool done;
} acts[ACTS_MAX];

static struct account accounts[CLIENTS];
static size_t act_count;
static struct pool pool;
static struct queues queues;
static struct queue waiting;
static struct op_queue appends = STAILQ_HEAD_INITIALIZER(appends),
		       reads = STAILQ_HEAD_INITIALIZER(reads);

static struct act *queue(size_t client, enum op_kind kind, const char *text)
{
	struct act *a = &acts[act_count++];

	ck_assert_uint_le(act_count, ACTS_MAX);
	*a = (struct act){ .client = client, .op = { .kind = kind, .account = &accounts[client] } };
	snprintf(a->text, sizeof(a->text), "%s", text);
	if (kind == OP_READ) {
		a->request =
			(struct set_request){ .verb = strchr(a->text, ' ') ? SET_TEST : SET_HAS,
				.members = slice_of(a->text, strlen(a->text)) };
		a->op.set = &a->request;
	} else {
		a->op.log = slice_of(a->text, strlen(a->text));
	}
	queue_add(&queues, &waiting, &a->op);
	return a;
}

static void setup(void)
{
	queues_init(&queues, &pool);
	queue_init(&waiting, &rules_default_collection);
	act_count = 0;
}

static void teardown(void)
{
	queues_fini(&queues);
	pool_free(&pool);
}

FIXTURE(setup, teardown)

/* Takes all that is queued, each client's operations together, in the order of their turns. */
static struct op_queue take_rest(void)
{
	struct op_queue rest = STAILQ_HEAD_INITIALIZER(rest);
	struct client_queue *client;

	while ((client = TAILQ_FIRST(&waiting.clients))) {
		while (!STAILQ_EMPTY(&client->ops)) {
			struct op *op = queue_take(client);
			STAILQ_INSERT_TAIL(&rest, op, link);
		}
		queue_taken(&queues, client);
	}
	return rest;
}

/* The operations of a queue, by their numbers. */
static const char *show(const struct op_queue *queue_)
{
	static char text[4096];
	const struct op *op;
	size_t n = 0;

	text[0] = 0;
	STAILQ_FOREACH(op, queue_, link)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d%s ",
			(int)((const struct act *)op - acts),
			op->kind == OP_READ && op->early ? "e" : "");
	return text;
}

static void gather_again(size_t bytes)
{
	STAILQ_INIT(&appends);
	STAILQ_INIT(&reads);
	gather(&queues, &waiting, true, bytes, 0, &appends, &reads);
}

static void gathers(
	size_t bytes, const char *the_appends, const char *the_reads, const char *the_rest)
{
	struct op_queue rest;

	gather_again(bytes);
	ck_assert_str_eq(show(&appends), the_appends);
	ck_assert_str_eq(show(&reads), the_reads);
	rest = take_rest();
	ck_assert_str_eq(show(&rest), the_rest);
	act_count = 0;
}

/* --- which operations are gathered --- */

/*
 * Queues operations, separated by |: the number of a client, then a log, or `?` and the queried
 * members.
 */
static void queue_all(const char *text)
{
	char what[64];

	for (size_t n; *text; text += n + (text[n] == '|')) {
		bool asks = text[2] == '?';
		n = strcspn(text, "|");
		snprintf(what, sizeof(what), "%.*s%s", (int)n - 2 - asks, text + 2 + asks,
			asks ? "" : " ");
		queue((size_t)(text[0] - '0'), asks ? OP_READ : OP_APPEND, what);
	}
}

TEST(one_client)
{
	queue_all("1 +a|1 -b|1 ?a|1 ?b");
	gathers(100, "0 1 ", "2 3 ", "");
	/* A read of other members may follow; one of these may not. */
	queue_all("1 ?a|1 +b|1 ?a b|1 +c +b|1 ?c");
	gathers(100, "1 ", "0e 2 ", "3 4 ");
	/* Names that only begin alike. */
	queue_all("1 ?ab +a|1 +a +abc -b");
	gathers(100, "1 ", "0e ", "");
	queue_all("1 ?x ab y|1 +a -ab");
	gathers(100, "", "0 ", "1 ");
}

/* A date is no part of the member. */
TEST(dates)
{
#define DATE "\0021424450096"
	queue_all("1 ?a|1 +a" DATE);
	gathers(100, "", "0 ", "1 ");
	queue_all("1 +a" DATE "|1 ?a|1 +b" DATE);
	gathers(100, "0 2 ", "1e ", "");
	queue_all("1 ?ab c|1 +a" DATE " +b" DATE "|1 +c" DATE);
	gathers(100, "1 ", "0e ", "2 ");
#undef DATE
}

/* An append does not overtake a read of more than single members by its client. */
TEST(reads_of_all)
{
	static const enum set_verb verbs[] = { SET_ALL, SET_SAMPLE, SET_RANGE, SET_COUNT,
		SET_INFO };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		queue_all("1 ?|1 +a|2 +b|2 ?");
		acts[0].request.verb = acts[3].request.verb = verbs[i];
		gathers(100, "2 ", "0 3 ", "1 ");
	}
}

TEST(many_clients)
{
	queue_all("1 ?a|2 +a|1 -a|3 ?a|2 ?a|1 ?z|3 +x");
	gathers(100, "1 6 ", "0 4 3e ", "2 5 ");
}

/* An operation that is neither an APPEND nor a READ is passed only by operations of other clients. */
TEST(barriers)
{
	static const enum op_kind kinds[] = { OP_REPLACE, OP_COUNT, OP_POP, OP_COMPACT, OP_COMMIT,
		OP_LIST, OP_TOUCH, OP_DELETE, OP_CALL };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		queue_all("1 +a|2 ?a");
		queue(3, kinds[i], "");
		queue_all("1 +b|3 +c|4 ?b|3 ?c");
		gathers(100, "0 3 ", "1 5 ", "2 4 6 ");
		queue_all("2 ?a|2 +a|2 ?b");
		queue(3, kinds[i], "");
		queue_all("1 +b");
		gathers(100, "4 ", "0 ", "3 1 2 ");
	}
}

/* A push to the other end, or an operation on a list, needs another call. */
TEST(appends_of_one_kind)
{
	queue_all("1 +a|2 +b|3 +c|2 ?b|4 +d|3 +e");
	acts[0].op.type = acts[2].op.type = acts[4].op.type = acts[5].op.type = COLLECTION_LIST;
	acts[4].op.front = true;
	gathers(100, "0 2 5 ", "", "1 3 4 ");
}

TEST(bytes)
{
	/* One in any case. */
	queue_all("1 +aaaaaaa|2 +b|3 ?a");
	gathers(5, "0 ", "2 ", "1 ");
	/* As many bytes as are allowed; a small append may have room where a larger one does not. */
	queue_all("1 +a|2 +b|3 +cccc|3 +c|3 ?c|4 +d|1 +e");
	gathers(12, "0 6 1 5 ", "", "2 3 4 ");
}

/* Many clients, some with several operations. */
TEST(crowds)
{
	size_t taken = 0, rounds = 0;
	struct op *op;

	for (size_t i = 0; i < 4 * CLIENTS; i++)
		queue(i % CLIENTS, i % 8 < 4 ? OP_APPEND : OP_READ, i % 8 < 4 ? "+a " : "a");
	while (waiting.count > 0) {
		gather_again(1 << 20);
		size_t before = taken;
		STAILQ_FOREACH(op, &appends, link)
			taken++;
		STAILQ_FOREACH(op, &reads, link)
			taken++;
		ck_assert_uint_gt(taken, before);
		rounds++;
	}
	ck_assert_uint_eq(taken, 4 * CLIENTS);
	ck_assert_uint_lt(rounds, 10);
}

/* --- carried out together, with the effect of one after the other for each client --- */

/* The set, by client: no two name the same members. */
static struct {
	bool there;
	bool in[CLIENTS][NAMES];
} set;

static void carry_out_log(struct act *a)
{
	for (const char *at = a->text; *at; at += 3)
		set.in[a->client][at[1] - 'a'] = *at == '+';
	a->done = a->found = true;
}

/*
 * Like append.c: operations before the first one that creates find nothing. Returns whether the
 * set was created.
 */
static bool carry_out_appends(void)
{
	bool created = false;
	struct op *op;

	STAILQ_FOREACH(op, &appends, link) {
		if (!set.there && !op->create) {
			((struct act *)op)->done = true;
			continue;
		}
		created |= !set.there;
		set.there = true;
		carry_out_log((struct act *)op);
	}
	return created;
}

/* As lanes.c does. */
static void carry_out_reads(bool created)
{
	struct op *op;

	STAILQ_FOREACH(op, &reads, link) {
		struct act *a = (struct act *)op;
		a->done = true;
		a->found = set.there && !(created && op->early);
		for (size_t i = 0, n = strlen(a->text); i < n; i += 2)
			a->digits[i / 2] = set.in[a->client][a->text[i] - 'a'] ? '1' : '0';
	}
}

static void random_act(uint64_t *random, size_t clients)
{
	char text[64];
	size_t client = random_next(random) % clients, n = 0;
	bool append = random_next(random) % 2;
	bool create;

	for (size_t i = 1 + random_next(random) % 2; i > 0; i--) {
		char name = (char)('a' + random_next(random) % NAMES);
		if (append)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%c ",
				random_next(random) % 2 ? '+' : '-', name);
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, n ? " %c" : "%c", name);
	}
	create = random_next(random) % 8 == 0;
	if (append)
		queue(client, OP_APPEND, text)->op.create = create;
	else
		queue(client, OP_READ, text);
}

/* A client finds nothing until the set exists, and then its own additions. */
static bool is_in_order(size_t client)
{
	bool there = false, in[NAMES] = { false };

	for (size_t i = 0; i < act_count; i++) {
		const struct act *a = &acts[i];
		if (a->client != client)
			continue;
		if (!a->done || (there && !a->found) ||
			(a->op.kind == OP_APPEND && a->op.create && !a->found))
			return false;
		there = a->found;
		for (const char *at = a->text; there && a->op.kind == OP_APPEND && *at; at += 3)
			in[at[1] - 'a'] = *at == '+';
		for (size_t k = 0; there && a->op.kind == OP_READ && k <= strlen(a->text) / 2;
			k++) {
			if (a->digits[k] != (in[a->text[2 * k] - 'a'] ? '1' : '0'))
				return false;
		}
	}
	return true;
}

static void history(uint64_t seed, size_t clients, bool there)
{
	uint64_t random = seed;

	memset(&set, 0, sizeof(set));
	set.there = there;
	act_count = 0;
	for (int round = 0; round < 20; round++) {
		for (uint64_t n = random_next(&random) % 10; n > 0; n--)
			random_act(&random, clients);
		if (waiting.count == 0)
			continue;
		gather_again(random_next(&random) % 40);
		ck_assert(!STAILQ_EMPTY(&appends) || !STAILQ_EMPTY(&reads));
		carry_out_reads(carry_out_appends());
	}
	while (waiting.count > 0) {
		gather_again(40);
		carry_out_reads(carry_out_appends());
	}
	for (size_t client = 0; client < clients; client++)
		ck_assert_msg(is_in_order(client), "seed %d: client %d of %d", (int)seed,
			(int)client, (int)clients);
}

TEST(as_if_one_after_the_other)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		history(seed, 1 + seed % 5, true);
}
