#include "collection/lane/lane.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/account.h"
#include "collection/lane/gather.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/random.h"

enum { BUCKETS_MIN = 64 };

/* A queued plain call, with copies of its slices. */
struct queued_call {
	struct op op;
	struct call call;
	struct waiter *waiter;
	size_t size;
	char bytes[];
};

struct lanes *lanes_create(struct env *env, const struct lane_machines *machines)
{
	struct lanes *lanes = xcalloc(1, sizeof(*lanes));

	lanes->env = env;
	lanes->machines = machines;
	lanes->bucket_count = BUCKETS_MIN;
	lanes->buckets = xcalloc(BUCKETS_MIN, sizeof(struct lane *));
	queues_init(&lanes->queues, env->pool);
	machines->open(lanes);
	return lanes;
}

void lanes_destroy(struct lanes *lanes)
{
	if (!lanes)
		return;
	assert(lanes_idle(lanes));
	lanes->machines->close(lanes);
	queues_fini(&lanes->queues);
	free(lanes->buckets);
	free(lanes);
}

bool lanes_idle(const struct lanes *lanes)
{
	return lanes->count == 0 && lanes->merge_count == 0 && lanes->background == 0;
}

const struct lanes_stats *lanes_statistics(const struct lanes *lanes)
{
	return &lanes->stats;
}

struct env *lane_env(const struct lane *lane)
{
	return lane->lanes->env;
}

size_t lane_log_size(const struct lane *lane)
{
	return lane->lanes->machines->log_size(lane);
}

static struct lane **bucket_of(const struct lanes *lanes, uint64_t hash)
{
	return &lanes->buckets[hash & (lanes->bucket_count - 1)];
}

static struct lane *find(const struct lanes *lanes, struct slice key, uint64_t hash)
{
	struct lane *lane = *bucket_of(lanes, hash);

	while (lane && (lane->hash != hash || !slice_equal(lane->waiter.key, key)))
		lane = lane->next;
	return lane;
}

static void grow(struct lanes *lanes)
{
	size_t old_count = lanes->bucket_count;
	struct lane **old = lanes->buckets;

	lanes->bucket_count *= 2;
	lanes->buckets = xcalloc(lanes->bucket_count, sizeof(struct lane *));
	for (size_t i = 0; i < old_count; i++) {
		for (struct lane *lane = old[i], *next; lane; lane = next) {
			struct lane **bucket = bucket_of(lanes, lane->hash);
			next = lane->next;
			lane->next = *bucket;
			*bucket = lane;
		}
	}
	free(old);
}

static void lane_on_answer(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, waiter));

	lane->step(lane, r);
}

static void lane_on_size(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, look));

	lane->looking = false;
	if (r->status == RESULT_HIT)
		lane_grew(lane, (size_t)r->size);
	if (!lane->running)
		lane_next(lane);
}

static void lane_on_behind_read(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, behind));
	lane_step *step = lane->behind_read;
	bool idle = !lane->running;

	lane->reads_behind = false;
	if (step)
		step(lane, r);
	if (idle)
		lane_next(lane);
}

static struct lane *create(struct lanes *lanes, struct slice key, uint64_t hash)
{
	struct lane *lane = pool_get(lanes->env->pool, sizeof(*lane) + key.n);
	struct lane **bucket;

	if (lanes->count >= lanes->bucket_count)
		grow(lanes);
	bucket = bucket_of(lanes, hash);
	memset(lane, 0, sizeof(*lane));
	lane->next = *bucket;
	lane->hash = hash;
	lane->lanes = lanes;
	lane->rule = rules_collection(lanes->env->rules, key);
	memcpy(lane->key, key.p, key.n);
	lane->waiter = (struct waiter){ lane_on_answer, slice_of(lane->key, key.n) };
	queue_init(&lane->queue, lane->rule);
	STAILQ_INIT(&lane->batch);
	STAILQ_INIT(&lane->reads);
	*bucket = lane;
	lanes->count++;
	return lane;
}

static void destroy(struct lane *lane)
{
	struct lanes *lanes = lane->lanes;
	struct lane **at = bucket_of(lanes, lane->hash);

	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	lanes->count--;
	buf_free(&lane->log);
	pool_put(lanes->env->pool, lane, sizeof(*lane) + lane->waiter.key.n);
}

/*
 * Plain calls on one key are pipelined on one connection, so the next one is sent without
 * waiting for the reply.
 */
static void send_deferred(struct lane *lane, struct op *op)
{
	struct queued_call *d =
		(struct queued_call *)((char *)op - offsetof(struct queued_call, op));
	struct env *env = lane_env(lane);

	env->call(env, &d->call, d->waiter);
	pool_put(env->pool, d, d->size);
}

static void lane_on_pause_over(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, hold));

	(void)r;
	lane->lanes->machines->start(lane, OP_COMPACT);
}

static void start(struct lane *lane, enum op_kind kind)
{
	struct env *env = lane_env(lane);

	lane->running = true;
	lane->attempts = 0;
	if (kind == OP_COMPACT && env->background_pause) {
		/* A lane that is running does not hold, so the waiter for holding is free. */
		lane->hold.done = lane_on_pause_over;
		env->later(env, &lane->hold, env->background_pause);
	} else {
		lane->lanes->machines->start(lane, kind);
	}
}

/* Starts the machine of the batch. */
static void run_batch(struct lane *lane)
{
	lane->created = lane->reads_along = false;
	start(lane, lane_first(lane)->kind);
}

/* Starts the next batch, which begins with the queue's first operation. */
static void run(struct lane *lane)
{
	bool oplog = lane->rule->encoding == ENCODING_OPLOG;

	gather(&lane->lanes->queues, &lane->queue, oplog, LANE_MERGE_MAX, lane_env(lane)->now,
		&lane->batch, &lane->reads);
	if (STAILQ_EMPTY(&lane->batch))
		STAILQ_CONCAT(&lane->batch, &lane->reads);
	run_batch(lane);
}

/*
 * Starts the reads that follow appends. If the appends created the collection, early
 * reads end as missing.
 */
static void start_reads(struct lane *lane)
{
	const struct outcome missing = { .status = OUTCOME_MISSING };
	struct op_queue late = STAILQ_HEAD_INITIALIZER(late);
	struct op *op;

	STAILQ_CONCAT(&lane->batch, &lane->reads);
	while (lane->created && (op = lane_first(lane))) {
		if (op->early) {
			lane_end_first(lane, &missing);
			continue;
		}
		STAILQ_REMOVE_HEAD(&lane->batch, link);
		STAILQ_INSERT_TAIL(&late, op, link);
	}
	STAILQ_CONCAT(&lane->batch, &late);
	if (lane_first(lane))
		start(lane, OP_READ);
	else
		lane_next(lane);
}

/* --- crowded keys: see crowd.h --- */

static lane_step lane_on_hold_look;

static void lane_on_compaction(struct op *op, const struct outcome *outcome)
{
	(void)outcome;
	free(op);
}

/*
 * Words of a set with two copies stay in its log for some seconds, so that compacting it again at
 * once is useless.
 */
static bool was_compacted(struct lane *lane)
{
	uint64_t *last = &lane->lanes->compacted[lane->hash % LANES_MEASURED];
	uint64_t now = lane->hash + lane_env(lane)->now / 1000;

	if (lane->rule->copies < 2)
		return false;
	if (*last == now)
		return true;
	*last = now;
	return false;
}

/* Queues a COMPACT to run after the batch. */
static void compact(struct lane *lane)
{
	struct op *op;

	if (lane->compaction_requested || was_compacted(lane))
		return;
	lane->compaction_requested = true;
	op = xcalloc(1, sizeof(*op));
	*op = (struct op){
		.kind = OP_COMPACT, .key = lane->waiter.key, .done = lane_on_compaction
	};
	queue_add_first(&lane->lanes->queues, &lane->queue, op, true);
}

static unsigned share_of(const struct lane *lane)
{
	return crowd_share(&lane->lanes->crowds, lane->hash, lane_env(lane)->now);
}

static bool is_too_large(const struct lane *lane, size_t size)
{
	const struct collection_options *options = lane_env(lane)->options;

	/* Most bases are smaller than any limit. */
	if (size <= options->log_size && size <= options->base_size)
		return false;
	return size > crowd_limit(share_of(lane), lane_log_size(lane), lane->written);
}

bool lane_looks_often(struct lane *lane)
{
	return share_of(lane) > 1 && (random_next(&lane_env(lane)->random) & 3) == 0;
}

void lane_grew(struct lane *lane, size_t size)
{
	if (!is_too_large(lane, size))
		return;
	if (share_of(lane) > 1 && lane_env(lane)->later)
		lane->grown = true;
	else
		compact(lane);
}

void lane_request_compaction(struct lane *lane)
{
	if (share_of(lane) <= 2 || !lane_env(lane)->later)
		compact(lane);
}

static void lane_on_hold_over(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, hold));

	(void)r;
	lane_call(lane, &(struct call){ .verb = CALL_GET, .want = WANT_SIZE }, lane_on_hold_look);
}

static void hold(struct lane *lane)
{
	enum { FEW = 4 };
	struct env *env = lane_env(lane);

	lane->hold.done = lane_on_hold_over;
	env->later(env, &lane->hold,
		(share_of(lane) > FEW) + (unsigned)(random_next(&env->random) & 1));
}

/* Starts to hold if the base has grown too large. Returns whether it did. */
static bool hold_start(struct lane *lane)
{
	if (!lane->grown)
		return false;
	lane->running = true;
	if (lane->hold_until == 0)
		lane->hold_until = lane_env(lane)->now + HOLD_MAX;
	hold(lane);
	return true;
}

static void stop_holding(struct lane *lane)
{
	lane->grown = false;
	lane->hold_until = 0;
}

static void lane_on_hold_look(struct lane *lane, const struct result *r)
{
	struct env *env = lane_env(lane);

	if (r->status != RESULT_HIT || !is_too_large(lane, (size_t)r->size)) {
		stop_holding(lane);
		lane_next(lane);
	} else if (queue_prefer(&lane->lanes->queues, &lane->queue, OP_COMMIT)) {
		/* A merge that is queued to commit can do so now that the key is quiet. */
		run(lane);
	} else if (random_next(&env->random) % share_of(lane) == 0) {
		stop_holding(lane);
		compact(lane);
		run(lane);
	} else if (env->now >= lane->hold_until) {
		stop_holding(lane);
		lane_next(lane);
	} else {
		hold(lane);
	}
}

static void stop_collecting(struct lane *lane)
{
	lane->missing = 0;
	run(lane);
}

/*
 * The last of the expected operations starts the batch at once, so this timer matters only if
 * clients have disconnected or pause. It cannot be stopped: a timer that was started for an
 * earlier batch shortens the wait.
 */
static void lane_on_collect_timeout(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, collect));

	(void)r;
	lane->collect_runs = false;
	if (lane->missing)
		stop_collecting(lane);
	else if (!lane->running)
		lane_next(lane);
}

/*
 * Returns how many operations to expect: the clients of the last append, and of the operations
 * queued when it ends, are expected to send one each.
 */
static size_t expected(const struct lane *lane, size_t waiting)
{
	size_t n = lane->appended ? lane->appended + waiting
				  : crowd_appended(&lane->lanes->crowds, lane->hash);

	return n < COLLECT_MOST ? n : COLLECT_MOST;
}

/*
 * Starts to collect if more operations than the queued ones are expected. `first` is the next
 * operation, and `waiting` the number of queued ones. Returns whether it did.
 */
static bool collect_start(struct lane *lane, const struct op *first, size_t waiting)
{
	struct env *env = lane_env(lane);
	size_t wanted;

	if (first->kind != OP_APPEND || !env->later || share_of(lane) == 1)
		return false;
	wanted = expected(lane, waiting);
	lane->appended = 0;
	if (waiting >= wanted)
		return false;
	lane->missing = wanted - waiting;
	lane->running = true;
	if (!lane->collect_runs) {
		lane->collect.done = lane_on_collect_timeout;
		lane->collect_runs = true;
		env->later(env, &lane->collect, COLLECT_MS);
	}
	return true;
}

/* --- the queue --- */

/* Ends an operation whose client has disconnected, without an outcome that counts. */
static void drop(struct op *op)
{
	op->done(op,
		&(struct outcome){ .status = op_only_reads(op) ? OUTCOME_MISSING : OUTCOME_BUSY });
}

static void lane_settle(struct lane *lane, const struct result *r)
{
	(void)r;
	lane_next(lane);
}

/*
 * Sends the plain calls whose turn it is, and drops operations of clients that have
 * disconnected. Returns false if the lane pauses; then lane_next is called again.
 */
static bool settle(struct lane *lane)
{
	enum { STEPS = 16 };
	struct client_queue *client;

	/* `done` of a dropped operation may submit others, which must not start. */
	lane->running = true;
	while ((client = queue_turn(&lane->queue))) {
		bool is_call = STAILQ_FIRST(&client->ops)->kind == OP_CALL;
		struct op *op;
		if (!is_call && !queue_drops(client, lane_env(lane)->now))
			break;
		op = queue_take(client);
		queue_taken(&lane->lanes->queues, client);
		if (is_call)
			send_deferred(lane, op);
		else
			drop(op);
		if (lane_pauses(lane, STEPS, lane_settle))
			return false;
	}
	lane->running = false;
	return true;
}

void lane_next(struct lane *lane)
{
	const struct op *op;

	assert(STAILQ_EMPTY(&lane->batch));
	lane->running = false;
	if (!STAILQ_EMPTY(&lane->reads)) {
		start_reads(lane);
		return;
	}
	if (lane->queue.count > 0 && !settle(lane))
		return;
	op = queue_first(&lane->queue);
	if (op && (hold_start(lane) || collect_start(lane, op, lane->queue.count)))
		return;
	lane->appended = 0;
	if (op)
		run(lane);
	else if (!lane->looking && !lane->collect_runs && !lane->reads_behind)
		destroy(lane);
}

void lanes_submit(struct lanes *lanes, struct op *op)
{
	uint64_t hash = hash_key(op->key, lanes->env->seed);
	struct lane *lane = find(lanes, op->key, hash);

	if (!lane)
		lane = create(lanes, op->key, hash);
	if (lane->running && op->kind == OP_COMPACT && op->rounds) {
		/* A compaction is retried before later requests of its client. */
		queue_add_first(&lanes->queues, &lane->queue, op, false);
	} else if (lane->running) {
		queue_add(&lanes->queues, &lane->queue, op);
		if (lane->missing && --lane->missing == 0)
			stop_collecting(lane);
	} else if (hold_start(lane) || collect_start(lane, op, 1)) {
		queue_add(&lanes->queues, &lane->queue, op);
	} else {
		/* Most operations find their lane idle, and are the whole batch. */
		lane->appended = 0;
		lane->queue.rewrote = op_rewrites(op, lane->rule);
		STAILQ_INSERT_TAIL(&lane->batch, op, link);
		run_batch(lane);
	}
}

static struct op *defer(struct lanes *lanes, struct account *account, const struct call *call,
	struct waiter *waiter)
{
	size_t size = sizeof(struct queued_call) + call->key.n + call->value.n + call->line.n;
	struct queued_call *d = pool_get(lanes->env->pool, size);

	*d = (struct queued_call){ .op = { .kind = OP_CALL, .account = account },
		.call = *call,
		.waiter = waiter,
		.size = size };
	d->call.key.p = d->bytes;
	d->call.value.p = slice_write(d->bytes, call->key);
	d->call.line.p = slice_write(d->bytes + call->key.n, call->value);
	slice_write(d->bytes + call->key.n + call->value.n, call->line);
	return &d->op;
}

void lanes_call(struct lanes *lanes, struct account *account, const struct call *call,
	struct waiter *waiter)
{
	struct lane *lane = NULL;

	if (lanes->count && call->server == CALL_ANY_SERVER)
		lane = find(lanes, call->key, hash_key(call->key, lanes->env->seed));
	if (!lane || !lane->running) {
		lanes->env->call(lanes->env, call, waiter);
		return;
	}
	queue_add(&lanes->queues, &lane->queue, defer(lanes, account, call, waiter));
}

void lane_call(struct lane *lane, struct call *call, lane_step *step)
{
	struct env *env = lane_env(lane);

	call->key = lane->waiter.key;
	call->server = CALL_ANY_SERVER;
	lane->step = step;
	env->call(env, call, &lane->waiter);
}

static bool pays(const struct op *op)
{
	return op->account && !op->account->gone && op->kind != OP_READ;
}

void lane_charge(struct lane *lane, size_t bytes)
{
	const struct op *op;
	size_t count = 0;

	STAILQ_FOREACH(op, &lane->batch, link)
		count += pays(op);
	STAILQ_FOREACH(op, &lane->batch, link) {
		if (pays(op))
			op->account->rewritten += bytes / count;
	}
}

void lanes_charge(struct lanes *lanes, struct slice key, size_t bytes)
{
	struct lane *lane = find(lanes, key, hash_key(key, lanes->env->seed));

	if (lane)
		lane_charge(lane, bytes);
}

bool lane_is_over(const struct lane *lane, size_t steps)
{
	return env_is_over(lane_env(lane), steps);
}

/* Returns the account of the first operation. */
static struct account *first_account(const struct lane *lane)
{
	const struct op *op = lane_first(lane);

	return op ? op->account : NULL;
}

void lane_pause(struct lane *lane, lane_step *step)
{
	lane->step = step;
	lane_env(lane)->pause(lane_env(lane), &lane->waiter, first_account(lane));
}

static void charge_first(struct lane *lane, size_t bytes)
{
	struct account *account;

	if (bytes == lane->used)
		return;
	account = first_account(lane);
	if (account)
		account_use(account, bytes, lane->used);
	lane->used = bytes;
}

void lane_use(struct lane *lane, size_t bytes)
{
	charge_first(lane, lane->kept + bytes);
}

void lane_keep(struct lane *lane, size_t bytes)
{
	lane->kept = bytes;
	charge_first(lane, lane_first(lane) ? bytes : 0);
}

bool lane_pauses(struct lane *lane, size_t steps, lane_step *step)
{
	if (!lane_is_over(lane, steps))
		return false;
	lane_pause(lane, step);
	return true;
}

void lane_look_at_size(struct lane *lane)
{
	if (lane->looking)
		return;
	lane->looking = true;
	lane->look = (struct waiter){ lane_on_size, lane->waiter.key };
	env_get(lane_env(lane), WANT_SIZE, &lane->look);
}

void lane_read_behind(struct lane *lane, lane_step *step)
{
	assert(!lane->reads_behind);
	lane->reads_behind = true;
	lane->behind_read = step;
	lane->behind = (struct waiter){ lane_on_behind_read, lane->waiter.key };
	env_get(lane_env(lane), WANT_VALUE | WANT_CAS | WANT_TTL, &lane->behind);
}

void lane_forget_behind(struct lane *lane)
{
	lane->behind_read = NULL;
}

static void lane_discard_read(struct lane *lane, const struct result *r)
{
	(void)lane;
	(void)r;
}

void lane_read_along(struct lane *lane)
{
	/* An append to two copies ends after the read of one. */
	if (STAILQ_EMPTY(&lane->reads) || lane->rule->copies > 1)
		return;
	if (!lane->reads_behind)
		lane_read_behind(lane, lane_discard_read);
	lane->reads_along = lane->behind_read != NULL;
}

bool lane_await_behind(struct lane *lane, lane_step *step)
{
	if (!lane->reads_behind || !lane->behind_read)
		return false;
	lane->behind_read = step;
	return true;
}

struct op *lane_first(const struct lane *lane)
{
	return STAILQ_FIRST(&lane->batch);
}

/* Only for operations whose OUTCOME_MISSING means that the whole collection is missing. */
static bool shows_existence(const struct op *op, const struct outcome *outcome)
{
	if (outcome->status != OUTCOME_DONE && outcome->status != OUTCOME_MISSING)
		return false;
	return op->kind == OP_READ ||
		(op->kind == OP_LIST &&
			(op->list->verb == LIST_RANGE || op->list->verb == LIST_LENGTH));
}

static void count_read(struct lane *lane, const struct op *op, const struct outcome *outcome)
{
	struct env *env = lane->lanes->env;

	if (env->was_read && shows_existence(op, outcome) && !(op->account && op->account->gone))
		env->was_read(env, lane->rule, outcome->status == OUTCOME_DONE);
}

void lane_end_first(struct lane *lane, const struct outcome *outcome)
{
	struct op *op = lane_first(lane);

	charge_first(lane, 0);
	STAILQ_REMOVE_HEAD(&lane->batch, link);
	if (lane->kept && lane_first(lane))
		charge_first(lane, lane->kept);
	count_read(lane, op, outcome);
	op->done(op, outcome);
}

void lane_end_all(struct lane *lane, const struct outcome *outcome)
{
	while (!STAILQ_EMPTY(&lane->batch))
		lane_end_first(lane, outcome);
}

void lane_end(struct lane *lane, enum outcome_status status, const struct result *result)
{
	lane_end_all(lane, &(struct outcome){ .status = status, .result = result });
	lane_next(lane);
}

bool lane_may_retry(struct lane *lane)
{
	return ++lane->attempts <= LANE_ATTEMPTS;
}

bool lane_retry(struct lane *lane)
{
	if (lane_may_retry(lane))
		return true;
	lane_end(lane, OUTCOME_BUSY, NULL);
	return false;
}
