/*
 * The parsed arguments of a command on a set or list: the words after the key, in the form of
 * an ARGS_GRAMMAR of grammars.def.
 */
#ifndef COMMAND_ARGS_H
#define COMMAND_ARGS_H

#include "collection/adopted/encodings/encodings.h"
#include "collection/list_request.h"
#include "collection/rules.h"
#include "collection/set_request.h"
#include "protocol/element.h"
#include "protocol/request.h"

/* A field that the command's grammar does not have is 0. Slices point into the request. */
struct args {
	const struct rules *rules;
	const struct collection_rule *rule; /* The rule of the key. */
	/*
	 * Members or elements, separated by spaces. They are not checked yet if the line may end
	 * with any number of them, except for smismember; see command/word_log.h.
	 */
	struct slice words;
	bool some;          /* At least one unchecked word is required. */
	struct slice token; /* The token of a lease, or the ticket of a held element. */
	uint64_t count;     /* 1 if it is optional and missing; the seconds of a hold. */
	bool counted;       /* The optional count is present. */
	bool timed; /* The command has `seconds`, after which its members expire; 0: never. */
	uint64_t seconds;
	bool repeats; /* The count was negative; `count` holds its absolute value. */
	/* Indexes, equal if the command takes only one. An end of a list is 0 or -1. */
	int64_t first, last;
	/* A second key; the element next to which `words` is inserted. */
	struct slice target, pivot;
	struct list_find find;
	struct set_range range;
	struct slice pattern; /* As a word; `p` is NULL for none. */
};

/* Returns the error line of a command that would write a part, or a second copy. */
const char *args_part_refusal(struct slice key);

/* The error lines of a member or an element that is too long. */
extern const char args_long_member[], args_long_item[];

/* args_check_word for a word that is long, or in an encoding that does not take any word. */
const char *args_check_special_word(
	const struct collection_rule *rule, struct slice word, const char *too_long);

/* Returns the error line of a word that cannot be a member or element, or NULL. */
static inline const char *args_check_word(
	const struct collection_rule *rule, struct slice word, const char *too_long)
{
	return word.n <= MEMBER_MAX && encoding_takes_any(rule)
		? NULL
		: args_check_special_word(rule, word, too_long);
}

/* Returns whether collections of the rule may be lists; and the error line if they may not. */
bool args_allow_lists(const struct collection_rule *rule);
const char *args_no_list(const struct collection_rule *rule);

/* The error line of a key that is too long for a set or list. */
extern const char args_long_key[];

/*
 * Parses the arguments of a request for which command_takes_args() is true. Returns NULL, or
 * the error line.
 */
const char *args_parse(const struct rules *rules, const struct request *request, struct args *out);

#endif
