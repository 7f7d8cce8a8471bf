#include "collection/move/join.h"

#include "collection/text/date.h"
#include "collection/text/lease.h"
#include "collection/text/oplog.h"
#include "collection/text/packed.h"
#include "util/num.h"

/* Parses a count as memcached's incr and decr leave it: digits, perhaps followed by spaces. */
static bool is_number(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
}

/* Removes a number of two digits from the front. Returns false if it is not in the range. */
static bool take_two(struct slice *digits, int least, int most)
{
	int number = 10 * (digits->p[0] - '0') + (digits->p[1] - '0');

	*digits = slice_skip(*digits, 2);
	return number >= least && number <= most;
}

/* Returns whether these are the digits of a time bucket: YYYYMMDD[HH[MM]]. */
static bool is_bucket_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] < '0' || name.p[i] > '9')
			return false;
	}
	name = slice_skip(name, 4);
	return take_two(&name, 1, 12) && take_two(&name, 1, 31) &&
		(!name.n || take_two(&name, 0, 23)) && (!name.n || take_two(&name, 0, 59));
}

/* Returns whether the key is that of an event counter with this rule: <type><separator><bucket>. */
static bool is_made_by(const struct rules *rules, const struct event_rule *rule, struct slice key)
{
	static const size_t lengths[] = {
		[GRANULARITY_DAY] = 8, [GRANULARITY_HOUR] = 10, [GRANULARITY_MINUTE] = 12
	};
	size_t tail = rule->separator.n + lengths[rule->bucket];
	struct slice type = key;

	if (key.n <= tail)
		return false;
	type.n -= tail;
	key = slice_skip(key, type.n);
	return slice_starts(key, rule->separator) &&
		is_bucket_name(slice_skip(key, rule->separator.n)) &&
		rules_event(rules, type) == rule;
}

static bool is_event_counter(const struct rules *rules, struct slice key)
{
	static const struct rules none;

	rules = rules ? rules : &none;
	if (is_made_by(rules, rules_event(&none, key), key))
		return true;
	for (size_t i = 0; i < rules->event_count; i++) {
		if (is_made_by(rules, &rules->events[i], key))
			return true;
	}
	return false;
}

static bool split_base(struct slice value, struct oplog_base *out)
{
	return oplog_split(value, out) && value.n && oplog_is_log(out->log);
}

int64_t join_date(struct slice value)
{
	struct oplog_base base;

	return split_base(value, &base) || base.form == OPLOG_LOADING ? date_last(value)
								      : DATE_NONE;
}

/* Returns whether two bases, both of sets or both of lists, have a common part. */
static bool share_parts(const struct oplog_base *a, const struct oplog_base *b)
{
	struct oplog_base both = { .is_list = a->is_list,
		.ref_count = a->ref_count + b->ref_count };
	struct buf refs = BUF_EMPTY;
	bool shares;

	buf_add_slice(&refs, a->refs);
	buf_add_slice(&refs, b->refs);
	both.refs = buf_slice(&refs);
	shares = oplog_refs_repeat(&both);
	buf_free(&refs);
	return shares;
}

/* Returns the id of the first part of a base, which has some. */
static struct slice first_part(const struct oplog_base *base)
{
	struct slice refs = base->refs;
	struct oplog_ref ref;
	struct oplog_run run;

	if (base->is_list)
		return oplog_next_ref(&refs, &ref) ? ref.id : SLICE("");
	return oplog_next_run(&refs, &run) ? run.id : SLICE("");
}

bool join_may_succeed(struct slice copy, struct slice value, struct slice *part)
{
	struct oplog_base later, base;

	*part = SLICE("");
	if (!split_base(value, &later) || later.ref_count == 0)
		return false;
	if (split_base(copy, &base) && base.ref_count && base.is_list == later.is_list &&
		!share_parts(&base, &later))
		*part = first_part(&base);
	return true;
}

/*
 * Appends the references of another base, except for those already there: both bases
 * may be of one item.
 */
static void add_refs(struct buf *out, struct slice there, struct slice refs)
{
	struct slice word;

	while ((word = slice_token(&refs)).n) {
		if (word.n <= OPLOG_ID || !memmem(there.p, there.n, word.p, 1 + OPLOG_ID))
			buf_add_word(out, word);
	}
}

/*
 * Both have a block. The words of the former log about members in runs of the new server were
 * dropped before, and so were the words of the new server's head: see join_drop_words.
 */
static void join_blocks(
	const struct oplog_base *former, const struct oplog_base *here, struct buf *out)
{
	buf_add_slice(out, former->head);
	oplog_add_mark(out, former->is_list, former->wide || here->wide);
	buf_add_slice(out, former->refs);
	add_refs(out, former->refs, here->refs);
	buf_add_slice(out, former->log);
	buf_add_slice(out, here->head);
	buf_add_slice(out, here->log);
}

/* A base with only a log may be that of a set or of a list. */
static bool are_alike(const struct oplog_base *a, const struct oplog_base *b)
{
	return !a->block.n || !b->block.n || a->is_list == b->is_list;
}

/*
 * Reads a base, or the words of a base that is being loaded, which are stored in `words`.
 * Returns false if the value is not a set or list.
 */
static bool read_words(struct slice value, struct oplog_base *out, struct buf *words)
{
	struct lease_base loading;

	if (split_base(value, out))
		return true;
	if (out->form != OPLOG_LOADING || !lease_split(value, &loading))
		return false;
	loading.loaded.n = 0;
	lease_complete(&loading, slice_of("", 0), slice_of("", 0), words);
	return oplog_split(buf_slice(words), out) && oplog_is_log(out->log);
}

/* A base that is being loaded takes only words, no parts. */
static bool can_join(struct slice here, const struct oplog_base *former)
{
	struct oplog_base base;
	bool is_base = split_base(here, &base);

	if (here.n == 0)
		return true;
	return (is_base || (base.form == OPLOG_LOADING && !former->refs.n)) &&
		are_alike(&base, former);
}

enum join join_of(const struct rules *rules, struct slice key, struct slice former,
	struct slice here, bool is_copy)
{
	struct buf words = BUF_EMPTY;
	struct oplog_base base;
	uint64_t m, n;
	bool joins;

	if (is_number(here, &m) && is_number(former, &n)) {
		if (is_event_counter(rules, key))
			return JOIN_BOTH;
		/*
		 * The counter was created again at the former server after it had been moved,
		 * or was still counted there after it was copied.
		 */
		return !is_copy || m >= n ? JOIN_HERE : JOIN_FORMER;
	}
	/* An emptied set or list has no words. */
	if (former.n == 0 && split_base(here, &base))
		return JOIN_HERE;
	joins = read_words(former, &base, &words) && can_join(here, &base);
	buf_free(&words);
	return joins ? JOIN_BOTH : is_copy ? JOIN_FORMER : JOIN_HERE;
}

void join_values(struct slice former, struct slice here, struct buf *out)
{
	struct buf words = BUF_EMPTY;
	struct oplog_base f, h;
	bool is_base = split_base(here, &h);
	int64_t date;
	uint64_t m, n;

	if (is_number(here, &m) && is_number(former, &n)) {
		buf_add_u64(out, m + n);
	} else if (!read_words(former, &f, &words)) {
		buf_add_slice(out, here);
	} else if (is_base && f.block.n && h.block.n) {
		join_blocks(&f, &h, out);
	} else {
		buf_add_slice(out, f.head);
		/* A base that is being loaded has a mark of its own. */
		if (is_base || here.n == 0)
			buf_add_slice(out, f.block);
		buf_add_slice(out, f.log);
		buf_add_slice(out, here);
	}
	date = join_date(here);
	date = date == DATE_NONE ? join_date(former) : date;
	if (date != DATE_NONE)
		date_set(out, date);
	buf_free(&words);
}

static void add_other_words(struct buf *out, struct slice log, const struct table *table)
{
	struct slice word;
	bool gone;

	while ((word = slice_token(&log)).n) {
		struct slice member = expiry_member(slice_skip(word, 1));
		if (word.p[0] == '~' || member.n > MEMBER_WORD_MAX ||
			!table_find(table, member, 0, &gone))
			buf_add_word(out, word);
	}
}

bool join_needs_runs(struct slice former, struct slice here)
{
	struct oplog_base f, h;

	return split_base(former, &f) && split_base(here, &h) && f.block.n && h.refs.n &&
		!h.is_list && f.log.n + h.head.n > 0;
}

static void drop_words(struct buf *value, const struct table *table, bool of_log)
{
	struct buf kept = BUF_EMPTY;
	struct oplog_base base;

	if (!split_base(buf_slice(value), &base))
		return;
	add_other_words(&kept, base.head, table);
	buf_add_slice(&kept, base.block);
	if (of_log)
		add_other_words(&kept, base.log, table);
	else
		buf_add_slice(&kept, base.log);
	buf_free(value);
	*value = kept;
}

void join_drop_words(struct buf *former, struct buf *here, struct slice data)
{
	struct buf text = BUF_EMPTY;
	struct table table;

	if (packed_open(&table, data, &text)) {
		drop_words(former, &table, true);
		drop_words(here, &table, false);
	}
	buf_free(&text);
}
