#include "collection/move/join.h"

#include <assert.h>

#include "collection/copies/join.h"
#include "collection/text/date.h"
#include "collection/text/lease.h"
#include "collection/text/oplog.h"
#include "collection/text/packed.h"
#include "collection/text/part_key.h"
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

/* --- bases of sets with two copies --- */

static bool has_stamps(const struct copy *copy)
{
	return copy->horizon || copy->log.n;
}

/* Returns whether the closed part is the base of a set, which may be being loaded. */
static bool is_set(struct slice closed)
{
	struct lease_base loading;
	struct oplog_base base;

	if (!closed.n)
		return true;
	if (oplog_split(closed, &base))
		return oplog_is_log(base.log) && !(base.block.n && base.is_list);
	return base.form == OPLOG_LOADING && !base.is_list && lease_split(closed, &loading) &&
		oplog_is_log(loading.log);
}

/* Returns the last date of the log. Of two with one stamp, either will do until a rewrite. */
static bool read_log(const struct copy *copy, int64_t *date)
{
	struct copy_reader reader = { .rest = copy->log, .largest = copy->horizon };
	uint64_t last = copy->horizon + 1;
	struct copy_word word;
	enum copy_read read;

	while ((read = copy_next(&reader, &word)) == COPY_WORD) {
		if (!word.token.n || word.token.p[0] != '~' || word.stamp < last)
			continue;
		last = word.stamp;
		*date = date_last(slice_of(word.token.p, word.token.n + 1));
	}
	return read == COPY_END;
}

static bool is_copy(const struct copy *copy)
{
	int64_t date;

	return is_set(copy->closed) && read_log(copy, &date);
}

/*
 * Reads two bases of a set, of which at least one has stamps. The other one may have had one copy
 * so far.
 */
static bool read_copies(struct slice former, struct slice here, struct copy *f, struct copy *h)
{
	return copy_parse(former, f) && copy_parse(here, h) && (has_stamps(f) || has_stamps(h)) &&
		is_copy(f) && is_copy(h);
}

/*
 * The same as split_base, for the closed part of a base without a horizon, which its groups follow.
 * Returns false if there is a horizon: then closed parts are not joined.
 */
static bool split_open(struct slice value, struct oplog_base *out, struct slice *groups)
{
	struct copy copy;

	if (!copy_parse(value, &copy) || copy.horizon)
		return false;
	*groups = copy.log;
	return split_base(copy.closed, out);
}

/*
 * Two closed parts without a horizon are joined as those of sets with one copy. The stamps stay as
 * they are. Words that were acknowledged before either base was put there may be missing in it.
 */
static void join_copies(struct copy *former, struct copy *here, uint64_t seed, struct buf *out)
{
	struct buf closed = BUF_EMPTY;
	struct copy_join join;
	enum copy_read read;

	if (!former->horizon && !here->horizon) {
		join_values(former->closed, here->closed, seed, &closed);
		former->closed = here->closed = buf_slice(&closed);
	}
	copy_join_begin(&join, former, here, 0,
		former->fill > here->fill ? former->fill : here->fill, seed);
	while ((read = copy_join_step(&join)) == COPY_WORD)
		;
	assert(read == COPY_END);
	buf_add_slice(out, buf_slice(&join.out));
	copy_join_free(&join);
	buf_free(&closed);
}

/* --- all bases --- */

int64_t join_date(struct slice value)
{
	struct oplog_base base;
	struct copy copy;
	int64_t date;

	if (copy_parse(value, &copy) && has_stamps(&copy)) {
		date = date_last(copy.closed);
		return is_set(copy.closed) && read_log(&copy, &date) ? date : DATE_NONE;
	}
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
	struct copy f, h;
	uint64_t m, n;
	bool joins;

	if (is_number(here, &m) && is_number(former, &n)) {
		if (is_event_counter(rules, part_key_first_base(key)))
			return JOIN_BOTH;
		/*
		 * The counter was created again at the former server after it had been moved,
		 * or was still counted there after it was copied.
		 */
		return !is_copy || m >= n ? JOIN_HERE : JOIN_FORMER;
	}
	if (read_copies(former, here, &f, &h))
		return former.n ? JOIN_BOTH : JOIN_HERE;
	/* An emptied set or list has no words. */
	if (former.n == 0 && split_base(here, &base))
		return JOIN_HERE;
	joins = read_words(former, &base, &words) && can_join(here, &base);
	buf_free(&words);
	return joins ? JOIN_BOTH : is_copy ? JOIN_FORMER : JOIN_HERE;
}

bool join_drops_parts(struct slice former, struct slice here)
{
	struct oplog_base base, later;
	struct copy f, h;

	return read_copies(former, here, &f, &h) && h.horizon > f.horizon &&
		(!split_base(f.closed, &base) || !split_base(h.closed, &later) ||
			!share_parts(&base, &later));
}

void join_values(struct slice former, struct slice here, uint64_t seed, struct buf *out)
{
	struct copy copies[2];
	struct buf words = BUF_EMPTY;
	struct oplog_base f, h;
	bool is_base = split_base(here, &h);
	int64_t date;
	uint64_t m, n;

	if (read_copies(former, here, &copies[0], &copies[1])) {
		join_copies(&copies[0], &copies[1], seed, out);
		return;
	}
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
	struct slice groups;

	return split_open(former, &f, &groups) && split_open(here, &h, &groups) && f.block.n &&
		h.refs.n && !h.is_list && f.log.n + h.head.n > 0;
}

static void drop_words(struct buf *value, const struct table *table, bool of_log)
{
	struct buf kept = BUF_EMPTY;
	struct oplog_base base;
	struct slice groups;

	if (!split_open(buf_slice(value), &base, &groups))
		return;
	add_other_words(&kept, base.head, table);
	buf_add_slice(&kept, base.block);
	if (of_log)
		add_other_words(&kept, base.log, table);
	else
		buf_add_slice(&kept, base.log);
	buf_add_slice(&kept, groups);
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
