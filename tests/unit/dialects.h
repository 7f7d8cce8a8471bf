/* Calls and replies of a dialect as text. A reply is tried cut at every byte, at a trap, and with
 * more behind it. */
#ifndef UNIT_DIALECTS_H
#define UNIT_DIALECTS_H

#include "protocol/dialect.h"

/* What the call is encoded as. */
void dialect_encodes(const struct dialect *d, const struct call *call, const char *bytes);

struct reply_case {
	const char *reply;
	/*
	 * "hit {value}" then what is not 0 of flags=, cas=, ttl=, size=; "miss", "done", "not
	 * stored", "exists", "number N", "text [line] {value}", "refused [line]"; "suspect" behind
	 * it where the connection cannot be trusted. "garbage" for what is no answer.
	 */
	const char *outcome;
};

void dialect_decodes_all(
	const struct dialect *d, const struct expect *expect, const struct reply_case *cases, size_t count);
void dialect_decodes(const struct dialect *d, const struct expect *expect, struct slice reply, const char *outcome);

#define DECODES(d, expect, cases) dialect_decodes_all((d), (expect), (cases), sizeof(cases) / sizeof((cases)[0]))

#endif
