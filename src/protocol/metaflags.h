/*
 * The flags of meta commands. They are validated before they are passed on, so that a server
 * cannot get out of sync with the proxy.
 */
#ifndef PROTOCOL_METAFLAGS_H
#define PROTOCOL_METAFLAGS_H

#include <stdint.h>

#include "protocol/command.h"
#include "util/buf.h"
#include "util/slice.h"

/* Sets of flags, each flag as its metaflags_bit. */
struct metaflags {
	uint64_t letters;    /* All flags. */
	uint64_t before_key; /* The flags before k. */
};

/* Returns the bit of a flag in a set of flags; 0 for a byte that is not a letter. */
static inline uint64_t metaflags_bit(char letter)
{
	unsigned char c = (unsigned char)letter;

	return c >= 64 && c < 128 ? UINT64_C(1) << (c - 64) : 0;
}

static inline bool metaflags_has(const struct metaflags *flags, char letter)
{
	return flags->letters & metaflags_bit(letter);
}

/* Parses the flags of `command` to `out`. Returns NULL, or the error line that refuses them. */
const char *metaflags_parse(command_id command, struct slice flags, struct metaflags *out);

/* Returns whether the parsed flags of an `ma` make it subtract. */
bool metaflags_decrements(struct slice flags);

/*
 * Returns whether the line has Pitem, a flag for the proxy: the command applies to the item of
 * that key, whatever the rules are.
 */
bool metaflags_name_item(const struct metaflags *flags, struct slice line);

/* Returns whether q suppresses a reply with this code: a miss for mg, success for the others. */
bool metaflags_hide(const struct metaflags *flags, command_id command, struct slice code);

/*
 * Writes each flag whose letter is not in `without` to `to`, after a space. `to` has room for
 * flags.n + 1 bytes. Returns the number of bytes.
 */
size_t metaflags_copy(struct slice flags, const char *without, char *to);

/*
 * Appends a reply's line with the flag k and this base64 key, inserted after the flags whose
 * bits are in `before`.
 */
void metaflags_copy_with_key(struct slice line, uint64_t before, struct slice key, struct buf *out);

/*
 * Decodes base64 to `out`, which has room for 3/4 of `in`. Returns the number of bytes, or 0 if
 * `in` is not base64.
 */
size_t metaflags_decode_key(struct slice in, char *out);

/* Appends a key in base64. */
void metaflags_encode_key(struct slice key, struct buf *out);

#endif
