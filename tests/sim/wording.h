/*
 * Elements of any bytes for the clients of a simulation. Its worlds name elements by plain words;
 * in some histories, requests and stored items have other elements in their places:
 *
 *     sadd s0 ^0m3 -> wording_request -> sadd s0 "^0m3 x" -> proxy -> +^0m3<escape>x  -> wording_name
 *     VALUE s0 ^0m3 <- wording_reply  <- "^0m3 x"         <-
 *
 * The element of a name begins with it and has the same order, except that one name of sets and
 * one of lists have the empty element. Some elements are long. This shares no code with the code
 * under test.
 */
#ifndef SIM_WORDING_H
#define SIM_WORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

enum { WORDING_MAX = 2000 };

/*
 * Begins a history, in which all elements are names if `plain`. The other arguments are the names
 * with the empty element, and the first letters of the keys of sets and of lists. A name that
 * begins like one of lists must not be used in sets.
 */
void wording_begin(bool plain, const char *empty_member, const char *set_keys,
	const char *empty_element, const char *list_keys);
bool wording_is_plain(void);

/* Returns the name of a stored word; an empty slice if there is none. */
struct slice wording_name(struct slice word, bool of_list);

/* Returns the stored word of a name, of a member of a set. */
struct slice wording_word(const char *name, char word[WORDING_MAX]);

/* Returns whether a part with this word may have a base of form 1. */
bool wording_is_narrow(struct slice word);

/* Appends the request, with its elements in quotes, or as literals. */
void wording_request(struct slice line, struct buf *out);

/*
 * Puts the names of elements into a reply. No bytes are the empty element of a list, and of a set
 * if `is_member`, else a set without members.
 */
void wording_reply(struct buf *reply, bool is_member);

/* Counts bases of form 3 that are stored: of sets, of lists, and leases. */
void wording_count(struct slice value);
void wording_print_counts(void);

#endif
