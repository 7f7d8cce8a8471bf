/*
 * The known addresses of a name, and what they mean for its servers. IPv4 and IPv6 are looked
 * up separately, since a name server may answer one of the two late or never.
 */
#ifndef UPSTREAM_LOOKUP_H
#define UPSTREAM_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

enum { LOOKUP_V4, LOOKUP_V6, LOOKUP_FAMILIES };
enum { LOOKUP_BYTES = 16 }; /* Bytes of an address. IPv4 uses the first four; the others are 0. */

enum lookup_state {
	LOOKUP_PENDING, /* No lookup has ended yet. */
	LOOKUP_FOUND,
	LOOKUP_NONE,  /* The name has no address of this family. */
	LOOKUP_FAILED /* No name server gave a usable answer. */
};

/* The lookups of one family. */
struct lookup {
	enum lookup_state last; /* Outcome of the last lookup. */
	/* Reason for LOOKUP_NONE or LOOKUP_FAILED; a constant text. */
	const char *why;
	/* Full name, with its domain, in the last lookup that found addresses; or NULL. */
	char *full;
	/* Addresses that this lookup found, sorted and without duplicates; or NULL. */
	unsigned char (*at)[LOOKUP_BYTES];
	size_t count;
};

/* The addresses of a single server: at most one of each family. */
struct lookup_choice {
	bool has[LOOKUP_FAMILIES];
	unsigned char at[LOOKUP_FAMILIES][LOOKUP_BYTES];
};

/*
 * Stores a successful lookup of `count` addresses, at least one, in any order. Takes ownership
 * of `at` and `full`.
 */
void lookup_find(
	struct lookup *lookup, unsigned char (*at)[LOOKUP_BYTES], size_t count, char *full);

/* Stores the outcome LOOKUP_NONE or LOOKUP_FAILED. Addresses that were found before are kept. */
void lookup_miss(struct lookup *lookup, enum lookup_state state, const char *why);

void lookup_free(struct lookup *lookup);

enum lookup_verdict { LOOKUP_UNKNOWN, LOOKUP_SINGLE, LOOKUP_SEVERAL };

/*
 * Decides whether the name belongs to a single server; if so (LOOKUP_SINGLE), stores its
 * addresses in `choice`. An IPv6 address belongs to the same server only if it was found under
 * the same full name, since each search domain may have a host of this name.
 */
enum lookup_verdict lookup_choose(
	const struct lookup lookups[LOOKUP_FAMILIES], struct lookup_choice *choice);

/*
 * Returns the family whose addresses are one server each: IPv4 if the name has such addresses,
 * otherwise IPv6. So the result does not depend on which answer arrives first. Returns -1 while
 * this is undecided.
 */
int lookup_all(const struct lookup lookups[LOOKUP_FAMILIES]);

/*
 * Returns whether the result of lookup_choose(), or of lookup_all() if `all`, is final until a
 * later lookup changes it.
 */
bool lookup_is_decided(const struct lookup lookups[LOOKUP_FAMILIES], bool all);

/*
 * Returns why the last lookups found no address that lookup_choose(), or lookup_all() if `all`,
 * can use; NULL if they found one.
 */
const char *lookup_failure(const struct lookup lookups[LOOKUP_FAMILIES], bool all);

#endif
