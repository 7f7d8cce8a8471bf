/*
 * Calls that go to both copies as they are: on parts, and touches of a base.
 *
 *     read of a part -> the first copy -> missing, or its server fails: the second copy
 *     other calls    -> both -> stored on one: done
 *
 * A part is read from the other server if one has lost it, and a repair puts it back.
 */
#include "collection/copies/pair.h"

static pair_step both_first_read, both_second_read, both_added, both_called, both_touched;
static pair_after both_touch_read, both_touch_known;

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
		repairs_add(pair->copies, pair->call.key, REPAIR_PARTS);
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
static void both_touched(struct pair *pair)
{
	if (pair->call.verb == CALL_TOUCH || !pair->stored)
		both_called(pair);
	else
		read_start(pair);
}

static void both_touch_known(struct pair *pair, bool done)
{
	struct call touch = { .verb = CALL_TOUCH, .exptime = pair->call.exptime };

	if (done && !pair->exists) {
		if (pair->failed)
			pair_fail(pair);
		else
			pair_end_as(pair, RESULT_MISS);
		return;
	}
	pair_send_both(pair, touch, both_touched);
}

static void both_touch_read(struct pair *pair, bool both)
{
	if (pair->sides[0].has || pair->sides[1].has)
		pair_join_sides(pair, 0, 0, both_touch_known);
	else if (both)
		both_touch_known(pair, !pair->sides[0].foreign && !pair->sides[1].foreign);
	else
		pair_fail(pair);
}

/* A set that is gone must not be touched: its bases show for some time that it was deleted. */
void both_touch(struct pair *pair)
{
	pair_get(pair, both_touch_read);
}
