/*
 * Calls on parts, which go to both copies as they are, and touches of a base.
 *
 *     read of a part -> the first copy -> missing, or its server fails: the second copy
 *     other calls    -> both -> stored on one: done
 *     touch          -> read both -> CAS of each with the same base
 *
 * A part is read from the other server if one has lost it, and a repair puts it back.
 */
#include "collection/copies/pair.h"
#include "collection/ttl.h"

enum { TOUCH_TRIES = 8 };

static pair_step both_first_read, both_second_read, both_added, both_called, both_touched;
static void read_for_touch(struct pair *pair);
static pair_after both_touch_read, both_touch_known, both_touch_repaired, both_touch_absent;

static void both_first_read(struct pair *pair)
{
	pair_send(pair, 1, pair->call);
	pair_wait(pair, both_second_read);
}

/* The second copy was not found, too. A part that is found ends the pair: see pair.passes. */
static void both_second_read(struct pair *pair)
{
	if (pair->failed) {
		pair_fail(pair);
	} else {
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_PARTS);
		pair_end_as(pair, RESULT_MISS);
	}
}

/* A base may refer to a part only if both servers have it, or one of them is known to be absent. */
static void both_added(struct pair *pair)
{
	if (pair->failed == PAIR_BOTH)
		pair_fail(pair);
	else if ((pair->stored | pair->failed) != PAIR_BOTH)
		pair_end_as(pair, RESULT_NOT_STORED);
	else if (pair->failed)
		pair_absent(pair, pair->failed >> 1, pair_end_write);
	else
		pair_end_as(pair, RESULT_DONE);
}

static void both_called(struct pair *pair)
{
	if (pair->stored)
		pair_end_as(pair, RESULT_DONE);
	else if (pair->failed)
		pair_fail(pair);
	else
		pair_end_as(pair, RESULT_MISS);
}

void both_part(struct pair *pair)
{
	switch (pair->call.verb) {
	case CALL_GET:
		pair->passes = true;
		pair_send(pair, 0, pair->call);
		pair_wait(pair, both_first_read);
		break;
	case CALL_ADD:
		pair_send_both(pair, pair->call, both_added);
		break;
	default:
		pair_send_both(pair, pair->call, both_called);
		break;
	}
}

/* --- touches --- */

/* A GAT returns what the base is then. */
static void both_touch_ended(struct pair *pair)
{
	if (pair->call.verb == CALL_TOUCH || !pair->stored)
		both_called(pair);
	else
		read_start(pair);
}

static void touch_items(struct pair *pair)
{
	struct call touch = { .verb = CALL_TOUCH, .exptime = pair->call.exptime };

	pair_send_both(pair, touch, both_touch_ended);
}

/* Each copy is written again by CAS with the new time to live. */
static void write_touched(struct pair *pair)
{
	pair->written = 0;
	for (unsigned y = 0; y < 2; y++) {
		const struct pair_side *side = &pair->sides[y];
		if (!side->has)
			continue;
		pair->written |= 1u << y;
		pair_store(pair, y, buf_slice(&side->value), side->flags, pair->call.exptime);
	}
	pair_wait(pair, both_touched);
}

static void both_touch_absent(struct pair *pair, bool done)
{
	if (done)
		both_touch_ended(pair);
	else
		pair_fail_unknown(pair);
}

/*
 * A copy that has expired or changed meanwhile is read again. One that cannot be touched must not
 * be believed until a repair has given it the date.
 */
static void both_touched(struct pair *pair)
{
	pair->stored &= pair->written;
	if (pair->stored && pair->failed)
		pair_absent(pair, pair->failed >> 1, both_touch_absent);
	else if (!(pair->written & ~pair->stored & ~pair->failed))
		both_touch_ended(pair);
	else if (++pair->tries < TOUCH_TRIES)
		read_for_touch(pair);
	else
		touch_items(pair);
}

static void both_touch_repaired(struct pair *pair, bool done)
{
	(void)done;
	read_for_touch(pair);
}

/* A copy that is missing is filled first: it gets the time to live from the words of the touch. */
static void both_touch_known(struct pair *pair, bool done)
{
	bool both = pair->sides[0].has == pair->sides[1].has;

	if (!done)
		touch_items(pair);
	else if (pair->exists && !both && !pair->failed && pair->tries++ < TOUCH_TRIES)
		pair_repair(pair, both_touch_repaired);
	else if (pair->exists)
		write_touched(pair);
	else if (pair->failed)
		pair_fail(pair);
	else
		pair_end_as(pair, RESULT_MISS);
}

static void both_touch_read(struct pair *pair, bool both)
{
	pair->exists = false;
	if (pair->sides[0].has || pair->sides[1].has)
		pair_join_sides(pair, 0, 0, both_touch_known);
	else if (both)
		both_touch_known(pair, !pair->sides[0].foreign && !pair->sides[1].foreign);
	else
		pair_fail(pair);
}

static void read_for_touch(struct pair *pair)
{
	pair_get(pair, both_touch_read);
}

/*
 * A set that is gone must not be touched: its bases show for some time that it was deleted. A call
 * that a server executes long after it has failed does not change what the set is then: the CAS of
 * a base that has changed fails, and the new time to live is a date, so that it is not prolonged.
 */
void both_touch(struct pair *pair)
{
	struct env *env = pair->copies->options.env;

	if (pair->call.exptime > 0 && !ttl_is_date(pair->call.exptime))
		pair->call.exptime += env_server_time(env, pair->call.key);
	read_for_touch(pair);
}
