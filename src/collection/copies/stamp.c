#include "collection/copies/stamp.h"

enum { DIGIT_BITS = 6, DIGITS = 1 << DIGIT_BITS };

/* In byte order. */
static const char digits[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

uint64_t stamp_next(struct stamp_clock *clock, uint64_t ms)
{
	return stamp_next_at(clock, stamp_at(ms));
}

uint64_t stamp_next_at(struct stamp_clock *clock, uint64_t now)
{
	clock->last = now > clock->last ? now : clock->last + 1;
	return clock->last;
}

bool stamp_see(struct stamp_clock *clock, uint64_t stamp, uint64_t ms)
{
	if (stamp > stamp_at(ms + STAMP_AHEAD_MS))
		return false;
	if (stamp > clock->last)
		clock->last = stamp;
	return true;
}

void stamp_add(struct buf *out, uint64_t stamp)
{
	char text[STAMP_DIGITS];

	for (int i = STAMP_DIGITS; i-- > 0; stamp >>= DIGIT_BITS)
		text[i] = digits[stamp % DIGITS];
	buf_add(out, text, sizeof(text));
}

/* Returns the value of a digit; DIGITS if it is none. */
static unsigned digit_value(char c)
{
	if (c == '-')
		return 0;
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0') + 1;
	if (c >= 'A' && c <= 'Z')
		return (unsigned)(c - 'A') + 11;
	if (c == '_')
		return 37;
	return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 38 : DIGITS;
}

uint64_t stamp_parse(const char *p)
{
	uint64_t stamp = 0;

	for (int i = 0; i < STAMP_DIGITS; i++) {
		unsigned value = digit_value(p[i]);
		if (value == DIGITS)
			return 0;
		stamp = stamp << DIGIT_BITS | value;
	}
	return stamp;
}
