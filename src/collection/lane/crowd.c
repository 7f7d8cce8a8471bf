#include "collection/lane/crowd.h"

static struct crowd *place_of(struct crowds *crowds, uint64_t hash)
{
	return &crowds->places[hash % CROWD_PLACES];
}

unsigned crowd_share(const struct crowds *crowds, uint64_t hash, uint64_t now)
{
	const struct crowd *c = &crowds->places[hash % CROWD_PLACES];

	return c->hash == hash && c->share > 1 && now - c->lost < CROWD_FORGET ? c->share : 1;
}

void crowd_lost(struct crowds *crowds, uint64_t hash, uint64_t now, bool rewritten)
{
	unsigned share = crowd_share(crowds, hash, now);

	if (share > 1 && !rewritten) {
		place_of(crowds, hash)->lost = now;
		return;
	}
	*place_of(crowds, hash) = (struct crowd){ hash, now, share < CROWD_SHARE_MAX ? 2 * share : CROWD_SHARE_MAX };
}

void crowd_won(struct crowds *crowds, uint64_t hash)
{
	struct crowd *c = place_of(crowds, hash);

	/* The share stays at 2 or more: only CROWD_FORGET ends crowding. */
	if (c->hash == hash && c->share > 2)
		c->share /= 2;
}
