#include "collection/rewrite/cas.h"

#include <stddef.h>

#include "collection/ttl.h"
#include "protocol/dialect.h"

enum { TRIES_MAX = 8 };

typedef void waiter_done(struct waiter *waiter, const struct result *r);
static waiter_done cas_on_look, cas_on_clock, cas_on_answer;
typedef void cas_next(struct cas *cas);
static cas_next cas_measure, cas_on_measured, write_item, cas_on_written, read_clock_for_date,
	cas_touch_with_date, cas_on_touched;

/* --- calls --- */

static void send_call(struct cas *cas, struct waiter *waiter, struct slice key, struct call call,
	waiter_done *done)
{
	call.key = key;
	call.server = CALL_ANY_SERVER;
	*waiter = (struct waiter){ done, key };
	cas->pending++;
	cas->env->call(cas->env, &call, waiter);
}

static const struct call read_ttl = { .verb = CALL_GET, .want = WANT_TTL };
static const struct call read_clock = { .verb = CALL_STATS };

/* If a call cannot be sent, its result may precede the replies to earlier calls. */
static void count_result(struct cas *cas)
{
	if (--cas->pending == 0)
		cas->next(cas);
}

static void cas_on_look(struct waiter *waiter, const struct result *r)
{
	struct cas *cas = (struct cas *)((char *)waiter - offsetof(struct cas, look));

	cas->looked = *r;
	count_result(cas);
}

static void cas_on_clock(struct waiter *waiter, const struct result *r)
{
	struct cas *cas = (struct cas *)((char *)waiter - offsetof(struct cas, clock));

	cas->now = dialect_clock(r);
	count_result(cas);
}

static void cas_on_answer(struct waiter *waiter, const struct result *r)
{
	struct cas *cas = (struct cas *)((char *)waiter - offsetof(struct cas, waiter));

	cas->last = *r;
	if (result_failed(r))
		failure_keep(&cas->failure, r);
	count_result(cas);
}

/* The owner may free `cas` in `done`. */
static void finish_cas(struct cas *cas, enum result_status status)
{
	struct result r = { .status = status, .server = cas->last.server };
	struct failure failure = cas->failure;

	buf_free(&cas->value);
	cas->done(cas, result_failed(&r) ? &failure.result : &r);
	failure_free(&failure);
}

/* --- steps --- */

void cas_send(struct cas *cas, struct env *env, struct call call, struct slice like, int64_t ttl,
	void (*done)(struct cas *cas, const struct result *r))
{
	bool copied = !slice_equal(like, call.key);

	*cas = (struct cas){ .env = env, .call = call, .like = like, .ttl = ttl, .done = done };
	cas->call.expected = (uint32_t)call.value.n;
	cas->since = env->now;
	cas->exact = ttl != TTL_NEVER && (copied || ttl_is_date(call.exptime));
	if (!cas->exact) {
		write_item(cas);
		return;
	}
	buf_add_slice(&cas->value, call.value);
	cas->call.value = buf_slice(&cas->value);
	cas_measure(cas);
}

static void cas_measure(struct cas *cas)
{
	cas->since = cas->env->now;
	cas->next = cas_on_measured;
	send_call(cas, &cas->look, cas->like, read_ttl, cas_on_look);
	send_call(cas, &cas->clock, cas->like, read_clock, cas_on_clock);
	send_call(cas, &cas->waiter, cas->like, read_ttl, cas_on_answer);
}

/*
 * Stores the exptime of an item that had `ttl` seconds left when the server's clock showed
 * cas->now: a date by that clock. If the clock is unknown, works like ttl_exptime. Returns
 * false in the same cases.
 */
static bool date_of(const struct cas *cas, int64_t ttl, int64_t *exptime)
{
	if (!ttl_exptime(cas->env, ttl, exptime))
		return false;
	if (cas->now && ttl != TTL_NEVER)
		*exptime = cas->now + ttl;
	return true;
}

static void cas_on_measured(struct cas *cas)
{
	int64_t ttl = cas->last.ttl;

	if (cas->last.status != RESULT_HIT)
		finish_cas(cas, cas->last.status);
	else if ((cas->looked.status != RESULT_HIT || cas->looked.ttl != ttl) &&
		++cas->tries < TRIES_MAX)
		cas_measure(cas);
	else if (!date_of(cas, ttl, &cas->call.exptime))
		finish_cas(cas, RESULT_MISS);
	else
		cas->ttl = ttl, write_item(cas);
}

/*
 * Sends a read of the item, then the call. Both may be queued until the key has moved,
 * except for a TOUCH.
 */
static void send_write(struct cas *cas)
{
	struct call look = read_ttl, clock = read_clock;

	look.role.leads = clock.role.leads = cas->call.verb != CALL_TOUCH;
	cas->sent = cas->env->now;
	cas->looked.status = RESULT_MISS;
	if (slice_equal(cas->like, cas->call.key)) {
		send_call(cas, &cas->look, cas->like, look, cas_on_look);
		if (cas->exact)
			send_call(cas, &cas->clock, cas->like, clock, cas_on_clock);
	}
	send_call(cas, &cas->waiter, cas->call.key, cas->call, cas_on_answer);
}

/*
 * Returns the end of an item that is written with `exptime`, by the server's clock. 0 if that
 * clock is unknown, or for never.
 */
static int64_t end_of(const struct cas *cas, int64_t exptime)
{
	return cas->exact && cas->now ? exptime : 0;
}

static void write_item(struct cas *cas)
{
	cas->first = cas->given =
		(struct cas_life){ cas->ttl, cas->since, end_of(cas, cas->call.exptime) };
	cas->next = cas_on_written;
	send_write(cas);
}

/*
 * Returns whether `looked`, a read right before the write, shows that another client touched
 * the item after its time to live was read. If so, the item must be touched with `exptime`. For
 * a date, cas->now is the server's clock at the time of `looked`, or later. As cas->ttl was
 * read before, a longer time is the touch of another client.
 */
static bool touch_is_due(const struct cas *cas, int64_t *exptime)
{
	int64_t ttl = cas->looked.ttl, date = cas->call.exptime;

	if (cas->looked.status != RESULT_HIT || !date_of(cas, ttl, exptime))
		return false;
	if (!cas->exact || cas->ttl == TTL_NEVER || ttl == TTL_NEVER)
		return ttl != cas->ttl;
	return ttl > cas->ttl || (ttl_is_date(date) && *exptime + 1 < date);
}

static void touch(struct cas *cas, int64_t exptime)
{
	cas->former = cas->given;
	cas->given = (struct cas_life){ cas->looked.ttl, cas->sent, end_of(cas, exptime) };
	cas->ttl = cas->looked.ttl;
	cas->call = (struct call){ .verb = CALL_TOUCH, .key = cas->call.key, .exptime = exptime };
	cas->next = cas_on_touched;
	send_write(cas);
}

/* Sets the time to live of the item to the one in `looked`. */
static void correct(struct cas *cas, int64_t exptime)
{
	if (cas->exact || !ttl_is_date(exptime))
		touch(cas, exptime);
	else
		read_clock_for_date(cas);
}

static void cas_on_written(struct cas *cas)
{
	int64_t exptime;

	cas->written = cas->env->now;
	if (cas->last.status == RESULT_DONE && touch_is_due(cas, &exptime))
		correct(cas, exptime);
	else
		finish_cas(cas, cas->last.status);
}

static void read_clock_for_date(struct cas *cas)
{
	cas->asked = cas->env->now;
	cas->next = cas_touch_with_date;
	send_call(cas, &cas->clock, cas->like, read_clock, cas_on_clock);
}

/*
 * The time to live was read before the server's clock. The moment of reading the clock is known
 * to within the time that its reply took. If there was no reply, the connection broke, and the
 * clock is read on another one.
 */
static void cas_touch_with_date(struct cas *cas)
{
	enum { SOON_MS = 1000 };
	int64_t exptime, later = (int64_t)((cas->asked - cas->written) / 1000);
	bool known = cas->now && cas->env->now - cas->asked <= SOON_MS;

	if (!known && ++cas->tries < TRIES_MAX)
		read_clock_for_date(cas);
	else if (date_of(cas, cas->looked.ttl - later, &exptime))
		touch(cas, exptime);
	else
		finish_cas(cas, RESULT_DONE);
}

/*
 * Returns whether `looked` is the rest of this time to live. If the end is known by the
 * server's clock, a later touch with the same number of seconds is recognized. The server read
 * its clock after `looked`, later by at most the time that the replies took.
 */
static bool shows(const struct cas *cas, struct cas_life life)
{
	int64_t ttl = cas->looked.ttl, age = 1 + (int64_t)((cas->env->now - life.since) / 1000);
	int64_t end = cas->now + ttl, late = 1 + (int64_t)((cas->env->now - cas->sent) / 1000);

	if (ttl == TTL_NEVER || life.ttl == TTL_NEVER)
		return ttl == life.ttl;
	if (cas->now && life.end)
		return end >= life.end - 1 && end <= life.end + late;
	return ttl <= life.ttl && ttl >= life.ttl - age;
}

/*
 * Returns whether `looked`, a read right before our touch, shows a touch of another client,
 * which ours undid. A time that our CAS has set is not one: a concurrent rewrite may have set
 * it, and corrects it.
 */
static bool undid_touch(const struct cas *cas)
{
	return cas->looked.status == RESULT_HIT && !shows(cas, cas->given) &&
		!shows(cas, cas->former) && !shows(cas, cas->first);
}

/* Repeats a touch that ours undid. The write is done, even if a touch failed. */
static void cas_on_touched(struct cas *cas)
{
	int64_t exptime;

	cas->written = cas->env->now;
	if (cas->last.status == RESULT_DONE && undid_touch(cas) && ++cas->tries < TRIES_MAX &&
		date_of(cas, cas->looked.ttl, &exptime))
		correct(cas, exptime);
	else
		finish_cas(cas, RESULT_DONE);
}
