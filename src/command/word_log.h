/*
 * Operations whose log is made of the words of a request. Each word becomes a token: a sign,
 * the word and a space. The words are at the end of the line ("sadd k a b"), elements in a data
 * block ("a\nb\n"), or both. Many words are converted in portions, between which the thread serves
 * other clients.
 */
#ifndef COMMAND_WORD_LOG_H
#define COMMAND_WORD_LOG_H

#include "command/op_task.h"

struct word_log {
	struct word_text {
		struct slice rest; /* The words that are not converted yet. */
		char delimiter;    /* Ends each word but perhaps the last one. */
		bool spaced;       /* Any number of delimiters separates two words. */
		/* They are elements of any bytes, which may be empty, and become words. */
		bool raw;
		/* NULL, or the error line of a word that request_key_valid() refuses. */
		const char *bad;
	} now, next;                        /* `next` follows `now`. */
	const struct collection_rule *rule; /* Which words are allowed. */
	const char *too_long;               /* The error line of a word that is too long. */
	char sign;
	uint32_t date;     /* When the members expire; EXPIRY_NONE for never. */
	bool front;        /* The last word becomes the first token. */
	bool some;         /* At least one word is required. */
	char *from, *at;   /* The log so far, which is written towards its front if `front`. */
	size_t number;     /* Words in the log. */
	const char *error; /* The error line of the first invalid word; or NULL. */
};

/*
 * Returns when members expire that are added to a key with this rule now. word_log_date does so for
 * the key of a request, whose arguments may have other seconds. EXPIRY_NONE for never.
 */
uint32_t word_log_rule_date(
	struct host *host, struct slice key, const struct collection_rule *rule);
uint32_t word_log_date(struct host *host, const struct request *request);

/* Returns the words of a request whose arguments end in any number of them; see args.h. */
struct word_log word_log_of_args(const struct request *request, char sign, uint32_t date);

/* Returns the words of a data block that is written to a collection like an item. */
struct word_log word_log_of_item(
	const struct collection_rule *rule, struct slice data, char sign, uint32_t date);

/* Returns the maximum size of the log. Reads all words. */
size_t word_log_max(const struct word_log *w);

/* Returns how many bytes of t->more word_log_submit needs. Depends only on the words. */
size_t word_log_room(const struct word_log *w);

/*
 * Converts the words and submits the operation with their log, now or in later slices, or
 * replies the error. Uses the first word_log_room() bytes of t->more, and op.done. The words are
 * borrowed for the call, but the memory of many words may be taken; see host->take_input.
 */
void word_log_submit(struct op_task *t, struct word_log *w);

/*
 * Converts the next words: at most `bytes` bytes of them, and the rest of the last word if it
 * is not too long. Returns whether it was the last portion.
 */
bool word_log_convert(struct word_log *w, size_t bytes);

#endif
