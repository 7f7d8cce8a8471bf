/* Reads a reply in the text protocol part by part, as a client does: a VALUE line with its data, or any other line. */
#ifndef UNIT_PARTS_H
#define UNIT_PARTS_H

#include "must.h"
#include "util/num.h"
#include "util/slice.h"

/* Its slices point into the reply. `key` is empty unless it is a VALUE. */
struct part {
	struct slice line; /* without its end */
	struct slice key, data;
};

/* Takes the next part off the front of a well-formed reply. Returns false at its end. */
static inline bool parts_next(struct slice *reply, struct part *out)
{
	const char *end = reply->n ? memchr(reply->p, '\n', reply->n) : NULL;
	struct slice rest;
	uint64_t n;

	if (reply->n == 0)
		return false;
	MUST(end && end > reply->p && end[-1] == '\r');
	*out = (struct part){ .line = slice_of(reply->p, (size_t)(end - 1 - reply->p)) };
	*reply = slice_skip(*reply, out->line.n + 2);
	rest = out->line;
	if (!slice_equal(slice_token(&rest), SLICE("VALUE")))
		return true;
	out->key = slice_token(&rest);
	(void)slice_token(&rest);
	MUST(num_parse_u64(slice_token(&rest), &n) && reply->n >= n + 2);
	out->data = slice_of(reply->p, n);
	*reply = slice_skip(*reply, n + 2);
	return true;
}

#endif
