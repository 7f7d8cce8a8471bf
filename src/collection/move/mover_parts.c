#include "collection/move/mover_parts.h"

#include <stdlib.h>

#include "collection/move/join.h"
#include "collection/text/fences.h"
#include "collection/text/lease.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/alloc.h"

enum { PARTS_AT_ONCE = 32 };

static void next_parts(struct mover_parts *parts);

struct mover_part {
	struct waiter waiter;
	struct mover_parts *parts;
	bool is_index, stays;
	char key[];
};

static void send_part(struct mover_part *part, struct mover_side *side, struct call call,
	void (*done)(struct waiter *, const struct result *))
{
	call.server = CALL_ANY_SERVER;
	call.key = part->waiter.key;
	part->waiter.done = done;
	side->env.call(&side->env, &call, &part->waiter);
}

static void end_part(struct mover_part *part, const struct result *r)
{
	struct mover_parts *parts = part->parts;

	free(part);
	parts->pending--;
	if (result_failed(r))
		failure_keep(parts->failure, r);
	next_parts(parts);
}

static void mover_parts_on_end(struct waiter *waiter, const struct result *r)
{
	end_part((struct mover_part *)waiter, r);
}

/* An earlier mover has written it, perhaps for a shorter life. */
static void mover_parts_on_written(struct waiter *waiter, const struct result *r)
{
	struct mover_part *part = (struct mover_part *)waiter;
	struct mover_parts *parts = part->parts;

	if (r->status == RESULT_NOT_STORED)
		send_part(part, &parts->world->to,
			(struct call){ .verb = CALL_TOUCH,
				.exptime = ttl_of_part(parts->world->env, parts->exptime) },
			mover_parts_on_end);
	else
		end_part(part, r);
}

static void add_tables(struct buf *ids, struct slice index)
{
	struct fences fences;

	if (!fences_read(&fences, index))
		return;
	for (size_t i = 0; i < fences.count; i++)
		buf_add_word(ids, slice_of(fences.list[i].id, OPLOG_ID));
	fences_free(&fences);
}

static bool has_word(const struct buf *words, struct slice word)
{
	struct slice rest = buf_slice(words), one;

	while ((one = slice_token(&rest)).n) {
		if (slice_equal(one, word))
			return true;
	}
	return false;
}

/* A set that has lost a part is as it was: it counts as missing. */
static void mover_parts_on_read(struct waiter *waiter, const struct result *r)
{
	struct mover_part *part = (struct mover_part *)waiter;
	struct mover_parts *parts = part->parts;

	if (r->status != RESULT_HIT) {
		end_part(part, r);
		return;
	}
	if (part->is_index)
		add_tables(&parts->ids, r->value);
	if (part->stays) {
		end_part(part, r);
		return;
	}
	send_part(part, &parts->world->to,
		(struct call){ .verb = CALL_ADD,
			.value = r->value,
			.flags = r->flags,
			.exptime = ttl_of_part(parts->world->env, parts->exptime) },
		mover_parts_on_written);
}

static struct mover_part *new_part(struct mover_parts *parts, struct slice id)
{
	struct mover_part *part = xmalloc(sizeof(*part) + parts->key.n + 1 + id.n);
	char *p = slice_write(part->key, parts->key);

	*p++ = '.';
	p = slice_write(p, id);
	part->parts = parts;
	part->is_index = *id.p == (char)OPLOG_INDEX;
	part->waiter.key = slice_of(part->key, (size_t)(p - part->key));
	return part;
}

static void begin_part(struct mover_parts *parts, struct slice id)
{
	struct mover_world *world = parts->world;
	struct mover_part *part = new_part(parts, id);

	/*
	 * An index that stays may have tables that move. Of an item that is dropped no part is
	 * copied, but all are deleted.
	 */
	part->stays = !mover_moves(world, part->waiter.key) || (parts->drops && !parts->deletes);
	if (part->stays && (parts->deletes || !part->is_index)) {
		free(part);
		return;
	}
	parts->pending++;
	if (parts->deletes)
		send_part(part, &world->from, (struct call){ .verb = CALL_DELETE },
			mover_parts_on_end);
	else
		send_part(part, &world->from, (struct call){ .verb = CALL_GET, .want = WANT_VALUE },
			mover_parts_on_read);
}

static void mover_parts_on_own(struct waiter *waiter, const struct result *r)
{
	struct mover_part *part = (struct mover_part *)waiter;
	struct mover_parts *parts = part->parts;

	if (r->status == RESULT_HIT && part->is_index)
		add_tables(&parts->own, r->value);
	else if (r->status == RESULT_HIT)
		join_drop_words(parts->former, parts->here, r->value);
	end_part(part, r);
}

static void read_own_part(struct mover_parts *parts, struct slice id)
{
	if (has_word(&parts->ids, id))
		return;
	parts->pending++;
	send_part(new_part(parts, id), &parts->world->to,
		(struct call){ .verb = CALL_GET, .want = WANT_VALUE }, mover_parts_on_own);
}

/* Takes the next id of a list of parts. False if there is none left. */
static bool take_id(const struct buf *ids, size_t *next, struct slice *id)
{
	struct slice rest = slice_skip(buf_slice(ids), *next);

	*id = slice_token(&rest);
	*next = buf_size(ids) - rest.n;
	return id->n > 0;
}

/*
 * The parts of the item on n are read when all parts of the item on o are known, so that shared
 * parts can be left out.
 */
static void next_parts(struct mover_parts *parts)
{
	struct slice id;

	while (parts->pending < PARTS_AT_ONCE && !parts->failure->happened &&
		take_id(&parts->ids, &parts->next, &id))
		begin_part(parts, id);
	if (parts->pending == 0 && !parts->deletes)
		parts->reads_own = true;
	while (parts->reads_own && parts->pending < PARTS_AT_ONCE && !parts->failure->happened &&
		take_id(&parts->own, &parts->next_own, &id))
		read_own_part(parts, id);
	if (parts->pending == 0)
		parts->done(parts);
}

/* The ids of the parts of a base that it refers to itself. */
static void find_parts(struct slice value, struct buf *ids)
{
	struct buf refs = BUF_EMPTY;
	struct slice rest;
	struct oplog_run run;
	struct oplog_ref segment;

	lease_add_refs(value, &refs);
	rest = buf_slice(&refs);
	while (oplog_next_run(&rest, &run))
		buf_add_word(ids, run.id);
	while (oplog_next_ref(&rest, &segment))
		buf_add_word(ids, segment.id);
	buf_free(&refs);
}

/* A part that moves by itself, and has been read, is no base. */
void mover_parts_copy(struct mover_parts *parts, struct buf *former, struct buf *here, bool drops,
	void (*done)(struct mover_parts *parts))
{
	parts->ids.start = parts->ids.end = 0;
	parts->own.start = parts->own.end = 0;
	parts->next = parts->next_own = 0;
	parts->reads_own = false;
	parts->drops = drops;
	parts->former = former;
	parts->here = here;
	parts->done = done;
	if (part_key_base(parts->key).n == 0)
		find_parts(buf_slice(former), &parts->ids);
	if (here && join_needs_runs(buf_slice(former), buf_slice(here)))
		find_parts(buf_slice(here), &parts->own);
	next_parts(parts);
}

bool mover_parts_delete(struct mover_parts *parts, void (*done)(struct mover_parts *parts))
{
	if (buf_size(&parts->ids) == 0)
		return false;
	parts->done = done;
	parts->deletes = true;
	parts->reads_own = false;
	parts->next = 0;
	next_parts(parts);
	return true;
}

void mover_parts_fini(struct mover_parts *parts)
{
	buf_free(&parts->ids);
	buf_free(&parts->own);
}
