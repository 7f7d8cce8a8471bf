/* A copy of the first failure of several calls. */
#ifndef PROTOCOL_FAILURE_H
#define PROTOCOL_FAILURE_H

#include "protocol/call.h"
#include "util/buf.h"

/* Initially all zeroes: no failure. */
struct failure {
	bool happened;
	struct result result; /* `result.line` points to `line`; `result.value` is empty. */
	struct buf line;
};

/* Copies a failed result, unless there already is one. */
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
