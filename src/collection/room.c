#include "collection/room.h"

#include "collection/env.h"

void rooms_init(struct rooms *rooms)
{
	/*
	 * A client may have many first blocks, as most sets end in them. But it merges few large
	 * sets at once: they would only share its slices, and their replies would come later.
	 */
	static const size_t shares[ROOMS] = { [ROOM_BLOCKS] = 1 << 20, [ROOM_MERGES] = 64 << 10 };

	for (int i = 0; i < ROOMS; i++) {
		rooms->of[i] = (struct room){ .share = shares[i] };
		TAILQ_INIT(&rooms->of[i].queue);
	}
}

void rooms_set_limit(struct rooms *rooms, size_t bytes)
{
	for (int i = 0; i < ROOMS; i++)
		rooms->of[i].limit = bytes;
}

static struct room_share *share_of(const struct stay *stay, const struct env *env)
{
	return &stay->account->rooms[stay->room - env->rooms->of];
}

static bool has_share(const struct room *room, const struct room_share *share, size_t bytes)
{
	return share->held == 0 || share->held + bytes <= room->share;
}

static bool has_room(const struct room *room, size_t bytes)
{
	return room->used == 0 || room->used + bytes <= room->limit;
}

static void take(struct room_share *share, struct stay *stay)
{
	stay->room->used += stay->bytes;
	share->held += stay->bytes;
}

/* Queues or removes the account, so that it is queued if its next stay is within its share. */
static void requeue(struct room *room, struct room_share *share)
{
	const struct stay *next = TAILQ_FIRST(&share->waiting);
	bool queued = next && has_share(room, share, next->bytes);

	if (queued && !share->queued)
		TAILQ_INSERT_TAIL(&room->queue, share, link);
	else if (!queued && share->queued)
		TAILQ_REMOVE(&room->queue, share, link);
	share->queued = queued;
}

static void stop_waiting(struct room_share *share, struct stay *stay)
{
	TAILQ_REMOVE(&share->waiting, stay, link);
	stay->waits = false;
	stay->account->waiting--;
	account_change(stay->account);
}

static void let_in(struct env *env, struct room *room)
{
	struct room_share *share;
	struct stay *stay;

	while ((share = TAILQ_FIRST(&room->queue)) &&
		has_room(room, (stay = TAILQ_FIRST(&share->waiting))->bytes)) {
		stop_waiting(share, stay);
		take(share, stay);
		/* To the end of the queue. */
		TAILQ_REMOVE(&room->queue, share, link);
		share->queued = false;
		requeue(room, share);
		env->pause(env, &stay->waiter, stay->account);
	}
}

bool room_enter(struct env *env, enum room_kind kind, struct stay *stay, struct account *account,
	size_t bytes)
{
	struct room_share *share;

	if (!env->rooms)
		return true;
	stay->account = account;
	stay->room = &env->rooms->of[kind];
	stay->bytes = bytes;
	share = share_of(stay, env);
	if (TAILQ_EMPTY(&stay->room->queue) && has_share(stay->room, share, bytes) &&
		has_room(stay->room, bytes)) {
		take(share, stay);
		return true;
	}
	if (TAILQ_EMPTY(&share->waiting))
		TAILQ_INIT(&share->waiting);
	TAILQ_INSERT_TAIL(&share->waiting, stay, link);
	stay->waits = true;
	account->waiting++;
	requeue(stay->room, share);
	return false;
}

void room_return(struct env *env, struct stay *stay, size_t bytes)
{
	struct room_share *share;

	if (!stay->room)
		return;
	share = share_of(stay, env);
	stay->bytes -= bytes;
	if (stay->waits) {
		stop_waiting(share, stay);
	} else {
		stay->room->used -= bytes;
		share->held -= bytes;
	}
	requeue(stay->room, share);
	let_in(env, stay->room);
}

void room_leave(struct env *env, struct stay *stay)
{
	room_return(env, stay, stay->bytes);
	stay->room = NULL;
}
