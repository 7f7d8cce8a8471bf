#include "collection/move/mover_world.h"

#include "collection/text/part_key.h"
#include "protocol/request.h"

struct slice mover_unit(const struct mover_world *world, struct slice key)
{
	struct slice base = part_key_base(key);

	if (base.n && mover_moves(world, base)) {
		unsigned behind;
		/* A segment of version 0.1.0 lies at the place of its own key. */
		if (part_key_place(key, &behind).n < key.n)
			return base;
	}
	return mover_moves(world, key) ? key : slice_of(key.p, 0);
}

void mover_send(
	const struct mover_world *world, const struct call *call, struct waiter *waiter, int server)
{
	struct call copy = *call;

	copy.server = server;
	if (call->verb != CALL_META && call->verb != CALL_STATS &&
		!request_key_fits_line(call->key)) {
		copy.want |= WANT_ENCODED;
		copy.verb = call->verb == CALL_TOUCH ? CALL_GAT : call->verb;
	}
	world->env->call(world->env, &copy, waiter);
}

static void mover_world_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	const struct mover_side *side = (struct mover_side *)env;
	bool reads = call->verb == CALL_GET || call->verb == CALL_STATS;

	mover_send(side->world, call, waiter,
		mover_place(side->world, call->key, side->copies ? reads : side->former));
}

void mover_world_init(struct mover_world *world)
{
	world->from =
		(struct mover_side){ .env.call = mover_world_call, .world = world, .former = true };
	world->to = (struct mover_side){ .env.call = mover_world_call, .world = world };
	world->copy =
		(struct mover_side){ .env.call = mover_world_call, .world = world, .copies = true };
}

struct env *mover_env(struct mover_side *side)
{
	side->env = *side->world->env;
	side->env.call = mover_world_call;
	return &side->env;
}
