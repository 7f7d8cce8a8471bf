/*
 * A packed table: the stored form of a table whose members are of one kind, such as numbers,
 * hexadecimal digits or random letters. A member is seen as a number with one digit for each of
 * its bytes, and the digits of a position are the bytes that the table has there, in their
 * order. So the order of the numbers is that of the members, and a position that has the same
 * byte in all members has no digit.
 *
 *     "T2"  flags  rate  count  size  shortest  longest  letters  letter ...  dates  bit ...
 *
 *     flags     1 byte: 1 if there are removals, plus 2 if there are dates
 *     rate      1 byte, see below
 *     count     varint, the number of entries
 *     size      varint, the bytes of the table that it unpacks to
 *     shortest  1 byte, the size of the shortest member; longest: of the longest one
 *     letters   1 byte, the number of letters, which follow in their order
 *     dates     only with dates: varint, the first date; 1 byte, the bits of a date
 *
 * The bits are those of the bytes, the lowest first; the last byte is padded with zeroes. For
 * each position up to the longest member, a bit for each letter is set if members have that
 * letter there. From position `shortest` on, the end of the member is the lowest digit, which
 * is repeated up to the longest member. The entries follow. An entry is, if there are removals,
 * one bit, set for a removal; if there are dates, its date less the first one, plus 1, or 0 if it
 * has none; then its gap; then its tail.
 *
 *     number    of the first digits, as many as have fewer than 2^62 numbers
 *     gap       its number less that of the entry before; 1 less if there are no tails,
 *               since the number is greater then; of the first entry its number
 *     tail      all further digits, up to an end, each with as many bits as its position needs
 *
 * A gap is stored in the Exp-Golomb code of order `rate`: of the bits of gap + 2^rate there are
 * n after the first. n - rate ones, a zero, and these n bits.
 */
#ifndef COLLECTION_TEXT_PACKED_H
#define COLLECTION_TEXT_PACKED_H

#include "collection/text/table.h"

/* Limits of tables that are packed: bytes of a member, and of the table. */
enum { PACKED_MEMBER_MAX = 128, PACKED_TABLE_MAX = 4 << 20 };

/*
 * Appends the packed form of a table, which must not be empty. Returns false, and appends
 * nothing, if that saves less than a tenth.
 */
bool packed_write(struct buf *out, const struct table *t) __attribute__((warn_unused_result));

/*
 * Opens a stored table of either form, and checks it fully. Replaces the content of `text` with
 * the table as table_open expects it, which `t` borrows. Returns false if it is malformed.
 */
bool packed_open(struct table *t, struct slice stored, struct buf *text)
	__attribute__((warn_unused_result));

#endif
