/*
 * What becomes of an item that two servers have, since a setlistd with another list of servers wrote to the former one. Sets and lists
 * are joined, and counts of events are added up. Of other items, numbers among them, the one on the new server stays: a setlistd that
 * knows the new servers has acknowledged it.
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
 * Decides what becomes of an item on both servers. If `is_copy`, `here` is only a copy of what the former server had, so no client has
 * written it to the new one. `rules` may be NULL.
 */
enum join join_of(const struct rules *rules, struct slice key, struct slice former, struct slice here, bool is_copy);

/*
 * Appends the value of JOIN_BOTH to `out`. The former words precede those of the new server, so the latter decide about a member of which
 * both have words.
 */
void join_values(struct slice former, struct slice here, struct buf *out);

/* Whether it is the base of a set or list that has parts. */
bool join_has_parts(struct slice value);

/*
 * Whether the former words will follow runs of the new server, since both have runs. Then each table of those runs must be passed to
 * join_drop_words first.
 */
bool join_needs_runs(struct slice former, struct slice here);

/*
 * Drops the words of the former item about members in a table of the new server, and what the head of the new item, which is older than the
 * table, says of them.
 */
void join_drop_words(struct buf *former, struct buf *here, struct slice table);

#endif
