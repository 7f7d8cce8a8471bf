/*
 * Meta commands on a key that is more than an item: a command, a set, a list, or a type of
 * events. Such a meta command is carried out as the classic command of the same meaning, and
 * its reply is written in the form that the flags request:
 *
 *     mg q|scard|topic-1 k v    -> gets q|scard|topic-1    -> a value     -> VA 1 kq|scard|topic-1
 *     ms tags-ann 4 MA          -> append tags-ann 0 0 4   -> stored      -> HD
 */
#ifndef PROTOCOL_METAFORM_H
#define PROTOCOL_METAFORM_H

#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/buf.h"

/* Returns whether the command has a classic form: true for mg, ms, md and ma, false for me. */
bool metaform_has(const struct command *command);

/*
 * Makes the classic request of a parsed meta command. `key` is its key, decoded if it was in
 * base64. The slices of `out` point into `meta` and `key`. Returns NULL, or the error line that
 * refuses a flag without a meaning there.
 */
const char *metaform_parse(const struct request *meta, struct slice key, struct request *out);

/*
 * The data that the form of the reply depends on: the request, with copies of its key and flags
 * as the client sent them.
 */
struct metaform {
	command_id command;
	struct metaflags flags;
	uint32_t key_size, line_size;
	char bytes[]; /* The key, followed by the flags. */
};

/*
 * metaform_size returns the size of the metaform of a request; the next function writes it to
 * `room`, which must be aligned for it.
 */
size_t metaform_size(const struct request *meta);
void metaform_init(const struct request *meta, struct metaform *room);

/*
 * Writes the reply to the classic request, which must be a complete part, in the meta form.
 * `asked` is the metaform. Writes nothing if q suppresses the reply. An unknown number is
 * written as that of a new item.
 */
reply_form metaform_form;

/*
 * Returns the word for the code of a server's reply; NONE for success and for codes without a
 * word.
 */
enum reply_word metaform_word(struct slice code);

#endif
