/*
 * Merging segments, in the background and outside of the lane, so that no command waits for it:
 *
 *     read one segment after the other -> fold deltas, filter clean ones -> write new segments -> commit, in the lane
 *
 * What is read is worked on in slices, between which others have their turn. Merging is tiered: deltas are merged with deltas of
 * their size, and all of them with the clean segments once they make up a quarter of those, so that what is written over and
 * over stays within a small multiple of what was added.
 */
#include <stdlib.h>

#include "collection/text/fold.h"
#include "collection/lane.h"
#include "collection/segments.h"
#include "util/alloc.h"

enum {
	GROUPS_MAX = 512,
	DELTA_PART = 4,         /* all is merged when the deltas are this part of it */
	DELTAS_FEW = 4,         /* and not before there are so many, or so much: */
	DELTA_KB = 64,          /* KB */
	DELTAS_MANY = 8,        /* deltas are merged among themselves when there are so many */
	WRITES_AT_ONCE = 4,     /* segments written ahead */
	SLICE_BYTES = 16 * 1024 /* of segments that are worked on in one go */
};

struct merge {
	struct merge *next; /* of the lanes' list */
	struct lanes *lanes;
	struct op op;            /* the commit */
	struct op_queue waiting; /* those that want to know when it is done */
	struct segments *inputs; /* deltas first, then the clean ones */
	size_t input;            /* the one that is read */
	struct buf refs;         /* all references when it began */
	size_t kept;             /* bytes of them that stay */
	bool clean;              /* all is merged: removals can go */
	struct fold fold;
	struct buf out, replacement;
	struct segment_writer writer;
	struct segment *working; /* what was read and is not worked in yet, and how much of it is */
	size_t worked;
	struct waiter turn;
	bool reading, resting, read_all, ended;
	bool outdated; /* somebody waits for it who wants more */
	size_t key_size;
	char key[];
};

struct group {
	size_t at; /* where its references begin */
	uint32_t kilobytes;
	bool clean;
};

static size_t list_groups(struct slice refs, struct group groups[GROUPS_MAX])
{
	struct slice rest = refs, last = { "", 0 };
	struct oplog_ref ref;
	size_t count = 0, at = 0;

	for (; oplog_next_ref(&rest, &ref); at = refs.n - rest.n) {
		if (!slice_equal(ref.group, last)) {
			if (count == GROUPS_MAX)
				break;
			groups[count++] = (struct group){ .at = at, .clean = ref.clean };
		}
		groups[count - 1].kilobytes += ref.kilobytes;
		last = ref.group;
	}
	return count;
}

/* From which group on to merge; `count` for nothing. */
static size_t plan(const struct group *groups, size_t count)
{
	size_t clean = 0, from = count;
	uint64_t deltas_kb = 0, clean_kb = 0, sum = 0;

	while (clean < count && groups[clean].clean)
		clean_kb += groups[clean++].kilobytes;
	for (size_t i = clean; i < count; i++)
		deltas_kb += groups[i].kilobytes;
	if (clean > 1 ||
		(clean < count && deltas_kb * DELTA_PART >= clean_kb &&
			(count - clean >= DELTAS_FEW || deltas_kb >= DELTA_KB)))
		return 0;
	if (count - clean < DELTAS_MANY)
		return count;
	/* The newest, and those before it while they are no larger than twice what is merged anyway. */
	while (from > clean && (count - from < DELTAS_FEW || groups[from - 1].kilobytes <= 2 * sum))
		sum += groups[--from].kilobytes;
	return from;
}

static void end(struct merge *m, enum outcome_status status)
{
	struct merge **at = &m->lanes->merges;
	/* Who waits saw the set: that it is gone by now is for later commands to tell. */
	struct outcome outcome = { .status = status == OUTCOME_DONE ? OUTCOME_DONE : OUTCOME_BUSY };
	struct op_queue waiting = STAILQ_HEAD_INITIALIZER(waiting);
	struct lanes *lanes = m->lanes;
	bool all = m->clean && !m->outdated;
	struct op *op;

	STAILQ_CONCAT(&waiting, &m->waiting);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	m->lanes->merge_count--;
	segments_destroy(m->inputs);
	segment_writer_fini(&m->writer);
	fold_free(&m->fold);
	buf_free(&m->refs);
	buf_free(&m->out);
	buf_free(&m->replacement);
	free(m);
	while ((op = STAILQ_FIRST(&waiting))) {
		STAILQ_REMOVE_HEAD(&waiting, link);
		/* Who came when a smaller merge was under way has not got what was asked for. */
		if (status == OUTCOME_DONE && !all && op->delta++ < LANE_ATTEMPTS)
			lanes_submit(lanes, op);
		else
			op->done(op, &outcome);
	}
}

static struct slice key_of(const struct merge *m)
{
	return slice_of(m->key, m->key_size);
}

/* Nothing refers to what was written. */
static void give_up(struct merge *m)
{
	m->ended = true;
	if (m->writer.pending || m->reading || m->resting)
		return;
	segments_forget(m->lanes, key_of(m), buf_slice(&m->writer.refs));
	end(m, OUTCOME_BUSY);
}

static void committed(struct op *op, const struct outcome *outcome)
{
	struct merge *m = (struct merge *)((char *)op - offsetof(struct merge, op));

	if (outcome->status == OUTCOME_DONE) {
		m->lanes->stats.merges++;
		segment_writer_follow(&m->writer, outcome->result->ttl);
		segments_forget(m->lanes, key_of(m), slice_skip(buf_slice(&m->refs), m->kept));
	} else if (outcome->status != OUTCOME_FAILED) {
		segments_forget(m->lanes, key_of(m), buf_slice(&m->writer.refs));
	}
	end(m, outcome->status == OUTCOME_FAILED ? OUTCOME_BUSY : outcome->status);
}

static void commit(struct merge *m)
{
	buf_add_slice(&m->replacement, slice_of(buf_slice(&m->refs).p, m->kept));
	buf_add_slice(&m->replacement, buf_slice(&m->writer.refs));
	m->op = (struct op){
		.kind = OP_COMMIT,
		.key = key_of(m),
		.prefix = buf_slice(&m->refs),
		.log = buf_slice(&m->replacement),
		.done = committed,
	};
	lanes_submit(m->lanes, &m->op);
}

static void write_out(struct merge *m, bool all)
{
	buf_consume(&m->out, segment_writer_add(&m->writer, buf_slice(&m->out), all));
}

/* What the deltas say of members that no clean segment has, and to deltas of deltas all that they say. */
static void finish_reading(struct merge *m)
{
	m->read_all = true;
	if (m->clean)
		fold_encode(&m->fold, &m->out);
	else
		fold_encode_delta(&m->fold, &m->out);
	write_out(m, true);
}

/* Keeps the members that the deltas do not mention. */
static bool filter(struct merge *m, struct slice segment)
{
	struct roster roster = { .seed = m->fold.seed };
	struct slice text, member;
	bool good = roster_add_clean(&roster, segment, &m->fold);

	text = roster_text(&roster);
	while (good && (member = roster_next(&text)).n) {
		BUF_ADD(&m->out, "+");
		buf_add_slice(&m->out, member);
		BUF_ADD(&m->out, " ");
	}
	roster_free(&roster);
	return good;
}

static void poke(struct merge *m);

/* Works on a slice of the segment that was read; false when it is not what it should be. */
static bool work(struct merge *m)
{
	struct segment *segment = m->working;
	struct slice rest = slice_skip(buf_slice(&segment->data), m->worked);
	struct slice piece = slice_of(rest.p, oplog_cut(rest, SLICE_BYTES));

	if (piece.n == 0)
		piece = rest;
	m->worked += piece.n;
	/* A fold borrows what it reads: the data of deltas stays until the end. */
	return segment->ref.clean ? filter(m, piece) : fold_log(&m->fold, piece);
}

static void go_on(struct merge *m)
{
	struct host *host = m->lanes->host;

	while (!m->ended && m->working) {
		m->ended = !work(m);
		if (m->worked == buf_size(&m->working->data)) {
			if (m->working->ref.clean)
				buf_free(&m->working->data);
			m->working = NULL;
			write_out(m, false);
		} else if (host->later) {
			m->resting = true;
			host->later(host, &m->turn, 0);
			return;
		}
	}
	poke(m);
}

static void on_turn(struct waiter *waiter, const struct result *r)
{
	struct merge *m = (struct merge *)((char *)waiter - offsetof(struct merge, turn));

	(void)r;
	m->resting = false;
	if (m->ended)
		poke(m);
	else
		go_on(m);
}

static void on_read(struct waiter *waiter, const struct result *r)
{
	struct segment *segment = (struct segment *)waiter;
	struct merge *m = segment->owner->arg;

	m->reading = false;
	m->ended |= r->status != RESULT_HIT || r->value.n == 0;
	if (m->ended) {
		poke(m);
		return;
	}
	buf_add_slice(&segment->data, r->value);
	m->working = segment;
	m->worked = 0;
	go_on(m);
}

static void read_next(struct merge *m)
{
	struct host *host = m->lanes->host;
	struct segment *segment = &m->inputs->list[m->input++];

	m->reading = true;
	segment->waiter.done = on_read;
	host->call(host,
		&(struct call){
			.verb = CALL_GET, .want = WANT_VALUE, .server = CALL_ANY_SERVER, .key = segment->waiter.key },
		&segment->waiter);
}

/* Does what can be done next. */
static void poke(struct merge *m)
{
	if (m->ended || m->writer.failed) {
		give_up(m);
		return;
	}
	if (m->reading || m->working || m->writer.pending >= WRITES_AT_ONCE)
		return;
	if (m->input < m->inputs->count) {
		read_next(m);
		return;
	}
	if (!m->read_all)
		finish_reading(m);
	if (m->writer.pending == 0)
		commit(m);
}

static void on_written(struct segment_writer *writer)
{
	poke(writer->arg);
}

static int deltas_first(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	if (x->ref.clean != y->ref.clean)
		return x->ref.clean ? 1 : -1;
	return (x->ref.id.p > y->ref.id.p) - (x->ref.id.p < y->ref.id.p);
}

static struct merge *find(const struct lanes *lanes, struct slice key)
{
	struct merge *m = lanes->merges;

	while (m && !slice_equal(key_of(m), key))
		m = m->next;
	return m;
}

static struct merge *start(
	struct lanes *lanes, struct slice key, struct slice refs, size_t kept, bool clean, int64_t exptime)
{
	struct merge *m = xcalloc(1, sizeof(*m) + key.n);

	memcpy(m->key, key.p, key.n);
	m->key_size = key.n;
	m->lanes = lanes;
	m->next = lanes->merges;
	lanes->merges = m;
	lanes->merge_count++;
	STAILQ_INIT(&m->waiting);
	m->turn.done = on_turn;
	m->kept = kept;
	m->clean = clean;
	m->fold.seed = lanes->host->seed;
	buf_add_slice(&m->refs, refs);
	m->inputs = segments_create(lanes, key, slice_skip(refs, kept));
	m->inputs->arg = m;
	qsort(m->inputs->list, m->inputs->count, sizeof(*m->inputs->list), deltas_first);
	segment_writer_init(&m->writer, lanes, key_of(m), clean ? OPLOG_CLEAN : OPLOG_DELTA, exptime, on_written, m);
	poke(m);
	return m;
}

void merge_consider(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime)
{
	struct group groups[GROUPS_MAX];
	size_t count = list_groups(refs, groups), from = plan(groups, count);

	if (from == count || lanes->merge_count >= lanes->host->options->merges || find(lanes, key))
		return;
	start(lanes, key, refs, groups[from].at, from == 0, exptime);
}

void merge_force(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime, struct op *op)
{
	struct group groups[GROUPS_MAX];
	size_t count = list_groups(refs, groups);
	struct merge *m = find(lanes, key);

	if (!m && count == 1 && groups[0].clean) {
		op->done(op, &(struct outcome){ .status = OUTCOME_DONE });
		return;
	}
	/* One under way does not know the newest segments, so it is only waited for. The first step of a new one is a call. */
	if (m)
		m->outdated = true;
	else
		m = start(lanes, key, refs, 0, true, exptime);
	STAILQ_INSERT_TAIL(&m->waiting, op, link);
}
