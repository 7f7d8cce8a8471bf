/*
 * A set of moving.h whose members expire while it moves. Each member has one client, which adds it
 * again and again, to expire after a few seconds; nothing is removed. A read must show the members
 * that cannot have expired before its reply, and none that had expired when it was sent. It may have
 * read the set before a member was added again, so that the earlier date may still count.
 */
#include "moving.h"
#include "protocol/commands.h"

enum { SECONDS = 6, LONG = 1000 };

/* All servers have the same clock. */
static int64_t second(const struct moving *w)
{
	return (int64_t)(moving_now(w) / 1000);
}

static struct moving_date *date_of(struct moving_op *op, int member)
{
	return &op->world->keys[op->key].dates[member];
}

/* The date is that of the moment at which the command is sent. Until its reply it may count. */
static void write_addition(struct moving_op *op)
{
	struct moving *w = op->world;
	int member = MOVING_CLIENTS * (int)moving_random(w, MOVING_MEMBERS / MOVING_CLIENTS) +
		op->client;
	int64_t seconds = moving_chance(w, 80) ? 1 + (int64_t)moving_random(w, SECONDS) : LONG;
	struct moving_date *d = date_of(op, member);

	op->mask = UINT64_C(1) << member;
	op->exptime = second(w) + seconds;
	d->least = d->least < op->exptime ? d->least : op->exptime;
	d->most = d->most > op->exptime ? d->most : op->exptime;
	buf_printf(&op->line, " %d member%02d", (int)seconds, member);
}

void moving_dated_write(struct moving_op *op)
{
	op->number = (uint64_t)second(op->world);
	if (op->command == COMMAND_SADDEX)
		write_addition(op);
	for (int m = 0; m < MOVING_MEMBERS && op->command == COMMAND_SMEMBERS; m++)
		op->least[m] = date_of(op, m)->least;
}

static void check_member(struct moving_op *op, int member)
{
	uint64_t bit = UINT64_C(1) << member;
	const struct moving_date *d = date_of(op, member);
	const char *name = op->world->keys[op->key].name;
	int64_t least = d->least < op->least[member] ? d->least : op->least[member];

	if (op->got.mask & bit && d->most <= (int64_t)op->number)
		moving_fail(op->world, "a member has not expired", "%s: member%02d", name, member);
	if (!(op->got.mask & bit) && least > second(op->world))
		moving_fail(op->world, "a member has expired too early", "%s: member%02d", name,
			member);
}

void moving_dated_answered(struct moving_op *op)
{
	for (int m = 0; m < MOVING_MEMBERS; m++) {
		struct moving_date *d = date_of(op, m);
		if (op->command == COMMAND_SMEMBERS && op->replied && !op->world->stale)
			check_member(op, m);
		if (op->command != COMMAND_SADDEX || !(op->mask & UINT64_C(1) << m))
			continue;
		/* A command that has failed may still be executed. */
		d->vague |= !op->replied;
		if (!d->vague)
			d->least = d->most = op->exptime;
	}
}

void moving_dated_lost(struct moving_key *key)
{
	for (int m = 0; m < MOVING_MEMBERS; m++) {
		key->dates[m].least = 0;
		key->dates[m].vague = true;
	}
}
