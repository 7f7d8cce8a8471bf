#include "collection/rewrite/cas.h"

#include <stddef.h>

#include "collection/ttl.h"

typedef void waiter_done(struct waiter *waiter, const struct result *r);
static waiter_done looked, stored, corrected, date_read;

static struct cas *cas_of(struct waiter *waiter)
{
	return (struct cas *)((char *)waiter - offsetof(struct cas, waiter));
}

static void ask(struct cas *cas, struct call call, waiter_done *done)
{
	call.key = cas->waiter.key;
	call.server = CALL_ANY_SERVER;
	cas->waiter.done = done;
	cas->env->call(cas->env, &call, &cas->waiter);
}

void cas_send(struct cas *cas, struct env *env, struct call call, int64_t ttl, bool look,
	void (*done)(struct cas *cas, const struct result *r))
{
	cas->env = env;
	cas->waiter.key = call.key;
	cas->look = (struct waiter){ looked, call.key };
	cas->looked.status = RESULT_MISS;
	cas->ttl = ttl;
	cas->exptime = call.exptime;
	cas->done = done;
	if (look)
		env_get(env, WANT_TTL, &cas->look);
	ask(cas, call, stored);
}

void cas_replace(struct cas *cas, struct env *env, struct slice key, struct slice value, const struct result *read,
	int64_t exptime, void (*done)(struct cas *cas, const struct result *r))
{
	struct call call = {
		.verb = CALL_CAS,
		.key = key,
		.value = value,
		.flags = read->flags,
		.exptime = exptime,
		.number = read->cas,
		.connection = read->connection,
	};

	cas_send(cas, env, call, read->ttl, true, done);
}

static void looked(struct waiter *waiter, const struct result *r)
{
	struct cas *cas = (struct cas *)((char *)waiter - offsetof(struct cas, look));

	cas->looked = *r;
}

static void correct(struct cas *cas, const struct result *r)
{
	int64_t exptime;

	if (ttl_touch_is_due(cas->env, cas->ttl, &cas->looked, &exptime)) {
		cas->ttl = cas->looked.ttl;
		ask(cas, (struct call){ .verb = CALL_TOUCH, .exptime = exptime }, corrected);
	} else if (ttl_is_date(cas->exptime)) {
		ask(cas, (struct call){ .verb = CALL_GET, .want = WANT_TTL }, date_read);
	} else {
		cas->done(cas, r);
	}
}

static void stored(struct waiter *waiter, const struct result *r)
{
	struct cas *cas = cas_of(waiter);

	if (r->status == RESULT_DONE)
		correct(cas, r);
	else
		cas->done(cas, r);
}

/* The write is done, even if the correction failed. */
static void corrected(struct waiter *waiter, const struct result *r)
{
	const struct result stored = { .status = RESULT_DONE, .server = r->server };
	struct cas *cas = cas_of(waiter);

	cas->done(cas, &stored);
}

static void date_read(struct waiter *waiter, const struct result *r)
{
	struct cas *cas = cas_of(waiter);

	if (ttl_date_is_off(cas->ttl, r, &cas->exptime))
		ask(cas, (struct call){ .verb = CALL_TOUCH, .exptime = cas->exptime }, corrected);
	else
		corrected(waiter, r);
}
