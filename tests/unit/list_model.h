/*
 * A list in its stored form, with a store for its segments, and the same list as an array of
 * items. Both receive every request, and abort() reports a difference. The model does not use
 * Check, so fuzzers can use it too.
 */
#ifndef UNIT_LIST_MODEL_H
#define UNIT_LIST_MODEL_H

#include "collection/list/segmented_list.h"

enum { LIST_MODEL_SEGMENTS = 512 };

struct list_model {
	struct buf base;
	struct list_model_segment {
		struct buf id, data;
		bool there;
	} segments[LIST_MODEL_SEGMENTS];
	size_t segment_count;
	/* the same list as an array, including stored items beyond the limit */
	struct elements items;
	struct elements removed; /* items that a removal in the log names */
	struct buf names[4096];  /* the bytes of the items */
	size_t name_count;
	uint64_t random;
	size_t base_size, segment_size;
	size_t max; /* 0 for no limit */
	bool newest_first;
	size_t loaded; /* segments that the last request needed */
};

void list_model_init(struct list_model *m, size_t base_size, size_t segment_size);
void list_model_fini(struct list_model *m);

/* Carries out a request on an array, as segmented_list_apply does on a list. It shares no code with that. */
bool list_model_apply(struct elements *items, struct list_request *request, struct buf *text);

/* A push, as a server executes it. */
void list_model_push(struct list_model *m, struct slice item, bool front);

/* The removal of a set member. A list reads it as a removal of all equal items to its left, also of those pushed there later. */
void list_model_srem(struct list_model *m, struct slice item);

/* Carries out a request; the reply is in `text`, and in the request's status and number. */
void list_model_ask(struct list_model *m, struct list_request *request, struct buf *text);

/* Compacts the list, if it is due. */
void list_model_compact(struct list_model *m);

#endif
