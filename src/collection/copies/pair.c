#include "collection/copies/pair.h"

#include <assert.h>
#include <string.h>

#include "collection/text/date.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/hash.h"

struct pair *pair_create(struct copies *copies, const struct call *call, struct waiter *asker)
{
	size_t second = call->key.n + PART_SECOND_SIZE,
	       size = sizeof(struct pair) + call->key.n + second + call->value.n;
	struct pair *pair;
	char *p;

	pair = pool_get(copies->options.env->pool, size);
	*pair = (struct pair){
		.copies = copies,
		.asker = asker,
		.call = *call,
		.size = size,
	};
	p = slice_write(pair->bytes, call->key);
	pair->call.key.p = pair->bytes;
	pair->sides[0].waiter.key = pair->call.key;
	pair->sides[1].waiter.key = slice_of(p, second);
	p = part_key_write_second(p, call->key);
	pair->call.value.p = p;
	slice_write(p, call->value);
	pair->call.line = SLICE("");
	for (int y = 0; y < 2; y++)
		pair->sides[y].pair = pair;
	LIST_INSERT_HEAD(&copies->pairs, pair, link);
	return pair;
}

void pair_end(struct pair *pair, const struct result *r)
{
	struct copies *copies = pair->copies;
	struct waiter *asker = pair->asker;
	struct failure failure = pair->failure;
	struct pair *gone = pair;

	if (r == &pair->failure.result)
		r = &failure.result;
	LIST_REMOVE(pair, link);
	if (asker)
		asker->done(asker, r);
	for (int y = 0; y < 2; y++)
		buf_free(&gone->sides[y].value);
	copy_join_free(&gone->join);
	buf_free(&gone->next);
	failure_free(&failure);
	pool_put(copies->options.env->pool, gone, gone->size);
}

void pair_end_as(struct pair *pair, enum result_status status)
{
	pair_end(pair, &(struct result){ .status = status, .server = pair->sides[0].server });
}

void pair_answer(struct pair *pair, unsigned copy)
{
	const struct pair_side *side = &pair->sides[copy];

	pair_end(pair,
		&(struct result){
			.status = RESULT_HIT,
			.value = buf_slice(&side->value),
			.flags = side->flags,
			.ttl = side->ttl,
			.size = side->size,
			.cas = side->cas,
			.connection = side->connection,
			.server = side->server,
		});
}

void pair_fail(struct pair *pair)
{
	const char *server = pair->sides[0].server;

	if (pair->failure.happened)
		pair_end(pair, &pair->failure.result);
	else
		pair_end(pair,
			&(struct result){ .status = RESULT_UNAVAILABLE,
				.server = server ? server : "a server" });
}

void pair_fail_unknown(struct pair *pair)
{
	struct result r = { .status = RESULT_LOST, .server = pair->failure.result.server };

	if (!r.server)
		r.server = pair->sides[0].server ? pair->sides[0].server : "a server";
	pair_end(pair, &r);
}

void pair_end_write(struct pair *pair, bool done)
{
	if (done)
		pair_end_as(pair, RESULT_DONE);
	else
		pair_fail_unknown(pair);
}

/* --- calls --- */

static void run_step(struct pair *pair)
{
	pair_step *step = pair->step;

	if (pair->pending == 0 && step) {
		pair->step = NULL;
		step(pair);
	}
}

void pair_take(struct pair *pair, unsigned copy, const struct result *r)
{
	struct pair_side *side = &pair->sides[copy];

	buf_consume(&side->value, buf_size(&side->value));
	side->has = side->foreign = false;
	side->copy = (struct copy){ 0 };
	if (r->status != RESULT_HIT)
		return;
	buf_add_slice(&side->value, r->value);
	side->cas = r->cas;
	side->connection = r->connection;
	side->flags = r->flags;
	side->ttl = r->ttl;
	side->size = r->size ? r->size : r->value.n;
	side->has = copy_parse(buf_slice(&side->value), &side->copy);
	side->foreign = !side->has;
}

static void pair_on_answer(struct waiter *waiter, const struct result *r)
{
	struct pair_side *side = (struct pair_side *)waiter;
	struct pair *pair = side->pair;
	unsigned copy = (unsigned)(side - pair->sides);

	side->status = r->status;
	side->server = r->server;
	if (result_failed(r)) {
		pair->failed |= 1u << copy;
		failure_keep(&pair->failure, r);
	} else if (r->status == RESULT_DONE || r->status == RESULT_HIT ||
		r->status == RESULT_NUMBER) {
		pair->stored |= 1u << copy;
	}
	side->number = r->number;
	pair->pending--;
	if (r->status == RESULT_HIT && pair->passes) {
		if (copy == 1 && !pair->failed)
			repairs_add(pair->copies->repairs, part_key_first_base(pair->call.key),
				REPAIR_PARTS);
		pair_end(pair, r);
		return;
	}
	if (r->status == RESULT_HIT)
		pair_take(pair, copy, r);
	run_step(pair);
}

void pair_send(struct pair *pair, unsigned copy, struct call call)
{
	struct copies_options *options = &pair->copies->options;
	struct pair_side *side = &pair->sides[copy];

	side->waiter.done = pair_on_answer;
	side->status = RESULT_MISS;
	call.key = side->waiter.key;
	call.server = CALL_ANY_SERVER;
	call.want |= pair->call.want & WANT_ENCODED;
	pair->failed &= ~(1u << copy);
	pair->stored &= ~(1u << copy);
	pair->pending++;
	options->call(options->env, &call, &side->waiter);
}

void pair_send_both(struct pair *pair, struct call call, pair_step *next)
{
	pair_send(pair, 0, call);
	pair_send(pair, 1, call);
	pair_wait(pair, next);
}

void pair_wait(struct pair *pair, pair_step *next)
{
	pair->step = next;
	assert(pair->pending > 0);
}

static void pair_on_timer(struct waiter *waiter, const struct result *r)
{
	struct pair *pair = (struct pair *)((char *)waiter - offsetof(struct pair, timer));

	(void)r;
	pair->pending--;
	run_step(pair);
}

void pair_sleep(struct pair *pair, unsigned ms, pair_step *next)
{
	struct env *env = pair->copies->options.env;

	pair->timer.done = pair_on_timer;
	pair->pending++;
	pair->step = next;
	env->later(env, &pair->timer, ms);
}

void pair_enter(struct pair *pair, pair_after *after)
{
	assert(pair->depth < PAIR_DEPTH);
	pair->returns[pair->depth++] = after;
}

void pair_leave(struct pair *pair, bool done)
{
	assert(pair->depth > 0);
	pair->returns[--pair->depth](pair, done);
}

/* --- time --- */

static uint64_t unix_ms(const struct pair *pair)
{
	return pair->copies->options.clock(pair->copies->options.arg) / 1000;
}

uint64_t pair_now(const struct pair *pair)
{
	return stamp_at(unix_ms(pair));
}

uint64_t pair_stamp(struct pair *pair)
{
	const struct copies_options *options = &pair->copies->options;

	return stamp_next_at(&pair->copies->clock, stamp_at_us(options->clock(options->arg)));
}

bool pair_is_late(const struct pair *pair)
{
	return pair_now(pair) > pair->stamp + stamp_at(pair->copies->settled / 4);
}

/* --- absences --- */

/* The servers of a copy: where it is, and where it is moved from. */
static void servers_of(const struct pair *pair, unsigned copy, int servers[2])
{
	const struct copies_options *options = &pair->copies->options;

	servers[0] = options->place(options->arg, pair->sides[copy].waiter.key, &servers[1]);
}

uint64_t pair_absence(const struct pair *pair, unsigned copy)
{
	uint64_t a, b;
	int at[2];

	servers_of(pair, copy, at);
	a = absences_of(pair->copies->absences, at[0]);
	b = absences_of(pair->copies->absences, at[1]);
	return a > b ? a : b;
}

static void pair_on_absence(struct absence_waiter *waiter, bool ok)
{
	struct pair *pair = (struct pair *)((char *)waiter - offsetof(struct pair, absence));

	pair_leave(pair, ok);
}

void pair_know(struct pair *pair, pair_after *after)
{
	pair_enter(pair, after);
	pair->absence.done = pair_on_absence;
	if (absences_request(pair->copies->absences, &pair->absence))
		pair_leave(pair, true);
}

static void pair_absent_where_moved_from(struct pair *pair, bool done)
{
	int at[2];

	servers_of(pair, pair->away, at);
	if (!done || at[1] == at[0])
		pair_leave(pair, done);
	else if (absences_raise(pair->copies->absences, at[1], &pair->absence))
		pair_leave(pair, true);
}

/* It is not known which of the two servers failed while a key moves. */
void pair_absent(struct pair *pair, unsigned copy, pair_after *after)
{
	int at[2];

	servers_of(pair, copy, at);
	pair->away = copy;
	pair_enter(pair, after);
	pair_enter(pair, pair_absent_where_moved_from);
	pair->absence.done = pair_on_absence;
	repairs_add(pair->copies->repairs, pair->call.key,
		pair->call.role.copied ? REPAIR_COUNTER : REPAIR_BASE);
	if (absences_raise(pair->copies->absences, at[0], &pair->absence))
		pair_leave(pair, true);
}

/* --- reading both --- */

/* Notes all stamps of a base, so that later stamps of this proxy are larger. */
static void see_stamps(struct pair *pair, const struct copy *copy)
{
	uint64_t last = copy_last_stamp(copy);

	if (last > pair->largest)
		pair->largest = last;
	(void)stamp_see(&pair->copies->clock, last, unix_ms(pair));
}

/*
 * Whether a copy may have expired before the other one was read: that may be one of a set that was
 * created after it, which must not get its members.
 */
static bool has_run_out(const struct pair *pair)
{
	enum { AT_ONCE = 100 /* milliseconds */ };
	uint64_t ms = pair->copies->options.env->now - pair->asked;
	bool has = false;

	for (unsigned y = 0; y < 2; y++)
		has |= pair->sides[y].has && pair->sides[y].ttl > 0 &&
			(uint64_t)pair->sides[y].ttl * 1000 <= ms + 1000;
	return has && ms > AT_ONCE && !pair->failed;
}

static void read_both(struct pair *pair);

static void pair_got(struct pair *pair)
{
	if (has_run_out(pair)) {
		read_both(pair);
		return;
	}
	pair->largest = 0;
	for (unsigned y = 0; y < 2; y++) {
		if (pair->sides[y].has)
			see_stamps(pair, &pair->sides[y].copy);
	}
	pair_leave(pair, !pair->failed);
}

static void read_both(struct pair *pair)
{
	static const struct result nothing = { .status = RESULT_MISS };

	pair->asked = pair->copies->options.env->now;
	for (unsigned y = 0; y < 2; y++) {
		pair_take(pair, y, &nothing);
		pair_send(pair, y,
			(struct call){
				.verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL });
	}
	pair_wait(pair, pair_got);
}

void pair_get(struct pair *pair, pair_after *after)
{
	pair_enter(pair, after);
	read_both(pair);
}

static void pair_known(struct pair *pair, bool done)
{
	pair_after *after = pair->returns[--pair->depth];

	if (!done) {
		pair_fail(pair);
		return;
	}
	pair->began = pair_now(pair);
	pair_get(pair, after);
}

void pair_look(struct pair *pair, pair_after *after)
{
	pair_enter(pair, after);
	pair_know(pair, pair_known);
}

bool pair_may_lack_parts(const struct pair *pair)
{
	uint64_t latest = absences_latest(pair->copies->absences);

	for (unsigned y = 0; y < 2; y++) {
		if (!(pair->failed & 1u << y) && pair->sides[y].copy.horizon < latest)
			return true;
	}
	return false;
}

bool pair_believed(const struct pair *pair, unsigned copy)
{
	return copy_is_believed(&pair->sides[copy].copy, pair_absence(pair, copy));
}

/* Whether a copy that its server does not have shows that the set is missing. */
static bool miss_believed(const struct pair *pair, unsigned copy)
{
	uint64_t absence = pair_absence(pair, copy);

	return !absence || absence + stamp_at(pair->copies->repaired) <= pair_now(pair);
}

bool pair_is_whole(const struct pair *pair)
{
	const struct pair_side *sides = pair->sides;
	uint64_t absences[2] = { pair_absence(pair, 0), pair_absence(pair, 1) };

	return copy_pair_is_whole(sides[0].has ? &sides[0].copy : NULL,
		sides[1].has ? &sides[1].copy : NULL, absences);
}

bool pair_suffices(const struct pair *pair)
{
	unsigned y = pair->failed == PAIR_FIRST;

	if (!pair->failed || pair->failed == PAIR_BOTH)
		return !pair->failed;
	return pair->sides[y].has ? pair_believed(pair, y) : miss_believed(pair, y);
}

/* --- words that count --- */

static void pair_seen(struct pair *pair, bool both)
{
	const struct pair_side *sides = pair->sides;

	pair_leave(pair,
		both && sides[0].has && sides[1].has && sides[0].copy.horizon < pair->stamp &&
			sides[1].copy.horizon < pair->stamp);
}

void pair_count(struct pair *pair, pair_after *after)
{
	pair_enter(pair, after);
	if (pair_is_late(pair))
		pair_get(pair, pair_seen);
	else
		pair_leave(pair, true);
}

/* --- joining --- */

static void pair_join_some(struct pair *pair)
{
	struct env *env = pair->copies->options.env;
	enum copy_read read;

	while ((read = copy_join_step(&pair->join)) == COPY_WORD) {
		if (!env_is_over(env, COPY_JOIN_STEPS))
			continue;
		pair->timer.done = pair_on_timer;
		pair->pending++;
		pair->step = pair_join_some;
		env->pause(env, &pair->timer, pair->call.account);
		return;
	}
	pair->exists = pair->join.exists;
	pair_leave(pair, read == COPY_END);
}

void pair_join(struct pair *pair, const struct copy *a, const struct copy *b, uint64_t horizon,
	uint64_t fill, pair_after *after)
{
	pair_enter(pair, after);
	copy_join_free(&pair->join);
	copy_join_begin(&pair->join, a, b, horizon, fill, pair->copies->options.env->seed);
	pair_join_some(pair);
}

void pair_join_sides(struct pair *pair, uint64_t horizon, uint64_t fill, pair_after *after)
{
	const struct pair_side *a = &pair->sides[0], *b = &pair->sides[1];

	pair_join(pair, a->has ? &a->copy : &b->copy, a->has && b->has ? &b->copy : NULL, horizon,
		fill, after);
}

bool pair_has_expired(const struct pair *pair)
{
	enum { MARGIN = 2 /* seconds */ };
	struct env *env = pair->copies->options.env;
	int64_t date = date_last(buf_slice(&pair->join.out));

	return date > 0 && pair->exists && !pair->failed &&
		pair->sides[0].has != pair->sides[1].has &&
		date + MARGIN <= env_server_time(env, pair->call.key);
}

/* --- writing --- */

bool pair_outlives_date(const struct pair *pair, unsigned copy, struct slice base)
{
	const struct pair_side *side = &pair->sides[copy];
	int64_t date = date_last(base);

	return date > 0 && side->has && side->ttl == TTL_NEVER &&
		date + DATE_LATE <= env_server_time(pair->copies->options.env, pair->call.key);
}

/* The exptime of a base: its date if it has one, else `exptime`. */
static int64_t exptime_of_base(
	const struct pair *pair, unsigned copy, struct slice base, int64_t exptime)
{
	int64_t date = date_last(base);

	if (pair_outlives_date(pair, copy, base))
		return 0;
	return date == DATE_NONE ? exptime : date;
}

void pair_store(
	struct pair *pair, unsigned copy, struct slice base, uint32_t flags, int64_t exptime)
{
	const struct pair_side *side = &pair->sides[copy];

	pair_send(pair, copy,
		(struct call){
			.verb = side->has ? CALL_CAS : CALL_ADD,
			.value = base,
			.expected = (uint32_t)base.n,
			.flags = flags,
			.exptime = exptime,
			.number = side->cas,
			.connection = side->connection,
		});
}

void pair_write(struct pair *pair, unsigned copy, struct slice base, int64_t exptime)
{
	const struct pair_side *side = &pair->sides[copy];
	bool replaces = pair->call.role.change == CHANGE_ALL && pair->call.verb != CALL_GET;
	uint32_t flags = side->has && !replaces ? side->flags : pair->call.flags;

	pair_store(pair, copy, base, flags, exptime_of_base(pair, copy, base, exptime));
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
	return hash_mix(a ^ UINT64_C(0x9e3779b97f4a7c15), b ^ UINT64_C(0xbf58476d1ce4e5b9));
}

/* That of the first copy is the one that clients see, so that it does not depend on the second. */
uint64_t pair_token(const struct pair *pair)
{
	const struct pair_side *first = &pair->sides[0], *second = &pair->sides[1];

	return first->has ? first->cas : second->has ? mixed(second->cas, 1) | 1 : 0;
}

uint64_t pair_second_token(const struct pair *pair)
{
	const struct pair_side *first = &pair->sides[0], *second = &pair->sides[1];
	uint64_t token = mixed(first->has ? first->connection : 0, pair->failed);

	token = mixed(token, second->has ? second->cas : 0);
	return mixed(token, second->has ? second->connection : 0) | 1;
}
