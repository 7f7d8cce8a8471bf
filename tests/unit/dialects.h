/*
 * Calls and replies of a dialect as text. Each reply is parsed cut at every byte, before a trap
 * page, and with more bytes after it.
 */
#ifndef UNIT_DIALECTS_H
#define UNIT_DIALECTS_H

#include "protocol/dialect.h"

/* Returns the encoding of the call. */
void dialect_encodes(const struct dialect *d, const struct call *call, const char *bytes);

struct reply_case {
	const char *reply;
	/*
	 * "hit {value}", then those of flags=, cas=, ttl=, size= that are not 0; "miss", "done",
	 * "not stored", "exists", "number N", "text [line] {value}", "refused [line]"; followed by
	 * "suspect" if the connection cannot be trusted. "garbage" if it is not a reply.
	 */
	const char *outcome;
};

void dialect_decodes_all(const struct dialect *d, const struct expect *expect,
	const struct reply_case *cases, size_t count);
void dialect_decodes(const struct dialect *d, const struct expect *expect, struct slice reply,
	const char *outcome);

#define DECODES(d, expect, cases) \
	dialect_decodes_all((d), (expect), (cases), sizeof(cases) / sizeof((cases)[0]))

#endif
