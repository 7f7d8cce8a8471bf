/* Requests as text, and the check that each is put through: cut at every byte, at a trap, with more
 * behind it. */
#ifndef UNIT_REQUESTS_H
#define UNIT_REQUESTS_H

#include "protocol/request.h"
#include "util/buf.h"

struct request_case {
	const char *input;
	/*
	 * What it is read as. A request: its name, key, then what is not empty or 0 of "[rest]",
	 * "{data}", flags=, exptime=, number=, keys=, noreply. Else "refused ERROR" and then skip=,
	 * noreply; "fatal ERROR"; "hang up".
	 */
	const char *outcome;
};

/* The limits of these checks. */
extern const struct request_limits request_test_limits;

/* Adds what a request is as text. */
void request_show(const struct request *r, struct buf *out);

void request_check_all(const struct request_case *cases, size_t count);
void request_check(struct slice input, const char *outcome);

#endif
