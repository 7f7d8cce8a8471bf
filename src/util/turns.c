#include "util/turns.h"

#include <assert.h>
#include <stddef.h>

void turns_init(struct turns *turns, int64_t worth)
{
	turns->worth = worth;
	TAILQ_INIT(&turns->known);
	TAILQ_INIT(&turns->fresh);
	turns->fresh_had_last = false;
}

bool turns_are_empty(const struct turns *turns)
{
	return TAILQ_EMPTY(&turns->known) && TAILQ_EMPTY(&turns->fresh);
}

static struct turn_list *list_of(struct turns *turns, const struct turn *turn)
{
	return turn->was_known ? &turns->known : &turns->fresh;
}

void turns_wait(struct turns *turns, struct turn *turn)
{
	assert(!turn->waits);
	turn->waits = true;
	turn->was_known = turn->is_known;
	TAILQ_INSERT_TAIL(list_of(turns, turn), turn, link);
}

void turns_leave(struct turns *turns, struct turn *turn)
{
	assert(turn->waits);
	turn->waits = false;
	TAILQ_REMOVE(list_of(turns, turn), turn, link);
}

struct turn *turns_next(struct turns *turns)
{
	struct turn *turn;

	while (!turns_are_empty(turns)) {
		bool fresh = TAILQ_EMPTY(&turns->known) ||
			(!turns->fresh_had_last && !TAILQ_EMPTY(&turns->fresh));
		turn = TAILQ_FIRST(fresh ? &turns->fresh : &turns->known);
		turns_leave(turns, turn);
		turn->credit = turn->credit > 0 ? turns->worth : turn->credit + turns->worth;
		if (turn->credit > 0) {
			turns->fresh_had_last = fresh;
			return turn;
		}
		turns_wait(turns, turn);
	}
	return NULL;
}

void turn_charge(struct turn *turn, uint64_t units)
{
	turn->credit -= (int64_t)units;
	turn->is_known = true;
}

void turn_free_of_charge(struct turn *turn)
{
	turn->credit = 0;
	turn->is_known = true;
}
