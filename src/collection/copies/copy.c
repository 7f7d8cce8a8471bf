#include "collection/copies/copy.h"

#include <string.h>

#include "collection/copies/stamp.h"
#include "collection/text/date.h"
#include "collection/text/expiry.h"
#include "collection/text/oplog.h"

#define GONE "~g "
#define CLOSE "~e "
/* ~, a letter, a stamp, a space. */
enum { STAMPED = 2 + STAMP_DIGITS + 1 };

/* Removes `~<letter><stamp> ` from the front, and returns the stamp; 0 if it is something else. */
static uint64_t take_stamp(struct slice *rest, char letter)
{
	const char *p = rest->p;
	uint64_t stamp;

	if (rest->n < STAMPED || p[0] != '~' || p[1] != letter || p[STAMPED - 1] != ' ')
		return 0;
	stamp = stamp_parse(p + 2);
	if (stamp)
		*rest = slice_skip(*rest, STAMPED);
	return stamp;
}

static void add_stamp(struct buf *out, const char *mark, uint64_t stamp)
{
	buf_add(out, mark, 2);
	stamp_add(out, stamp);
	BUF_ADD(out, " ");
}

static bool take_text(struct slice *rest, struct slice text)
{
	if (!slice_starts(*rest, text))
		return false;
	*rest = slice_skip(*rest, text.n);
	return true;
}

/* Returns the size of the closed part: it ends before the first token ~o, ~s or ~c. */
static size_t closed_size(struct slice base)
{
	const char *p = base.p, *end = base.p + base.n;

	/* memchr compares many bytes at a time, and only escapes and dates have a ~ before. */
	while (p < end && (p = memchr(p, '~', (size_t)(end - p)))) {
		bool starts = p == base.p || p[-1] == ' ';
		if (starts && end - p > 1 && (p[1] == 'o' || p[1] == 's' || p[1] == 'c'))
			return (size_t)(p - base.p);
		p++;
	}
	return base.n;
}

bool copy_parse(struct slice base, struct copy *out)
{
	size_t n = closed_size(base);
	struct slice rest = slice_skip(base, n);

	*out = (struct copy){ .closed = slice_of(base.p, n) };
	if (slice_starts(rest, SLICE("~o"))) {
		out->horizon = take_stamp(&rest, 'o');
		if (!out->horizon)
			return false;
		out->fill = take_stamp(&rest, 'f');
		out->gone = take_text(&rest, SLICE(GONE));
	}
	out->log = rest;
	return !out->gone || !n;
}

void copy_add_closed(struct buf *out, const struct copy *copy)
{
	buf_add_slice(out, copy->closed);
}

void copy_end_closed(struct buf *out, const struct copy *copy)
{
	if (!copy->horizon)
		return;
	add_stamp(out, "~o", copy->horizon);
	if (copy->fill)
		add_stamp(out, "~f", copy->fill);
	if (copy->gone)
		BUF_ADD(out, GONE);
}

void copy_start_group(struct buf *out, uint64_t stamp, bool creates)
{
	add_stamp(out, creates ? "~c" : "~s", stamp);
}

void copy_end_group(struct buf *out)
{
	BUF_ADD(out, CLOSE);
}

void copy_add_group(struct buf *out, uint64_t stamp, bool creates, struct slice words)
{
	copy_start_group(out, stamp, creates);
	buf_add_slice(out, words);
	copy_end_group(out);
}

/* Enters the group at the front of the log. Returns false if there is none. */
static bool enter_group(struct copy_reader *reader, struct copy_word *out)
{
	uint64_t stamp = take_stamp(&reader->rest, 's');
	bool creates = !stamp;

	if (!stamp)
		stamp = take_stamp(&reader->rest, 'c');
	if (!stamp)
		return false;
	*out = (struct copy_word){ .stamp = stamp, .starts = true, .creates = creates };
	reader->stamp = stamp;
	reader->largest = stamp > reader->largest ? stamp : reader->largest;
	reader->is_stray = false;
	return true;
}

/* Words in no group that follow each other have one stamp, so that their order counts. */
static void stamp_word(struct copy_reader *reader, struct copy_word *out)
{
	out->stamp = reader->stamp;
	if (reader->stamp)
		return;
	out->starts = !reader->is_stray;
	reader->largest += out->starts;
	reader->is_stray = true;
	out->stamp = reader->largest;
}

enum copy_read copy_next(struct copy_reader *reader, struct copy_word *out)
{
	const char *p, *end, *after;

	if (reader->stamp && take_text(&reader->rest, SLICE(CLOSE)))
		reader->stamp = 0;
	if (!reader->rest.n)
		return reader->stamp ? COPY_MALFORMED : COPY_END;
	if (!reader->stamp && enter_group(reader, out))
		return COPY_WORD;
	p = reader->rest.p;
	end = p + reader->rest.n;
	after = *p == '~' ? date_end(p, end) : oplog_dated_token_end(p, end);
	if (!after)
		return COPY_MALFORMED;
	*out = (struct copy_word){ .token = slice_of(p, (size_t)(after - p) - 1) };
	stamp_word(reader, out);
	reader->rest = slice_skip(reader->rest, (size_t)(after - p));
	return COPY_WORD;
}

uint64_t copy_last_stamp(const struct copy *copy)
{
	struct copy_reader reader = { .rest = copy->log, .largest = copy->horizon };
	struct copy_word word;

	while (copy_next(&reader, &word) == COPY_WORD)
		;
	return reader.largest;
}

struct slice copy_member(struct slice token)
{
	/* All dates of a base are one member, whose name is no word. */
	return token.p[0] == '~' ? SLICE("~ ") : expiry_member(slice_skip(token, 1));
}

bool copy_is_believed(const struct copy *copy, uint64_t absence)
{
	return copy->horizon >= absence && copy->horizon >= copy->fill;
}

bool copy_pair_is_whole(
	const struct copy *a, const struct copy *b, const uint64_t absences[static 2])
{
	uint64_t horizon;
	bool lacks_a, lacks_b;

	if (!a || !b)
		return (!a || copy_is_believed(a, absences[0])) &&
			(!b || copy_is_believed(b, absences[1]));
	horizon = a->horizon > b->horizon ? a->horizon : b->horizon;
	lacks_a = absences[0] > horizon;
	lacks_b = absences[1] > horizon;
	return !(((lacks_a || a->fill > horizon) && b->fill > horizon) ||
		(a->fill > horizon && lacks_b));
}
