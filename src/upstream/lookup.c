#include "upstream/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "util/slice.h"

static int lookup_compare(const void *left, const void *right)
{
	return memcmp(left, right, LOOKUP_BYTES);
}

void lookup_find(struct lookup *lookup, unsigned char (*at)[LOOKUP_BYTES], size_t count, char *full)
{
	size_t kept = 1;

	qsort(at, count, LOOKUP_BYTES, lookup_compare);
	for (size_t i = 1; i < count; i++) {
		if (lookup_compare(at[i], at[kept - 1]) != 0)
			memmove(at[kept++], at[i], LOOKUP_BYTES);
	}
	lookup_free(lookup);
	*lookup = (struct lookup){ .last = LOOKUP_FOUND, .full = full, .at = at, .count = kept };
}

void lookup_miss(struct lookup *lookup, enum lookup_state state, const char *why)
{
	lookup->last = state;
	lookup->why = why;
}

void lookup_free(struct lookup *lookup)
{
	free(lookup->full);
	free(lookup->at);
	*lookup = (struct lookup){ .last = LOOKUP_PENDING };
}

/*
 * Returns whether the addresses of one family can be used. They are outdated if the name now
 * has only addresses of the other family.
 */
static bool is_counted(const struct lookup *lookup, const struct lookup *other)
{
	return lookup->count && !(lookup->last == LOOKUP_NONE && other->last == LOOKUP_FOUND);
}

static bool same_name(const char *one, const char *other)
{
	while (*one && slice_lower(*one) == slice_lower(*other)) {
		one++;
		other++;
	}
	return *one == *other;
}

enum lookup_verdict lookup_choose(
	const struct lookup lookups[LOOKUP_FAMILIES], struct lookup_choice *choice)
{
	const struct lookup *v4 = &lookups[LOOKUP_V4], *v6 = &lookups[LOOKUP_V6];
	bool has[LOOKUP_FAMILIES] = { is_counted(v4, v6), is_counted(v6, v4) };

	if (has[LOOKUP_V4] && has[LOOKUP_V6] && !same_name(v4->full, v6->full))
		has[LOOKUP_V6] = false;
	if (!has[LOOKUP_V4] && !has[LOOKUP_V6])
		return LOOKUP_UNKNOWN;
	for (int i = 0; i < LOOKUP_FAMILIES; i++) {
		if (has[i] && lookups[i].count > 1)
			return LOOKUP_SEVERAL;
	}
	for (int i = 0; i < LOOKUP_FAMILIES; i++) {
		choice->has[i] = has[i];
		if (has[i])
			memcpy(choice->at[i], lookups[i].at[0], LOOKUP_BYTES);
	}
	return LOOKUP_SINGLE;
}

int lookup_all(const struct lookup lookups[LOOKUP_FAMILIES])
{
	if (lookups[LOOKUP_V4].last == LOOKUP_FOUND)
		return LOOKUP_V4;
	if (lookups[LOOKUP_V4].last == LOOKUP_NONE && lookups[LOOKUP_V6].last == LOOKUP_FOUND)
		return LOOKUP_V6;
	return -1;
}

bool lookup_is_decided(const struct lookup lookups[LOOKUP_FAMILIES], bool all)
{
	enum lookup_state v4 = lookups[LOOKUP_V4].last, v6 = lookups[LOOKUP_V6].last;

	if (v4 == LOOKUP_FOUND || (all ? v4 == LOOKUP_FAILED : v6 == LOOKUP_FOUND))
		return true;
	return v4 != LOOKUP_PENDING && v6 != LOOKUP_PENDING;
}

const char *lookup_failure(const struct lookup lookups[LOOKUP_FAMILIES], bool all)
{
	const struct lookup *v4 = &lookups[LOOKUP_V4], *v6 = &lookups[LOOKUP_V6];

	if (lookup_all(lookups) >= 0 || (v6->last == LOOKUP_FOUND && !all))
		return NULL;
	if (v4->last == LOOKUP_FAILED)
		return v4->why;
	if (v6->last == LOOKUP_FAILED)
		return v6->why;
	return v4->last == LOOKUP_NONE && v6->last == LOOKUP_NONE ? v4->why : "no answer yet";
}
