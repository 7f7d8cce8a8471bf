/*
 * The segments of lists that were read last. A segment never changes, so what is here is right for as long as a base refers to
 * it; it is thrown away after some seconds all the same, so that the server is asked for it, keeps it, and is noticed when it
 * has not.
 */
#ifndef COLLECTION_SHELF_H
#define COLLECTION_SHELF_H

#include "collection/pack.h"

enum { SHELF_PLACES = 64, SHELF_FRESH = 10 * 1000 /* milliseconds */ };

/* All zeroes is an empty shelf. */
struct shelf {
	struct shelf_place {
		struct pack *pack;
		struct buf key;
		uint64_t hash, put, used;
	} places[SHELF_PLACES];
	uint64_t uses;
	size_t memory;
};

void shelf_free(struct shelf *shelf);

/* The segment under this item key, borrowed until the shelf is used again, or NULL. */
struct pack *shelf_find(struct shelf *shelf, struct slice key, uint64_t now);

/* Keeps a segment, and throws out what was used longest ago while all are over `budget` bytes. */
void shelf_put(struct shelf *shelf, struct slice key, struct pack *pack, uint64_t now, size_t budget);

#endif
