#include "collection/pack.h"

#include <stdlib.h>

#include "protocol/request.h"
#include "util/alloc.h"

enum { OFFSETS_MIN = 32 };

void pack_release(struct pack *pack)
{
	if (!pack || --pack->users)
		return;
	buf_free(&pack->own);
	free(pack->offsets);
	free(pack);
}

/* The end of the token that begins at `p`, behind its space; NULL when it is none. */
static const char *token_end(const char *p, const char *end)
{
	const char *item = p + 1;

	if (*p != '+' && *p != '-')
		return NULL;
	for (p = item; p < end && (unsigned char)*p > ' ' && *p != 0x7f; p++)
		;
	return p == end || *p != ' ' || p == item || p - item > MEMBER_MAX ? NULL : p + 1;
}

struct pack *pack_create(struct slice log, struct buf *own)
{
	struct pack *pack = xcalloc(1, sizeof(*pack));
	const char *p = log.p, *end = log.p + log.n;
	size_t capacity = 0;

	pack->users = 1;
	pack->log = log;
	if (own) {
		pack->own = *own;
		*own = BUF_EMPTY;
	}
	for (;;) {
		if (pack->count == capacity) {
			capacity = capacity ? capacity * 2 : OFFSETS_MIN;
			pack->offsets = xrealloc(pack->offsets, capacity * sizeof(*pack->offsets));
		}
		pack->offsets[pack->count] = (uint32_t)(p - log.p);
		if (p == end)
			return pack;
		pack->removals += *p == '-';
		p = log.n > UINT32_MAX ? NULL : token_end(p, end);
		if (!p) {
			pack_release(pack);
			return NULL;
		}
		pack->count++;
	}
}

size_t pack_memory(const struct pack *pack)
{
	return sizeof(*pack) + (pack->count + 1) * sizeof(*pack->offsets) + pack->own.cap;
}
