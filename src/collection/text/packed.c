#include "collection/text/packed.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/text/bits.h"
#include "collection/text/varint.h"
#include "util/alloc.h"

#define MAGIC "T2"

enum {
	MAGIC_SIZE = sizeof(MAGIC) - 1,
	HEAD_MAX = MAGIC_SIZE + 6 + 3 * VARINT_MAX,
	REMOVALS = 1, /* flags */
	DATES = 2,
	LETTERS_MAX = 128,
	BYTES = 256,
	NUMBER_BITS = 62,
	GAIN = 10, /* a packed table saves 1 / GAIN of the bytes at least */
	END = '\0' /* the letter of the end of a member */
};

__extension__ typedef unsigned __int128 wide;

/* A position of members that has several letters. */
struct place {
	uint64_t inverse; /* 2^64 / radix */
	uint32_t at;
	uint32_t radix;
	unsigned bits;
	char letters[LETTERS_MAX + 1];
};

/* How members become digits. */
struct layout {
	uint32_t shortest, longest;
	size_t places, head;            /* head: the places of the number */
	char member[PACKED_MEMBER_MAX]; /* the letters of all other positions */
	struct place place[PACKED_MEMBER_MAX];
};

/* The first fields of a table. */
struct head {
	bool removals;
	unsigned date_bits; /* 0: no dates */
	uint32_t first_date;
	unsigned rate;
	uint32_t count, size;
	size_t letters;
	char letter[LETTERS_MAX];
};

/* --- the layout --- */

/* Adds the next position with its letters, without the end. Returns false if it has none. */
static bool add_position(struct layout *l, uint32_t at, const char *letters, size_t count)
{
	struct place *p = &l->place[l->places];
	uint32_t radix = 0;

	if (count == 0)
		return false;
	l->member[at] = letters[0];
	if (at >= l->shortest)
		p->letters[radix++] = END;
	else if (count == 1)
		return true;
	memcpy(p->letters + radix, letters, count);
	radix += (uint32_t)count;
	p->at = at;
	p->radix = radix;
	p->inverse = UINT64_MAX / radix;
	p->bits = (unsigned)(BITS_MAX - __builtin_clz(radix - 1));
	l->places++;
	return true;
}

static void divide_places(struct layout *l)
{
	uint64_t numbers = 1;

	while (l->head < l->places &&
		numbers <= (UINT64_C(1) << NUMBER_BITS) / l->place[l->head].radix)
		numbers *= l->place[l->head++].radix;
}

static inline bool has_tails(const struct layout *l)
{
	return l->head < l->places;
}

/* --- packing --- */

struct packer {
	const struct table *table;
	struct layout layout;
	struct head head;
	/* Of each position, first 1 for a byte that members have there, then the byte's digit. */
	unsigned char digits[PACKED_MEMBER_MAX][BYTES];
	bool used[BYTES]; /* at any position */
	uint64_t *gaps;
	uint64_t bits; /* of all removals and tails */
};

static bool is_letter(int byte)
{
	return byte > ' ';
}

/* Returns false if a member is too long. */
static bool mark_letters(struct packer *k)
{
	struct layout *l = &k->layout;
	struct table_cursor c;

	l->shortest = PACKED_MEMBER_MAX;
	for (bool more = table_first(&c, k->table); more; more = table_next(&c)) {
		if (c.size > PACKED_MEMBER_MAX)
			return false;
		for (size_t i = c.shared; i < c.size; i++)
			k->digits[i][(unsigned char)c.member[i]] =
				k->used[(unsigned char)c.member[i]] = true;
		if (c.size < l->shortest)
			l->shortest = c.size;
		if (c.size > l->longest)
			l->longest = c.size;
		k->head.removals |= c.removed;
	}
	return true;
}

/* Returns false if there are too many letters, or if one could be a part of an escape. */
static bool list_letters(struct packer *k)
{
	for (int byte = 0; byte < BYTES; byte++) {
		if (!k->used[byte])
			continue;
		if (!is_letter(byte) || k->head.letters == LETTERS_MAX)
			return false;
		k->head.letter[k->head.letters++] = (char)byte;
	}
	return true;
}

static void lay_out(struct packer *k)
{
	struct layout *l = &k->layout;

	for (uint32_t at = 0; at < l->longest; at++) {
		char letters[LETTERS_MAX];
		size_t count = 0;
		bool good;

		for (size_t i = 0; i < k->head.letters; i++) {
			unsigned char *digit = &k->digits[at][(unsigned char)k->head.letter[i]];
			if (!*digit)
				continue;
			letters[count++] = k->head.letter[i];
			*digit = (unsigned char)(count - (at < l->shortest));
		}
		good = add_position(l, at, letters, count);
		assert(good);
		(void)good;
	}
	divide_places(l);
}

static inline uint32_t digit_at(const struct packer *k, const struct table_cursor *c, size_t place)
{
	uint32_t at = k->layout.place[place].at;

	return at < c->size ? k->digits[at][(unsigned char)c->member[at]] : 0;
}

/* numbers[n] is that of the first n digits; it stays if their bytes are as in the last entry. */
static uint64_t number_of(const struct packer *k, const struct table_cursor *c,
	uint64_t numbers[PACKED_MEMBER_MAX + 1])
{
	const struct layout *l = &k->layout;
	size_t i = l->head;

	while (i && l->place[i - 1].at >= c->shared)
		i--;
	for (; i < l->head; i++)
		numbers[i + 1] = numbers[i] * l->place[i].radix + digit_at(k, c, i);
	return numbers[l->head];
}

/* Returns the number of places of the tail that are stored: all up to the end of the member. */
static size_t tail_end(const struct layout *l, uint32_t size)
{
	size_t end = l->places;

	/* The places from `shortest` on are all positions. */
	if (size < l->longest)
		end -= l->longest - size - 1;
	return end > l->head ? end : l->head;
}

static inline unsigned bit_length(uint64_t number)
{
	return BITS_WINDOW - (unsigned)__builtin_clzll(number);
}

static void measure_dates(struct packer *k)
{
	uint32_t first = UINT32_MAX, last = 0;

	for (uint32_t i = 0; k->table->dates && i < k->table->count; i++) {
		uint32_t date = table_date(k->table, i);
		if (date && date < first)
			first = date;
		if (date > last)
			last = date;
	}
	if (last == 0)
		return;
	k->head.first_date = first;
	k->head.date_bits = bit_length(last - first + 1);
	k->bits += (uint64_t)k->table->count * k->head.date_bits;
}

static void measure_entries(struct packer *k)
{
	const struct layout *l = &k->layout;
	uint64_t before = has_tails(l) ? 0 : UINT64_MAX, numbers[PACKED_MEMBER_MAX + 1] = { 0 };
	struct table_cursor c;

	k->gaps = xmalloc(k->table->count * sizeof(*k->gaps));
	k->bits = k->head.removals ? k->table->count : 0;
	measure_dates(k);
	for (bool more = table_first(&c, k->table); more; more = table_next(&c)) {
		uint64_t number = number_of(k, &c, numbers);
		size_t end = tail_end(l, c.size);

		k->gaps[c.at] = number - before - !has_tails(l);
		before = number;
		for (size_t i = l->head; i < end; i++)
			k->bits += l->place[i].bits;
	}
}

static uint64_t bits_of_gaps(const struct packer *k, unsigned rate)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < k->table->count; i++)
		bits += 2 * bit_length(k->gaps[i] + (UINT64_C(1) << rate)) - rate - 1;
	return bits;
}

/* Returns the bits of all gaps at the best rate, which is near the size of their mean. */
static uint64_t choose_rate(struct packer *k)
{
	uint64_t sum = 0, best, bits; /* the sum is below the greatest number */
	unsigned rate;

	for (uint32_t i = 0; i < k->table->count; i++)
		sum += k->gaps[i];
	rate = bit_length(sum / k->table->count | 1) - 1;
	best = bits_of_gaps(k, rate);
	for (int step = -1; step <= 1; step += 2) {
		while (rate + (unsigned)step < NUMBER_BITS &&
			(bits = bits_of_gaps(k, rate + (unsigned)step)) < best) {
			best = bits;
			rate += (unsigned)step;
		}
	}
	k->head.rate = rate;
	return best;
}

static char *write_head(const struct packer *k, char *p)
{
	memcpy(p, MAGIC, MAGIC_SIZE);
	p += MAGIC_SIZE;
	*p++ = (char)((k->head.removals ? REMOVALS : 0) | (k->head.date_bits ? DATES : 0));
	*p++ = (char)k->head.rate;
	p = varint_write(p, k->head.count);
	p = varint_write(p, k->head.size);
	*p++ = (char)k->layout.shortest;
	*p++ = (char)k->layout.longest;
	*p++ = (char)k->head.letters;
	memcpy(p, k->head.letter, k->head.letters);
	p += k->head.letters;
	if (k->head.date_bits) {
		p = varint_write(p, k->head.first_date);
		*p++ = (char)k->head.date_bits;
	}
	return p;
}

/* After lay_out, the first letter of a position may have the digit 0; it is in the layout. */
static void write_positions(const struct packer *k, struct bits_writer *b)
{
	for (uint32_t at = 0; at < k->layout.longest; at++) {
		for (size_t i = 0; i < k->head.letters; i++) {
			char letter = k->head.letter[i];
			bits_put(b,
				k->digits[at][(unsigned char)letter] ||
					letter == k->layout.member[at],
				1);
		}
	}
}

static void write_date(const struct packer *k, struct bits_writer *b, uint32_t entry)
{
	uint32_t date = table_date(k->table, entry);

	bits_put(b, date ? date - k->head.first_date + 1 : 0, k->head.date_bits);
}

static void write_gap(struct bits_writer *b, uint64_t gap, unsigned rate)
{
	uint64_t sum = gap + (UINT64_C(1) << rate);
	unsigned n = bit_length(sum) - 1, ones = n - rate;

	for (; ones > BITS_MAX; ones -= BITS_MAX)
		bits_put(b, UINT32_MAX, BITS_MAX);
	bits_put(b, (UINT64_C(1) << ones) - 1, ones + 1);
	sum ^= UINT64_C(1) << n;
	bits_put(b, sum & UINT32_MAX, n < BITS_MAX ? n : BITS_MAX);
	if (n > BITS_MAX)
		bits_put(b, sum >> BITS_MAX, n - BITS_MAX);
}

/* Dates and gaps are known by the number of the entry. */
static void write_numbers(const struct packer *k, struct bits_writer *b)
{
	for (uint32_t i = 0; i < k->table->count; i++) {
		if (k->head.date_bits)
			write_date(k, b, i);
		write_gap(b, k->gaps[i], k->head.rate);
	}
}

static void write_entries(const struct packer *k, struct bits_writer *b)
{
	const struct layout *l = &k->layout;
	struct table_cursor c;

	if (!has_tails(l) && !k->head.removals) {
		write_numbers(k, b);
		return;
	}
	for (bool more = table_first(&c, k->table); more; more = table_next(&c)) {
		size_t end = tail_end(l, c.size);

		if (k->head.removals)
			bits_put(b, c.removed, 1);
		if (k->head.date_bits)
			write_date(k, b, c.at);
		write_gap(b, k->gaps[c.at], k->head.rate);
		for (size_t i = l->head; i < end; i++)
			bits_put(b, digit_at(k, &c, i), l->place[i].bits);
	}
}

/* Writes the table if that is worth it. */
static bool write_packed(struct packer *k, struct buf *out)
{
	uint64_t bits;
	struct bits_writer b = { .p = NULL };
	char head[HEAD_MAX + LETTERS_MAX];
	size_t size;

	measure_entries(k);
	bits = k->bits + choose_rate(k) + (uint64_t)k->layout.longest * k->head.letters;
	size = (size_t)(write_head(k, head) - head);
	if (size + bits / 8 + 1 > k->head.size - k->head.size / GAIN)
		return false;
	b.p = buf_reserve(out, size + bits / 8 + WORD_BYTES);
	memcpy(b.p, head, size);
	b.p += size;
	write_positions(k, &b);
	write_entries(k, &b);
	bits_put(&b, 0, (8 - b.have) % 8);
	buf_commit(out, size + (bits + 7) / 8);
	assert(b.p == out->data + out->end);
	return true;
}

bool packed_write(struct buf *out, const struct table *t)
{
	size_t size = table_size(t);
	struct packer *k;
	bool packed;

	if (size > PACKED_TABLE_MAX)
		return false;
	k = xcalloc(1, sizeof(*k));
	k->table = t;
	k->head.count = t->count;
	k->head.size = (uint32_t)size;
	packed = mark_letters(k) && list_letters(k);
	if (packed) {
		lay_out(k);
		packed = write_packed(k, out);
	}
	free(k->gaps);
	free(k);
	return packed;
}

/* --- unpacking --- */

struct unpacker {
	struct layout layout;
	struct head head;
	struct bits_reader bits;
	uint32_t digits[PACKED_MEMBER_MAX];      /* of the last entry, by place */
	uint64_t numbers[PACKED_MEMBER_MAX + 1]; /* those of its first n digits */
	uint32_t size;                           /* of its member */
	char *text, *p, *entries_end;
	char *dates; /* the place of the next date */
	bool dated;  /* An entry has a date. */
};

static bool take_date_fields(struct unpacker *u, const char **p, const char *end)
{
	if (!varint_take(p, end, &u->head.first_date) || u->head.first_date == EXPIRY_NONE ||
		*p == end)
		return false;
	u->head.date_bits = (unsigned char)*(*p)++;
	return u->head.date_bits > 0 && u->head.date_bits <= BITS_MAX;
}

static bool take_fields(struct unpacker *u, struct slice stored)
{
	const char *p = stored.p + MAGIC_SIZE + 2, *end = stored.p + stored.n;

	if (stored.n < MAGIC_SIZE + 2 || (unsigned char)p[-2] > (REMOVALS | DATES) ||
		(unsigned char)p[-1] >= NUMBER_BITS || !varint_take(&p, end, &u->head.count) ||
		!varint_take(&p, end, &u->head.size) || end - p < 3)
		return false;
	u->head.removals = stored.p[MAGIC_SIZE] & REMOVALS;
	u->head.rate = (unsigned char)stored.p[MAGIC_SIZE + 1];
	u->layout.shortest = (unsigned char)p[0];
	u->layout.longest = (unsigned char)p[1];
	u->head.letters = (unsigned char)p[2];
	p += 3;
	if (u->head.count == 0 || u->head.size > PACKED_TABLE_MAX || u->layout.shortest == 0 ||
		u->layout.shortest > u->layout.longest || u->layout.longest > PACKED_MEMBER_MAX ||
		u->head.letters > LETTERS_MAX || u->head.letters > (size_t)(end - p))
		return false;
	memcpy(u->head.letter, p, u->head.letters);
	for (size_t i = 0; i < u->head.letters; i++) {
		if (!is_letter((unsigned char)p[i]) ||
			(i && (unsigned char)p[i] <= (unsigned char)p[i - 1]))
			return false;
	}
	p += u->head.letters;
	if (stored.p[MAGIC_SIZE] & DATES && !take_date_fields(u, &p, end))
		return false;
	u->bits = (struct bits_reader){ .p = p, .end = end };
	return true;
}

static bool take_positions(struct unpacker *u)
{
	for (uint32_t at = 0; at < u->layout.longest; at++) {
		char letters[LETTERS_MAX];
		size_t count = 0;

		for (size_t i = 0; i < u->head.letters; i++) {
			bits_fill(&u->bits);
			if (bits_take(&u->bits, 1))
				letters[count++] = u->head.letter[i];
		}
		if (!add_position(&u->layout, at, letters, count))
			return false;
	}
	divide_places(&u->layout);
	return !u->bits.over;
}

static bool take_gap(struct unpacker *u, uint64_t *gap)
{
	unsigned rate = u->head.rate, n = rate + bits_take_ones(&u->bits, NUMBER_BITS);
	uint64_t low;

	if (n > NUMBER_BITS)
		return false;
	bits_fill(&u->bits);
	low = bits_take(&u->bits, n < BITS_MAX ? n : BITS_MAX);
	if (n > BITS_MAX) {
		bits_fill(&u->bits);
		low |= (uint64_t)bits_take(&u->bits, n - BITS_MAX) << BITS_MAX;
	}
	*gap = (UINT64_C(1) << n) + low - (UINT64_C(1) << rate);
	return true;
}

/* Removes the last digit of a number. */
static inline uint32_t last_digit(uint64_t *number, const struct place *place)
{
	uint64_t rest = *number;

	if (place->radix == 1u << place->bits) {
		*number = rest >> place->bits;
		return rest & (place->radix - 1);
	}
	/* The quotient, or one less than that. */
	*number = (uint64_t)((wide)rest * place->inverse >> BITS_WINDOW);
	rest -= *number * place->radix;
	if (rest >= place->radix) {
		rest -= place->radix;
		++*number;
	}
	return (uint32_t)rest;
}

/*
 * Adds to the number. Stores the first place whose digit has changed, which is greater then.
 * Returns false if the number becomes too large.
 */
static inline bool add_to_number(struct unpacker *u, uint64_t more, size_t *changed)
{
	size_t i = u->layout.head;
	uint64_t number = u->numbers[i] + more;

	for (; number != u->numbers[i]; i--) {
		uint64_t whole = number;

		if (i == 0)
			return false;
		u->digits[i - 1] = last_digit(&number, &u->layout.place[i - 1]);
		u->numbers[i] = whole;
	}
	*changed = i;
	return true;
}

/*
 * Takes the digits after the number. Stores the first place that has changed in `changed` if the
 * number has not. Returns false if they are not greater then.
 */
static bool take_tail(struct unpacker *u, size_t *changed)
{
	const struct layout *l = &u->layout;
	bool same = *changed == l->head, ended = false;

	for (size_t i = l->head; i < l->places; i++) {
		uint32_t digit = 0;

		ended |= i && l->place[i - 1].at >= l->shortest && u->digits[i - 1] == 0;
		if (!ended) {
			if (u->bits.have < l->place[i].bits)
				bits_fill(&u->bits);
			digit = bits_take(&u->bits, l->place[i].bits);
		}
		if (digit >= l->place[i].radix || (same && digit < u->digits[i]))
			return false;
		if (same && digit > u->digits[i]) {
			same = false;
			*changed = i;
		}
		u->digits[i] = digit;
	}
	return !same;
}

/* Writes the letters from a place on. Returns false if one follows the end of the member. */
static bool write_letters(struct unpacker *u, size_t changed)
{
	struct layout *l = &u->layout;
	size_t i = changed;

	if (i && l->place[i - 1].at >= l->shortest && u->digits[i - 1] == 0)
		return false;
	for (; i < l->places && l->place[i].at < l->shortest; i++)
		l->member[l->place[i].at] = l->place[i].letters[u->digits[i]];
	if (l->shortest == l->longest)
		return true;
	for (; i < l->places && u->digits[i]; i++)
		l->member[l->place[i].at] = l->place[i].letters[u->digits[i]];
	u->size = i < l->places ? l->place[i].at : l->longest;
	for (; i < l->places; i++) {
		if (u->digits[i])
			return false;
	}
	return true;
}

/*
 * Takes the next entry into `layout.member`, and stores the number of bytes that it shares with the
 * last one. The first entry follows digits of zero.
 */
static bool take_entry(struct unpacker *u, bool first, uint32_t *shared)
{
	const struct layout *l = &u->layout;
	size_t changed;
	uint64_t gap;

	if (!take_gap(u, &gap) || !add_to_number(u, gap + (!first && !has_tails(l)), &changed))
		return false;
	if (first)
		changed = 0;
	if (has_tails(l) && !take_tail(u, &changed))
		return false;
	if (!write_letters(u, changed))
		return false;
	*shared = first ? 0 : l->place[changed].at;
	return true;
}

/* Returns false if the date is too large, or that of a removal. */
static bool take_date(struct unpacker *u, bool removed)
{
	uint32_t more, date;

	bits_fill(&u->bits);
	more = bits_take(&u->bits, u->head.date_bits);
	date = more ? u->head.first_date - 1 + more : EXPIRY_NONE;
	u->dates = little_write(u->dates, date, TABLE_NUMBER);
	u->dated |= more > 0;
	return more ? !removed && date >= u->head.first_date : true;
}

/* Writes the entries as a table has them. Its size is checked by the place of their end. */
static bool unpack_entries(struct unpacker *u)
{
	size_t restarts = u->head.count / TABLE_INTERVAL + (u->head.count % TABLE_INTERVAL != 0);
	char *restart = u->entries_end;

	u->dates = restart + restarts * TABLE_NUMBER;
	for (uint32_t at = 0; at < u->head.count; at++) {
		uint32_t removed = 0, shared, size;

		if (u->head.removals) {
			bits_fill(&u->bits);
			removed = bits_take(&u->bits, 1);
		}
		if (u->head.date_bits && !take_date(u, removed))
			return false;
		if (!take_entry(u, at == 0, &shared) || u->bits.over)
			return false;
		if (at % TABLE_INTERVAL == 0) {
			shared = 0;
			restart = little_write(restart, (uint64_t)(u->p - u->text), TABLE_NUMBER);
		}
		size = u->size - shared;
		if ((size_t)(u->entries_end - u->p) < 2 + (size >= 0x40) + size)
			return false;
		u->p = varint_write(u->p, shared);
		u->p = varint_write(u->p, size << 1 | removed);
		word_copy(u->p, u->layout.member + shared, size);
		u->p += size;
	}
	little_write(u->dates, u->head.count, TABLE_NUMBER);
	return u->p == u->entries_end && u->dated == (u->head.date_bits > 0);
}

/* Unpacks a table that begins with the magic. */
static bool unpack(struct unpacker *u, struct slice stored, struct buf *text)
{
	uint64_t numbers;

	if (!take_fields(u, stored) || !take_positions(u))
		return false;
	numbers = ((uint64_t)u->head.count / TABLE_INTERVAL + 1 +
			  (u->head.count % TABLE_INTERVAL != 0) +
			  (u->head.date_bits ? u->head.count : 0)) *
		TABLE_NUMBER;
	if (u->head.size < TABLE_MAGIC_SIZE + numbers)
		return false;
	u->text = u->p = buf_reserve(text, u->head.size);
	u->entries_end = u->text + u->head.size - numbers;
	u->p = slice_write(u->p, u->head.date_bits ? SLICE(TABLE_DATED_MAGIC) : SLICE(TABLE_MAGIC));
	u->size = u->layout.longest;
	if (!unpack_entries(u))
		return false;
	buf_commit(text, u->head.size);
	return u->bits.have < 8 && u->bits.p == u->bits.end && (u->bits.window == 0);
}

bool packed_open(struct table *t, struct slice stored, struct buf *text)
{
	struct unpacker u = { .size = 0 };

	buf_consume(text, buf_size(text));
	if (slice_starts(stored, SLICE(MAGIC)))
		return unpack(&u, stored, text) && table_trust(t, buf_slice(text));
	buf_add_slice(text, stored);
	return table_open(t, buf_slice(text));
}
