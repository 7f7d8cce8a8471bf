/*
 * Counters and events with two copies. A counter is counted on both servers, and the larger number
 * is the one that counts.
 *
 *     INCR -> both have it: the larger number
 *          -> one lacks it: ADD of the other one's number
 *          -> both lack it: MISS
 *     ADD  -> the first copy, which decides -> the second one: ADD, or INCR if it is there
 *     GET  -> both -> the larger number, or the one that is there
 *
 * A counter is never repaired by INCR, which would count an event twice. If one copy is lower, it
 * is set to the other one's number by CAS, but only once nobody has counted for some seconds: a
 * count that has reached only one of them must not be added to a copy that has it already.
 */
#include "collection/copies/pair.h"
#include "collection/ttl.h"
#include "util/num.h"

static pair_step counter_counted, counter_filled, counter_first_added, counter_second_added,
	counter_read, counter_written, counter_look_again;
static pair_after counter_absent, counter_got, counter_seen_again;

/* A number as memcached leaves it: digits, perhaps followed by spaces. */
static bool parse_side(const struct pair_side *side, uint64_t *out)
{
	struct slice text = buf_slice(&side->value);

	while (text.n && text.p[text.n - 1] == ' ')
		text.n--;
	return side->has && num_parse_u64(text, out);
}

static void end_incr(struct pair *pair)
{
	const struct pair_side *a = &pair->sides[0], *b = &pair->sides[1];
	uint64_t first = pair->stored & PAIR_FIRST ? a->number : 0;
	uint64_t second = pair->stored & PAIR_SECOND ? b->number : 0;

	pair_end(pair,
		&(struct result){ .status = RESULT_NUMBER,
			.number = first > second ? first : second,
			.server = a->server });
}

static void counter_absent(struct pair *pair, bool done)
{
	if (!done)
		pair_fail_unknown(pair);
	else if (pair->call.verb != CALL_INCR)
		pair_end_as(pair, RESULT_DONE);
	else
		end_incr(pair);
}

static void add_missing_counter(struct pair *pair, unsigned copy, uint64_t number, int64_t exptime)
{
	struct buf text = BUF_EMPTY;

	buf_add_u64(&text, number);
	pair_send(pair, copy,
		(struct call){ .verb = CALL_ADD, .value = buf_slice(&text), .exptime = exptime });
	buf_free(&text);
}

static void counter_counted(struct pair *pair)
{
	unsigned has = pair->stored == PAIR_SECOND;

	if (pair->failed == PAIR_BOTH) {
		pair_fail(pair);
	} else if (!pair->stored) {
		pair_end_as(pair, RESULT_MISS);
	} else if (pair->failed) {
		pair_absent(pair, pair->failed >> 1, counter_absent);
	} else if (pair->stored == PAIR_BOTH) {
		if (pair->sides[0].number != pair->sides[1].number)
			repairs_add(pair->copies->repairs, pair->call.key, REPAIR_COUNTER);
		end_incr(pair);
	} else {
		pair->written = has;
		add_missing_counter(pair, 1 - has, pair->sides[has].number, pair->call.exptime);
		pair_wait(pair, counter_filled);
	}
}

/* If another proxy was first, a repair makes both equal. */
static void counter_filled(struct pair *pair)
{
	unsigned has = pair->written;

	if (pair->stored != PAIR_BOTH)
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_COUNTER);
	pair->stored = 1u << has;
	end_incr(pair);
}

/* --- creating --- */

static void add_first_counter(struct pair *pair)
{
	pair_send(pair, 0, pair->call);
	pair_wait(pair, counter_first_added);
}

static void counter_first_added(struct pair *pair)
{
	if (pair->stored || pair->failed) {
		pair_send(pair, 1, pair->call);
		pair_wait(pair, counter_second_added);
	} else {
		pair_end_as(pair, RESULT_NOT_STORED);
	}
}

static void counter_second_added(struct pair *pair)
{
	uint64_t number;

	if (pair->failed == PAIR_BOTH) {
		pair_fail(pair);
	} else if (pair->stored & PAIR_SECOND || pair->failed & PAIR_SECOND) {
		if (pair->failed)
			pair_absent(pair, pair->failed >> 1, counter_absent);
		else
			pair_end_as(pair, RESULT_DONE);
	} else if (pair->failed & PAIR_FIRST) {
		pair_end_as(pair, RESULT_NOT_STORED);
	} else if (num_parse_u64(pair->call.value, &number)) {
		pair_send(pair, 1, (struct call){ .verb = CALL_INCR, .number = number });
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_COUNTER);
		pair_wait(pair, counter_written);
	} else {
		pair_end_as(pair, RESULT_DONE);
	}
}

/* An event, or the rest of a counter: it is done if it is on one server. */
static void counter_written(struct pair *pair)
{
	if (pair->stored)
		pair_end_as(pair, RESULT_DONE);
	else if (pair->failed)
		pair_fail(pair);
	else
		pair_end_as(pair, RESULT_NOT_STORED);
}

/* --- reading --- */

static void counter_read(struct pair *pair)
{
	const struct pair_side *sides = pair->sides;
	bool has[2] = { sides[0].status == RESULT_HIT, sides[1].status == RESULT_HIT };
	uint64_t first = 0, second = 0;
	bool counts = parse_side(&sides[0], &first);

	counts = parse_side(&sides[1], &second) || counts;
	if (!has[0] && !has[1]) {
		if (pair->failed)
			pair_fail(pair);
		else
			pair_end_as(pair, RESULT_MISS);
		return;
	}
	if (counts && !pair->failed && first != second)
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_COUNTER);
	pair_answer(pair, !has[0] || second > first);
}

void counter_start(struct pair *pair)
{
	switch (pair->call.verb) {
	case CALL_INCR:
		pair_send_both(pair, pair->call, counter_counted);
		break;
	case CALL_ADD:
		add_first_counter(pair);
		break;
	case CALL_GET:
		pair_send_both(pair, pair->call, counter_read);
		break;
	default:
		pair_send_both(pair, pair->call, counter_written);
		break;
	}
}

/* --- repair --- */

void counter_repair(struct pair *pair, pair_after *after)
{
	pair_enter(pair, after);
	pair_get(pair, counter_got);
}

static void counter_repaired(struct pair *pair)
{
	pair->copies->stats.repairs += (pair->stored & pair->written) != 0;
	pair_leave(pair, (pair->stored & pair->written) != 0);
}

static uint64_t tokens_of(const struct pair *pair)
{
	return pair_token(pair) ^ pair_second_token(pair);
}

/* Stores the copy that is lower, or missing. Returns false if there is nothing to repair. */
static bool find_lower(const struct pair *pair, unsigned *copy, uint64_t *number)
{
	uint64_t numbers[2] = { 0, 0 };
	bool first = parse_side(&pair->sides[0], &numbers[0]);
	bool second = parse_side(&pair->sides[1], &numbers[1]);

	if (pair->sides[0].has != first || pair->sides[1].has != second ||
		(first && second && numbers[0] == numbers[1]) || (!first && !second))
		return false;
	*copy = second && numbers[1] < numbers[0] ? 1 : !second;
	*number = numbers[1 - *copy];
	return true;
}

static void counter_got(struct pair *pair, bool both)
{
	unsigned copy;
	uint64_t number;

	if (!both || !find_lower(pair, &copy, &number)) {
		pair_leave(pair, both);
		return;
	}
	pair->began = tokens_of(pair);
	pair_sleep(pair, (unsigned)pair->copies->settled / 2, counter_look_again);
}

static void counter_look_again(struct pair *pair)
{
	pair_get(pair, counter_seen_again);
}

static void counter_seen_again(struct pair *pair, bool both)
{
	struct buf text = BUF_EMPTY;
	unsigned copy;
	uint64_t number;
	int64_t exptime;

	if (!both || tokens_of(pair) != pair->began || !find_lower(pair, &copy, &number) ||
		!ttl_exptime(pair->copies->options.env, pair->sides[1 - copy].ttl, &exptime)) {
		pair_leave(pair, false);
		return;
	}
	buf_add_u64(&text, number);
	pair->written = 1u << copy;
	pair_write(pair, copy, buf_slice(&text), exptime);
	pair_wait(pair, counter_repaired);
	buf_free(&text);
}
