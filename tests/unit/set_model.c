#include "set_model.h"
#include "collection/set/moment.h"

#include <fnmatch.h>
#include <stdio.h>

#include <stdlib.h>

#include "collection/text/expiry.h"
#include "must.h"
#include "util/random.h"

static uint64_t below(struct set_model *m, uint64_t n)
{
	return random_next(&m->random) % n;
}

/* --- the resulting members --- */

static bool has_expired(const struct set_model *m, const struct set_model_layer *layer, size_t i)
{
	return layer->dates[i] && layer->dates[i] <= m->now;
}

static void apply(struct set_model *m, const struct set_model_layer *layer)
{
	for (size_t i = 0; i < m->world.count; i++) {
		if (layer->says[i] == SAYS_NOTHING)
			continue;
		m->in[i] = layer->says[i] == SAYS_IN && !has_expired(m, layer, i);
		m->dates[i] = layer->dates[i];
	}
}

/* Tokens in front are the oldest, and a removal there has no effect. */
static void sum_up(struct set_model *m)
{
	memset(m->in, 0, sizeof(m->in));
	apply(m, &m->head);
	for (size_t i = 0; i < m->run_count; i++)
		apply(m, &m->layers[i]);
	apply(m, &m->log);
	m->count = 0;
	for (size_t i = 0; i < m->world.count; i++)
		m->count += m->in[i];
	buf_consume(&m->base, buf_size(&m->base));
	buf_add_slice(&m->base, buf_slice(&m->head_text));
	m->marked |= m->run_count > 0;
	if (m->marked)
		BUF_ADD(&m->base, OPLOG_SET_MARK);
	for (size_t i = 0; i < m->run_count; i++)
		oplog_add_run(&m->base, &m->runs[i]);
	buf_add_slice(&m->base, buf_slice(&m->log_text));
}

static void empty(struct buf *b)
{
	buf_consume(b, buf_size(b));
}

/* --- how it changes --- */

static void say(struct set_model *m, struct set_model_layer *layer, struct buf *text)
{
	enum { SOON = 40 /* seconds */ };
	size_t i = below(m, m->world.count);
	bool in = below(m, 3) > 0;

	layer->says[i] = in ? SAYS_IN : SAYS_OUT;
	layer->dates[i] =
		in && m->dated && below(m, 2) ? (uint32_t)(m->now + (int64_t)below(m, SOON)) : 0;
	buf_add(text, in ? "+" : "-", 1);
	buf_add_slice(text, table_model_name(&m->world, i));
	if (layer->dates[i])
		buf_printf(text, "%c%010u", EXPIRY_MARK, layer->dates[i]);
	BUF_ADD(text, " ");
}

void set_model_append(struct set_model *m, size_t tokens)
{
	while (tokens--)
		say(m, &m->log, &m->log_text);
	sum_up(m);
}

/* Each is placed before the earlier ones, which override it. */
void set_model_push(struct set_model *m, size_t tokens)
{
	struct set_model_layer before = m->head;
	struct buf text = BUF_EMPTY;

	/* Where there is no block there is no head either: all of it is the log. */
	if (!m->marked)
		return;
	memset(&m->head, 0, sizeof(m->head));
	while (tokens--)
		say(m, &m->head, &text);
	for (size_t i = 0; i < m->world.count; i++) {
		if (before.says[i] == SAYS_NOTHING)
			continue;
		m->head.says[i] = before.says[i];
		m->head.dates[i] = before.dates[i];
	}
	buf_add_slice(&text, buf_slice(&m->head_text));
	buf_free(&m->head_text);
	m->head_text = text;
	sum_up(m);
}

/*
 * A run of a layer, its removals only with `removals`. Without an entry there is none. Members that
 * have expired become removals, as a rule.
 */
static bool write_run(
	struct set_model *m, struct set_model_layer *layer, bool removals, struct oplog_run *run)
{
	struct table_model *entries = calloc(1, sizeof(*entries));
	size_t most = 1 + below(m, below(m, 2) ? 40 : TABLE_MODEL_MAX);
	bool any, drops = m->dated && below(m, 4);

	MUST(entries);
	for (size_t i = 0; i < m->world.count; i++) {
		if (drops && layer->says[i] == SAYS_IN && has_expired(m, layer, i)) {
			layer->says[i] = SAYS_OUT;
			layer->dates[i] = 0;
		}
		if (layer->says[i] == SAYS_OUT && !removals)
			layer->says[i] = SAYS_NOTHING;
		if (layer->says[i] == SAYS_NOTHING)
			continue;
		table_model_add(
			entries, table_model_name(&m->world, i), layer->says[i] == SAYS_OUT);
		entries->list[entries->count - 1].date = layer->dates[i];
	}
	any = entries->count > 0;
	if (any)
		*run = cupboard_run(&m->cupboard, entries, most, &m->random);
	free(entries);
	return any;
}

/* Replaces the runs from `from` up to `to` by a run; by nothing if there is no layer. */
static void replace_runs(struct set_model *m, size_t from, size_t to,
	const struct set_model_layer *layer, struct oplog_run run)
{
	size_t more = layer != NULL, rest = m->run_count - to;

	MUST(from + more + rest <= SET_MODEL_RUNS);
	memmove(&m->runs[from + more], &m->runs[to], rest * sizeof(m->runs[0]));
	memmove(&m->layers[from + more], &m->layers[to], rest * sizeof(m->layers[0]));
	if (layer) {
		m->runs[from] = run;
		m->layers[from] = *layer;
	}
	m->run_count = from + more + rest;
}

void set_model_spill(struct set_model *m)
{
	struct set_model_layer layer;
	struct oplog_run run;
	bool over;

	if (m->run_count + 2 > SET_MODEL_RUNS)
		return;
	layer = m->head;
	if (write_run(m, &layer, false, &run))
		replace_runs(m, 0, 0, &layer, run);
	over = m->run_count > 0;
	layer = m->log;
	if (write_run(m, &layer, over, &run))
		replace_runs(m, m->run_count, m->run_count, &layer, run);
	empty(&m->head_text);
	empty(&m->log_text);
	memset(&m->head, 0, sizeof(m->head));
	memset(&m->log, 0, sizeof(m->log));
	sum_up(m);
}

/* The head is unchanged: a merge that met one would not be committed. */
void set_model_merge(struct set_model *m, size_t from, size_t to)
{
	struct set_model_layer merged = { .says = { SAYS_NOTHING } };
	struct oplog_run run = { .tables = 0 };

	if (to > m->run_count || to - from < 2 || buf_size(&m->head_text))
		return;
	for (size_t i = from; i < to; i++) {
		for (size_t k = 0; k < m->world.count; k++) {
			if (m->layers[i].says[k] == SAYS_NOTHING)
				continue;
			merged.says[k] = m->layers[i].says[k];
			merged.dates[k] = m->layers[i].dates[k];
		}
	}
	if (write_run(m, &merged, from > 0, &run))
		replace_runs(m, from, to, &merged, run);
	else
		replace_runs(m, from, to, NULL, run);
	sum_up(m);
}

/* The oldest runs have no members: the next one is the oldest then, and has a removal. */
static void lose_oldest(struct set_model *m)
{
	size_t to = 1 + below(m, m->run_count);

	if (buf_size(&m->head_text))
		return;
	memset(m->layers, 0, to * sizeof(m->layers[0]));
	set_model_merge(m, 0, to < 2 ? 2 : to);
}

static void begin(struct set_model *m, size_t runs)
{
	m->run_count = 0;
	m->marked = false;
	memset(&m->head, 0, sizeof(m->head));
	memset(&m->log, 0, sizeof(m->log));
	empty(&m->head_text);
	empty(&m->log_text);
	for (size_t i = 0; i < runs; i++) {
		set_model_append(m, 1 + below(m, i ? 30 : 3 * TABLE_MODEL_MAX));
		set_model_spill(m);
	}
	set_model_append(m, below(m, 40));
	if (below(m, 3) == 0)
		set_model_push(m, 1 + below(m, 20));
	sum_up(m);
}

void set_model_wait(struct set_model *m, uint32_t seconds)
{
	m->now += seconds;
	sum_up(m);
}

void set_model_change(struct set_model *m)
{
	if (m->dated && below(m, 2))
		set_model_wait(m, (uint32_t)(1 + below(m, 15)));
	switch (below(m, 12)) {
	case 0:
		begin(m, below(m, 5));
		break;
	case 1:
	case 2:
		set_model_spill(m);
		break;
	case 6:
		if (m->run_count > 1)
			lose_oldest(m);
		break;
	case 3:
		set_model_push(m, 1 + below(m, 5));
		break;
	case 4:
	case 5:
		if (m->run_count > 1) {
			size_t from = below(m, m->run_count - 1);
			set_model_merge(m, from, from + 2 + below(m, m->run_count - from - 1));
		}
		break;
	default:
		set_model_append(m, below(m, 15));
	}
}

void set_model_init(struct set_model *m, uint64_t seed, size_t runs, bool dated)
{
	memset(m, 0, sizeof(*m));
	m->dated = dated;
	m->now = 1424450096;
	m->random = seed;
	m->cupboard.random = ~seed;
	while (m->world.count == 0)
		table_model_random(&m->world, &m->random);
	begin(m, runs);
}

void set_model_fini(struct set_model *m)
{
	cupboard_free(&m->cupboard);
	buf_free(&m->base);
	buf_free(&m->head_text);
	buf_free(&m->log_text);
}

/* --- queries --- */

enum oplog_form set_model_update(struct set_view *v, struct slice base)
{
	enum oplog_form form = set_view_update(v, base);

	while (form == OPLOG_GOOD && set_view_is_unfolded(v))
		form = set_view_fold(v) ? OPLOG_GOOD : OPLOG_CORRUPT;
	return form;
}

bool set_model_load(struct cupboard *c, struct set_view *v)
{
	bool good = true;

	for (size_t i = 0; i < v->want_count && good; i++) {
		const struct cupboard_item *item =
			cupboard_find(c, set_view_want_id(v, &v->wants[i]));
		good = item && set_view_load(v, &v->wants[i], buf_slice(&item->data));
	}
	set_view_end_wants(v);
	return good;
}

bool set_model_ask(struct set_model *m, struct set_view *v, struct set_request *r)
{
	enum { ROUNDS = 20000 };

	set_view_advance(v, m->now);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t slices = v->slices;
		if (set_answer(v, r)) {
			/* A missing item may have been wanted. */
			set_view_end_wants(v);
			return r->answered;
		}
		if (r->shared)
			return false;
		if (v->slices != slices)
			continue;
		if (v->want_count == 0)
			return false;
		m->loaded += v->want_count;
		if (!set_model_load(&m->cupboard, v))
			return false;
	}
	return false;
}

void set_model_request(struct set_model *m, struct set_request *r, struct buf *members)
{
	char name[MEMBER_WORD_MAX];
	size_t first = below(m, m->world.count), last = below(m, m->world.count);

	*r = (struct set_request){ .verb = (enum set_verb)below(m, SET_INFO + 1),
		.random = random_next(&m->random) };
	r->count = below(m, 4) ? below(m, 20) : below(m, 2 * TABLE_MODEL_MAX);
	if (r->verb == SET_RANGE || r->verb == SET_COUNT) {
		if (below(m, 4))
			r->range.from = table_model_name(&m->world, first);
		r->range.has_to = below(m, 2);
		if (r->range.has_to)
			r->range.to = table_model_name(
				&m->world, below(m, 8) && last > first ? last : first);
		r->range.after = below(m, 2);
		r->bytes = below(m, 3) ? 0 : 1 + below(m, 300);
	}
	empty(members);
	if (r->verb == SET_RANGE && below(m, 3) == 0) {
		for (size_t n = below(m, 6); n > 0; n--)
			buf_add(members, &"aab01xx~**?"[below(m, 11)], 1);
		r->pattern = slice_of(members->data ? buf_slice(members).p : "", buf_size(members));
		r->bytes = 0;
		return;
	}
	if (r->verb == SET_SAMPLE && below(m, 2))
		r->sign = "-";
	r->repeats = r->verb == SET_SAMPLE && below(m, 2);
	for (size_t n = r->verb == SET_TEST ? 1 + below(m, 8) : 1;
		(r->verb == SET_TEST || r->verb == SET_HAS || r->verb == SET_TTL) && n > 0; n--) {
		struct slice member = table_model_name(&m->world, below(m, m->world.count));
		if (below(m, 4) == 0)
			member = slice_of(name,
				table_model_random_name(
					&m->random, (unsigned)below(m, TABLE_MODEL_WORLDS), name));
		buf_add_slice(members, member);
		if (r->verb == SET_TEST)
			BUF_ADD(members, " ");
	}
	r->members = buf_slice(members);
}

/* --- the expected answers --- */

/* The number of a member, or SIZE_MAX. */
static size_t number_of(const struct set_model *m, struct slice member)
{
	size_t i = table_model_seek(&m->world, member);

	return i < m->world.count && slice_equal(table_model_name(&m->world, i), member) ? i
											 : SIZE_MAX;
}

static bool in_range(const struct set_model *m, const struct set_range *range, size_t i)
{
	struct slice name = table_model_name(&m->world, i);
	int from = table_model_order(name, range->from);

	return m->in[i] && (from > 0 || (from == 0 && !range->after)) &&
		(!range->has_to || table_model_order(name, range->to) <= 0);
}

/* Each member once, in order if requested, one space between them, and none after the last. */
static bool agrees_all(const struct set_model *m, const struct set_request *r)
{
	struct slice rest = buf_slice(&r->shared->text), member;
	bool seen[TABLE_MODEL_MAX] = { false };
	size_t count = 0, bytes = 0, last = 0;

	for (; (member = slice_token(&rest)).n; count++) {
		size_t i = number_of(m, member);
		if (i == SIZE_MAX || !m->in[i] || seen[i] || (m->run_count && i < last))
			return false;
		seen[i] = true;
		last = i;
		bytes += member.n + (count > 0);
	}
	return count == m->count && buf_size(&r->shared->text) == bytes;
}

static bool agrees_test(const struct set_model *m, const struct set_request *r)
{
	struct slice rest = r->members, member, text = buf_slice(&r->text);
	size_t n = 0;

	for (; (member = slice_token(&rest)).n; n++) {
		size_t i = number_of(m, member);
		char digit = i != SIZE_MAX && m->in[i] ? '1' : '0';
		if (2 * n >= text.n || text.p[2 * n] != digit || (n && text.p[2 * n - 1] != ' '))
			return false;
	}
	return n && text.n == 2 * n - 1;
}

static bool agrees_has(const struct set_model *m, const struct set_request *r)
{
	size_t i = number_of(m, r->members);

	return r->number == (i != SIZE_MAX && m->in[i]) && buf_size(&r->text) == 0;
}

static bool agrees_ttl(const struct set_model *m, const struct set_request *r)
{
	size_t i = number_of(m, r->members);

	if (i == SIZE_MAX || !m->in[i])
		return r->number == SET_TTL_NONE;
	return r->number ==
		(m->dates[i] ? (uint64_t)(m->dates[i] - m->now) : (uint64_t)SET_TTL_NEVER);
}

/* The patterns of requests have no classes, which differ. */
static bool matches(const struct set_request *r, struct slice name)
{
	char pattern[16], text[MEMBER_WORD_MAX + 1];

	if (!r->pattern.p)
		return true;
	snprintf(pattern, sizeof(pattern), "%.*s", (int)r->pattern.n, r->pattern.p);
	snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
	return fnmatch(pattern, text, 0) == 0;
}

/* Whether more members follow may be open if the last one was the surplus one. */
static bool agrees_range(const struct set_model *m, const struct set_request *r)
{
	/* Without its last space. */
	struct slice text = r->shared ? buf_slice(&r->shared->text) : buf_slice(&r->text);
	uint64_t count = 0;
	size_t at = 0, left = 0;
	bool full = r->count == 0;

	for (size_t i = 0; i < m->world.count; i++) {
		struct slice name = table_model_name(&m->world, i);
		if (!in_range(m, &r->range, i) || !matches(r, name))
			continue;
		if (full) {
			left++;
			continue;
		}
		if (text.n - at < name.n || !slice_equal(slice_of(text.p + at, name.n), name) ||
			(at + name.n < text.n ? text.p[at + name.n] != ' ' : !r->shared))
			return false;
		at += name.n + 1;
		full = ++count == r->count || (r->bytes && at >= r->bytes);
	}
	return at == text.n + (r->shared != NULL) &&
		(r->count == 0 || (left ? r->more : !r->more || full));
}

static bool agrees_count(const struct set_model *m, const struct set_request *r)
{
	uint64_t count = 0;

	for (size_t i = 0; i < m->world.count; i++)
		count += in_range(m, &r->range, i);
	return r->number == count;
}

static bool agrees_sample(const struct set_model *m, const struct set_request *r)
{
	struct slice text = buf_slice(&r->text), rest = text, token;
	bool seen[TABLE_MODEL_MAX] = { false };
	uint64_t count = 0;
	size_t bytes = 0, sign = r->sign ? strlen(r->sign) : 0;

	for (; (token = slice_token(&rest)).n; count++) {
		size_t i = token.n < sign ? SIZE_MAX : number_of(m, slice_skip(token, sign));
		if (i == SIZE_MAX || !m->in[i] || (seen[i] && !r->repeats) ||
			(sign && memcmp(token.p, r->sign, sign) != 0))
			return false;
		seen[i] = true;
		bytes += token.n + 1;
	}
	if (r->repeats ? m->count == 0 : r->count > m->count)
		return count == m->count && bytes == text.n;
	return count == r->count && bytes == text.n;
}

static bool agrees_info(const struct set_model *m, const struct set_request *r)
{
	const struct set_info *info = &r->info;
	uint64_t tables = 0, entries = 0, removals = 0, bytes = 0;

	for (size_t i = 0; i < m->run_count; i++) {
		tables += m->runs[i].tables;
		entries += m->runs[i].entries;
		removals += m->runs[i].removals;
		bytes += m->runs[i].bytes;
	}
	return info->members == m->count && info->base_bytes == buf_size(&m->base) &&
		info->log_bytes == buf_size(&m->head_text) + buf_size(&m->log_text) &&
		info->tokens ==
		oplog_count(buf_slice(&m->head_text)) + oplog_count(buf_slice(&m->log_text)) &&
		info->runs == m->run_count && info->tables == tables && info->entries == entries &&
		info->removals == removals && info->table_bytes == bytes && info->waste >= 0.0 &&
		info->waste <= 1.0;
}

bool set_model_agrees(const struct set_model *m, const struct set_request *r)
{
	static bool (*const verbs[])(const struct set_model *, const struct set_request *) = {
		[SET_ALL] = agrees_all,
		[SET_TEST] = agrees_test,
		[SET_HAS] = agrees_has,
		[SET_SAMPLE] = agrees_sample,
		[SET_RANGE] = agrees_range,
		[SET_COUNT] = agrees_count,
		[SET_TTL] = agrees_ttl,
		[SET_INFO] = agrees_info,
	};

	return verbs[r->verb](m, r);
}
