/*
 * A memcached with one collection in an adopted encoding. It takes snapshots and carries out plans
 * immediately, and its clock always shows 0.
 */
#ifndef UNIT_BOX_H
#define UNIT_BOX_H

#include "collection/adopted/encodings/encodings.h"
#include "memcached.h"

enum { BOX_FORMS = 7 };

struct box {
	const struct encoding *encoding;
	struct collection_rule rule;
	struct collection_options options;
	struct memcached memcached;
	uint64_t random;
	struct preparation prepared; /* by the compaction in progress */
};

/*
 * Returns an empty box for encoding `form`, where flip counts twice: with and without the pointer.
 * The key is `s`.
 */
void box_init(struct box *box, unsigned form);
void box_free(struct box *box);

/* Stores an item that never expires. */
void box_put(struct box *box, const char *key, struct slice value);

/* Returns the item, or NULL if it does not exist. */
struct memcached_item *box_find(struct box *box, struct slice key);

/* Takes a snapshot, which the caller frees; `change` is borrowed. */
struct snapshot box_look(struct box *box, enum purpose purpose, const struct fold *change);

/*
 * Carries out a step of a plan that was made from `s`. Returns false if a server would
 * refuse it.
 */
bool box_step(struct box *box, struct snapshot *s, struct plan_step *step);

/*
 * Returns the live members of a fold, in its order, with spaces between them; valid until the next
 * call.
 */
const char *box_text(const struct fold *f);

/* Takes the snapshot `s` and folds it into `out`, which borrows from it. */
enum adopted_status box_fold(struct box *box, struct snapshot *s, struct fold *out);
/* The same for a snapshot that was taken before. */
enum adopted_status box_fold_of(struct snapshot *s, struct fold *out);

/*
 * Carry out a whole operation, as long as its plans return `again`; ADOPTED_LOST also after too
 * many rounds.
 */
enum adopted_status box_change(struct box *box, const struct fold *change, bool create);
enum adopted_status box_replace(struct box *box, const struct fold *members);
enum adopted_status box_take(struct box *box, const struct fold *taken);

/*
 * Carries out the first `steps` steps of the next plan of a compaction. Returns false if the plan
 * is empty. Before another compaction begins, clear box->prepared.
 */
bool box_compact(struct box *box, size_t steps, enum adopted_status *status);

/*
 * Stores a large collection sk for the encoding of the rule, as `form` has it: members m000000,
 * m000001 ..., so that a compaction would make it shorter. A list has elements twice.
 */
void box_fill(const struct collection_rule *rule, unsigned form, unsigned members,
	void (*put)(void *arg, const char *key, struct slice value), void *arg);

#endif
