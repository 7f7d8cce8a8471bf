/*
 * Computes answers to requests from a view. If an answer needs parts that are not in memory, it
 * notes wants for all of them and fails. The caller loads them and calls again.
 */
#ifndef COLLECTION_SET_ANSWER_H
#define COLLECTION_SET_ANSWER_H

#include "collection/set/view.h"
#include "collection/set_request.h"

/*
 * Answers a request, or does a slice of the work, and stores the answer in the request. Returns
 * false if it must be called again: in the next slice if v->slices has grown, otherwise after
 * v->wants are loaded. If there are no wants either, the parts in memory contradict the
 * references, and no further call can succeed. Progress is kept in the view and in the request.
 */
bool set_answer(struct set_view *v, struct set_request *request)
	__attribute__((warn_unused_result));

/* Returns the bytes of memory that an unfinished answer uses. */
size_t set_answer_memory(const struct set_view *v, const struct set_request *request);

/* Returns the steps of work, in the unit of env_is_over, for sending the reply with an answer. */
static inline size_t set_answer_steps(const struct set_request *request)
{
	enum { LEAST = 16, BYTES = 512 /* copied in one step */ };

	return LEAST +
		(buf_size(&request->text) +
			(request->shared ? buf_size(&request->shared->text) : 0)) /
		BYTES;
}

/* Answers a request from a fold of the whole set. */
void set_answer_fold(const struct fold *all, struct set_request *request);

#endif
