/*
 * Decides how to resolve an item that two servers have because a setlistd with another list of
 * servers wrote to the former one. Sets and lists are joined, and event counts are added up. Sets
 * with two copies are joined by their stamps (copies/join.h), and so is a set that had one copy so
 * far with one that has two: then only the closed part of the one with the horizon is kept.
 * For all other items, including numbers, the one on the new server is kept: a setlistd with
 * the new list of servers has acknowledged it.
 */
#ifndef COLLECTION_MOVE_JOIN_H
#define COLLECTION_MOVE_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "collection/rules.h"
#include "util/buf.h"

enum join {
	JOIN_FORMER, /* the item on the former server replaces that on the new one */
	JOIN_HERE,   /* the item on the new server stays, and the other one is dropped */
	JOIN_BOTH,   /* a value is made of both */
};

/*
 * Decides how to resolve an item that is on both servers. If `is_copy`, `here` is only a copy of
 * the former server's item, so no client has written it to the new server. `rules` may be NULL.
 */
enum join join_of(const struct rules *rules, struct slice key, struct slice former,
	struct slice here, bool is_copy);

/*
 * Writes the value for JOIN_BOTH to `out`, which must be empty. The former words precede the words
 * of the new server, so the latter decide about a member that both name. The value has the last
 * date of the two (text/date.h). If a base has stamps, these decide instead of the order. `seed` is
 * that of the hash.
 */
void join_values(struct slice former, struct slice here, uint64_t seed, struct buf *out);

/*
 * Returns whether the value for JOIN_BOTH refers to no part of the former item: the closed part on
 * the new server is the later one.
 */
bool join_drops_parts(struct slice former, struct slice here);

/* Returns the date of the base of a set or list; DATE_NONE if the value is none, or has no date. */
int64_t join_date(struct slice value);

/*
 * Returns whether a value can be a later state of the base `copy`, by its parts: a new set or list
 * with short elements has none so soon. If both have parts, and none in common, `part` becomes the
 * id of a part of the copy, else empty. On the server of the value this part was deleted if the
 * value is a later state, and is still there if it is new.
 */
bool join_may_succeed(struct slice copy, struct slice value, struct slice *part);

/*
 * Returns whether the former words would follow runs of the new server, because both have runs.
 * Then each table of those runs must be passed to join_drop_words first.
 */
bool join_needs_runs(struct slice former, struct slice here);

/*
 * Drops the words of the former item about members in a table of the new server, and the words
 * about them in the head of the new item, which is older than the table.
 */
void join_drop_words(struct buf *former, struct buf *here, struct slice table);

#endif
