/*
 * evtop: the most frequent types of the last buckets.
 *
 *     read the set of types of each bucket -> collect the types
 *         -> read their counters in all buckets -> reply the n types with the largest sums
 *
 * A type is counted in each bucket, even if only one of the sets has it.
 */
#include <stdlib.h>

#include "collection/lane/lanes.h"
#include "collection/set_request.h"
#include "collection/text/fold.h"
#include "collection/text/table.h"
#include "command/event.h"
#include "command/event_counters.h"
#include "command/event_types.h"
#include "command/op_task.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/alloc.h"
#include "util/num.h"

/*
 * Maximum numbers of buckets, of types in the reply, and of types in one bucket. All counters are
 * at most TIME_BUCKET_RANGE_MAX.
 */
enum { BUCKETS_MAX = 200, TOP_MAX = 1000, TYPES_MAX = 5000 };

enum { SLOT = 8 /* bytes of a slot of a fold */ };

static const char many_types[] =
	"CLIENT_ERROR too many types; use a longer prefix or fewer buckets";

struct rank {
	uint64_t count;
	struct slice type;
};

struct top_task {
	struct task task;
	const struct event_rule *rule;
	struct slice prefix, bound; /* Of the types; the bound of their range. */
	struct time_bucket_range range;
	int64_t bucket; /* The next one whose set is read. */
	struct op op;
	struct set_request read;
	struct slice rest; /* The types that were read and not added yet. */
	/* All types; the fold borrows from `names`. */
	struct fold found;
	struct buf names;
	struct counted_type *types; /* NULL until all are known. */
	struct counters counters;
	size_t at;         /* The next type of a step. */
	struct rank *best; /* A heap with the least on top; at the end sorted. */
	size_t best_count, most;
	size_t used;          /* Bytes that are counted. */
	struct waiter waiter; /* For pauses. */
	char bytes[];         /* The prefix, the bound, and the key of a set. */
};

typedef void top_step(struct waiter *waiter, const struct result *r);

static struct top_task *top_of(struct waiter *waiter)
{
	return (struct top_task *)((char *)waiter - offsetof(struct top_task, waiter));
}

static bool top_pauses(struct top_task *top, size_t steps, top_step *next)
{
	top->waiter.done = next;
	return task_pauses(&top->task, steps, &top->waiter);
}

static size_t buckets_of(const struct top_task *top)
{
	return counters_of(&top->range);
}

/* Counts the memory that the task has now. */
static void count_memory(struct top_task *top)
{
	size_t used = top->names.cap + top->found.member_capacity * sizeof(struct fold_member) +
		(top->found.slot_count + top->found.old_count) * SLOT +
		(top->types ? top->found.member_count * sizeof(*top->types) : 0) +
		(top->best ? top->most * sizeof(*top->best) : 0);

	task_use(&top->task, used, top->used);
	top->used = used;
}

static void end_top(struct top_task *top)
{
	fold_free(&top->found);
	buf_free(&top->names);
	free(top->types);
	free(top->best);
	task_use(&top->task, 0, top->used);
	task_say_end(&top->task);
}

/* --- the reply --- */

static void event_top_say(struct waiter *waiter, const struct result *result)
{
	enum { STEPS = 4 /* of a line */ };
	struct top_task *top = top_of(waiter);

	(void)result;
	while (top->at < top->best_count && !task_is_full(&top->task)) {
		const struct rank *rank = &top->best[top->at++];
		char text[KEY_MAX + 1 + NUM_U64_MAX], *at = slice_write(text, rank->type);
		struct reply r = reply_word(WORD_COUNT);
		*at++ = ' ';
		at += num_format_u64(at, rank->count);
		r.bytes = slice_of(text, (size_t)(at - text));
		r.more = true;
		task_say(&top->task, &r);
		if (top_pauses(top, STEPS, event_top_say))
			return;
	}
	end_top(top);
}

/* --- the most frequent types --- */

/* Returns whether `a` precedes `b` in the reply. */
static bool is_before(const struct rank *a, const struct rank *b)
{
	return a->count != b->count ? a->count > b->count : member_compare(a->type, b->type) < 0;
}

/* Puts a rank into the heap of `n` ranks in the place of the top, and restores the heap. */
static void sift(struct rank *heap, size_t n, struct rank rank)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < n) {
		child += child + 1 < n && is_before(&heap[child], &heap[child + 1]);
		if (is_before(&heap[child], &rank))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = rank;
}

/* Adds a rank to the heap, from which the last one goes if it is full. */
static void offer(struct top_task *top, struct rank rank)
{
	size_t at = top->best_count, parent;

	if (top->best_count == top->most) {
		if (is_before(&rank, top->best))
			sift(top->best, top->most, rank);
		return;
	}
	top->best_count++;
	for (; at && is_before(&top->best[parent = (at - 1) / 2], &rank); at = parent)
		top->best[at] = top->best[parent];
	top->best[at] = rank;
}

/* Sorts the heap, of at most TOP_MAX ranks. */
static void sort_best(struct top_task *top)
{
	for (size_t n = top->best_count; n > 1; n--) {
		struct rank last = top->best[n - 1];
		top->best[n - 1] = top->best[0];
		sift(top->best, n - 1, last);
	}
}

static uint64_t sum_of(const struct top_task *top, size_t type)
{
	const uint64_t *values = top->counters.values + type * buckets_of(top);
	uint64_t sum = 0;

	for (size_t i = 0; i < buckets_of(top); i++)
		sum = sum + values[i] < sum ? UINT64_MAX : sum + values[i];
	return sum;
}

static void event_top_rank(struct waiter *waiter, const struct result *result)
{
	struct top_task *top = top_of(waiter);

	(void)result;
	while (top->at < top->found.member_count) {
		const struct rank rank = { sum_of(top, top->at), top->types[top->at].type };
		top->at++;
		if (rank.count)
			offer(top, rank);
		if (top_pauses(top, 4 + buckets_of(top) / 16, event_top_rank))
			return;
	}
	counters_free(&top->counters);
	sort_best(top);
	top->at = 0;
	event_top_say(waiter, NULL);
}

static void event_top_on_counters(struct counters *counters)
{
	struct top_task *top =
		(struct top_task *)((char *)counters - offsetof(struct top_task, counters));

	if (task_has_failed(&top->task)) {
		counters_free(counters);
		end_top(top);
		return;
	}
	top->best = xmalloc(top->most * sizeof(*top->best));
	count_memory(top);
	top->at = 0;
	event_top_rank(&top->waiter, NULL);
}

/* --- the types --- */

/* Lists all types, whose names do not move any more. */
static void event_top_list(struct waiter *waiter, const struct result *result)
{
	struct top_task *top = top_of(waiter);

	(void)result;
	while (top->at < top->found.member_count) {
		const struct fold_member *m = &top->found.members[top->at];
		top->types[top->at++] =
			(struct counted_type){ slice_of(m->p, m->n), top->rule, top->range };
		if (top_pauses(top, 1, event_top_list))
			return;
	}
	counters_read_types(&top->counters, &top->task, top->types, top->found.member_count,
		event_top_on_counters);
}

static void read_bucket(struct top_task *top);

static void read_next_bucket(struct top_task *top)
{
	set_request_free(&top->read);
	count_memory(top);
	if (task_has_failed(&top->task) || task_is_full(&top->task)) {
		end_top(top);
	} else if (top->bucket <= top->range.last) {
		read_bucket(top);
	} else if (top->found.member_count == 0) {
		end_top(top);
	} else {
		top->types = xmalloc(top->found.member_count * sizeof(*top->types));
		count_memory(top);
		top->at = 0;
		event_top_list(&top->waiter, NULL);
	}
}

static void add_type(struct top_task *top, struct slice type)
{
	const char *names = buf_slice(&top->names).p;
	char *at;

	if (fold_contains(&top->found, type))
		return;
	at = buf_reserve(&top->names, type.n);
	if (top->found.member_count && buf_slice(&top->names).p != names)
		fold_rebase(&top->found, names, buf_slice(&top->names).p);
	memcpy(at, type.p, type.n);
	buf_commit(&top->names, type.n);
	fold_add(&top->found, slice_of(at, type.n));
}

static void event_top_add(struct waiter *waiter, const struct result *result)
{
	enum { STEPS = 4 };
	struct top_task *top = top_of(waiter);
	struct slice type;

	(void)result;
	while ((type = slice_token(&top->rest)).n) {
		/* The end of the range is not exact. */
		if (slice_starts(type, top->prefix))
			add_type(top, type);
		if (top->found.member_count * buckets_of(top) > TIME_BUCKET_RANGE_MAX) {
			task_note(&top->task, many_types);
			break;
		}
		if (top_pauses(top, STEPS, event_top_add))
			return;
	}
	read_next_bucket(top);
}

static void event_top_on_read(struct op *op, const struct outcome *outcome)
{
	struct top_task *top = (struct top_task *)((char *)op - offsetof(struct top_task, op));
	const struct set_request *read = &top->read;

	top->rest = slice_of("", 0);
	if (outcome->status == OUTCOME_DONE) {
		top->rest = read->shared ? buf_slice(&read->shared->text) : buf_slice(&read->text);
		if (read->more)
			task_note(&top->task, many_types);
	} else if (outcome->status != OUTCOME_MISSING) {
		task_note_outcome(&top->task, outcome);
	}
	if (task_has_failed(&top->task))
		read_next_bucket(top);
	else
		event_top_add(&top->waiter, NULL);
}

/* Reads the types of a bucket that begin with the prefix. */
static void read_bucket(struct top_task *top)
{
	char name[TIME_BUCKET_NAME_MAX], *key = top->bytes + 2 * top->prefix.n, *end;
	size_t n = time_bucket_name(top->rule->bucket, top->bucket++, name);

	end = event_types_write_key(top->rule, slice_of(name, n), key);
	set_request_init(&top->read);
	top->read.verb = SET_RANGE;
	top->read.count = TYPES_MAX;
	top->read.range.from = top->prefix;
	top->read.range.to = top->bound;
	top->read.range.has_to = top->bound.n > 0;
	top->op = (struct op){
		.kind = OP_READ,
		.key = slice_of(key, (size_t)(end - key)),
		.set = &top->read,
		.done = event_top_on_read,
	};
	task_owns(&top->task, &top->op);
	lanes_submit(top->task.host->lanes, &top->op);
}

/* --- the start --- */

static void start_top(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule, struct slice prefix, uint64_t most, int64_t buckets)
{
	struct top_task *top = task_new(
		host, request, owner, sizeof(*top) + 2 * prefix.n + event_types_key_size(rule));
	int64_t now = time_bucket_of(rule->bucket, host->env.unix_time);
	char *at = top->bytes;

	memset(&top->rule, 0, sizeof(*top) - offsetof(struct top_task, rule));
	top->rule = rule;
	top->prefix = task_keys(&top->task, task_keep(&at, prefix), 1);
	top->bound = slice_of(at, (size_t)(set_range_bound(prefix, at) - at));
	top->most = (size_t)most;
	top->range.last = now;
	top->range.first = now >= buckets ? now - buckets + 1 : 0;
	top->bucket = top->range.first;
	top->found.seed = host->env.seed;
	read_bucket(top);
}

const char *event_top_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, most = slice_token(&rest), buckets = slice_token(&rest),
		     prefix = request->key;
	uint64_t n, count = 1;

	/* No word is empty. */
	if (slice_equal(prefix, SLICE("*"))) {
		prefix = slice_of("", 0);
		rule = rules_event(host->env.rules, prefix);
	}
	if (most.n == 0 || slice_token(&rest).n)
		return command_usage(request->command->id);
	if (!num_parse_u64(most, &n) || n == 0 || n > TOP_MAX)
		return "CLIENT_ERROR invalid count";
	if (buckets.n && (!num_parse_u64(buckets, &count) || count == 0))
		return "CLIENT_ERROR bad bucket";
	if (count > BUCKETS_MAX)
		return "CLIENT_ERROR too many buckets";
	if (!rule->types || event_types_key_size(rule) > COLLECTION_KEY_MAX)
		return "CLIENT_ERROR no rule keeps the types of this prefix";
	start_top(host, request, owner, rule, prefix, n, (int64_t)count);
	return NULL;
}
