/*
 * The parsed arguments of a command on a set or list: the words after the key, in the form of
 * an ARGS_GRAMMAR of grammars.def.
 */
#ifndef COMMAND_ARGS_H
#define COMMAND_ARGS_H

#include "collection/list_request.h"
#include "collection/rules.h"
#include "collection/set_request.h"
#include "protocol/request.h"

/* A field that the command's grammar does not have is 0. Slices point into the request. */
struct args {
	const struct rules *rules;
	const struct collection_rule *rule; /* The rule of the key. */
	struct slice words;                 /* Members or elements, separated by spaces. */
	/* The number of words, and their size in bytes as tokens of a log. */
	size_t number, bytes;
	struct slice token; /* The token of a lease. */
	uint64_t count;     /* 1 if it is optional and missing. */
	bool repeats;       /* The count was negative; `count` holds its absolute value. */
	/* Indexes, equal if the command takes only one. An end of a list is 0 or -1. */
	int64_t first, last;
	/* A second key; the element next to which `words` is inserted. */
	struct slice target, pivot;
	struct list_find find;
	struct set_range range;
};

/* The error line of a command that would write a table, an index or a segment. */
extern const char args_part_refusal[];

/* The error line if collections of the rule cannot be lists. */
extern const char args_no_list[];

/* Returns whether collections of the rule may be lists. */
bool args_allow_lists(const struct collection_rule *rule);

/*
 * Parses the arguments of a request for which command_takes_args() is true. Returns NULL, or
 * the error line.
 */
const char *args_parse(const struct rules *rules, const struct request *request, struct args *out);

#endif
