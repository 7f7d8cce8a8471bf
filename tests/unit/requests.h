/*
 * Requests as text, and the check of each of them: parsed cut at every byte, before a trap page,
 * and with more bytes after it.
 */
#ifndef UNIT_REQUESTS_H
#define UNIT_REQUESTS_H

#include "protocol/request.h"
#include "util/buf.h"

struct request_case {
	const char *input;
	/*
	 * The parsed form. A request: its name, key, then those of "[rest]", "{data}", flags=,
	 * exptime=, number=, keys=, noreply that are not empty or 0. Otherwise "refused ERROR",
	 * then skip=, noreply; "fatal ERROR"; "hang up".
	 */
	const char *outcome;
};

/* The limits of these checks. */
extern const struct request_limits request_test_limits;

/* Appends the parsed form as text. */
void request_show(const struct request *r, struct buf *out);

void request_check_all(const struct request_case *cases, size_t count);
void request_check(struct slice input, const char *outcome);

#endif
