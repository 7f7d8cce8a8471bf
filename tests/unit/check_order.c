/*
 * The earlier requests of its connection that a request must wait for: each class of commands
 * against each.
 */
#include "command/order.h"
#include "protocol/commands.h"
#include "unit.h"

enum { CLASSES = ORDER_FLUSH + 1, MANY = 1000 };

/* A command of each class. */
static const struct command *of_class(enum order_class class)
{
	static const command_id ids[CLASSES] = {
		[ORDER_READ] = COMMAND_SCARD,
		[ORDER_READ_KEYS] = COMMAND_GET,
		[ORDER_READ_SETS] = COMMAND_SMEMBERS,
		[ORDER_READ_BLOCKS] = COMMAND_SUNION,
		[ORDER_WRITE] = COMMAND_SET,
		[ORDER_WRITE_LATER] = COMMAND_LMOVE,
		[ORDER_TOUCH_KEYS] = COMMAND_GAT,
		[ORDER_EVENT_READ] = COMMAND_EVCOUNT,
		[ORDER_EVENT_COUNT] = COMMAND_EVINCR,
		[ORDER_EVENT_LIMIT] = COMMAND_EVLIMIT,
		[ORDER_EVENT_STORE] = COMMAND_EVADD,
		[ORDER_EVENT_TOP] = COMMAND_EVTOP,
		[ORDER_FLUSH] = COMMAND_FLUSH_ALL,
	};
	const struct command *command = command_get(ids[class]);

	ck_assert_int_eq(command->order, class);
	return command;
}

static struct order_effect effect_of(enum order_class class, size_t keys)
{
	return order_effect(&(struct request){ .command = of_class(class), .keys = keys });
}

/*
 * Checks whether the second must wait while the first is in flight, and that nothing waits when it
 * has ended.
 */
static bool waits(enum order_class second, enum order_class first, size_t keys)
{
	struct order order = { 0 };
	struct order_effect effect = effect_of(first, keys);
	bool must;

	order_begin(&order, effect);
	must = order_class_must_wait(&order, second);
	order_end(&order, effect);
	ck_assert(!order_class_must_wait(&order, second));
	ck_assert_uint_eq(order.tasks + order.calls + order.staged_reads + order.hidden_writes +
			order.later_writes,
		0);
	return must;
}

/*
 * A row is a class in flight, on many keys: then these wait for it. `.` need not wait, in the
 * order of enum order_class:
 *
 *     READ READ_KEYS READ_SETS READ_BLOCKS  WRITE WRITE_LATER TOUCH_KEYS
 *     EVENT_READ EVENT_COUNT EVENT_LIMIT EVENT_STORE  EVENT_TOP FLUSH
 */
TEST(each_class_behind_each)
{
	static const struct {
		enum order_class class;
		const char *few, *many;
	} rows[] = {
		{ ORDER_READ, "....  ...  ....  ww", "....  ...  ....  ww" },
		{ ORDER_READ_KEYS, "....  ...  ....  ww", "....  www  .www  ww" },
		{ ORDER_READ_SETS, "....  ...  ....  ww", "....  www  .www  ww" },
		{ ORDER_READ_BLOCKS, "....  www  .www  ww", "....  www  .www  ww" },
		{ ORDER_WRITE, "....  ...  ....  ww", "....  ...  ....  ww" },
		{ ORDER_WRITE_LATER, "wwww  www  wwww  ww", "wwww  www  wwww  ww" },
		{ ORDER_TOUCH_KEYS, "....  ...  ....  ww", "wwww  www  .www  ww" },
		{ ORDER_EVENT_READ, "....  www  .www  ww", "....  www  .www  ww" },
		{ ORDER_EVENT_COUNT, "....  ...  ....  ww", "....  ...  ....  ww" },
		{ ORDER_EVENT_LIMIT, "....  ...  ....  ww", "....  ...  ....  ww" },
		{ ORDER_EVENT_STORE, "wwww  www  ....  ww", "wwww  www  ....  ww" },
		{ ORDER_EVENT_TOP, "....  www  .www  ww", "....  www  .www  ww" },
		{ ORDER_FLUSH, "....  ...  ....  ww", "....  ...  ....  ww" },
	};

	ck_assert_uint_eq(sizeof(rows) / sizeof(rows[0]), CLASSES);
	for (size_t i = 0; i < CLASSES; i++) {
		const char *few = rows[i].few, *many = rows[i].many;
		ck_assert_uint_eq(rows[i].class, i);
		for (int second = 0; second < CLASSES; second++, few++, many++) {
			few += strspn(few, " ");
			many += strspn(many, " ");
			ck_assert_msg(waits(second, rows[i].class, 1) == (*few == 'w'),
				"%d behind %zu, one key", second, i);
			ck_assert_msg(waits(second, rows[i].class, MANY) == (*many == 'w'),
				"%d behind %zu, many keys", second, i);
		}
	}
}

TEST(thresholds)
{
	static const struct {
		enum order_class class;
		size_t first;
		bool hides;
	} given[] = {
		{ ORDER_READ_KEYS, ORDER_KEYS_FIRST, false },
		{ ORDER_READ_SETS, ORDER_SETS_FIRST, false },
		{ ORDER_TOUCH_KEYS, ORDER_KEYS_FIRST, true },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		struct order_effect at = effect_of(given[i].class, given[i].first);
		struct order_effect beyond = effect_of(given[i].class, given[i].first + 1);
		ck_assert(!at.stages_reads && !at.hides_writes);
		ck_assert(beyond.stages_reads);
		ck_assert(beyond.hides_writes == given[i].hides);
	}
}

TEST(refused)
{
	struct request request = {
		.command = of_class(ORDER_EVENT_STORE), .keys = 1, .error = "CLIENT_ERROR"
	};
	struct order_effect effect = order_effect(&request);

	ck_assert(!effect.stages_reads && !effect.hides_writes);
	request = (struct request){
		.command = of_class(ORDER_READ_KEYS), .keys = MANY, .error = "CLIENT_ERROR"
	};
	effect = order_effect(&request);
	ck_assert(!effect.stages_reads && !effect.hides_writes);
	request = (struct request){ .command = NULL, .keys = MANY };
	effect = order_effect(&request);
	ck_assert(!effect.stages_reads && !effect.hides_writes);
}

/* The operation of a request with many words is submitted later; a plain item is sent as it is. */
TEST(long_requests)
{
	static const struct {
		command_id command;
		enum target target;
		bool later;
	} given[] = {
		{ COMMAND_SADD, TARGET_ITEM, true },
		{ COMMAND_LFILL, TARGET_ITEM, true },
		{ COMMAND_SET, TARGET_COMMAND, true },
		{ COMMAND_MS, TARGET_COMMAND, true },
		{ COMMAND_APPEND, TARGET_COLLECTION, true },
		{ COMMAND_SET, TARGET_ITEM, false },
		{ COMMAND_GET, TARGET_COMMAND, false },
		{ COMMAND_SMISMEMBER, TARGET_ITEM, false },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		struct request line = { .command = command_get(given[i].command),
			.target = given[i].target,
			.rest = { NULL, REQUEST_LONG - 2 * KEY_MAX },
			.consumed = REQUEST_LONG };
		/* Each byte of an element in the data, or in a literal, may be two of its word. */
		struct request data = line, literal = line;
		data.rest.n = 0;
		data.data.n = line.rest.n / 2;
		data.consumed = data.data.n + 1;
		literal.consumed = REQUEST_LONG / 2;
		ck_assert(!order_effect(&line).writes_later);
		ck_assert(!order_effect(&data).writes_later);
		ck_assert(!order_effect(&literal).writes_later);
		line.rest.n++;
		data.data.n++;
		data.consumed++;
		literal.rest.n++;
		ck_assert_int_eq(order_effect(&line).writes_later, given[i].later);
		ck_assert_int_eq(order_effect(&data).writes_later, given[i].later);
		ck_assert_int_eq(order_effect(&literal).writes_later, given[i].later);
	}
}

/* The calls that a request may have in flight at once; a refused one is a task as well. */
TEST(calls_under_way)
{
	struct request bad = {
		.command = of_class(ORDER_READ_KEYS), .keys = MANY, .error = "CLIENT_ERROR"
	};
	struct order_effect get = effect_of(ORDER_READ_KEYS, MANY), set = effect_of(ORDER_WRITE, 1);
	struct order order = { 0 };

	ck_assert_uint_eq(get.calls, MANY);
	ck_assert_uint_eq(set.calls, 1);
	ck_assert_uint_eq(effect_of(ORDER_READ, 0).calls, 1);
	ck_assert_uint_eq(order_effect(&bad).calls, 1);
	ck_assert_uint_eq(effect_of(ORDER_READ_KEYS, ORDER_CALLS_MAX).calls, ORDER_CALLS_MAX);
	ck_assert_uint_eq(effect_of(ORDER_READ_KEYS, 1 << 20).calls, ORDER_CALLS_MAX);
	ck_assert_uint_eq(effect_of(ORDER_EVENT_READ, 1).calls, ORDER_EVENT_CALLS);
	ck_assert_uint_eq(effect_of(ORDER_EVENT_STORE, 1).calls, 1);
	order_begin(&order, get);
	order_begin(&order, set);
	ck_assert_uint_eq(order.calls, MANY + 1);
	order_end(&order, get);
	ck_assert_uint_eq(order.calls, 1);
}

/* A request that waits for several tasks waits for the last one. */
TEST(begin_and_end)
{
	enum order_class read = ORDER_READ, write = ORDER_WRITE, flush = ORDER_FLUSH;
	struct order_effect store = effect_of(ORDER_EVENT_STORE, 1),
			    blocks = effect_of(ORDER_READ_BLOCKS, 2);
	struct order_effect touch = effect_of(ORDER_TOUCH_KEYS, MANY),
			    none = effect_of(ORDER_WRITE, 1);
	struct order order = { 0 };

	order_begin(&order, store);
	order_begin(&order, store);
	order_begin(&order, blocks);
	order_begin(&order, touch);
	order_begin(&order, none);
	order_end(&order, store);
	ck_assert(order_class_must_wait(&order, read));
	order_end(&order, touch);
	ck_assert(order_class_must_wait(&order, read));
	order_end(&order, store);
	ck_assert(!order_class_must_wait(&order, read));
	ck_assert(order_class_must_wait(&order, write));
	order_end(&order, blocks);
	ck_assert(!order_class_must_wait(&order, write));
	ck_assert(order_class_must_wait(&order, flush));
	order_end(&order, none);
	ck_assert(!order_class_must_wait(&order, flush));
}
