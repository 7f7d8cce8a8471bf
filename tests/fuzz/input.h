/* For fuzzers: choices that are drawn from the input, and the rest of it. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "util/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a byte, 0 if none is left. */
static inline uint8_t input_byte(struct slice *in)
{
	uint8_t byte = 0;

	if (in->n) {
		byte = (uint8_t)in->p[0];
		*in = slice_skip(*in, 1);
	}
	return byte;
}

/* Returns `n` bytes, or the rest. */
static inline struct slice input_bytes(struct slice *in, size_t n)
{
	struct slice taken = slice_of(in->p, n < in->n ? n : in->n);

	*in = slice_skip(*in, taken.n);
	return taken;
}

static inline uint64_t input_number(struct slice *in)
{
	uint64_t v = 0;
	struct slice bytes = input_bytes(in, 1 + input_byte(in) % 8);

	for (size_t i = 0; i < bytes.n; i++)
		v = v << 8 | (uint8_t)bytes.p[i];
	return v;
}

/*
 * Returns a copy with nothing after it in memory, so that a read beyond it is detected. The caller
 * frees it.
 */
static inline char *input_copy(struct slice s)
{
	char *copy = malloc(s.n ? s.n : 1);

	MUST(copy);
	if (s.n)
		memcpy(copy, s.p, s.n);
	return copy;
}

/* Returns true if `part` is empty or inside `whole`. */
static inline bool input_within(struct slice part, struct slice whole)
{
	return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

#endif
