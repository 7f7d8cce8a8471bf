/*
 * Merges runs outside of the lane, so that commands are not delayed:
 *
 *     start_merge -> read indexes -> read tables as needed -> merge -> write a new run
 *           -> commit, as an operation of the lane -> delete the merged runs
 *
 * The work is done in slices, and the merge yields to other work between them.
 */
#include "collection/set/merge.h"

#include <stdlib.h>

#include "collection/set/cache.h"
#include "collection/set/fetch.h"
#include "collection/set/run_writer.h"
#include "collection/text/packed.h"
#include "collection/text/table_merge.h"
#include "util/alloc.h"
#include "util/check.h"
#include "util/pool.h"
#include "util/random.h"

enum { MARK_SIZE = sizeof(OPLOG_SET_MARK) - 1 };

enum {
	WRITES_AT_ONCE = 4, /* table writes in flight */
	/*
	 * Entries merged in one slice, plus SLICE_EACH_MS for each millisecond since
	 * the last slice.
	 */
	SLICE_LEAST = 1024,
	SLICE_EACH_MS = 2048,
	SLICE_MOST = 32 * 1024
};

/* An input: a run, which is one stream of the merge. */
struct merge_input {
	struct waiter waiter; /* waiter.key is the part that is read */
	struct merge *merge;
	struct oplog_run run;
	struct buf index, table_data, part_key;
	struct fences fences; /* for a run of one table, a single fence */
	struct table table;
	size_t next; /* number of the next table */
	bool *reused;
};

struct merge {
	LIST_ENTRY(merge) link; /* in lanes->merges */
	struct lanes *lanes;
	struct op op;            /* the COMMIT */
	struct op_queue waiting; /* COMPACT operations whose runs it merges: its end is theirs */
	struct op_queue later;   /* COMPACT operations that are retried when it ends */
	struct buf block;        /* the block of references at the start */
	/*
	 * Bytes at its start that the commit keeps; 0 for a set that is being loaded, whose
	 * block has only references.
	 */
	size_t kept;
	struct merge_input *inputs;
	size_t count;
	bool oldest; /* the oldest run is an input: removals can be dropped */
	int64_t now; /* Members that have expired by then become removals; 0: they stay. */
	struct table_merge streams;
	struct run_writer writer;
	struct buf replacement;
	struct waiter resume;
	size_t reading;      /* reads in flight */
	uint64_t last_slice; /* env.now */
	bool begun, yielding, abandoned;
	bool part_missing; /* a part of a run is missing */
	size_t key_size;
	char key[];
};

typedef void waiter_done(struct waiter *waiter, const struct result *r);

static waiter_done merge_on_index, merge_on_table, merge_on_resume;
static void merge_proceed(void *arg), commit_run(struct merge *m), abandon(struct merge *m);
static void merge_on_committed(struct op *op, const struct outcome *outcome);

/* --- the plan --- */

enum {
	/* All runs are merged if the newer ones have 1 / OLDEST_PART of the oldest one's bytes. */
	OLDEST_PART = 2,
	TIER = 4,        /* runs that make a merge; the factor between the sizes of two tiers */
	SMALLEST = 4096, /* bytes; smaller runs are of the lowest tier */
	WIDTH = 16       /* maximum runs of one merge */
};

static unsigned tier_of(const struct oplog_run *run)
{
	unsigned tier = 0;

	for (uint64_t bytes = run->bytes / SMALLEST; bytes >= TIER; bytes /= TIER)
		tier++;
	return tier;
}

bool merge_plan(const struct oplog_run *runs, size_t count, int64_t now, size_t *from, size_t *to)
{
	enum { TIERS = 16 };
	uint64_t newer = 0;
	bool spent = false;

	for (size_t i = 1; i < count; i++)
		newer += runs[i].bytes;
	for (size_t i = 0; i < count; i++)
		spent |= oplog_is_spent(&runs[i], now);
	*from = 0;
	*to = count < WIDTH ? count : WIDTH;
	if (spent)
		return true;
	*to = count;
	if (count < 2)
		return false;
	if (newer * OLDEST_PART >= runs[0].bytes && count <= WIDTH)
		return true;
	/*
	 * Find the lowest tier that, together with the tiers below it, has enough of
	 * the newest runs.
	 */
	for (unsigned tier = 0; tier < TIERS; tier++) {
		for (*from = count; *from > 1 && tier_of(&runs[*from - 1]) <= tier; --*from)
			;
		if (count - *from < TIER)
			continue;
		*to = count - *from > WIDTH ? *from + WIDTH : count;
		return true;
	}
	return false;
}

/* Parses the runs in `block`, starting at offset `from`. */
static size_t list_runs(struct slice block, size_t from, struct oplog_run runs[MERGE_RUNS_MAX],
	size_t ends[MERGE_RUNS_MAX])
{
	struct slice rest = slice_skip(block, from);
	size_t count = 0;

	while (count < MERGE_RUNS_MAX && oplog_next_run(&rest, &runs[count]))
		ends[count++] = block.n - rest.n;
	return count;
}

size_t merge_list(
	struct slice block, struct oplog_run runs[MERGE_RUNS_MAX], size_t ends[MERGE_RUNS_MAX])
{
	return list_runs(block, MARK_SIZE, runs, ends);
}

/* --- the merge --- */

static struct slice key_of(const struct merge *m)
{
	return slice_of(m->key, m->key_size);
}

static void read_part(struct merge_input *in, struct slice id, waiter_done *done)
{
	buf_consume(&in->part_key, buf_size(&in->part_key));
	buf_add_slice(&in->part_key, key_of(in->merge));
	BUF_ADD(&in->part_key, ".");
	buf_add_slice(&in->part_key, id);
	in->waiter = (struct waiter){ done, buf_slice(&in->part_key) };
	in->merge->reading++;
	env_get(in->merge->lanes->env, WANT_VALUE, &in->waiter);
}

/*
 * Reads the index of a run. A run of one table has none: its only fence is made from the
 * reference.
 */
static void take_input(struct merge *m, struct merge_input *in, struct slice *refs)
{
	in->merge = m;
	(void)oplog_next_run(refs, &in->run);
	if (in->run.indexed) {
		read_part(in, in->run.id, merge_on_index);
		return;
	}
	in->fences = (struct fences){ .list = xcalloc(1, sizeof(struct fence)), .count = 1 };
	*in->fences.list = (struct fence){
		.check = in->run.check,
		.bytes = (uint32_t)in->run.bytes,
		.entries = (uint32_t)in->run.entries,
		.removals = (uint32_t)in->run.removals,
		.dated = (uint32_t)in->run.dated,
		.mean_date = (uint32_t)in->run.mean,
		.first = SLICE(""),
	};
	memcpy(in->fences.list->id, in->run.id.p, OPLOG_ID);
	in->reused = xcalloc(1, sizeof(*in->reused));
}

static struct merge *find_merge(const struct lanes *lanes, struct slice key)
{
	struct merge *m;

	LIST_FOREACH(m, &lanes->merges, link) {
		if (slice_equal(key_of(m), key))
			break;
	}
	return m;
}

static struct merge *start_merge(struct lanes *lanes, struct slice key, struct slice block,
	size_t kept, size_t count, bool packs, int64_t exptime)
{
	struct merge *m = xcalloc(1, sizeof(*m) + key.n);
	struct slice refs;

	memcpy(m->key, key.p, key.n);
	m->key_size = key.n;
	m->lanes = lanes;
	LIST_INSERT_HEAD(&lanes->merges, m, link);
	lanes->merge_count++;
	STAILQ_INIT(&m->waiting);
	STAILQ_INIT(&m->later);
	m->resume.done = merge_on_resume;
	m->last_slice = lanes->env->now;
	/* The runs of a load have no removals. */
	m->now = kept ? env_server_time(lanes->env, key) : 0;
	m->kept = kept;
	m->oldest = kept == MARK_SIZE;
	m->count = count;
	buf_add_slice(&m->block, block);
	run_writer_init(&m->writer, lanes, key_of(m), exptime, merge_proceed, m);
	if (!packs)
		m->writer.pack_size = 0;
	table_merge_init(&m->streams, count);
	m->inputs = xcalloc(count, sizeof(*m->inputs));
	refs = slice_skip(buf_slice(&m->block), kept);
	for (size_t i = 0; i < count; i++)
		take_input(m, &m->inputs[i], &refs);
	if (!m->reading)
		merge_proceed(m);
	return m;
}

void merge_consider(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime)
{
	struct oplog_run runs[MERGE_RUNS_MAX];
	size_t ends[MERGE_RUNS_MAX], count = merge_list(block, runs, ends), from, to;

	if (!merge_plan(runs, count, env_server_time(lanes->env, key), &from, &to) ||
		lanes->merge_count >= lanes->env->options->merges || find_merge(lanes, key))
		return;
	start_merge(lanes, key, slice_of(block.p, ends[to - 1]), from ? ends[from - 1] : MARK_SIZE,
		to - from, true, exptime);
}

/*
 * The loaded references have no removals, so the position of their runs does not matter, not
 * even when the set is completed.
 */
void merge_consider_loaded(
	struct lanes *lanes, struct slice key, struct slice refs, bool wide, int64_t exptime)
{
	struct oplog_run runs[MERGE_RUNS_MAX];
	size_t ends[MERGE_RUNS_MAX], count = list_runs(refs, 0, runs, ends), from, to, begin;

	if (!merge_plan(runs, count, 0, &from, &to) ||
		lanes->merge_count >= lanes->env->options->merges || find_merge(lanes, key))
		return;
	begin = from ? ends[from - 1] : 0;
	start_merge(lanes, key, slice_of(refs.p + begin, ends[to - 1] - begin), 0, to - from, wide,
		exptime);
}

void merge_force(
	struct lanes *lanes, struct slice key, struct slice block, int64_t exptime, struct op *op)
{
	struct oplog_run runs[MERGE_RUNS_MAX];
	size_t ends[MERGE_RUNS_MAX], count = merge_list(block, runs, ends);
	struct merge *m = find_merge(lanes, key);

	if (!m && (count == 0 || (count == 1 && !runs[0].dated))) {
		op->done(op, &(struct outcome){ .status = OUTCOME_DONE });
		return;
	}
	/* A new merge calls back only after a call, so `op` can be queued after start_merge(). */
	if (!m)
		m = start_merge(lanes, key, slice_of(block.p, ends[count - 1]), MARK_SIZE, count,
			true, exptime);
	if (m->oldest &&
		slice_equal(buf_slice(&m->block), slice_of(block.p, count ? ends[count - 1] : 0)))
		STAILQ_INSERT_TAIL(&m->waiting, op, link);
	else
		STAILQ_INSERT_TAIL(&m->later, op, link);
}

static void set_data(struct buf *buf, struct slice data)
{
	buf_consume(buf, buf_size(buf));
	buf_add_slice(buf, data);
}

static void merge_on_index(struct waiter *waiter, const struct result *r)
{
	struct merge_input *in = (struct merge_input *)waiter;
	struct merge *m = in->merge;

	m->reading--;
	m->part_missing |= r->status == RESULT_MISS;
	if (r->status == RESULT_HIT)
		set_data(&in->index, r->value);
	if (r->status != RESULT_HIT || check_of(r->value) != in->run.check ||
		!fences_read(&in->fences, buf_slice(&in->index)) ||
		in->fences.count != in->run.tables)
		m->abandoned = true;
	else
		in->reused = xcalloc(in->fences.count, sizeof(*in->reused));
	merge_proceed(m);
}

/* The next table of an input is in table_data. */
static void take_table(struct merge *m, struct merge_input *in)
{
	in->next++;
	table_merge_feed(&m->streams, (size_t)(in - m->inputs), &in->table, slice_of("", 0));
}

/* Takes the table from the view if it is there: then it was already checked. */
static bool take_from_view(struct merge *m, struct merge_input *in)
{
	struct cache_entry *entry =
		cache_find(m->lanes->cache, key_of(m), cache_hash(m->lanes->cache, key_of(m)));
	struct slice data =
		entry ? set_view_table_data(&entry->view, &in->run, in->next) : slice_of("", 0);

	if (!data.n)
		return false;
	set_data(&in->table_data, data);
	return table_trust(&in->table, buf_slice(&in->table_data));
}

static void read_table(struct merge *m, struct merge_input *in)
{
	if (take_from_view(m, in))
		take_table(m, in);
	else
		read_part(in, slice_of(in->fences.list[in->next].id, OPLOG_ID), merge_on_table);
}

static void merge_on_table(struct waiter *waiter, const struct result *r)
{
	struct merge_input *in = (struct merge_input *)waiter;
	struct merge *m = in->merge;

	m->reading--;
	m->part_missing |= r->status == RESULT_MISS;
	if (r->status != RESULT_HIT || check_of(r->value) != in->fences.list[in->next].check ||
		!packed_open(&in->table, r->value, &in->table_data) ||
		!fences_hold(&in->fences, in->next, &in->table)) {
		m->abandoned = true;
	} else {
		take_table(m, in);
	}
	merge_proceed(m);
}

/* Reuses the next table unchanged if no other stream has members in its range. */
static bool reuse(struct merge *m, struct merge_input *in)
{
	const struct fence *fence = &in->fences.list[in->next];
	struct slice to = in->next + 1 < in->fences.count ? fence[1].first : slice_of(NULL, 0);

	if ((m->oldest && (fence->removals || (fence->dated && fence->first_date <= m->now))) ||
		!table_merge_alone(&m->streams, (size_t)(in - m->inputs), to) ||
		!run_writer_reuse(&m->writer, fence))
		return false;
	in->reused[in->next++] = true;
	return true;
}

/* Continues a dry stream. */
static void feed_input(struct merge *m, struct merge_input *in)
{
	if (in->next == in->fences.count)
		table_merge_end(&m->streams, (size_t)(in - m->inputs));
	else if (!reuse(m, in))
		read_table(m, in);
}

/*
 * The longer the event loop takes for a turn, the longer the slices, so that merging keeps up
 * with writes under any load.
 */
static size_t slice_size(struct merge *m)
{
	uint64_t now = m->lanes->env->now,
		 slice = SLICE_LEAST + (now - m->last_slice) * SLICE_EACH_MS;

	m->last_slice = now;
	return slice < SLICE_MOST ? (size_t)slice : SLICE_MOST;
}

/* Merges a slice. Returns false if it must wait for a read or a write, or is finished. */
static bool work(struct merge *m)
{
	size_t slice = slice_size(m);

	for (size_t n = 0; n < slice && m->writer.parts.pending < WRITES_AT_ONCE; n++) {
		const struct table_cursor *entry;
		bool gone;

		switch (table_merge_next(&m->streams)) {
		case MERGE_END:
			run_writer_finish(&m->writer);
			return false;
		case MERGE_DRY:
			feed_input(m, &m->inputs[m->streams.winner]);
			if (m->reading)
				return false;
			break;
		case MERGE_ENTRY:
			entry = table_merge_entry(&m->streams);
			gone = table_gone(entry, m->now);
			if (!gone || !m->oldest)
				run_writer_add(&m->writer, table_member(entry), gone,
					gone ? EXPIRY_NONE : table_date(entry->table, entry->at));
			break;
		}
	}
	return m->writer.parts.pending < WRITES_AT_ONCE;
}

/* Continues the merge with the next possible step. */
static void merge_proceed(void *arg)
{
	struct merge *m = arg;
	struct env *env = m->lanes->env;

	if (m->abandoned || m->writer.parts.failure.happened) {
		abandon(m);
		return;
	}
	if (m->reading || m->yielding)
		return;
	if (!m->begun) {
		m->begun = true;
		for (size_t i = 0; i < m->count; i++)
			read_table(m, &m->inputs[i]);
		if (m->reading)
			return;
	}
	while (!m->writer.finished && m->writer.parts.pending < WRITES_AT_ONCE && work(m)) {
		if (env->later) {
			m->yielding = true;
			env->later(env, &m->resume, 0);
			return;
		}
	}
	if (m->writer.finished && m->writer.parts.pending == 0)
		commit_run(m);
}

static void merge_on_resume(struct waiter *waiter, const struct result *r)
{
	struct merge *m = (struct merge *)((char *)waiter - offsetof(struct merge, resume));

	(void)r;
	m->yielding = false;
	merge_proceed(m);
}

static void free_input(struct merge_input *in)
{
	fences_free(&in->fences);
	buf_free(&in->index);
	buf_free(&in->table_data);
	buf_free(&in->part_key);
	free(in->reused);
}

struct retry {
	struct waiter waiter;
	struct lanes *lanes;
	struct op *op;
};

static void merge_on_pause_over(struct waiter *waiter, const struct result *r)
{
	struct retry retry = *(struct retry *)waiter;

	(void)r;
	pool_put(retry.lanes->env->pool, waiter, sizeof(retry));
	retry.lanes->background--;
	lanes_submit(retry.lanes, retry.op);
}

bool merge_again(struct lanes *lanes, struct op *op, bool lost)
{
	enum { DOUBLED_MAX = 6 };
	struct env *env = lanes->env;
	struct retry *retry;

	if (op->rounds++ == LANE_ROUNDS)
		return false;
	if (!lost || !env->later) {
		lanes_submit(lanes, op);
		return true;
	}
	retry = pool_get(env->pool, sizeof(*retry));
	*retry = (struct retry){ { .done = merge_on_pause_over }, lanes, op };
	lanes->background++;
	env->later(env, &retry->waiter,
		(unsigned)(random_next(&env->random) %
			(1u << (op->rounds < DOUBLED_MAX ? op->rounds : DOUBLED_MAX))));
	return true;
}

static void retry_or_end(struct lanes *lanes, struct op_queue *ops, enum outcome_status status)
{
	struct op *op;

	while ((op = STAILQ_FIRST(ops))) {
		STAILQ_REMOVE_HEAD(ops, link);
		if (!merge_again(lanes, op, status != OUTCOME_DONE))
			op->done(op, &(struct outcome){ .status = status });
	}
}

static void end_merge(struct merge *m, enum outcome_status status)
{
	struct op_queue waiting = STAILQ_HEAD_INITIALIZER(waiting),
			later = STAILQ_HEAD_INITIALIZER(later);
	struct lanes *lanes = m->lanes;
	bool all = m->oldest;
	struct op *op;

	STAILQ_CONCAT(&waiting, &m->waiting);
	STAILQ_CONCAT(&later, &m->later);
	LIST_REMOVE(m, link);
	lanes->merge_count--;
	for (size_t i = 0; i < m->count; i++)
		free_input(&m->inputs[i]);
	free(m->inputs);
	table_merge_free(&m->streams);
	run_writer_fini(&m->writer);
	buf_free(&m->block);
	buf_free(&m->replacement);
	free(m);
	while (status == OUTCOME_DONE && all && (op = STAILQ_FIRST(&waiting))) {
		STAILQ_REMOVE_HEAD(&waiting, link);
		op->done(op, &(struct outcome){ .status = OUTCOME_DONE });
	}
	/* Another proxy has merged their runs, or they have newer runs. */
	retry_or_end(lanes, &waiting, status);
	retry_or_end(lanes, &later, status);
}

/*
 * The mark is kept even without runs: other runs may have been added after it. It becomes that
 * of form 3 if the new run needs that.
 */
static void commit_run(struct merge *m)
{
	bool wide = m->writer.parts.wide ||
		slice_starts(buf_slice(&m->block), SLICE(OPLOG_WIDE_SET_MARK));

	if (m->kept) {
		oplog_add_mark(&m->replacement, false, wide);
		buf_add(&m->replacement, buf_slice(&m->block).p + MARK_SIZE, m->kept - MARK_SIZE);
	}
	run_writer_ref(&m->writer, &m->replacement);
	m->op = (struct op){
		.kind = OP_COMMIT,
		.key = key_of(m),
		.prefix = buf_slice(&m->block),
		.log = buf_slice(&m->replacement),
		.anywhere = m->kept == 0,
		.done = merge_on_committed,
	};
	lanes_submit(m->lanes, &m->op);
}

/* Deletes the parts of the merged runs except for the tables that the new run reuses. */
static void forget_inputs(const struct merge *m)
{
	struct buf ids = BUF_EMPTY;

	for (size_t i = 0; i < m->count; i++) {
		const struct merge_input *in = &m->inputs[i];
		if (in->run.indexed)
			buf_add_word(&ids, in->run.id);
		for (size_t t = 0; t < in->fences.count; t++) {
			if (!in->reused[t])
				buf_add_word(&ids, slice_of(in->fences.list[t].id, OPLOG_ID));
		}
	}
	parts_forget(m->lanes, key_of(m), buf_slice(&ids));
	buf_free(&ids);
}

static void merge_on_considered(struct op *op, const struct outcome *outcome)
{
	(void)outcome;
	free(op);
}

/* Runs that were added meanwhile may need a merge too: a COMPACT reads the base and decides. */
static void consider_again(struct lanes *lanes, struct slice key)
{
	struct op *op = xcalloc(1, sizeof(*op) + key.n);

	memcpy(op + 1, key.p, key.n);
	*op = (struct op){
		.kind = OP_COMPACT,
		.merges_only = true,
		.key = slice_of((char *)(op + 1), key.n),
		.done = merge_on_considered,
	};
	lanes_submit(lanes, op);
}

static void merge_on_committed(struct op *op, const struct outcome *outcome)
{
	struct merge *m = (struct merge *)((char *)op - offsetof(struct merge, op));

	if (outcome->status == OUTCOME_DONE) {
		m->lanes->stats.merges++;
		part_writer_follow(&m->writer.parts, outcome->result->ttl);
		forget_inputs(m);
	} else if (outcome->status != OUTCOME_FAILED || result_stored_nothing(outcome->result)) {
		part_writer_forget(&m->writer.parts);
	}
	/*
	 * A server that refused the commit would probably refuse it again. The next compaction
	 * considers a merge anyway.
	 */
	if (outcome->status != OUTCOME_FAILED)
		consider_again(m->lanes, key_of(m));
	/* A set that is missing now existed when the merge was requested. */
	end_merge(m, outcome->status == OUTCOME_DONE ? OUTCOME_DONE : OUTCOME_BUSY);
}

/* Abandons the merge once no callback is pending. No base refers to the new parts. */
static void abandon(struct merge *m)
{
	m->abandoned = true;
	if (m->writer.parts.pending || m->reading || m->yielding)
		return;
	part_writer_forget(&m->writer.parts);
	if (m->part_missing)
		fetch_suspect(m->lanes, key_of(m));
	end_merge(m, OUTCOME_BUSY);
}
