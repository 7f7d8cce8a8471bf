#include "collection/copies/join.h"

#include <stdlib.h>
#include <string.h>

#include "collection/text/fold.h"
#include "util/alloc.h"

/*
 * A member's words: the one that counts of all groups before the last one that names it, and the
 * last word of that group. They are compared only when the group is over, because within a group
 * the last word counts, whatever it is.
 */
struct member_words {
	struct copy_word best, last;
	size_t group;
};

enum phase { READING, SORTING, WRITING };

struct copy_words {
	enum phase phase;
	struct copy_reader readers[2];
	int reader;
	size_t group;
	uint64_t created; /* the largest stamp of a group that creates, after the horizon; or 0 */
	uint64_t close;   /* the horizon up to which words become closed */
	struct fold members;
	struct member_words *list; /* of the members of the fold */
	size_t capacity;
	/* Merge sort: sorted runs of `width` words in `from` are merged to `to`. */
	struct copy_word *from, *to;
	size_t count, width, at, left, right;
	/* Writing: the next word, and the stamp of the open group; 0 if none is. */
	size_t next;
	uint64_t open;
	bool closed;
};

/* Returns the order of two closed parts: of equal horizons, that of their bytes. */
static int compare_closed(const struct copy *a, const struct copy *b)
{
	size_t n = a->closed.n < b->closed.n ? a->closed.n : b->closed.n;
	int order;

	if (a->horizon != b->horizon)
		return a->horizon > b->horizon ? 1 : -1;
	if (a->gone != b->gone)
		return a->gone ? 1 : -1;
	order = n ? memcmp(a->closed.p, b->closed.p, n) : 0;
	return order ? order : (a->closed.n > b->closed.n) - (a->closed.n < b->closed.n);
}

/* Returns whether the word `a` overrides `b`. Removals win over additions with the same stamp. */
static bool overrides(const struct copy_word *a, const struct copy_word *b)
{
	size_t n = a->token.n < b->token.n ? a->token.n : b->token.n;
	int order;

	if (!b->token.n || a->stamp != b->stamp)
		return !b->token.n || a->stamp > b->stamp;
	/* - follows +, and dates follow nothing else. */
	order = memcmp(a->token.p, b->token.p, n);
	return order ? order > 0 : a->token.n > b->token.n;
}

void copy_join_begin(struct copy_join *join, const struct copy *a, const struct copy *b,
	uint64_t horizon, uint64_t fill, uint64_t seed)
{
	struct copy_words *w = xcalloc(1, sizeof(*w));

	*join = (struct copy_join){ .copy = b && compare_closed(b, a) > 0 ? *b : *a, .words = w };
	join->copy.fill = fill;
	join->copy.log = SLICE("");
	w->close = horizon;
	w->members.seed = seed;
	w->readers[0] = (struct copy_reader){ .rest = a->log, .largest = a->horizon };
	if (b)
		w->readers[1] = (struct copy_reader){ .rest = b->log, .largest = b->horizon };
}

static void end_group(struct member_words *m)
{
	if (m->last.token.n && overrides(&m->last, &m->best))
		m->best = m->last;
	m->last.token.n = 0;
}

static void note_word(struct copy_words *w, const struct copy_word *word)
{
	size_t i = fold_note(&w->members, copy_member(word->token));
	struct member_words *m;

	if (i >= w->capacity) {
		w->capacity = w->capacity ? w->capacity * 2 : 32;
		w->list = xrealloc(w->list, w->capacity * sizeof(*w->list));
	}
	m = &w->list[i];
	if (i >= w->count) {
		*m = (struct member_words){ .group = 0 };
		w->count = i + 1;
	}
	if (m->group != w->group)
		end_group(m);
	m->group = w->group;
	m->last = *word;
}

/* Reads words. Returns COPY_END when all are read. */
static enum copy_read join_words(struct copy_join *join)
{
	struct copy_words *w = join->words;
	struct copy_word word;

	for (size_t i = 0; i < COPY_JOIN_STEPS; i++) {
		enum copy_read read = copy_next(&w->readers[w->reader], &word);
		if (read == COPY_MALFORMED || (read == COPY_END && w->reader == 1))
			return read;
		w->reader += read == COPY_END;
		if (read == COPY_END)
			continue;
		w->group += word.starts;
		if (word.stamp <= join->copy.horizon)
			continue;
		if (word.creates && word.stamp > w->created)
			w->created = word.stamp;
		if (word.token.n)
			note_word(w, &word);
	}
	return COPY_WORD;
}

static void join_sort(struct copy_join *join)
{
	struct copy_words *w = join->words;

	w->from = xcalloc(w->count + 1, sizeof(*w->from));
	w->to = xcalloc(w->count + 1, sizeof(*w->to));
	w->phase = SORTING;
	w->width = w->at = 0;
}

static bool sorts_before(const struct copy_word *a, const struct copy_word *b)
{
	struct slice x = copy_member(a->token), y = copy_member(b->token);
	int order;

	if (a->stamp != b->stamp)
		return a->stamp < b->stamp;
	order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
	return order ? order < 0 : x.n < y.n;
}

/* Takes the next word of the two runs that are merged at this place of `to`. */
static void merge_one(struct copy_words *w)
{
	size_t pair = w->at - w->at % (2 * w->width);
	size_t middle = pair + w->width < w->count ? pair + w->width : w->count;
	size_t end = middle + w->width < w->count ? middle + w->width : w->count;
	size_t left = pair + w->left, right = middle + w->right;
	bool takes_left =
		right >= end || (left < middle && !sorts_before(&w->from[right], &w->from[left]));

	w->to[w->at++] = w->from[takes_left ? left : right];
	w->left += takes_left;
	w->right += !takes_left;
	if (w->at == end)
		w->left = w->right = 0;
}

/* Sorts words. Returns whether all are sorted. */
static bool sort_join(struct copy_words *w)
{
	for (size_t i = 0; i < COPY_JOIN_STEPS; i++) {
		if (w->width >= w->count)
			return true;
		if (w->width && w->at < w->count) {
			merge_one(w);
			continue;
		}
		if (!w->width && w->at < w->count) {
			end_group(&w->list[w->at]);
			w->from[w->at] = w->list[w->at].best;
			w->at++;
			continue;
		}
		if (w->width) {
			struct copy_word *from = w->from;
			w->from = w->to;
			w->to = from;
		}
		w->width = w->width ? w->width * 2 : 1;
		w->at = 0;
	}
	return false;
}

/*
 * A gone set exists again at the horizon at which it was created; up to there it is not closed,
 * because the words before are not known to be members.
 */
static void begin_writing(struct copy_join *join)
{
	struct copy_words *w = join->words;
	bool closes = w->close > join->copy.horizon;

	join->exists = !join->copy.gone || w->created;
	if (join->copy.gone && (!w->created || w->created > w->close))
		closes = false;
	if (closes) {
		join->copy.gone = false;
		join->copy.horizon = w->close;
	}
	copy_add_closed(&join->out, &join->copy);
	w->phase = WRITING;
	if (w->created <= join->copy.horizon)
		w->created = 0;
}

/* Appends the start of a group. One that creates and has no words follows all others. */
static void begin_group(struct copy_join *join, uint64_t stamp)
{
	struct copy_words *w = join->words;
	bool creates = w->created && w->created == stamp;

	if (w->open)
		copy_end_group(&join->out);
	w->created = creates ? 0 : w->created;
	w->open = stamp;
	copy_start_group(&join->out, stamp, creates);
}

/* Ends the closed part, once. */
static void end_closed(struct copy_join *join)
{
	if (!join->words->closed)
		copy_end_closed(&join->out, &join->copy);
	join->words->closed = true;
}

/* Writes words. Returns whether all are written. */
static bool write_join(struct copy_join *join)
{
	struct copy_words *w = join->words;

	for (size_t i = 0; i < COPY_JOIN_STEPS && w->next < w->count; i++) {
		const struct copy_word *word = &w->from[w->next++];
		if (word->stamp > join->copy.horizon) {
			end_closed(join);
			if (word->stamp != w->open)
				begin_group(join, word->stamp);
		}
		buf_add_slice(&join->out, word->token);
		BUF_ADD(&join->out, " ");
	}
	if (w->next < w->count)
		return false;
	end_closed(join);
	if (w->open)
		copy_end_group(&join->out);
	if (w->created)
		copy_add_group(&join->out, w->created, true, SLICE(""));
	return true;
}

enum copy_read copy_join_step(struct copy_join *join)
{
	enum copy_read read;

	switch (join->words->phase) {
	case READING:
		read = join_words(join);
		if (read == COPY_END)
			join_sort(join);
		return read == COPY_MALFORMED ? read : COPY_WORD;
	case SORTING:
		if (sort_join(join->words))
			begin_writing(join);
		return COPY_WORD;
	default:
		return write_join(join) ? COPY_END : COPY_WORD;
	}
}

void copy_join_free(struct copy_join *join)
{
	struct copy_words *w = join->words;

	if (w) {
		fold_free(&w->members);
		free(w->list);
		free(w->from);
		free(w->to);
		free(w);
	}
	buf_free(&join->out);
	*join = (struct copy_join){ .words = NULL };
}
