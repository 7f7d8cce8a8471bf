/* The first failure of several calls, kept beyond the life of its result. */
#ifndef PROTOCOL_FAILURE_H
#define PROTOCOL_FAILURE_H

#include "protocol/call.h"
#include "util/buf.h"

/* All zeroes is no failure. */
struct failure {
	bool happened;
	struct result result; /* its line is in `line`, it has no value */
	struct buf line;
};

/* Keeps a failed result, if it is the first. */
static inline void failure_keep(struct failure *failure, const struct result *r)
{
	if (failure->happened)
		return;
	failure->happened = true;
	failure->result = *r;
	buf_add_slice(&failure->line, r->line);
	failure->result.line = buf_slice(&failure->line);
	failure->result.value = slice_of("", 0);
}

static inline void failure_free(struct failure *failure)
{
	buf_free(&failure->line);
}

#endif
