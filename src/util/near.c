#include "util/near.h"

#include "util/num.h"

enum { FAR = NEAR_BYTES };

static bool is_prefix(struct slice a, struct slice b)
{
	size_t same = 0;

	while (same < a.n && same < b.n && slice_lower(a.p[same]) == slice_lower(b.p[same]))
		same++;
	return same == a.n;
}

bool near_same(struct slice a, struct slice b)
{
	return a.n == b.n && is_prefix(a, b);
}

/*
 * Returns the number of edits: a byte is inserted, dropped, replaced or swapped with the next
 * one.
 */
static size_t edits(struct slice a, struct slice b)
{
	size_t rows[3][NEAR_BYTES + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= b.n; j++)
		above[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			char x = slice_lower(a.p[i - 1]), y = slice_lower(b.p[j - 1]);
			row[j] = num_least_size(
				num_least_size(above[j], row[j - 1]) + 1, above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == slice_lower(b.p[j - 2]) &&
				y == slice_lower(a.p[i - 2]))
				row[j] = num_least_size(row[j], before[j - 2] + 1);
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[b.n];
}

/*
 * Returns the distance of two words, or FAR. A word of at least three bytes is near to each
 * name that begins with it.
 */
static size_t distance(struct slice word, struct slice name)
{
	size_t found;

	if (word.n == 0 || word.n > NEAR_BYTES || name.n > NEAR_BYTES)
		return FAR;
	found = edits(word, name);
	if (word.n >= 3 && is_prefix(word, name))
		found = num_least_size(found, 1);
	return found <= num_least_size((word.n + 3) / 4, 3) ? found : FAR;
}

void near_offer(struct near *near, struct slice name)
{
	size_t found = distance(near->word, name), at;

	if (found == FAR)
		return;
	for (at = near->count; at > 0 && found < near->distances[at - 1]; at--) {
		if (at < NEAR_NAMES) {
			near->names[at] = near->names[at - 1];
			near->distances[at] = near->distances[at - 1];
		}
	}
	if (at == NEAR_NAMES)
		return;
	near->names[at] = name;
	near->distances[at] = found;
	near->count = num_least_size(near->count + 1, NEAR_NAMES);
}

void near_hint(const struct near *near, char text[NEAR_HINT])
{
	char *at = text;

	for (size_t i = 0; i < near->count; i++) {
		struct slice comma = i + 1 < near->count ? SLICE(", ") : SLICE(" or ");
		at = slice_write(at, i == 0 ? SLICE("; did you mean ") : comma);
		at = slice_write(at, near->names[i]);
	}
	if (near->count)
		*at++ = '?';
	*at = '\0';
}
