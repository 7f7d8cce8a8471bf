/* A server in a box for the encodings alone: the items of one collection, snapshots of them, and plans carried out at once. */
#ifndef UNIT_BOX_H
#define UNIT_BOX_H

#include "collection/adopted/encodings/encodings.h"

enum { BOX_ITEMS = 64, BOX_FORMS = 7 };

struct box {
	const struct encoding *encoding;
	struct collection_rule rule;
	struct collection_options options;
	struct box_item {
		char key[64];
		struct buf value;
		bool there;
	} items[BOX_ITEMS];
	size_t count;
	uint64_t cas;
};

/* An empty box of the n-th way to keep a set: each encoding, and flip with and without the pointer. The key is `s`. */
void box_init(struct box *box, unsigned form);
void box_free(struct box *box);

/* What an item holds from now on. */
void box_put(struct box *box, const char *key, struct slice value);

/* The item, or NULL where it is not there. */
struct box_item *box_find(struct box *box, struct slice key);

/* Reads a snapshot, which is the caller's to free; `change` is borrowed. */
struct snapshot box_look(const struct box *box, enum purpose purpose, const struct fold *change);

/* Carries out one step of a plan; false when the item was not as it must be. */
bool box_step(struct box *box, const struct plan_step *step);

/* Folds what is there into `out`, which borrows from `s`. */
enum adopted_status box_fold(const struct box *box, struct snapshot *s, struct fold *out);

/* The whole of an operation, as often as its plans say `again`; ADOPTED_LOST also when it does not come to an end. */
enum adopted_status box_change(struct box *box, const struct fold *change, bool create);
enum adopted_status box_replace(struct box *box, const struct fold *members);
enum adopted_status box_take(struct box *box, const struct fold *taken);

/* The next plan of a compaction, of which so many steps are carried out; false when there is nothing to gain. */
bool box_compact(struct box *box, size_t steps, enum adopted_status *status);

#endif
