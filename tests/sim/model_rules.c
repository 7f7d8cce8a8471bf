/* The rules of model.h, over the code under test; some mutations are in here. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

bool model_has(struct slice base)
{
	return base.p != NULL;
}

static struct copy parse(struct slice base)
{
	struct copy copy;

	if (!copy_parse(base, &copy))
		abort();
	return copy;
}

static struct slice run_join(struct model_world *w, const struct copy *a, const struct copy *b,
	uint64_t horizon, uint64_t fill, struct copy *result, bool *exists)
{
	struct copy_join join;
	struct slice out;
	enum copy_read read;

	copy_join_begin(&join, a, b, horizon, fill, w->seed);
	while ((read = copy_join_step(&join)) == COPY_WORD)
		;
	if (read == COPY_MALFORMED)
		abort();
	out = model_keep(w, buf_slice(&join.out));
	*exists = join.exists;
	copy_join_free(&join);
	*result = parse(out);
	return out;
}

/* The join of two bases, of which one may be missing. */
static struct slice join_bases(struct model_world *w, struct slice a, struct slice b,
	uint64_t horizon, uint64_t fill, struct copy *result, bool *exists)
{
	struct copy x = parse(model_has(a) ? a : b), y;
	uint64_t h;

	if (!model_has(a) || !model_has(b) || w->mutation == MODEL_POSITION)
		return run_join(w, &x, NULL, horizon, fill, result, exists);
	y = parse(b);
	if (w->mutation == MODEL_LOW_H) {
		h = x.horizon;
		x.horizon = y.horizon;
		y.horizon = h;
	}
	return run_join(w, &x, &y, horizon, fill, result, exists);
}

struct slice model_join(
	struct model_world *w, struct slice a, struct slice b, uint64_t horizon, uint64_t fill)
{
	struct copy result;
	bool exists;

	return join_bases(w, a, b, horizon, fill, &result, &exists);
}

/* Applies the tokens of a closed part, or of a log whose order decides. */
static void apply(struct model_set *set, struct slice text)
{
	struct slice token;

	while ((token = slice_token(&text)).n) {
		unsigned bit = 1u << ((unsigned)(token.p[1] - 'a') & 31);
		if (slice_starts(token, SLICE("@t")))
			set->table = atoi(token.p + 2);
		if (token.p[0] != '+' && token.p[0] != '-')
			continue;
		set->adds = token.p[0] == '+' ? set->adds | bit : set->adds & ~bit;
		set->removes = token.p[0] == '-' ? set->removes | bit : set->removes & ~bit;
	}
}

struct model_set model_fold(struct model_world *w, struct slice a, struct slice b)
{
	struct model_set set = { .table = -1 };
	struct copy result;

	if (!model_has(a) && !model_has(b))
		return set;
	join_bases(w, a, b, 0, 0, &result, &set.exists);
	apply(&set, result.closed);
	if (w->mutation == MODEL_POSITION)
		result.log = parse(model_has(a) ? a : b).log;
	apply(&set, result.log);
	return set;
}

unsigned model_members(const struct model_set *set, unsigned table)
{
	return ((set->table >= 0 ? table : 0) | set->adds) & ~set->removes;
}

bool model_believed(struct model_op *op, int server, struct slice base)
{
	struct model_proxy *p = &op->w->proxies[op->proxy];
	struct copy copy = parse(base);

	return op->w->mutation == MODEL_ONE_READ || copy_is_believed(&copy, p->absences[server]);
}

bool model_miss_believed(struct model_op *op, int server)
{
	uint64_t absence = op->w->proxies[op->proxy].absences[server];

	return !absence || op->w->mutation == MODEL_MISS_ALONE ||
		absence + stamp_at(MODEL_REPAIRED) <= model_now(op);
}

bool model_whole(struct model_op *op)
{
	struct model_proxy *p = &op->w->proxies[op->proxy];
	struct copy copies[2];
	bool has[2];

	for (int y = 0; y < 2; y++) {
		has[y] = model_has(op->bases[y]);
		if (has[y])
			copies[y] = parse(op->bases[y]);
	}
	if (op->w->mutation == MODEL_EMPTY_MISS && (!has[0] || !has[1]))
		return true;
	return copy_pair_is_whole(
		has[0] ? &copies[0] : NULL, has[1] ? &copies[1] : NULL, p->absences);
}

struct slice model_gone(struct model_world *w, uint64_t horizon, uint64_t fill)
{
	struct copy copy = { .horizon = horizon, .fill = fill, .gone = true };
	struct buf out = BUF_EMPTY;
	struct slice kept;

	copy_add_closed(&out, &copy);
	copy_end_closed(&out, &copy);
	kept = model_keep(w, buf_slice(&out));
	buf_free(&out);
	return kept;
}

struct slice model_base(struct model_world *w, uint64_t horizon, uint64_t fill, int table,
	unsigned members, struct slice former)
{
	struct buf closed = BUF_EMPTY, out = BUF_EMPTY;
	struct copy copy = { .horizon = horizon, .fill = fill };
	struct slice kept;

	if (table >= 0)
		buf_printf(&closed, "@set.1 @t%011d.1.1.0.9.0000000000000000 ", table);
	for (int m = 0; table < 0 && m < MODEL_MEMBERS; m++) {
		if (members & 1u << m)
			buf_printf(&closed, "+%c ", 'a' + m);
	}
	copy.closed = buf_slice(&closed);
	copy_add_closed(&out, &copy);
	copy_end_closed(&out, &copy);
	if (model_has(former))
		buf_add_slice(&out, parse(former).log);
	kept = model_keep(w, buf_slice(&out));
	buf_free(&closed);
	buf_free(&out);
	return kept;
}

struct slice model_group(struct model_world *w, uint64_t stamp, bool creates, int member, bool adds)
{
	struct buf out = BUF_EMPTY;
	char word[] = { adds ? '+' : '-', (char)('a' + member), ' ' };
	struct slice kept;

	copy_add_group(&out, stamp, creates, slice_of(word, sizeof(word)));
	kept = model_keep(w, buf_slice(&out));
	buf_free(&out);
	return kept;
}

struct slice model_append(struct model_world *w, struct slice base, struct slice group)
{
	char *out = model_alloc(w, base.n + group.n + 1);

	slice_write(slice_write(out, base), group);
	return slice_of(out, base.n + group.n);
}

uint64_t model_fill_of(struct slice base)
{
	return parse(base).fill;
}

uint64_t model_horizon_of(struct slice base)
{
	return parse(base).horizon;
}

bool model_is_gone(struct slice base)
{
	return parse(base).gone;
}

static int64_t clock_of(const struct model_op *op)
{
	return op->w->now + op->w->proxies[op->proxy].offset;
}

uint64_t model_now(const struct model_op *op)
{
	return stamp_at((uint64_t)clock_of(op));
}

uint64_t model_stamp(struct model_op *op)
{
	if (op->w->mutation == MODEL_SHRINKING)
		return model_now(op) - stamp_at(model_below(op->w, 2) * MODEL_SKEW);
	return stamp_next(&op->w->proxies[op->proxy].clock, (uint64_t)clock_of(op));
}

void model_see(struct model_op *op, struct slice base)
{
	struct stamp_clock *clock = &op->w->proxies[op->proxy].clock;
	struct copy copy = parse(base);
	struct copy_reader reader = { .rest = copy.log, .largest = copy.horizon };
	struct copy_word word;

	while (copy_next(&reader, &word) == COPY_WORD)
		;
	(void)stamp_see(clock, reader.largest, (uint64_t)clock_of(op));
}
