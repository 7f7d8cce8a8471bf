/* Choosing random members of a view. */
#ifndef COLLECTION_SET_SAMPLE_H
#define COLLECTION_SET_SAMPLE_H

#include "collection/set/view.h"

/* Answers a SET_SAMPLE request, as set_answer does. Each member is as likely as any other. */
bool set_sample(struct set_view *v, struct set_request *request) __attribute__((warn_unused_result));

#endif
