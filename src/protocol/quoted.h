/*
 * Arguments of a line that are not plain words. In quotes, as in the inline commands of Redis:
 *
 *     rpush jobs "{\"id\": 1}" 'two words' "\x00\xff"
 *
 * An argument is quoted if it begins with a quote. In "", a backslash escapes \ and ", and
 * begins \n, \r, \t, \b, \a and \xHH; in '', it escapes \ and '. Or as a literal: the line
 * ends with the size in braces, its bytes follow the line, and the line continues after them:
 *
 *     rpush jobs {27} CR LF <27 bytes> {3} CR LF <3 bytes> noreply CR LF
 */
#ifndef PROTOCOL_QUOTED_H
#define PROTOCOL_QUOTED_H

#include "protocol/parsing.h"
#include "util/slice.h"

/* Returns whether a line may have such arguments. A quote within a word is enough. */
bool quoted_is_possible(struct slice line);

/* The arguments of a request: those on its first line, and then all of them. */
struct quoted_arguments {
	struct slice rest;     /* The end of the line, without its line end; then all words. */
	bool may_have_noreply; /* The last argument may be `noreply`. */
	size_t consumed;       /* The size of the line; then that of the request. */
	bool noreply;          /* The last argument was `noreply`, which is not in `rest`. */
	const char *error;     /* REFUSED, FATAL: the reply without its line end. */
};

/*
 * Parses the arguments of the request at the front of `in`. READY: replaces `out->rest` by their
 * words (see element.h), which are in `progress`. Otherwise it returns what request_parse returns.
 */
enum request_status quoted_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct quoted_arguments *out);

#endif
