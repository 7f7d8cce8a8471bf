#include "collection/text/log_index.h"

#include <stdlib.h>
#include <string.h>

#include "collection/text/oplog.h"
#include "util/alloc.h"

void log_index_release(struct log_index *log_index)
{
	if (!log_index || --log_index->users)
		return;
	buf_free(&log_index->own);
	if (log_index->offsets != log_index->few)
		free(log_index->offsets);
	free(log_index);
}

static void grow(struct log_index *log_index, size_t *capacity)
{
	uint32_t *few = log_index->offsets == log_index->few ? log_index->few : NULL;

	*capacity *= 2;
	log_index->offsets =
		xrealloc(few ? NULL : log_index->offsets, *capacity * sizeof(*log_index->offsets));
	if (few)
		memcpy(log_index->offsets, few, sizeof(log_index->few));
}

struct log_index *log_index_create(struct slice log, struct buf *own)
{
	struct log_index *log_index = xmalloc(sizeof(*log_index));
	const char *p = log.p, *end = log.p + log.n;
	size_t capacity = LOG_INDEX_FEW;

	log_index->users = 1;
	log_index->count = log_index->removals = 0;
	log_index->offsets = log_index->few;
	log_index->log = log;
	log_index->own = own ? buf_take(own) : BUF_EMPTY;
	for (;;) {
		if (log_index->count == capacity)
			grow(log_index, &capacity);
		log_index->offsets[log_index->count] = (uint32_t)(p - log.p);
		if (p == end)
			return log_index;
		log_index->removals += *p == '-';
		p = log.n > UINT32_MAX ? NULL : oplog_token_end(p, end);
		if (!p) {
			log_index_release(log_index);
			return NULL;
		}
		log_index->count++;
	}
}

size_t log_index_memory(const struct log_index *log_index)
{
	bool few = log_index->offsets == log_index->few;

	return sizeof(*log_index) + log_index->own.cap +
		(few ? 0 : (log_index->count + 1) * sizeof(*log_index->offsets));
}
