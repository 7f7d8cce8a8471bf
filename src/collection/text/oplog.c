#include "collection/text/oplog.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/text/date.h"
#include "collection/text/expiry.h"
#include "collection/text/held.h"
#include "util/alloc.h"
#include "util/check.h"
#include "util/num.h"
#include "util/random.h"

static bool is_lower_word(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
			return false;
	}
	return true;
}

/*
 * Removes a number from the front, up to and including the byte `end`; if `end` is 0, up to
 * the end of `rest`.
 */
static bool take_number_until(struct slice *rest, char end, uint32_t *out)
{
	const char *at = end ? memchr(rest->p, end, rest->n) : rest->p + rest->n;
	size_t n;

	if (!at)
		return false;
	n = (size_t)(at - rest->p);
	if (!num_parse_u32(slice_of(rest->p, n), out))
		return false;
	*rest = slice_skip(*rest, end ? n + 1 : n);
	return true;
}

bool oplog_is_id(struct slice id, enum oplog_kind kind)
{
	return id.n == OPLOG_ID && id.p[0] == (char)kind && is_lower_word(id);
}

static bool parse_check(struct slice digits, uint64_t *out)
{
	return digits.n == NUM_HEX && num_parse_hex(digits, out);
}

/* Removes .<check> from the end, if it is there. No number before it has as many digits. */
static void drop_check(struct slice *id, struct oplog_check *out)
{
	size_t n = id->n > NUM_HEX ? id->n - NUM_HEX - 1 : id->n;

	out->known =
		n < id->n && id->p[n] == '.' && parse_check(slice_skip(*id, n + 1), &out->value);
	if (out->known)
		id->n = n;
}

/* s<random>.<count>.<size>, or of 0.1.0 l<random>.<count>.<size> */
static bool parse_id(struct slice id, struct oplog_ref *out)
{
	struct slice rest;

	if (id.n < OPLOG_ID + 4 || id.n > OPLOG_ID_MAX || id.p[OPLOG_ID] != '.')
		return false;
	rest = slice_of(id.p, OPLOG_ID);
	if (!oplog_is_id(rest, OPLOG_LIST) && !oplog_is_id(rest, OPLOG_OLD_LIST))
		return false;
	out->id = id;
	rest = slice_skip(id, OPLOG_ID + 1);
	return take_number_until(&rest, '.', &out->count) &&
		take_number_until(&rest, 0, &out->kilobytes) && out->count;
}

/* <skip>:<keep> */
static bool parse_window(struct slice window, struct oplog_ref *out)
{
	return take_number_until(&window, ':', &out->skip) &&
		take_number_until(&window, 0, &out->keep) && out->keep &&
		(uint64_t)out->skip + out->keep <= out->count;
}

static bool parse_ref(struct slice token, struct oplog_ref *out)
{
	const char *colon = memchr(token.p, ':', token.n);
	size_t n = colon ? (size_t)(colon - token.p) : token.n;
	struct slice id = slice_of(token.p, n);

	drop_check(&id, &out->check);
	if (!parse_id(id, out))
		return false;
	out->skip = 0;
	out->keep = out->count;
	return !colon || parse_window(slice_skip(token, n + 1), out);
}

/* Removes a token @... from the front; `token` is without the @. */
static bool take_token(struct slice *refs, struct slice *token)
{
	const char *end = refs->n ? memchr(refs->p, ' ', refs->n) : NULL;

	if (!end || refs->p[0] != '@')
		return false;
	*token = slice_of(refs->p + 1, (size_t)(end - refs->p) - 1);
	*refs = slice_skip(*refs, token->n + 2);
	return true;
}

bool oplog_next_ref(struct slice *refs, struct oplog_ref *out)
{
	struct slice rest = *refs, token;

	if (!take_token(&rest, &token) || !parse_ref(token, out))
		return false;
	*refs = rest;
	return true;
}

/* Removes the next numbers of a reference, each of which a dot follows. */
static bool take_numbers(struct slice *rest, uint64_t *const numbers[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t number;
		if (!take_number_until(rest, '.', &number))
			return false;
		*numbers[i] = number;
	}
	return true;
}

/* <id>.<tables>.<entries>.<removals>.<bytes>[.<dated>.<mean>].<check> */
static bool parse_run(struct slice token, struct oplog_run *out)
{
	struct slice rest;
	uint64_t *const numbers[] = { &out->tables, &out->entries, &out->removals, &out->bytes },
			*const dates[] = { &out->dated, &out->mean };

	out->dated = out->mean = 0;
	if (token.n <= OPLOG_ID || token.p[OPLOG_ID] != '.')
		return false;
	out->id = slice_of(token.p, OPLOG_ID);
	out->indexed = oplog_is_id(out->id, OPLOG_INDEX);
	if (!out->indexed && !oplog_is_id(out->id, OPLOG_TABLE))
		return false;
	rest = slice_skip(token, OPLOG_ID + 1);
	if (!take_numbers(&rest, numbers, sizeof(numbers) / sizeof(*numbers)) ||
		(rest.n > NUM_HEX &&
			(!take_numbers(&rest, dates, sizeof(dates) / sizeof(*dates)) ||
				!out->dated || !out->mean)))
		return false;
	return parse_check(rest, &out->check) && out->entries &&
		out->removals + out->dated <= out->entries &&
		(out->indexed ? out->tables > 1 : out->tables == 1);
}

bool oplog_next_run(struct slice *refs, struct oplog_run *out)
{
	struct slice rest = *refs, token;

	if (!take_token(&rest, &token) || !parse_run(token, out))
		return false;
	*refs = rest;
	return true;
}

bool oplog_same_run(const struct oplog_run *a, const struct oplog_run *b)
{
	return slice_equal(a->id, b->id) && a->check == b->check && a->tables == b->tables &&
		a->entries == b->entries && a->removals == b->removals && a->bytes == b->bytes &&
		a->dated == b->dated && a->mean == b->mean;
}

/* Returns the offset of the first token that begins with @, or the size of the log. */
static size_t find_block(struct slice log)
{
	const char *at = log.p, *end = log.p + log.n;

	/* memchr compares many bytes at a time, memmem only one. */
	while (at < end && (at = memchr(at, '@', (size_t)(end - at)))) {
		if (at == log.p || at[-1] == ' ')
			return (size_t)(at - log.p);
		at++;
	}
	return log.n;
}

bool oplog_has_block(struct slice log)
{
	return find_block(log) < log.n;
}

const char *oplog_extra_end(const char *p, const char *end)
{
	const char *after = date_end(p, end);

	return after ? after : held_end(p, end);
}

const char *oplog_dated_token_end(const char *p, const char *end)
{
	const char *after = oplog_token_end(p, end);
	size_t size;

	if (after || *p != '+')
		return after;
	p = expiry_word_end(p + 1, end, &size);
	return p && size <= MEMBER_WORD_MAX ? p + 1 : NULL;
}

bool oplog_is_log(struct slice log)
{
	const char *p = log.p, *end = log.p + log.n;

	while (p && p < end)
		p = *p == '~' ? oplog_extra_end(p, end) : oplog_dated_token_end(p, end);
	return p == end;
}

bool oplog_is_narrow(struct slice log)
{
	struct slice token;

	while ((token = slice_token(&log)).n) {
		if (!oplog_is_narrow_word(slice_skip(token, 1)))
			return false;
	}
	return true;
}

void oplog_add_mark(struct buf *out, bool is_list, bool wide)
{
	static const char *const marks[2][2] = { { OPLOG_SET_MARK, OPLOG_WIDE_SET_MARK },
		{ OPLOG_LIST_MARK, "@list.3 " } };
	const char *mark = marks[is_list][wide];

	buf_add(out, mark, strlen(mark));
}

/*
 * Returns the form for the version in a mark: a number without leading zeroes, and not list.1,
 * which is written `list`.
 */
static enum oplog_form form_of(struct slice version, bool is_list, bool *wide)
{
	bool first = slice_equal(version, SLICE("1"));

	for (size_t i = 0; i < version.n; i++) {
		if (version.p[i] < '0' || version.p[i] > '9')
			return OPLOG_CORRUPT;
	}
	if (version.n == 0 || version.p[0] == '0' || (first && is_list))
		return OPLOG_CORRUPT;
	if (slice_equal(version, SLICE("2")))
		return OPLOG_LOADING;
	*wide = slice_equal(version, SLICE("3"));
	return first || *wide ? OPLOG_GOOD : OPLOG_NEWER;
}

/* Removes the mark of the block at the start of `rest`, and returns its form. */
static enum oplog_form take_mark(struct slice *rest, struct oplog_base *out)
{
	struct slice token, block = *rest;

	out->is_list = true;
	if (!take_token(rest, &token))
		return OPLOG_CORRUPT;
	if (slice_equal(token, SLICE("list")))
		return OPLOG_GOOD;
	out->is_list = !slice_starts(token, SLICE("set."));
	if (!out->is_list)
		return form_of(slice_skip(token, 4), false, &out->wide);
	if (slice_starts(token, SLICE("list.")))
		return form_of(slice_skip(token, 5), true, &out->wide);
	*rest = block;
	if (token.n > OPLOG_ID && token.p[OPLOG_ID] == '.' && memchr("cd", token.p[0], 2) &&
		is_lower_word(slice_of(token.p, OPLOG_ID)))
		return OPLOG_OUTDATED;
	return OPLOG_GOOD;
}

/* Removes the mark of the block at the start of `rest`, and returns its form. */
static void count_refs(struct slice *rest, struct oplog_base *out)
{
	struct oplog_ref ref;
	struct oplog_run run;

	while (out->is_list ? oplog_next_ref(rest, &ref) : oplog_next_run(rest, &run))
		out->ref_count++;
}

/* Removes the lease from the references of a base that is being loaded; only lease.c parses it. */
static bool take_lease_ref(struct slice *rest)
{
	struct slice token;

	return take_token(rest, &token) && slice_starts(token, SLICE("fill."));
}

bool oplog_split(struct slice base, struct oplog_base *out)
{
	size_t at = find_block(base);
	struct slice rest = slice_skip(base, at);

	*out = (struct oplog_base){ .form = OPLOG_GOOD, .head = slice_of(base.p, 0) };
	out->refs = out->block = out->head;
	out->log = base;
	if (at == base.n)
		return true;
	out->head = slice_of(base.p, at);
	out->form = take_mark(&rest, out);
	if (out->form == OPLOG_OUTDATED && !oplog_is_log(out->head))
		out->form = OPLOG_CORRUPT;
	if (out->form != OPLOG_GOOD && out->form != OPLOG_LOADING)
		return false;
	out->refs = rest;
	count_refs(&rest, out);
	if (out->form == OPLOG_LOADING && take_lease_ref(&rest))
		count_refs(&rest, out);
	else if (out->form == OPLOG_LOADING)
		out->form = OPLOG_CORRUPT;
	out->refs.n -= rest.n;
	out->block = slice_of(base.p + at, base.n - at - rest.n);
	out->log = rest;
	if (oplog_has_block(rest) || !oplog_is_log(out->head))
		out->form = OPLOG_CORRUPT;
	return out->form == OPLOG_GOOD;
}

static struct slice skip_tokens(struct slice log, size_t count)
{
	const char *space;

	while (count-- && log.n && (space = memchr(log.p, ' ', log.n)))
		log = slice_skip(log, (size_t)(space - log.p) + 1);
	return log;
}

bool oplog_matches(struct oplog_check check, struct slice data)
{
	return !check.known || check.value == check_of(data);
}

struct slice oplog_window(struct slice data, const struct oplog_ref *ref)
{
	struct slice shown, behind;

	if (ref->skip == 0 && ref->keep == ref->count)
		return data;
	shown = skip_tokens(data, ref->skip);
	behind = skip_tokens(shown, ref->keep);
	return slice_of(shown.p, shown.n - behind.n);
}

static void add_check(struct buf *out, uint64_t check)
{
	char digits[NUM_HEX];

	num_write_hex(digits, check);
	BUF_ADD(out, ".");
	buf_add(out, digits, sizeof(digits));
}

void oplog_add_ref(struct buf *out, const struct oplog_ref *ref)
{
	BUF_ADD(out, "@");
	buf_add_slice(out, ref->id);
	if (ref->check.known)
		add_check(out, ref->check.value);
	if (ref->skip || ref->keep < ref->count) {
		BUF_ADD(out, ":");
		buf_add_u64(out, ref->skip);
		BUF_ADD(out, ":");
		buf_add_u64(out, ref->keep);
	}
	BUF_ADD(out, " ");
}

void oplog_add_run(struct buf *out, const struct oplog_run *run)
{
	const uint64_t numbers[] = { run->tables, run->entries, run->removals, run->bytes,
		run->dated, run->mean };
	size_t count = sizeof(numbers) / sizeof(*numbers) - (run->dated ? 0 : 2);

	BUF_ADD(out, "@");
	buf_add_slice(out, run->id);
	for (size_t i = 0; i < count; i++) {
		BUF_ADD(out, ".");
		buf_add_u64(out, numbers[i]);
	}
	add_check(out, run->check);
	BUF_ADD(out, " ");
}

void oplog_new_id(enum oplog_kind kind, unsigned behind, uint64_t *random, char id[OPLOG_ID])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	uint64_t bits = random_next(random);

	assert(behind < 10);
	id[0] = (char)kind;
	for (int i = 1; i < OPLOG_ID; i++) {
		/* The first is a digit, the second and the last are letters. */
		unsigned least = i == 2 || i == OPLOG_ID - 1 ? 10 : 0,
			 count = i == 1 ? behind + 1 : 36 - least;
		id[i] = letters[least + bits % count];
		bits /= count;
	}
}

void oplog_add_id(struct buf *out, const char group[OPLOG_ID], size_t number, size_t bytes)
{
	buf_add(out, group, OPLOG_ID);
	BUF_ADD(out, ".");
	buf_add_u64(out, number);
	BUF_ADD(out, ".");
	buf_add_u64(out, (bytes + 1023) / 1024);
}

size_t oplog_cut(struct slice log, size_t max)
{
	const char *space;

	if (log.n <= max)
		return log.n;
	space = memrchr(log.p, ' ', max);
	if (!space)
		space = slice_find(log.p + max, log.p + log.n - 1, ' ');
	return (size_t)(space - log.p) + 1;
}

size_t oplog_cut_end(struct slice log, size_t max)
{
	const char *space;

	if (log.n <= max)
		return log.n;
	space = memchr(log.p + log.n - max - 1, ' ', max);
	if (!space)
		space = memrchr(log.p, ' ', log.n - 1);
	return space ? (size_t)(log.p + log.n - space) - 1 : log.n;
}

size_t oplog_count(struct slice log)
{
	size_t count = 0;

	for (size_t i = 0; i < log.n; i++)
		count += log.p[i] == ' ';
	return count;
}

static int oplog_compare_ids(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : memcmp(x->p, y->p, x->n);
}

static bool ids_repeat(struct slice *ids, size_t count)
{
	if (count < 2)
		return false;
	qsort(ids, count, sizeof(*ids), oplog_compare_ids);
	for (size_t i = 1; i < count; i++) {
		if (slice_equal(ids[i - 1], ids[i]))
			return true;
	}
	return false;
}

bool oplog_refs_repeat(const struct oplog_base *base)
{
	struct slice *ids = xcalloc(base->ref_count + 1, sizeof(*ids)), refs = base->refs;
	struct oplog_ref ref;
	struct oplog_run run;
	size_t count = 0;
	bool repeat;

	while (count < base->ref_count &&
		(base->is_list ? oplog_next_ref(&refs, &ref) : oplog_next_run(&refs, &run)))
		ids[count++] = base->is_list ? ref.id : run.id;
	repeat = ids_repeat(ids, count);
	free(ids);
	return repeat;
}
