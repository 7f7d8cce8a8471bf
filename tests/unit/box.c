#include "box.h"

#include <assert.h>
#include <stdio.h>

enum { ROUNDS_MAX = 20 };

void box_init(struct box *box, unsigned form)
{
	static const enum encoding_id ids[BOX_FORMS] = { ENCODING_SIGNED, ENCODING_CSV,
		ENCODING_TOMBSTONE, ENCODING_PAIRED, ENCODING_FLIP, ENCODING_FLIP,
		ENCODING_INDEXED };

	*box = (struct box){
		.encoding = encoding_get(ids[form]),
		.rule = { .prefix = SLICE("s"),
			.encoding = ids[form],
			.delimiter = ',',
			.removed = SLICE("t") },
		.options = { .base_size = 64, .segment_size = 80 },
	};
	box->rule.pointer = form == 5;
}

void box_free(struct box *box)
{
	memcached_restart(&box->memcached);
}

struct memcached_item *box_find(struct box *box, struct slice key)
{
	return memcached_find(&box->memcached, key, 0);
}

void box_put(struct box *box, const char *key, struct slice value)
{
	struct call set = { .verb = CALL_SET, .key = slice_of(key, strlen(key)), .value = value };

	(void)memcached_call(&box->memcached, &set, 0);
}

static void read_item(struct box *box, struct snapshot_item *into)
{
	const struct memcached_item *item = box_find(box, into->waiter.key);

	into->asked = true;
	into->there = item != NULL;
	if (!item)
		return;
	into->reply.cas = item->cas;
	into->reply.ttl = item->expires ? item->expires : TTL_NEVER;
	buf_add_slice(&into->value, buf_slice(&item->value));
}

struct snapshot box_look(struct box *box, enum purpose purpose, const struct fold *change)
{
	struct snapshot s = { .encoding = box->encoding,
		.rule = &box->rule,
		.options = &box->options,
		.key = SLICE("s"),
		.seed = 3,
		.random = &box->random,
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

bool box_step(struct box *box, struct snapshot *s, struct plan_step *step)
{
	int64_t ttl = step->like ? step->like->reply.ttl : TTL_NEVER;
	bool written = plan_step_write(s, step);
	struct call call = {
		.verb = step->verb,
		.key = step->item->waiter.key,
		.value = buf_slice(&step->value),
		.exptime = step->expire    ? -1
			: ttl == TTL_NEVER ? 0
					   : ttl,
		.number = step->item->reply.cas,
	};

	assert(written);
	(void)written;
	return memcached_call(&box->memcached, &call, 0).status == RESULT_DONE ||
		step->verb == CALL_DELETE || step->optional;
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

enum adopted_status box_fold(struct box *box, struct snapshot *s, struct fold *out)
{
	*s = box_look(box, FOR_REWRITE, NULL);
	return box_fold_of(s, out);
}

enum adopted_status box_fold_of(struct snapshot *s, struct fold *out)
{
	bool folded = snapshot_fold(s);

	assert(folded);
	(void)folded;
	out->seed = s->seed;
	for (size_t i = 0; i < s->all.fold.member_count; i++) {
		const struct fold_member *m = &s->all.fold.members[i];
		(m->live ? fold_add : fold_remove)(out, slice_of(m->p, m->n));
	}
	return s->status;
}

/* Carries out a plan; sets `ended` if the operation is done. */
static bool run(struct box *box, struct snapshot *s, struct plan *plan, bool *ended)
{
	bool good = true;

	for (size_t i = 0; i < plan->count && good; i++)
		good = box_step(box, s, &plan->steps[i]);
	*ended = !plan->again;
	return good;
}

/* The check after a plan. Nothing else changes the box, so it must succeed. */
static bool checked(struct box *box, struct snapshot *s, bool check)
{
	struct snapshot now;
	bool good;

	if (!check)
		return true;
	now = box_look(box, FOR_CHECK, NULL);
	good = box->encoding->check(s, &now) == ADOPTED_OK;
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
		if (members && snapshot_fold(&s))
			status = box->encoding->replace(&s, members, &plan);
		else
			status = box->encoding->change(&s, create, &plan);
		done = status == ADOPTED_OK && run(box, &s, &plan, &ended) && ended &&
			checked(box, &s, plan.check);
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
			(void)box->encoding->take(&s, taken, &plan);
			(void)run(box, &s, &plan, &ended);
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
		(void)box->encoding->compact(&s, &plan);
	for (size_t i = 0; i < plan.count && i < steps; i++)
		more = box_step(box, &s, &plan.steps[i]);
	box->prepared = s.prepared;
	plan_free(&plan);
	fold_free(&all);
	snapshot_free(&s);
	return more;
}

/* Where box_fill stores items. */
struct filling {
	void (*put)(void *arg, const char *key, struct slice value);
	void *arg;
	unsigned members;
};

static void put_text(const struct filling *f, const char *key, struct buf *text)
{
	f->put(f->arg, key, buf_slice(text));
	buf_free(text);
}

/* Appends every member, or every second one, each between these texts. */
static void add_members(
	const struct filling *f, struct buf *text, const char *before, const char *after, int step)
{
	for (unsigned i = 0; i < f->members; i += (unsigned)step)
		buf_printf(text, "%sm%06u%s", before, i, after);
}

static void fill_lists(const struct filling *f, const struct collection_rule *rule, unsigned form)
{
	struct buf text = BUF_EMPTY, other = BUF_EMPTY;
	bool flips = rule->encoding == ENCODING_FLIP;

	add_members(f, &text, "+", "", 1);
	add_members(f, &text, "-", "", 2);
	if (flips) {
		buf_printf(&other, form == 4 ? "^" : "");
		put_text(f, "sk.b", &other);
	}
	put_text(f, flips ? "sk.a" : form ? "sk.0" : "sk", &text);
	if (rule->pointer)
		f->put(f->arg, "sk.active", SLICE("sk.a"));
	if (rule->encoding == ENCODING_INDEXED)
		f->put(f->arg, "sk", SLICE("+0"));
}

void box_fill(const struct collection_rule *rule, unsigned form, unsigned members,
	void (*put)(void *arg, const char *key, struct slice value), void *arg)
{
	const struct filling f = { put, arg, members };
	struct buf text = BUF_EMPTY, removed = BUF_EMPTY;

	switch (rule->encoding) {
	case ENCODING_CSV:
		add_members(&f, &text, "", ",", 1);
		add_members(&f, &text, "", ",", 2);
		break;
	case ENCODING_TOMBSTONE:
		add_members(&f, &text, "", ",", 2);
		BUF_ADD(&text, "|");
		add_members(&f, &text, "", ",", 1);
		break;
	case ENCODING_PAIRED:
		add_members(&f, &text, "", ",", 1);
		add_members(&f, &removed, "", ",", 2);
		put_text(&f, "tk", &removed);
		break;
	default:
		fill_lists(&f, rule, form);
		return;
	}
	put_text(&f, "sk", &text);
}
