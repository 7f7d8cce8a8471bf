/*
 * The meta form of requests whose key is more than an item: a command, a set, a list, or a type of events. A meta command on such a
 * key is carried out as the classic command of the same meaning. Its reply has the form that the flags ask for:
 *
 *     mg q|scard|topic-1 k v    -> gets q|scard|topic-1    -> a value     -> VA 1 kq|scard|topic-1
 *     ms tags-ann 4 MA          -> append tags-ann 0 0 4   -> stored      -> HD
 */
#ifndef PROTOCOL_METAFORM_H
#define PROTOCOL_METAFORM_H

#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/buf.h"

/* Whether the command has a classic form: mg, ms, md and ma have, me has none. */
bool metaform_has(const struct command *command);

/*
 * Makes the classic request of a meta command that was parsed. `key` is its key, decoded if it came in base64. The slices of `out` are
 * those of `meta`, and `key`. Gives NULL, or the error line that refuses a flag without a meaning there.
 */
const char *metaform_parse(const struct request *meta, struct slice key, struct request *out);

/* What the form of the reply depends on: the request, with copies of its key and flags as the client wrote them. */
struct metaform {
	command_id command;
	struct metaflags flags;
	uint32_t key_size, line_size;
	char bytes[]; /* the key, the flags */
};

/* The bytes of the metaform of a request; to write it to `room`, which is aligned for it. */
size_t metaform_size(const struct request *meta);
void metaform_init(const struct request *meta, struct metaform *room);

/*
 * The meta form of the reply to the classic request: of a part that is complete, `asked` is the metaform. Nothing, if q suppresses
 * the reply. A number that is not known is that of a new item.
 */
reply_form metaform_form;

/* The word of the code of a server's reply; NONE for success and for codes without a word. */
enum reply_word metaform_word(struct slice code);

#endif
