#include "util/escape.h"

size_t escape_text(char *out, struct slice s, size_t most)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = s.n < most ? s.n : most;
	char *at = out;

	for (size_t i = 0; i < n; i++) {
		unsigned char byte = (unsigned char)s.p[i];
		if (byte > ' ' && byte < 0x7f && byte != '\\') {
			*at++ = (char)byte;
			continue;
		}
		*at++ = '\\';
		*at++ = 'x';
		*at++ = digits[byte >> 4];
		*at++ = digits[byte & 15];
	}
	if (n < s.n)
		at = slice_write(at, SLICE("..."));
	*at = '\0';
	return (size_t)(at - out);
}
