#include "box.h"

#include <assert.h>
#include <stdio.h>

enum { ROUNDS_MAX = 20 };

void box_init(struct box *box, unsigned form)
{
	static const enum encoding_id ids[BOX_FORMS] = { ENCODING_SIGNED, ENCODING_CSV, ENCODING_TOMBSTONE,
		ENCODING_PAIRED, ENCODING_FLIP, ENCODING_FLIP, ENCODING_INDEXED };

	*box = (struct box){
		.encoding = encoding_get(ids[form]),
		.rule = { .prefix = SLICE("s"), .encoding = ids[form], .delimiter = ',', .removed = SLICE("t") },
		.options = { .base_size = 64, .segment_size = 80 },
	};
	box->rule.pointer = form == 5;
}

void box_free(struct box *box)
{
	for (size_t i = 0; i < box->count; i++)
		buf_free(&box->items[i].value);
	box->count = 0;
}

static struct box_item *slot(struct box *box, struct slice key)
{
	struct box_item *item = box->items;

	for (; item < box->items + box->count; item++) {
		if (slice_equal(slice_of(item->key, strlen(item->key)), key))
			return item;
	}
	assert(box->count < BOX_ITEMS && key.n < sizeof(item->key));
	box->count++;
	*item = (struct box_item){ .there = false };
	memcpy(item->key, key.p, key.n);
	return item;
}

struct box_item *box_find(struct box *box, struct slice key)
{
	struct box_item *item = slot(box, key);

	return item->there ? item : NULL;
}

static void write(struct box *box, struct box_item *item, struct slice before, struct slice value)
{
	struct buf whole = BUF_EMPTY;

	buf_add_slice(&whole, before);
	buf_add_slice(&whole, value);
	buf_free(&item->value);
	item->value = whole;
	item->there = true;
	item->cas = ++box->cas;
}

void box_put(struct box *box, const char *key, struct slice value)
{
	struct box_item *item = slot(box, slice_of(key, strlen(key)));

	write(box, item, SLICE(""), value);
	item->ttl = TTL_NEVER;
}

static void read_item(const struct box *box, struct snapshot_item *into)
{
	const struct box_item *item = box_find((struct box *)box, into->waiter.key);

	into->asked = true;
	into->there = item != NULL;
	if (!item)
		return;
	into->reply.cas = item->cas;
	into->reply.ttl = item->ttl;
	buf_add_slice(&into->value, buf_slice(&item->value));
}

struct snapshot box_look(const struct box *box, enum purpose purpose, const struct fold *change)
{
	struct snapshot s = { .rule = &box->rule,
		.options = &box->options,
		.key = SLICE("s"),
		.seed = 3,
		.random = (uint64_t *)&box->random,
		.purpose = purpose,
		.change = change,
		.prepared = box->prepared };
	size_t asked;

	do {
		asked = 0;
		box->encoding->name_items(&s);
		for (size_t i = 0; i < s.count; i++) {
			if (!s.items[i]->asked)
				read_item(box, s.items[i]), asked++;
		}
	} while (asked);
	return s;
}

bool box_step(struct box *box, const struct plan_step *step)
{
	struct box_item *item = slot(box, step->item->waiter.key);
	struct slice value = buf_slice(&step->value);
	bool good = step->verb == CALL_ADD ? !item->there : item->there || step->verb == CALL_DELETE;

	if (!good || (step->verb == CALL_CAS && step->item->reply.cas != item->cas))
		return false;
	if (step->expire || step->verb == CALL_DELETE)
		item->there = false;
	else if (step->verb == CALL_APPEND)
		write(box, item, buf_slice(&item->value), value);
	else if (step->verb == CALL_PREPEND)
		write(box, item, value, buf_slice(&item->value));
	else
		write(box, item, SLICE(""), value);
	if (step->verb == CALL_ADD || step->verb == CALL_CAS)
		item->ttl = step->like ? step->like->reply.ttl : TTL_NEVER;
	return true;
}

const char *box_text(const struct fold *f)
{
	static char text[1024];
	struct buf out = BUF_EMPTY;

	fold_join(f, &out);
	snprintf(text, sizeof(text), "%.*s", (int)buf_size(&out), buf_slice(&out).p);
	buf_free(&out);
	return text;
}

enum adopted_status box_fold(const struct box *box, struct snapshot *s, struct fold *out)
{
	*s = box_look(box, FOR_REWRITE, NULL);
	out->seed = s->seed;
	return box->encoding->fold(s, out);
}

/* Carries out a plan; `ended` says whether the operation is done. */
static bool run(struct box *box, struct plan *plan, bool *ended)
{
	bool good = true;

	for (size_t i = 0; i < plan->count && good; i++)
		good = box_step(box, &plan->steps[i]);
	*ended = !plan->again;
	return good;
}

/* The check after a plan. Nothing else changes the box, so it must succeed. */
static bool checked(const struct box *box, const struct snapshot *s, bool check)
{
	struct snapshot now;
	bool good;

	if (!check)
		return true;
	now = box_look(box, FOR_CHECK, NULL);
	good = box->encoding->check(s, &now);
	snapshot_free(&now);
	return good;
}

/* Carries out plans until one ends the operation: a change, or with `members` a replacement by them. */
static enum adopted_status carry_out(
	struct box *box, const struct fold *change, bool create, const struct fold *members)
{
	enum purpose purpose = members ? FOR_REWRITE : FOR_WRITE;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		struct snapshot s = box_look(box, purpose, change);
		struct plan plan = { 0 };
		enum adopted_status status;
		bool ended = false, done;
		s.attempt = (unsigned)round;
		status =
			members ? box->encoding->replace(&s, members, &plan) : box->encoding->change(&s, create, &plan);
		done = status == ADOPTED_OK && run(box, &plan, &ended) && ended && checked(box, &s, plan.check);
		plan_free(&plan);
		snapshot_free(&s);
		if (done || (status != ADOPTED_OK && status != ADOPTED_NEEDS_ALL))
			return status;
		purpose = members ? FOR_REWRITE : FOR_ALL;
	}
	return ADOPTED_LOST;
}

enum adopted_status box_change(struct box *box, const struct fold *change, bool create)
{
	return carry_out(box, change, create, NULL);
}

enum adopted_status box_replace(struct box *box, const struct fold *members)
{
	return carry_out(box, NULL, false, members);
}

enum adopted_status box_take(struct box *box, const struct fold *taken)
{
	bool ended = false;

	for (int round = 0; round < ROUNDS_MAX && !ended; round++) {
		struct snapshot s;
		struct fold all = { 0 };
		struct plan plan = { 0 };
		enum adopted_status status = box_fold(box, &s, &all);
		if (status == ADOPTED_OK) {
			box->encoding->take(&s, &all, taken, &plan);
			(void)run(box, &plan, &ended);
		}
		plan_free(&plan);
		fold_free(&all);
		snapshot_free(&s);
		if (status != ADOPTED_OK)
			return status;
	}
	return ended ? ADOPTED_OK : ADOPTED_LOST;
}

bool box_compact(struct box *box, size_t steps, enum adopted_status *status)
{
	struct snapshot s;
	struct fold all = { 0 };
	struct plan plan = { 0 };
	bool more = false;

	*status = box_fold(box, &s, &all);
	if (*status == ADOPTED_OK)
		box->encoding->compact(&s, &all, &plan);
	for (size_t i = 0; i < plan.count && i < steps; i++)
		more = box_step(box, &plan.steps[i]);
	box->prepared = s.prepared;
	plan_free(&plan);
	fold_free(&all);
	snapshot_free(&s);
	return more;
}
