/*
 * What is known of the addresses of a name, and what they mean for its servers. IPv4 and IPv6 are looked up separately, since a name
 * server may answer one of the two late or never.
 */
#ifndef UPSTREAM_LOOKUP_H
#define UPSTREAM_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

enum { LOOKUP_V4, LOOKUP_V6, LOOKUP_FAMILIES };
enum { LOOKUP_BYTES = 16 }; /* of an address; IPv4 uses the first four, and the others are 0 */

enum lookup_state {
	LOOKUP_PENDING, /* none has ended */
	LOOKUP_FOUND,
	LOOKUP_NONE,  /* the name has no address of this family */
	LOOKUP_FAILED /* the name servers did not tell */
};

/* The lookups of one family. */
struct lookup {
	enum lookup_state last;            /* outcome of the last one */
	const char *why;                   /* reason, if that is LOOKUP_NONE or LOOKUP_FAILED; a constant text */
	char *full;                        /* name with its domain, of the last one that found addresses; or NULL */
	unsigned char (*at)[LOOKUP_BYTES]; /* addresses that it found, sorted and without duplicates; or NULL */
	size_t count;
};

/* Addresses of a single server: at most one of each family. */
struct lookup_choice {
	bool has[LOOKUP_FAMILIES];
	unsigned char at[LOOKUP_FAMILIES][LOOKUP_BYTES];
};

/* The outcome is `count` addresses, at least one, in any order; takes over both `at` and `full`. */
void lookup_find(struct lookup *lookup, unsigned char (*at)[LOOKUP_BYTES], size_t count, char *full);

/* The outcome is LOOKUP_NONE or LOOKUP_FAILED. Addresses that were found before are kept. */
void lookup_miss(struct lookup *lookup, enum lookup_state state, const char *why);

void lookup_free(struct lookup *lookup);

enum lookup_verdict { LOOKUP_UNKNOWN, LOOKUP_SINGLE, LOOKUP_SEVERAL };

/*
 * Fills in the addresses of the name's only server, if the verdict is LOOKUP_SINGLE. An IPv6 address is that of the same server only
 * if it belongs to the same full name: a search domain may have any name.
 */
enum lookup_verdict lookup_choose(const struct lookup lookups[LOOKUP_FAMILIES], struct lookup_choice *choice);

/*
 * The family whose addresses are a server each: IPv4 if the name has such addresses, else IPv6. So the result does not depend on which
 * answer is received first. Returns -1 while it is not known.
 */
int lookup_all(const struct lookup lookups[LOOKUP_FAMILIES]);

/* Whether lookup_choose, or lookup_all if `all`, has its final result unless a later lookup changes it. */
bool lookup_is_decided(const struct lookup lookups[LOOKUP_FAMILIES], bool all);

/* Why the last lookups found no address that lookup_choose, or lookup_all if `all`, can use; NULL if they did. */
const char *lookup_failure(const struct lookup lookups[LOOKUP_FAMILIES], bool all);

#endif
