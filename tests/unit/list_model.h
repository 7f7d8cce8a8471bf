/*
 * A list in its stored form, with a cupboard for its segments, beside the same list as a plain sequence of items. Every
 * request is put to both, and what differs is an assert. It knows nothing of Check, so that fuzzers can use it too.
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
	struct items items;     /* what it comes to */
	struct items removed;   /* what the log takes back */
	struct buf names[4096]; /* the items' own bytes */
	size_t name_count;
	uint64_t random;
	size_t base_size, segment_size;
	size_t loaded; /* segments that the last request needed */
};

void list_model_init(struct list_model *m, size_t base_size, size_t segment_size);
void list_model_fini(struct list_model *m);

/* A push, as a server executes it. */
void list_model_push(struct list_model *m, struct slice item, bool front);

/* A set's removal, which a list reads as one of all that is to its left: also of what is pushed at the head later. */
void list_model_srem(struct list_model *m, struct slice item);

/* One request, or a compaction; the answer is in `text`, and the request's status and number. */
void list_model_ask(struct list_model *m, struct list_request *request, struct buf *text);
void list_model_compact(struct list_model *m);

#endif
