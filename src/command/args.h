/* The arguments after the key of a command on a set or list: of an ARGS_GRAMMAR in grammars.def. */
#ifndef COMMAND_ARGS_H
#define COMMAND_ARGS_H

#include "collection/op.h"
#include "collection/rules.h"
#include "collection/set_request.h"
#include "protocol/request.h"

/* A member that the grammar of a command does not have is 0. Slices are of the request. */
struct args {
	const struct rules *rules;
	const struct collection_rule *rule; /* of the key */
	struct slice words;                 /* members or elements, with spaces between them */
	size_t number, bytes;               /* how many words these are; their bytes as tokens of a log */
	struct slice token;                 /* of a lease */
	uint64_t count;                     /* 1 if it may be missing, and is */
	bool repeats;                       /* the count was below 0, and is without its sign here */
	int64_t first, last;                /* indexes; the same, if there is one only; of ends of lists: 0 or -1 */
	struct slice target, pivot;         /* a second key; an element beside that of `words` */
	struct list_find find;
	struct set_range range;
};

/* The reply to a command that would write a table, an index or a segment. */
extern const char args_part_refusal[];

/* The error line if collections of the rule are no lists. */
extern const char args_no_list[];

/* Whether collections of the rule may be lists. */
bool args_allow_lists(const struct collection_rule *rule);

/* Parses the arguments of a request for which command_takes_args() holds. Gives NULL, or the error line. */
const char *args_parse(const struct rules *rules, const struct request *request, struct args *out);

#endif
