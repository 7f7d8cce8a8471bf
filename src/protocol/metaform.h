/*
 * The meta form of requests whose key is more than an item: a command, a set, a list, or a type of events. A meta command on such a
 * key is carried out as the classic command of the same meaning. Its reply in text is given in the form that the flags ask for:
 *
 *     mg q|scard|topic-1 k v    -> gets q|scard|topic-1    -> VALUE q|scard|topic-1 0 1 0  -> VA 1 kq|scard|topic-1
 *     ms tags-ann 4 MA          -> append tags-ann 0 0 4   -> STORED                       -> HD
 */
#ifndef PROTOCOL_METAFORM_H
#define PROTOCOL_METAFORM_H

#include "protocol/call.h"
#include "protocol/request.h"
#include "util/buf.h"

/* Whether the command has a classic form: mg, ms, md and ma have, me has none. */
bool metaform_has(const struct command *command);

/*
 * Makes the classic request of a meta command that was parsed. `key` is its key, decoded if it came in base64. The slices of `out` are
 * those of `meta`, and `key`. Gives NULL, or the error line that refuses a flag without a meaning there.
 */
const char *metaform_parse(const struct request *meta, struct slice key, struct request *out);

/* What a reply depends on. */
struct metaform {
	command_id command;
	struct metaflags flags;
	struct slice key;  /* as the client wrote it */
	struct slice line; /* the flags as the client wrote them */
};

/*
 * Appends the reply in the meta form; nothing, if q suppresses it. `reply` is the whole reply to the classic request, except for the data
 * of its VALUE perhaps, and `ttl` the time to live of what was read, as in struct result. True: the caller adds `value` and a line end. If
 * `reply` lacks the data, only the size of `value` is right.
 */
bool metaform_reply(struct buf *out, const struct metaform *form, struct slice reply, int64_t ttl, struct slice *value)
	__attribute__((warn_unused_result));

#endif
