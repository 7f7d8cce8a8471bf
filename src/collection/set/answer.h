/*
 * Answers to requests, from a view. An answer that needs something which is not in memory notes all wants of that kind
 * and fails. The caller loads them and asks again.
 */
#ifndef COLLECTION_SET_ANSWER_H
#define COLLECTION_SET_ANSWER_H

#include "collection/set/view.h"
#include "collection/set_request.h"

/*
 * Answers a request, or a slice of it, to its own fields. False if it must be called again: in the next slice if v->slices has
 * grown, else after v->wants are loaded. If there are none, what is in memory contradicts the references, and no call will ever
 * answer. Finished slices stay in the view and in the request.
 */
bool set_answer(struct set_view *v, struct set_request *request) __attribute__((warn_unused_result));

/* What an unfinished answer takes, in bytes. */
size_t set_answer_memory(const struct set_view *v, const struct set_request *request);

/* Steps of work, as env_is_over counts them, for the reply with an answer. */
static inline size_t set_answer_steps(const struct set_request *request)
{
	enum { LEAST = 16, BYTES = 512 /* that are copied in one step */ };

	return LEAST + (buf_size(&request->text) + (request->shared ? buf_size(&request->shared->text) : 0)) / BYTES;
}

/* Answers a request from a fold that is the whole set. */
void set_answer_fold(const struct fold *all, struct set_request *request);

#endif
