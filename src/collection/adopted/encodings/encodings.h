/* The table of encodings. */
#ifndef COLLECTION_ADOPTED_ENCODINGS_ENCODINGS_H
#define COLLECTION_ADOPTED_ENCODINGS_ENCODINGS_H

#include "collection/adopted/encoding.h"

#define ENCODING(id, name) extern const struct encoding encoding_##name;
#include "collection/encodings.def"
#undef ENCODING

/* Returns NULL for oplog, which is not adopted. */
const struct encoding *encoding_get(enum encoding_id id);

const char *encoding_name(enum encoding_id id);

/* Returns whether the rule allows every member of allowed length. */
static inline bool encoding_takes_any(const struct collection_rule *rule)
{
	return rule->encoding == ENCODING_OPLOG && !rule->plain_verbs;
}

/* Returns the error reply for a member that the rule does not allow, or NULL. */
const char *encoding_check_member(const struct collection_rule *rule, struct slice member);

#endif
