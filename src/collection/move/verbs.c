#include "collection/move/verbs.h"

#include "collection/move/mark.h"
#include "collection/ttl.h"
#include "util/num.h"

enum guard verb_guard(const struct call *call, bool late)
{
	switch (call->verb) {
	case CALL_APPEND:
	case CALL_PREPEND:
	case CALL_REPLACE:
	case CALL_DELETE:
		return late ? GUARD_LOOK : GUARD_NONE;
	case CALL_META:
		return late ? GUARD_LOOK : GUARD_TELLS;
	case CALL_SET:
		return late && call->compare ? GUARD_HOLD : GUARD_NONE;
	case CALL_ADD:
	case CALL_CAS:
	case CALL_TOUCH: /* it may have to follow a read of the time to live immediately */
		return late ? GUARD_HOLD : GUARD_NONE;
	case CALL_INCR:
	case CALL_DECR:
	case CALL_GAT:
		return GUARD_TELLS;
	default:
		return GUARD_NONE;
	}
}

/* Stores the flags in the reply to a meta get. Returns false if it has none. */
static bool take_flags(const struct result *r, uint32_t *flags)
{
	struct slice rest = r->line, word;

	while ((word = slice_token(&rest)).n) {
		if (*word.p == 'f' && num_parse_u32(slice_skip(word, 1), flags))
			return true;
	}
	return false;
}

static bool has_value(const struct result *r)
{
	return slice_starts(r->line, SLICE("VA"));
}

bool verb_met_mark(const struct call *call, const struct result *r, bool imitated)
{
	uint32_t flags;

	if (call->verb == CALL_META)
		return r->status == RESULT_TEXT && take_flags(r, &flags) &&
			mark_is_met(call->key, flags, r->value, has_value(r), imitated);
	return call->verb == CALL_GAT && r->status == RESULT_HIT &&
		mark_is_met(call->key, r->flags, r->value, call->want & WANT_VALUE, imitated);
}

/*
 * Returns whether it is the reply to a meta get that has a value without flags, and
 * may be a mark.
 */
static bool may_show_mark(const struct call *call, const struct result *r)
{
	uint32_t flags;

	return r->status == RESULT_TEXT && has_value(r) && !take_flags(r, &flags) &&
		mark_read(call->key, MARK_FLAGS, r->value).kind != MARK_NONE;
}

bool verb_is_doubtful(const struct call *call, const struct result *r, bool imitated)
{
	bool counts = call->verb == CALL_INCR || call->verb == CALL_DECR;

	if (call->verb == CALL_META)
		return !imitated && may_show_mark(call, r);
	/* After a touch with a time in the past, nothing is left to read. */
	if (call->verb == CALL_TOUCH)
		return r->status == RESULT_DONE && call->exptime >= 0;
	return r->status == RESULT_EXISTS ||
		(r->status == RESULT_NOT_STORED && call->verb == CALL_ADD) ||
		(r->status == RESULT_REFUSED && counts &&
			slice_starts(r->line, SLICE("CLIENT_ERROR")));
}

/* decr leaves spaces after the digits. */
bool verb_is_number(struct slice value)
{
	uint64_t number;

	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return value.n <= NUM_U64_MAX && num_parse_u64(value, &number);
}

/* A call that compares with the client's cas id fails on a mark anyway. */
bool verb_compares(const struct call *call)
{
	return (call->verb == CALL_REPLACE || call->verb == CALL_DELETE) && !call->compare;
}

/*
 * A deletion by cas id stores an item that has already expired, as not all servers have a
 * delete that compares.
 */
struct call verb_compare(const struct call *call, const struct result *look)
{
	struct call cas = { .key = call->key, .value = SLICE(""), .exptime = -1 };

	if (call->verb == CALL_REPLACE)
		cas = *call;
	cas.verb = CALL_CAS;
	cas.number = look->cas;
	cas.connection = look->connection;
	return cas;
}

enum result_status verb_status_of_miss(const struct call *call)
{
	return call->verb == CALL_DELETE ? RESULT_MISS : RESULT_NOT_STORED;
}

/* A meta get may also touch or create an item. STATS reads the clock of a server. */
bool verb_only_reads(const struct call *call)
{
	struct slice rest = call->line, word;

	if (call->verb != CALL_META)
		return call->verb == CALL_GET || call->verb == CALL_STATS;
	if (!slice_equal(slice_token(&rest), SLICE("mg")))
		return false;
	(void)slice_token(&rest);
	while ((word = slice_token(&rest)).n) {
		if (*word.p == 'N' || *word.p == 'T' || *word.p == 'E')
			return false;
	}
	return true;
}

static bool is_past(int64_t exptime, int64_t unix_time)
{
	return exptime < 0 || (ttl_is_date(exptime) && exptime <= unix_time);
}

/* Returns whether a meta command deletes, or sets a time in the past. */
static bool meta_removes(struct slice line, int64_t unix_time)
{
	struct slice word;
	int64_t exptime;

	if (slice_equal(slice_token(&line), SLICE("md")))
		return true;
	(void)slice_token(&line);
	while ((word = slice_token(&line)).n) {
		if (*word.p == 'T' && num_parse_i64(slice_skip(word, 1), &exptime) &&
			is_past(exptime, unix_time))
			return true;
	}
	return false;
}

bool verb_removes(const struct call *call, int64_t unix_time)
{
	switch (call->verb) {
	case CALL_DELETE:
	case CALL_DISCARD:
		return true;
	case CALL_META:
		return meta_removes(call->line, unix_time);
	case CALL_GET:
	case CALL_STATS:
		return false;
	default:
		return is_past(call->exptime, unix_time);
	}
}

bool verb_missed(const struct result *r)
{
	return r->status == RESULT_MISS ||
		(r->status == RESULT_TEXT && slice_starts(r->line, SLICE("EN")));
}
