#include "collection/text/part_key.h"

#include <string.h>

#include "collection/text/oplog.h"
#include "util/num.h"

/* The end of the key of a second copy. */
#define SECOND ".~copy"
_Static_assert(sizeof(SECOND) - 1 == PART_SECOND_SIZE, "the suffix has this size");

/* Offset of the digit from the end of the base: a dot and a letter precede it. */
enum { PLACE = 2 };

/*
 * Returns the offset of the id at the end of a key, after a dot; 0 if the key is too short,
 * or has no dot there.
 */
static size_t find_id(struct slice key)
{
	size_t n = key.n > OPLOG_ID + 1 ? key.n - OPLOG_ID : 0;

	return n && key.p[n - 1] == '.' ? n : 0;
}

static bool is_new(struct slice id)
{
	return num_is_digit(id.p[1]) && !num_is_digit(id.p[2]) && !num_is_digit(id.p[OPLOG_ID - 1]);
}

/* Removes .<digits> from the end. */
static bool drop_number(struct slice *key)
{
	size_t n = key->n;

	while (n > 0 && num_is_digit(key->p[n - 1]))
		n--;
	if (n == 0 || n == key->n || key->p[n - 1] != '.')
		return false;
	key->n = n - 1;
	return true;
}

/* A fast path for short keys, which most other keys are: they are no parts. */
static inline bool is_short(struct slice key)
{
	return key.n < OPLOG_ID + 2;
}

/*
 * The same as part_key_base. `old`: the part is a segment of 0.1.0, whose ids have any
 * letters and digits.
 */
static struct slice find_base(struct slice key, bool *old)
{
	const struct slice none = { "", 0 };
	struct slice shorter = key, id;
	size_t at;
	bool numbered;

	*old = false;
	if (is_short(key))
		return none;
	numbered = drop_number(&shorter) && drop_number(&shorter);
	if (numbered)
		key = shorter;
	at = find_id(key);
	if (!at)
		return none;
	id = slice_skip(key, at);
	*old = numbered && oplog_is_id(id, OPLOG_OLD_LIST);
	if (numbered ? !*old && !oplog_is_id(id, OPLOG_LIST)
		     : !oplog_is_id(id, OPLOG_TABLE) && !oplog_is_id(id, OPLOG_INDEX))
		return none;
	return *old || is_new(id) ? slice_of(key.p, at - 1) : none;
}

struct slice part_key_base(struct slice key)
{
	bool old;

	return find_base(key, &old);
}

/* Returns the key of the base, which the key itself may be. */
static struct slice base_or_key(struct slice key)
{
	struct slice base = part_key_base(key);

	return base.n ? base : key;
}

/* Returns whether a base is a second copy. Few keys end like one. */
static inline bool is_second(struct slice base)
{
	return base.n > PART_SECOND_SIZE && base.p[base.n - 1] == 'y' &&
		memcmp(base.p + base.n - PART_SECOND_SIZE, SECOND, PART_SECOND_SIZE) == 0;
}

/* Returns the key of the first copy of a base. */
static struct slice first_of(struct slice base)
{
	return is_second(base) ? slice_of(base.p, base.n - PART_SECOND_SIZE) : base;
}

bool part_key_is_second(struct slice key)
{
	return is_second(base_or_key(key));
}

bool part_key_is_reserved(struct slice key)
{
	return is_second(key) || (!is_short(key) && part_key_base(key).n);
}

void part_key_second(struct slice key, struct buf *out)
{
	size_t n = key.n + PART_SECOND_SIZE;

	part_key_write_second(buf_reserve(out, n), key);
	buf_commit(out, n);
}

char *part_key_write_second(char *to, struct slice key)
{
	size_t n = base_or_key(key).n;

	to = slice_write(to, slice_of(key.p, n));
	to = slice_write(to, SLICE(SECOND));
	return slice_write(to, slice_skip(key, n));
}

struct slice part_key_first_base(struct slice key)
{
	return first_of(base_or_key(key));
}

struct slice part_key_place(struct slice key, unsigned *behind)
{
	bool old;
	struct slice base = find_base(key, &old), first;

	*behind = 0;
	if (old)
		return key;
	if (base.n)
		*behind = (unsigned)(key.p[base.n + PLACE] - '0');
	else
		base = key;
	first = first_of(base);
	*behind += first.n < base.n;
	return first;
}

bool part_key_is_at_base(struct slice key)
{
	bool old;
	struct slice base = find_base(key, &old);

	return base.n && !old && key.p[base.n + PLACE] == '0';
}
