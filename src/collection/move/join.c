#include "collection/move/join.h"

#include "collection/text/lease.h"
#include "collection/text/oplog.h"
#include "collection/text/table.h"
#include "util/num.h"

/* A count, as memcached's incr leaves it: digits, perhaps with spaces behind them. */
static bool is_number(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
}

/* Whether the key ends with the name of a time bucket: YYYYMMDD[HH[MM]]. */
static bool is_bucket(struct slice key)
{
	size_t digits = 0;

	while (digits < key.n && key.p[key.n - 1 - digits] >= '0' && key.p[key.n - 1 - digits] <= '9')
		digits++;
	return digits == 8 || digits == 10 || digits == 12;
}

/* Counts are added up. Of other numbers the larger one stays, so that no id is given twice. */
static void join_numbers(struct slice key, uint64_t a, uint64_t b, struct buf *out)
{
	char digits[NUM_U64_MAX];
	uint64_t number = is_bucket(key) ? a + b : a > b ? a : b;

	buf_add(out, digits, num_format_u64(digits, number));
}

static bool read_base(struct slice value, struct oplog_base *out)
{
	return oplog_split(value, out) && value.n && oplog_is_log(out->log);
}

bool join_has_parts(struct slice value)
{
	struct oplog_base base;

	return read_base(value, &base) && base.refs.n > 0;
}

/* The references of another base, without those that are there already: both may be of one item. */
static void add_refs(struct buf *out, struct slice there, struct slice refs)
{
	struct slice word;

	while ((word = slice_token(&refs)).n) {
		if (word.n <= OPLOG_ID || !memmem(there.p, there.n, word.p, 1 + OPLOG_ID))
			buf_add_word(out, word);
	}
}

/* The order of elements of two lists is that of no clock, so a log may move behind references. */
static void join_bases(const struct oplog_base *here, const struct oplog_base *former, struct buf *out)
{
	const struct oplog_base *marked = here->block.n ? here : former;

	buf_add_slice(out, here->head);
	if (!marked->block.n) {
		buf_add_slice(out, here->log);
		buf_add_slice(out, former->head);
		buf_add_slice(out, former->log);
		return;
	}
	if (!here->block.n)
		buf_add_slice(out, here->log);
	buf_add_slice(out, former->block.n && !here->block.n ? former->head : slice_of("", 0));
	buf_add(out, marked->block.p, (size_t)(marked->refs.p - marked->block.p));
	buf_add_slice(out, here->refs);
	add_refs(out, here->refs, former->refs);
	if (here->block.n) {
		buf_add_slice(out, here->log);
		buf_add_slice(out, former->head);
	}
	buf_add_slice(out, former->log);
}

/* A base with only a log may be of a set or of a list. */
static bool are_alike(const struct oplog_base *a, const struct oplog_base *b)
{
	return !a->block.n || !b->block.n || a->is_list == b->is_list;
}

uint32_t join_items(struct slice key, struct join_item former, struct join_item here, struct buf *out)
{
	struct oplog_base a, b;
	bool good_here = read_base(here.value, &a), good_former = read_base(former.value, &b);
	uint64_t m, n;

	if (is_number(here.value, &m) && is_number(former.value, &n)) {
		join_numbers(key, m, n, out);
		return here.flags;
	}
	/* An emptied set or list has no words. */
	if (good_here && former.value.n == 0) {
		buf_add_slice(out, here.value);
		return here.flags;
	}
	if (good_here && good_former && are_alike(&a, &b)) {
		join_bases(&a, &b, out);
		return here.flags;
	}
	if (a.form == OPLOG_LOADING && good_former && !b.block.n) {
		/* Somebody loads it, and these are words of others. */
		buf_add_slice(out, here.value);
		buf_add_slice(out, former.value);
		return here.flags;
	}
	buf_add_slice(out, former.value);
	return former.flags;
}

static void add_other_words(struct buf *out, struct slice log, const struct table *table)
{
	struct slice word;
	bool removed;

	while ((word = slice_token(&log)).n) {
		if (word.n > 1 + MEMBER_MAX || !table_find(table, slice_skip(word, 1), &removed))
			buf_add_word(out, word);
	}
}

void join_drop_words(struct buf *here, struct slice data)
{
	struct buf kept = BUF_EMPTY;
	struct oplog_base base;
	struct table table;

	if (!read_base(buf_slice(here), &base) || base.is_list || !table_open(&table, data))
		return;
	add_other_words(&kept, base.head, &table);
	buf_add_slice(&kept, base.block);
	add_other_words(&kept, base.log, &table);
	buf_free(here);
	*here = kept;
}
