/* Random members of a view. */
#ifndef COLLECTION_SET_SAMPLE_H
#define COLLECTION_SET_SAMPLE_H

#include "collection/set/view.h"

/*
 * Answers a SET_SAMPLE request like set_answer. All members are equally likely. It draws from the entries of all layers
 * and rejects those that a newer layer overrides, so only the tables drawn from are read.
 */
bool set_sample(struct set_view *v, struct set_request *request) __attribute__((warn_unused_result));

#endif
