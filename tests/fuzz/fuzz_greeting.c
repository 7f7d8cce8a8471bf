/* The three replies of a new connection, one after the other. */
#include "input.h"
#include "upstream/greeting.h"

static ssize_t decode(struct slice in, unsigned which, struct greeting *g)
{
	char *copy = input_copy(in);
	ssize_t n = greeting_decode(slice_of(copy, in.n), which, g);

	MUST(n >= -1 && n <= (ssize_t)in.n);
	free(copy);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);
	struct greeting g = { 0 }, cut;
	ssize_t n, before;

	for (unsigned which = 0; which < GREETING_REPLIES; which++) {
		n = decode(in, which, &g);
		before = 0;
		for (size_t i = 0; i < in.n && before == 0; i++) {
			cut = (struct greeting){ 0 };
			before = decode(slice_of(in.p, i), which, &cut);
			MUST(before == 0 || before == n);
		}
		if (n <= 0)
			break;
		in = slice_skip(in, (size_t)n);
		MUST(g.version < 1u << 24);
	}
	return 0;
}
