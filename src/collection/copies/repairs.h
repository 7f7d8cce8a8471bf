/*
 * Repairs in the background: a queue of the sets and counters whose copies differ. One that cannot
 * be repaired, because a server is unreachable, is tried again, less and less often.
 */
#ifndef COLLECTION_COPIES_REPAIRS_H
#define COLLECTION_COPIES_REPAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "util/slice.h"

struct copies;
struct repairs;

/* The base of a set, a base with its parts, or a counter. */
enum repair_kind { REPAIR_BASE, REPAIR_PARTS, REPAIR_COUNTER };

/* Repairs the set of a base or part, or the counter. Returns false if too many are waiting. */
bool repairs_add(struct copies *copies, struct slice key, enum repair_kind kind);

struct repairs *repairs_create(struct copies *copies);
void repairs_destroy(struct repairs *repairs);
bool repairs_idle(const struct repairs *repairs);
size_t repairs_count(const struct repairs *repairs);

#endif
