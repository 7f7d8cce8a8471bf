#include "collection/text/log_index.h"

#include <stdlib.h>

#include "collection/text/oplog.h"
#include "util/alloc.h"

enum { OFFSETS_MIN = 32 };

void log_index_release(struct log_index *log_index)
{
	if (!log_index || --log_index->users)
		return;
	buf_free(&log_index->own);
	free(log_index->offsets);
	free(log_index);
}

struct log_index *log_index_create(struct slice log, struct buf *own)
{
	struct log_index *log_index = xcalloc(1, sizeof(*log_index));
	const char *p = log.p, *end = log.p + log.n;
	size_t capacity = 0;

	log_index->users = 1;
	log_index->log = log;
	if (own) {
		log_index->own = *own;
		*own = BUF_EMPTY;
	}
	for (;;) {
		if (log_index->count == capacity) {
			capacity = capacity ? capacity * 2 : OFFSETS_MIN;
			log_index->offsets = xrealloc(
				log_index->offsets, capacity * sizeof(*log_index->offsets));
		}
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
	return sizeof(*log_index) + (log_index->count + 1) * sizeof(*log_index->offsets) +
		log_index->own.cap;
}
