#include "collection/lanes.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/encoding.h"
#include "collection/gather.h"
#include "collection/lane.h"
#include "collection/segments.h"
#include "util/alloc.h"
#include "util/hash.h"

enum { BUCKETS_MIN = 64 };

/* A plain call that waits: its slices are copied, since the caller's are gone by then. */
struct deferred {
	struct op op;
	struct call call;
	struct waiter *waiter;
	size_t size;
	char bytes[];
};

struct lanes *lanes_create(struct host *host)
{
	struct lanes *lanes = xcalloc(1, sizeof(*lanes));

	lanes->host = host;
	lanes->cache = cache_create(host->options->cache, host->seed);
	lanes->bucket_count = BUCKETS_MIN;
	lanes->buckets = xcalloc(BUCKETS_MIN, sizeof(struct lane *));
	return lanes;
}

void lanes_destroy(struct lanes *lanes)
{
	if (!lanes)
		return;
	assert(lanes_idle(lanes));
	cache_destroy(lanes->cache);
	shelf_free(&lanes->shelf);
	free(lanes->buckets);
	free(lanes);
}

void lanes_touched(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime)
{
	struct oplog_base base;

	if (value.n && memchr("+-@", value.p[0], 3) && oplog_split(value, &base) && base.ref_count)
		segments_touch_all(lanes, key, base.refs, exptime);
}

bool lanes_idle(const struct lanes *lanes)
{
	return lanes->count == 0 && lanes->merge_count == 0 && lanes->background == 0;
}

const struct lanes_stats *lanes_statistics(const struct lanes *lanes)
{
	return &lanes->stats;
}

size_t lanes_cache_memory(const struct lanes *lanes)
{
	return cache_memory(lanes->cache);
}

struct host *lane_host(const struct lane *lane)
{
	return lane->lanes->host;
}

struct lane_rest *lane_rest(struct lane *lane)
{
	if (!lane->rest) {
		lane->rest = pool_get(lane_host(lane)->pool, sizeof(*lane->rest));
		memset(lane->rest, 0, sizeof(*lane->rest));
	}
	return lane->rest;
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

static void answered(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, waiter));

	lane->step(lane, r);
}

static void looked(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, look));
	struct oplog_base base;

	lane->looking = false;
	lane_rest(lane)->looked = *r;
	if (r->status == RESULT_HIT && r->value.n && oplog_split(r->value, &base))
		buf_add_slice(&lane->looked_refs, base.refs);
	if (r->status == RESULT_HIT)
		lane_grew(lane, (size_t)r->size);
	if (!lane->running)
		lane_next(lane);
}

static struct lane *create(struct lanes *lanes, struct slice key, uint64_t hash)
{
	struct lane *lane = pool_get(lanes->host->pool, sizeof(*lane) + key.n);
	struct lane **bucket;

	if (lanes->count >= lanes->bucket_count)
		grow(lanes);
	bucket = bucket_of(lanes, hash);
	memset(lane, 0, sizeof(*lane));
	lane->next = *bucket;
	lane->hash = hash;
	lane->lanes = lanes;
	memcpy(lane->key, key.p, key.n);
	lane->waiter = (struct waiter){ answered, slice_of(lane->key, key.n) };
	lane->look = (struct waiter){ looked, lane->waiter.key };
	STAILQ_INIT(&lane->waiting);
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
	buf_free(&lane->looked_refs);
	if (lane->rest) {
		buf_free(&lane->rest->commit.value);
		pool_put(lanes->host->pool, lane->rest, sizeof(*lane->rest));
	}
	pool_put(lanes->host->pool, lane, sizeof(*lane) + lane->waiter.key.n);
}

/* Plain calls on one key follow one another on one connection, so nothing behind one has to wait for its reply. */
static void send_deferred(struct lane *lane, struct op *op)
{
	struct deferred *d = (struct deferred *)((char *)op - offsetof(struct deferred, op));
	struct host *host = lane_host(lane);

	host->call(host, &d->call, d->waiter);
	pool_put(host->pool, d, d->size);
}

/* Reads are answered from one read, pops are one rewrite. */
static enum { LIST_ALONE, LIST_READS, LIST_POPS } list_kind(const struct op *op)
{
	switch (op->list->verb) {
	case LIST_RANGE:
	case LIST_LENGTH:
	case LIST_POSITION:
		return LIST_READS;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		return LIST_POPS;
	default:
		return LIST_ALONE;
	}
}

static bool mergeable(const struct op *first, const struct op *op, size_t bytes)
{
	if (op->kind != first->kind)
		return false;
	if (op->kind == OP_APPEND)
		return op->front == first->front && op->push == first->push && bytes + op->log.n <= LANE_MERGE_MAX;
	if (op->kind == OP_LIST)
		return list_kind(op) == list_kind(first) && list_kind(op) != LIST_ALONE;
	return op->kind == OP_READ || op->kind == OP_COUNT;
}

/* NULL for oplog. */
static const struct encoding *encoding_of(const struct lane *lane)
{
	const struct rules *rules = lane_host(lane)->rules;

	return rules->collection_count ? encoding_get(rules_collection(rules, lane->waiter.key)->encoding) : NULL;
}

/* Takes what is carried out next: in oplog appends with the reads behind them, else neighbours of one kind. */
static void take_batch(struct lane *lane)
{
	struct op *first = STAILQ_FIRST(&lane->waiting), *op = first;
	size_t bytes = 0;

	if ((first->kind == OP_APPEND || first->kind == OP_READ) && !encoding_of(lane)) {
		gather(&lane->waiting, LANE_MERGE_MAX, &lane->batch, &lane->reads);
		if (STAILQ_EMPTY(&lane->batch))
			STAILQ_CONCAT(&lane->batch, &lane->reads);
		return;
	}
	do {
		bytes += op->log.n;
		STAILQ_REMOVE_HEAD(&lane->waiting, link);
		STAILQ_INSERT_TAIL(&lane->batch, op, link);
		op = STAILQ_FIRST(&lane->waiting);
	} while (op && mergeable(first, op, bytes));
}

static void start(struct lane *lane, enum op_kind kind)
{
	static void (*const machines[])(struct lane *) = {
		[OP_APPEND] = append_start,
		[OP_READ] = fetch_start,
		[OP_REPLACE] = replace_start,
		[OP_COUNT] = count_start,
		[OP_POP] = fetch_start,
		[OP_COMPACT] = compact_start,
		[OP_COMMIT] = commit_start,
		[OP_LIST] = list_start,
		[OP_SWEEP] = sweep_start,
	};

	const struct encoding *encoding = kind == OP_COUNT ? NULL : encoding_of(lane);

	lane->running = true;
	lane->attempts = 0;
	if (encoding)
		coded_start(lane, encoding, kind);
	else
		machines[kind](lane);
}

void lane_run(struct lane *lane)
{
	take_batch(lane);
	lane->created = false;
	start(lane, lane_first(lane)->kind);
}

/* The reads behind appends. Those that came before the append that made the collection find nothing. */
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

void lane_next(struct lane *lane)
{
	struct op *op;

	assert(STAILQ_EMPTY(&lane->batch));
	lane->running = false;
	if (!STAILQ_EMPTY(&lane->reads)) {
		start_reads(lane);
		return;
	}
	while ((op = STAILQ_FIRST(&lane->waiting)) && op->kind == OP_CALL) {
		STAILQ_REMOVE_HEAD(&lane->waiting, link);
		send_deferred(lane, op);
	}
	if (op && hold_start(lane))
		return;
	if (op)
		lane_run(lane);
	else if (!lane->looking)
		destroy(lane);
}

void lanes_submit(struct lanes *lanes, struct op *op)
{
	uint64_t hash = hash_slice(op->key, lanes->host->seed);
	struct lane *lane = find(lanes, op->key, hash);

	if (!lane)
		lane = create(lanes, op->key, hash);
	STAILQ_INSERT_TAIL(&lane->waiting, op, link);
	if (!lane->running)
		lane_next(lane);
}

static struct slice copy_to(char **at, struct slice s)
{
	struct slice copy = slice_of(*at, s.n);

	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

static struct op *defer(struct lanes *lanes, const struct call *call, struct waiter *waiter)
{
	size_t size = sizeof(struct deferred) + call->key.n + call->value.n + call->line.n;
	struct deferred *d = pool_get(lanes->host->pool, size);
	char *at = d->bytes;

	*d = (struct deferred){ .op = { .kind = OP_CALL }, .call = *call, .waiter = waiter, .size = size };
	d->call.key = copy_to(&at, call->key);
	d->call.value = copy_to(&at, call->value);
	d->call.line = copy_to(&at, call->line);
	return &d->op;
}

void lanes_call(struct lanes *lanes, const struct call *call, struct waiter *waiter)
{
	struct lane *lane = NULL;
	struct op *op;

	if (lanes->count && call->server == CALL_ANY_SERVER)
		lane = find(lanes, call->key, hash_slice(call->key, lanes->host->seed));
	if (!lane || !lane->running) {
		lanes->host->call(lanes->host, call, waiter);
		return;
	}
	op = defer(lanes, call, waiter);
	STAILQ_INSERT_TAIL(&lane->waiting, op, link);
}

void lane_call(struct lane *lane, struct call call, lane_step *step)
{
	struct host *host = lane_host(lane);

	call.key = lane->waiter.key;
	call.server = CALL_ANY_SERVER;
	lane->step = step;
	host->call(host, &call, &lane->waiter);
}

bool lane_look(struct lane *lane, unsigned want)
{
	struct host *host = lane_host(lane);

	if (lane->looking)
		return false;
	lane->looking = true;
	buf_consume(&lane->looked_refs, buf_size(&lane->looked_refs));
	host->call(host,
		&(struct call){ .verb = CALL_GET, .want = want, .server = CALL_ANY_SERVER, .key = lane->waiter.key },
		&lane->look);
	return true;
}

void lane_note_broken(struct lane_broken *broken, const struct result *base)
{
	*broken = (struct lane_broken){ true, base->cas, base->connection };
}

bool lane_is_broken(const struct lane_broken *broken, const struct result *base)
{
	return broken->known && broken->cas == base->cas && broken->connection == base->connection;
}

void lane_expire_base(struct lane *lane, const struct result *base, lane_step *step)
{
	struct call call = {
		.verb = CALL_CAS, .value = SLICE(""), .exptime = -1, .number = base->cas, .connection = base->connection
	};

	lane_call(lane, call, step);
}

static void tended(struct op *op, const struct outcome *outcome)
{
	(void)outcome;
	free(op);
}

void lane_compact(struct lane *lane)
{
	struct op *op;

	if (lane->tending)
		return;
	lane->tending = true;
	op = xcalloc(1, sizeof(*op));
	*op = (struct op){ .kind = OP_COMPACT, .key = lane->waiter.key, .done = tended };
	STAILQ_INSERT_HEAD(&lane->waiting, op, link);
}

size_t lane_log_size(const struct lane *lane)
{
	const struct collection_options *options = lane_host(lane)->options;
	const struct rules *rules = lane_host(lane)->rules;
	const struct collection_rule *rule = rules_collection(rules, lane->waiter.key);
	bool set = !lane->pushes && rule->type == COLLECTION_SET && rule->encoding == ENCODING_OPLOG;

	return set ? options->log_size : options->base_size;
}

enum outcome_status lane_unreadable(struct lane *lane, enum oplog_form form)
{
	if (form == OPLOG_NEWER)
		return OUTCOME_NEWER;
	if (form == OPLOG_OUTDATED)
		return OUTCOME_MISSING;
	lane->lanes->stats.corrupt_values++;
	return OUTCOME_CORRUPT;
}

void lane_end_first(struct lane *lane, const struct outcome *outcome)
{
	struct op *op = STAILQ_FIRST(&lane->batch);

	STAILQ_REMOVE_HEAD(&lane->batch, link);
	op->done(op, outcome);
}

void lane_end_all(struct lane *lane, const struct outcome *outcome)
{
	while (!STAILQ_EMPTY(&lane->batch))
		lane_end_first(lane, outcome);
}

void lane_finish(struct lane *lane, enum outcome_status status)
{
	lane_end_all(lane, &(struct outcome){ .status = status });
	lane_next(lane);
}

void lane_finish_failed(struct lane *lane, const struct result *r)
{
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_FAILED, .result = r });
	lane_next(lane);
}

bool lane_retry(struct lane *lane)
{
	if (++lane->attempts <= LANE_ATTEMPTS)
		return true;
	lane_finish(lane, OUTCOME_BUSY);
	return false;
}
