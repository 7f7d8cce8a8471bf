#include "collection/lane/crowd.h"

static struct crowd *slot_of(struct crowds *crowds, uint64_t hash)
{
	return &crowds->slots[hash % CROWD_SLOTS];
}

unsigned crowd_share(const struct crowds *crowds, uint64_t hash, uint64_t now)
{
	const struct crowd *c = &crowds->slots[hash % CROWD_SLOTS];

	return c->hash == hash && c->share > 1 && now - c->lost < CROWD_FORGET ? c->share : 1;
}

void crowd_lost(struct crowds *crowds, uint64_t hash, uint64_t now, bool rewritten)
{
	unsigned share = crowd_share(crowds, hash, now);

	if (share > 1 && !rewritten) {
		slot_of(crowds, hash)->lost = now;
		return;
	}
	share = share < CROWD_SHARE_MAX ? 2 * share : CROWD_SHARE_MAX;
	*slot_of(crowds, hash) = (struct crowd){ hash, now, share, crowd_appended(crowds, hash) };
}

void crowd_won(struct crowds *crowds, uint64_t hash)
{
	struct crowd *c = slot_of(crowds, hash);

	/* The share stays at 2 or more: only CROWD_FORGET ends crowding. */
	if (c->hash == hash && c->share > 2)
		c->share /= 2;
}

void crowd_appends(struct crowds *crowds, uint64_t hash, unsigned operations)
{
	struct crowd *c = slot_of(crowds, hash);

	if (c->hash == hash)
		c->appended = operations;
}

unsigned crowd_appended(const struct crowds *crowds, uint64_t hash)
{
	const struct crowd *c = &crowds->slots[hash % CROWD_SLOTS];

	return c->hash == hash ? c->appended : 0;
}
