/*
 * Copies the parts of a set to the server that lacks them. Both copies of a part have the same
 * bytes, and are never changed.
 *
 *     look for the part on both servers -> one lacks it: read the other -> ADD
 *     an index: read it                 -> its tables are parts as well
 */
#include <stdlib.h>

#include "collection/copies/refill.h"
#include "collection/text/fences.h"
#include "collection/text/oplog.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/alloc.h"

enum { REFILLS_AT_ONCE = 16 };

struct refill {
	struct pair *pair;
	struct buf ids; /* of all parts that are known, each followed by a space */
	size_t next;    /* bytes of `ids` that were begun */
	size_t pending; /* parts under way */
	bool lost, failed;
	void (*done)(struct pair *pair, enum refilled outcome);
};

/* A part under way. */
struct refill_part {
	struct waiter sides[2];
	enum result_status status[2];
	unsigned pending;
	bool is_index;
	struct refill *refill;
	struct buf keys;
};

static void begin_parts(struct refill *refill);

static void call_part(struct refill_part *part, unsigned copy, struct call call,
	void (*done)(struct waiter *waiter, const struct result *r))
{
	struct copies_options *options = &part->refill->pair->copies->options;

	call.key = part->sides[copy].key;
	call.server = CALL_ANY_SERVER;
	part->sides[copy].done = done;
	part->pending++;
	options->call(options->env, &call, &part->sides[copy]);
}

static void end_refill_part(struct refill_part *part)
{
	struct refill *refill = part->refill;

	buf_free(&part->keys);
	free(part);
	refill->pending--;
	begin_parts(refill);
}

/* Both sides of a part are in one array; the waiter is one of them. */
static struct refill_part *part_of(struct waiter *waiter, unsigned copy)
{
	return (struct refill_part *)((char *)(waiter - copy) -
		offsetof(struct refill_part, sides));
}

static void refill_written(struct refill_part *part, const struct result *r)
{
	if (r->status != RESULT_DONE && r->status != RESULT_NOT_STORED)
		part->refill->failed = true;
	end_refill_part(part);
}

static void refill_on_first_written(struct waiter *waiter, const struct result *r)
{
	refill_written(part_of(waiter, 0), r);
}

static void refill_on_second_written(struct waiter *waiter, const struct result *r)
{
	refill_written(part_of(waiter, 1), r);
}

static void add_indexed_tables(struct refill *refill, struct slice index)
{
	struct fences fences;

	if (!fences_read(&fences, index))
		return;
	for (size_t i = 0; i < fences.count; i++)
		buf_add_word(&refill->ids, slice_of(fences.list[i].id, OPLOG_ID));
	fences_free(&fences);
}

/* The part was read from this server; it is written to the other one if that lacks it. */
static void refill_read(struct refill_part *part, unsigned copy, const struct result *r)
{
	const struct pair *pair = part->refill->pair;
	const struct pair_side *side = &pair->sides[pair->sides[0].has ? 0 : 1];
	unsigned other = 1 - copy;
	int64_t exptime = 0;

	if (r->status != RESULT_HIT) {
		part->refill->failed = true;
		end_refill_part(part);
		return;
	}
	if (part->is_index)
		add_indexed_tables(part->refill, r->value);
	if (part->status[other] == RESULT_HIT) {
		end_refill_part(part);
		return;
	}
	if (!ttl_exptime(pair->copies->options.env, side->ttl, &exptime))
		exptime = 0;
	call_part(part, other,
		(struct call){ .verb = CALL_ADD,
			.value = r->value,
			.expected = (uint32_t)r->value.n,
			.flags = r->flags,
			.exptime = ttl_of_part(pair->copies->options.env, exptime) },
		other ? refill_on_second_written : refill_on_first_written);
}

static void refill_on_first_read(struct waiter *waiter, const struct result *r)
{
	refill_read(part_of(waiter, 0), 0, r);
}

static void refill_on_second_read(struct waiter *waiter, const struct result *r)
{
	refill_read(part_of(waiter, 1), 1, r);
}

static void was_looked_for(struct refill_part *part)
{
	unsigned has = part->status[0] != RESULT_HIT;

	if (--part->pending)
		return;
	if (part->status[0] >= RESULT_REFUSED || part->status[1] >= RESULT_REFUSED)
		part->refill->failed = true;
	else if (part->status[0] != RESULT_HIT && part->status[1] != RESULT_HIT)
		part->refill->lost = true;
	else if (part->is_index || part->status[0] != part->status[1]) {
		call_part(part, has, (struct call){ .verb = CALL_GET, .want = WANT_VALUE },
			has ? refill_on_second_read : refill_on_first_read);
		return;
	}
	end_refill_part(part);
}

static void refill_on_first_look(struct waiter *waiter, const struct result *r)
{
	struct refill_part *part = part_of(waiter, 0);

	part->status[0] = r->status;
	was_looked_for(part);
}

static void refill_on_second_look(struct waiter *waiter, const struct result *r)
{
	struct refill_part *part = part_of(waiter, 1);

	part->status[1] = r->status;
	was_looked_for(part);
}

static void begin_refill_part(struct refill *refill, struct slice id)
{
	struct refill_part *part = xcalloc(1, sizeof(*part));
	struct buf second = BUF_EMPTY;
	struct slice key;

	part->refill = refill;
	part->is_index = *id.p == (char)OPLOG_INDEX;
	buf_add_slice(&part->keys, refill->pair->call.key);
	BUF_ADD(&part->keys, ".");
	buf_add_slice(&part->keys, id);
	key = buf_slice(&part->keys);
	part_key_second(key, &second);
	buf_add_slice(&part->keys, buf_slice(&second));
	buf_free(&second);
	part->sides[0].key = slice_of(buf_slice(&part->keys).p, key.n);
	part->sides[1].key = slice_skip(buf_slice(&part->keys), key.n);
	refill->pending++;
	call_part(part, 0, (struct call){ .verb = CALL_GET, .want = WANT_SIZE },
		refill_on_first_look);
	call_part(part, 1, (struct call){ .verb = CALL_GET, .want = WANT_SIZE },
		refill_on_second_look);
}

static void end_refill(struct refill *refill)
{
	struct pair *pair = refill->pair;
	void (*done)(struct pair *, enum refilled) = refill->done;
	enum refilled outcome = refill->lost ? REFILL_LOST
		: refill->failed             ? REFILL_FAILED
					     : REFILL_DONE;

	buf_free(&refill->ids);
	free(refill);
	done(pair, outcome);
}

static void begin_parts(struct refill *refill)
{
	while (refill->pending < REFILLS_AT_ONCE && !refill->failed && !refill->lost) {
		struct slice rest = slice_skip(buf_slice(&refill->ids), refill->next);
		struct slice id = slice_token(&rest);
		if (!id.n)
			break;
		refill->next = buf_size(&refill->ids) - rest.n;
		begin_refill_part(refill, id);
	}
	if (!refill->pending)
		end_refill(refill);
}

void refill_start(struct pair *pair, struct slice refs,
	void (*done)(struct pair *pair, enum refilled outcome))
{
	struct refill *refill = xcalloc(1, sizeof(*refill));
	struct oplog_run run;

	refill->pair = pair;
	refill->done = done;
	while (oplog_next_run(&refs, &run))
		buf_add_word(&refill->ids, run.id);
	begin_parts(refill);
}
