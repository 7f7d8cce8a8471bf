/*
 * A set in its stored form, a base and the items of its runs, beside the same set as one sorted array that remembers what each
 * layer says. It changes as such a set does: its log grows, things are put in front, runs are written and merged. What is asked
 * of a view of it is compared with the array. It knows nothing of Check, so that fuzzers can use it too.
 */
#ifndef UNIT_SET_MODEL_H
#define UNIT_SET_MODEL_H

#include "collection/set/answer.h"
#include "cupboard.h"

enum { SET_MODEL_RUNS = 12 };

/* What a layer says of each member of the world. */
struct set_model_layer {
	enum { SAYS_NOTHING, SAYS_IN, SAYS_OUT } says[TABLE_MODEL_MAX];
};

struct set_model {
	struct table_model world; /* all members there may be */
	struct buf base, head_text, log_text;
	struct set_model_layer head, log, layers[SET_MODEL_RUNS];
	struct oplog_run runs[SET_MODEL_RUNS]; /* oldest first */
	size_t run_count;
	bool marked;              /* it has a block, which stays where nothing is left in it */
	bool in[TABLE_MODEL_MAX]; /* what all of it comes to */
	size_t count;
	struct cupboard cupboard;
	uint64_t random;
	size_t loaded; /* items that were loaded by set_model_ask */
};

/* A random set with up to so many runs. */
void set_model_init(struct set_model *m, uint64_t seed, size_t runs);
void set_model_fini(struct set_model *m);

/* Some more tokens behind, or in front. */
void set_model_append(struct set_model *m, size_t tokens);
void set_model_push(struct set_model *m, size_t tokens);

/* What a compaction does: the log becomes a run, or what is in front does. */
void set_model_spill(struct set_model *m);

/* What a merge does, from run `from` up to `to`. */
void set_model_merge(struct set_model *m, size_t from, size_t to);

/* One of these, or that another set takes its place. */
void set_model_change(struct set_model *m);

/* Updates a view, and folds all of the base. */
enum oplog_form set_model_update(struct set_view *v, struct slice base);

/* Loads from a cupboard all that a view wants. False if an item is not there, or the view refuses it. */
bool set_model_load(struct cupboard *c, struct set_view *v);

/* Asks a view that knows the base; what it wants is loaded from the cupboard. False when it never gets an answer. */
bool set_model_ask(struct set_model *m, struct set_view *v, struct set_request *r);

/* Whether the answer is right. */
bool set_model_agrees(const struct set_model *m, const struct set_request *r);

/* Makes a random request, of which `members` holds what is asked for. */
void set_model_request(struct set_model *m, struct set_request *r, struct buf *members);

#endif
