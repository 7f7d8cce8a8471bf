/*
 * A set in its stored form, a base and the items of its runs, and the same set as one sorted array
 * that records each layer. It changes as real sets do: its log grows, tokens are prepended, runs
 * are written and merged, and members expire. The replies of a view of it are compared with the
 * array. It does not use Check, so that fuzzers can use it too.
 */
#ifndef UNIT_SET_MODEL_H
#define UNIT_SET_MODEL_H

#include "collection/set/answer.h"
#include "cupboard.h"

enum { SET_MODEL_RUNS = 12 };

/* The state of each member of the world in a layer; of one that is in, its date, or 0. */
struct set_model_layer {
	enum { SAYS_NOTHING, SAYS_IN, SAYS_OUT } says[TABLE_MODEL_MAX];
	uint32_t dates[TABLE_MODEL_MAX];
};

struct set_model {
	struct table_model world; /* maximum number of members */
	struct buf base, head_text, log_text;
	struct set_model_layer head, log, layers[SET_MODEL_RUNS];
	struct oplog_run runs[SET_MODEL_RUNS]; /* oldest first */
	size_t run_count;
	bool marked;              /* it has a block, which is kept even if it is empty */
	bool dated;               /* Some of the words that are added have dates. */
	int64_t now;              /* the time */
	bool in[TABLE_MODEL_MAX]; /* the members of all layers together, and their dates */
	uint32_t dates[TABLE_MODEL_MAX];
	size_t count;
	struct cupboard cupboard;
	uint64_t random;
	size_t loaded; /* items that were loaded by set_model_ask */
};

/* Creates a random set with up to this number of runs. Members expire only in a dated one. */
void set_model_init(struct set_model *m, uint64_t seed, size_t runs, bool dated);
void set_model_fini(struct set_model *m);

/* Append, or prepend, some more tokens. */
void set_model_append(struct set_model *m, size_t tokens);
void set_model_push(struct set_model *m, size_t tokens);

/* The effect of a compaction: the log, or the part in front of the block, becomes a run. */
void set_model_spill(struct set_model *m);

/* The effect of a merge of the runs from `from` up to `to`. */
void set_model_merge(struct set_model *m, size_t from, size_t to);

/* Some time passes. Its clock is the one of the set's server. */
void set_model_wait(struct set_model *m, uint32_t seconds);

/* One of these changes, or a replacement of the set by another one. */
void set_model_change(struct set_model *m);

/* Updates a view, and folds all of the base. */
enum oplog_form set_model_update(struct set_view *v, struct slice base);

/*
 * Loads everything that a view wants from a cupboard. Returns false if an item is missing, or the
 * view refuses it.
 */
bool set_model_load(struct cupboard *c, struct set_view *v);

/*
 * Queries a view that has the base, at the time of the model; the wants are loaded from the
 * cupboard. Returns false if there is never an answer.
 */
bool set_model_ask(struct set_model *m, struct set_view *v, struct set_request *r);

/* Returns whether the answer is correct. */
bool set_model_agrees(const struct set_model *m, const struct set_request *r);

/* Makes a random request; `members` has the members that it asks about. */
void set_model_request(struct set_model *m, struct set_request *r, struct buf *members);

#endif
