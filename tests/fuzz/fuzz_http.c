/*
 * Requests of HTTP, as on a connection: each one behind the last. A part of a request has no other outcome than the whole. One that
 * is taken is read again by simpler means: it has its lines, one Host, and no control byte.
 */
#include <strings.h>

#include "input.h"
#include "protocol/http.h"

static size_t parse(struct slice in, struct http_request *r)
{
	char *copy = input_copy(in);
	size_t n = http_parse(slice_of(copy, in.n), r);

	MUST(n <= in.n && (n > 0 || in.n < HTTP_HEAD_MAX));
	MUST(n == 0 || r->refusal ||
		(r->path.p >= copy && r->path.p + r->path.n <= copy + n && r->method.n &&
			r->path.n + r->method.n < n));
	MUST(n == 0 || !r->refusal || (n == in.n && !r->keeps));
	free(copy);
	return n;
}

static void check_taken(struct slice in, const struct http_request *r)
{
	unsigned hosts = 0, lines = 0;
	struct slice rest = in;

	MUST(in.n <= HTTP_HEAD_MAX && in.p[in.n - 1] == '\n');
	while (rest.n) {
		struct slice line = slice_cut(&rest, '\n');
		line.n -= line.n && line.p[line.n - 1] == '\r';
		for (size_t i = 0; i < line.n; i++)
			MUST((unsigned char)line.p[i] >= ' ' || line.p[i] == '\t');
		hosts += line.n >= 5 && strncasecmp(line.p, "host:", 5) == 0;
		MUST(line.n < 18 || strncasecmp(line.p, "transfer-encoding:", 18) != 0);
		/* The empty lines before the first line do not count. */
		MUST(line.n || lines == 0 || rest.n == 0);
		lines += line.n > 0;
	}
	MUST(lines >= 1 && lines <= 1 + HTTP_FIELDS_MAX && hosts <= 1 && (hosts == 1 || !r->keeps));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);
	struct http_request r = { 0 }, cut;
	size_t n, before;

	do {
		n = parse(in, &r);
		before = 0;
		for (size_t i = 0; i < in.n && i < HTTP_HEAD_MAX && before == 0; i++) {
			before = parse(slice_of(in.p, i), &cut);
			MUST(before == 0 || cut.refusal == r.refusal);
			MUST(before == 0 || r.refusal || before == n);
		}
		if (n > 0 && !r.refusal)
			check_taken(slice_of(in.p, n), &r);
		in = slice_skip(in, n);
	} while (n > 0 && !r.refusal && in.n);
	return 0;
}
