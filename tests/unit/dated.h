/*
 * Words with dates in a text notation: +a^7 expires 7 seconds after DATED_AT, and +a^-3 did so 3
 * seconds before it. Runs are written by the text layer, like those of a cupboard.
 */
#ifndef UNIT_DATED_H
#define UNIT_DATED_H

#include <stdio.h>

#include "collection/text/expiry.h"
#include "must.h"
#include "server.h"
#include "set_model.h"
#include "util/check.h"

enum { DATED_AT = SERVER_NOW, DATED_TEXT = 1 << 16 };

/* Reads a word of the notation, without its sign. Returns the member, and stores its date. */
static inline struct slice dated_read(struct slice word, uint32_t *date)
{
	const char *mark = slice_find(word.p, word.p + word.n, '^');

	*date = EXPIRY_NONE;
	if (mark < word.p + word.n)
		*date = (uint32_t)(DATED_AT + strtol(mark + 1, NULL, 10));
	return slice_of(word.p, (size_t)(mark - word.p));
}

/* Returns the words of a log as they are stored; valid until the fourth call from now. */
static inline const char *dated_log(const char *log)
{
	static char texts[4][DATED_TEXT];
	static unsigned next;
	char *text = texts[next++ % 4], *at = text;
	struct slice rest = slice_of(log, strlen(log)), word;

	while ((word = slice_token(&rest)).n) {
		uint32_t date;
		struct slice member = dated_read(word, &date);
		MUST(at - text + word.n + EXPIRY_SIZE + 2 < DATED_TEXT);
		at = slice_write(at, member);
		if (date != EXPIRY_NONE)
			at = expiry_write(at, date);
		*at++ = ' ';
	}
	*at = 0;
	return text;
}

/* Returns a text with all dates in the notation; valid until the next call. */
static inline const char *dated_show(const char *stored)
{
	static char text[DATED_TEXT];
	char *at = text;

	for (const char *p = stored; *p;) {
		MUST(at - text + EXPIRY_SIZE < DATED_TEXT);
		if (*p != EXPIRY_MARK) {
			*at++ = *p++;
			continue;
		}
		at += snprintf(at, EXPIRY_SIZE, "^%d", (int)((int64_t)expiry_read(p) - DATED_AT));
		p += EXPIRY_SIZE;
	}
	*at = 0;
	return text;
}

static inline void dated_put_table(struct cupboard *c, struct table_writer *w,
	struct fences_writer *index, struct slice first, struct oplog_run *run, uint64_t *sum)
{
	struct fence fence = { .entries = w->count,
		.removals = w->removals,
		.dated = w->dated,
		.first_date = w->dated ? w->first_date : 0,
		.mean_date = w->dated ? (uint32_t)(w->date_sum / w->dated) : 0,
		.first = first };
	struct buf data = BUF_EMPTY;

	*sum += w->date_sum;
	table_writer_finish(w, &data);
	fence.bytes = (uint32_t)buf_size(&data);
	fence.check = check_of(buf_slice(&data));
	run->id = cupboard_put(c, OPLOG_TABLE, buf_slice(&data));
	memcpy(fence.id, run->id.p, OPLOG_ID);
	fences_add(index, &fence);
	run->tables++;
	run->entries += fence.entries;
	run->removals += fence.removals;
	run->bytes += fence.bytes;
	run->dated += fence.dated;
	run->check = fence.check;
	buf_free(&data);
}

/* Writes a run from a log in byte order, in tables of at most `most` entries. */
static inline struct oplog_run dated_run(struct cupboard *c, const char *log, size_t most)
{
	struct oplog_run run = { .tables = 0 };
	struct table_writer w = { .count = 0 };
	struct fences_writer index = { .count = 0 };
	struct slice rest = slice_of(log, strlen(log)), word, first = SLICE("");
	uint64_t sum = 0;

	while ((word = slice_token(&rest)).n) {
		uint32_t date;
		struct slice member = dated_read(slice_skip(word, 1), &date);
		if (w.count == most) {
			struct slice last = slice_of(w.last, w.last_size);
			size_t n = fence_size(last, member);
			dated_put_table(c, &w, &index, first, &run, &sum);
			first = slice_of(member.p, n);
		}
		table_writer_add(&w, member, word.p[0] == '-');
		table_writer_date(&w, date);
	}
	dated_put_table(c, &w, &index, first, &run, &sum);
	run.mean = run.dated ? sum / run.dated : 0;
	run.indexed = run.tables > 1;
	if (run.indexed) {
		struct slice text = fences_text(&index);
		run.check = check_of(text);
		run.id = cupboard_put(c, OPLOG_INDEX, text);
	}
	fences_writer_free(&index);
	table_writer_free(&w);
	return run;
}

#endif
