/*
 * Elements in replies. Inside setlistd they are words (see element.h); a conversion makes the
 * text that a client receives:
 *
 *     quoted    words separated by spaces, in quotes if they need them: the text protocol
 *     joined    the bytes of the elements, with a delimiter between them: values of keys
 *
 * If an element contains the delimiter, there is no joined text. Elements that the command has
 * removed would then be lost, so all of them are written in quotes, the delimiters in them as
 * \xHH, with a delimiter between them.
 *
 * A conversion works in portions, so that one of a large text can pause between them.
 */
#ifndef PROTOCOL_ELEMENTS_H
#define PROTOCOL_ELEMENTS_H

#include <stdbool.h>

#include "util/buf.h"
#include "util/shared.h"
#include "util/slice.h"

struct elements {
	struct slice words; /* Borrowed. */
	bool joins;         /* The result is joined by `delimiter`, not quoted. */
	bool ends;          /* The delimiter also follows the last element. */
	bool keeps;         /* The elements are in quotes if they cannot be joined. */
	char delimiter;
	size_t done;    /* Bytes of `words` that are converted. */
	bool converted; /* The result is `out`. Until then, it is as much of `words`. */
	bool in_quotes; /* They cannot be joined, and `keeps` is set. */
	bool refused;   /* An element contains the delimiter; there is no result. */
	struct buf out;
};

/* Approximate bytes of a portion, and its steps (see env.h) if it is converted. */
enum { ELEMENTS_PORTION = 4096, ELEMENTS_STEPS = 128 };

/* Texts of at least this size are converted in slices. */
enum { ELEMENTS_LARGE = 64 * 1024 };

/*
 * Converts the next portion. Returns true if no portion is left, or an element contains the
 * delimiter. The caller frees `out`.
 */
bool elements_convert(struct elements *e);

/*
 * Appends the element of a word in the form of an argument (see quoted.h): as it is if it is
 * plain, else in quotes.
 */
void elements_add_quoted(struct buf *out, struct slice word);

/* Returns whether elements_add_quoted adds this word as it is. */
bool elements_word_is_plain(struct slice word);

/* Returns whether the quoted form of these words is the same text. */
bool elements_are_plain(struct slice words);

/* Checks the words of a shared text, and stores the result in it. */
void elements_check_shared(struct shared *words);

/* Returns the same as elements_are_plain for a shared text, which is checked only once. */
static inline bool elements_shared_are_plain(struct shared *words)
{
	if (words->words == SHARED_UNKNOWN)
		elements_check_shared(words);
	return words->words == SHARED_PLAIN;
}

/*
 * Returns the element of a word: the word itself, or the bytes that it adds to `room`, an empty
 * buffer that the caller frees.
 */
struct slice elements_single(struct slice word, struct buf *room);

#endif
