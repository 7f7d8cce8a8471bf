#include "protocol/dialect.h"

bool dialect_line(struct slice in, struct slice *line, size_t *consumed)
{
	const char *end = in.n ? memchr(in.p, '\n', in.n < DIALECT_LINE_MAX ? in.n : DIALECT_LINE_MAX) : NULL;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - in.p);
	*consumed = n + 1;
	*line = slice_of(in.p, n > 0 && end[-1] == '\r' ? n - 1 : n);
	return true;
}

ssize_t dialect_incomplete(struct slice in)
{
	return in.n >= DIALECT_LINE_MAX ? -1 : 0;
}

ssize_t dialect_error(struct slice line, size_t consumed, const struct expect *expect, struct result *out)
{
	bool body = call_stores(expect->verb);

	/*
	 * After ERROR, an unknown verb, the server reads our data block as commands. The same holds for a CLIENT_ERROR to a call
	 * with a block, since what we send is well-formed.
	 */
	if (slice_equal(line, SLICE("ERROR")) || slice_starts(line, SLICE("CLIENT_ERROR ")))
		out->suspect = body || slice_equal(line, SLICE("CLIENT_ERROR bad data chunk"));
	else if (!slice_starts(line, SLICE("SERVER_ERROR ")) && !slice_starts(line, SLICE("ERROR ")))
		return -1;
	else if (line.p[0] == 'E')
		out->suspect = true; /* such as "ERROR Too many open connections" */
	out->status = RESULT_REFUSED;
	out->line = line;
	return (ssize_t)consumed;
}

ssize_t dialect_block(struct slice in, size_t at, uint64_t n, const struct expect *expect, struct slice *value)
{
	if (n > (expect->value_max ? expect->value_max : DIALECT_VALUE_MAX))
		return -1;
	if (in.n < at + n + 2) {
		/* A wrong line end is an error at once, before more comes. */
		bool wrong = in.n > at + n && in.p[at + n] != '\r';
		return wrong ? -1 : 0;
	}
	if (in.p[at + n] != '\r' || in.p[at + n + 1] != '\n')
		return -1;
	*value = slice_of(in.p + at, (size_t)n);
	return (ssize_t)(at + n + 2);
}
