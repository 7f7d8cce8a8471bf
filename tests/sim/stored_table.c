#include "stored_table.h"

#include <string.h>

/* A packed table has digits for up to PACKED_SIZE bytes of a member. */
enum { PACKED_SIZE = 128, NAME_SIZE = 2000, INTERVAL = 16, NUMBER = 4 };

struct entry {
	char name[NAME_SIZE];
	size_t size;
	bool removed;
	uint32_t date;
};

struct reader {
	struct stored_totals *found;
	uint64_t date_sum;
	stored_each *each;
	void *arg;
};

/* --- bytes --- */

bool stored_take(struct slice *rest, size_t n, struct slice *out)
{
	if (n > rest->n)
		return false;
	*out = slice_of(rest->p, n);
	*rest = slice_skip(*rest, n);
	return true;
}

uint64_t stored_little(const char *p, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return value;
}

bool stored_take_varint(struct slice *rest, uint64_t *out)
{
	struct slice byte;

	*out = 0;
	for (int shift = 0; shift < 35 && stored_take(rest, 1, &byte); shift += 7) {
		*out |= (uint64_t)(byte.p[0] & 0x7f) << shift;
		if (!(byte.p[0] & 0x80))
			return *out <= UINT32_MAX && (byte.p[0] || shift == 0);
	}
	return false;
}

int stored_compare(struct slice a, struct slice b)
{
	for (size_t i = 0; i < a.n && i < b.n; i++) {
		if (a.p[i] != b.p[i])
			return (unsigned char)a.p[i] - (unsigned char)b.p[i];
	}
	return a.n < b.n ? -1 : a.n > b.n;
}

/* --- entries --- */

static struct slice name_of(const struct entry *e)
{
	return slice_of(e->name, e->size);
}

/* Reads the entry that follows `e`; a restart shares nothing with it. */
static const char *next_entry(struct slice *rest, bool restart, struct entry *e)
{
	struct entry before = *e;
	uint64_t shared, size;
	struct slice bytes;

	if (!stored_take_varint(rest, &shared) || !stored_take_varint(rest, &size) ||
		!stored_take(rest, size >> 1, &bytes))
		return "an entry that is none";
	if (shared > (restart ? 0 : before.size))
		return "an entry shares more than there is";
	if (shared + bytes.n > NAME_SIZE)
		return "a member is too long";
	memcpy(e->name + shared, bytes.p, bytes.n);
	e->size = shared + bytes.n;
	e->removed = size & 1;
	if (stored_compare(name_of(e), name_of(&before)) <= 0)
		return "members of a table are out of order";
	if (!restart && shared < before.size && e->name[shared] == before.name[shared])
		return "an entry repeats what it could share";
	return NULL;
}

static const char *note(struct reader *r, const struct entry *e)
{
	struct stored_totals *found = r->found;

	if (e->removed && e->date)
		return "a removal with a date";
	found->removals += e->removed;
	if (e->date) {
		found->first = found->dated++ && found->first < e->date ? found->first : e->date;
		r->date_sum += e->date;
		found->mean = r->date_sum / found->dated;
	}
	return r->each(r->arg, name_of(e), e->removed, e->date) ? NULL : "";
}

/* --- packed tables; one bit after the other, and digits by division --- */

struct packed {
	const unsigned char *bytes;
	size_t bit, bits;
	bool removals, dates;
	uint64_t rate, count, size, shortest, longest, first_date;
	unsigned date_bits;
	struct slice letters;
	/* Of each position: its letters, of which the first may be 0, the end. */
	unsigned char digits[PACKED_SIZE][256];
	unsigned radix[PACKED_SIZE];
	size_t number; /* the positions of the number */
};

static uint64_t take_bits(struct packed *p, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n && p->bit < p->bits; i++, p->bit++)
		value |= (uint64_t)(p->bytes[p->bit / 8] >> p->bit % 8 & 1) << i;
	return value;
}

static bool take_date_fields(struct packed *p, struct slice *rest)
{
	struct slice bits;

	if (!p->dates)
		return true;
	if (!stored_take_varint(rest, &p->first_date) || !stored_take(rest, 1, &bits))
		return false;
	p->date_bits = (unsigned char)bits.p[0];
	return p->first_date && p->date_bits && p->date_bits <= 32;
}

static bool take_packed_head(struct packed *p, struct slice rest)
{
	enum { REMOVALS = 1, DATES = 2 };
	struct slice two, three;
	unsigned flags;

	if (!stored_take(&rest, 2, &two) || !stored_take(&rest, 2, &two) ||
		!stored_take_varint(&rest, &p->count) || !stored_take_varint(&rest, &p->size) ||
		!stored_take(&rest, 3, &three) ||
		!stored_take(&rest, (unsigned char)three.p[2], &p->letters))
		return false;
	flags = (unsigned char)two.p[0];
	p->removals = flags & REMOVALS;
	p->dates = flags & DATES;
	p->rate = (unsigned char)two.p[1];
	p->shortest = (unsigned char)three.p[0];
	p->longest = (unsigned char)three.p[1];
	if (!take_date_fields(p, &rest))
		return false;
	p->bytes = (const unsigned char *)rest.p;
	p->bits = rest.n * 8;
	return flags <= (REMOVALS | DATES) && p->rate < 62 && p->count && p->shortest &&
		p->shortest <= p->longest && p->longest <= PACKED_SIZE;
}

static void take_digits(struct packed *p)
{
	uint64_t numbers = 1;
	bool more = true;

	for (size_t at = 0; at < p->longest; at++) {
		if (at >= p->shortest)
			p->digits[at][p->radix[at]++] = 0;
		for (size_t i = 0; i < p->letters.n; i++) {
			if (take_bits(p, 1))
				p->digits[at][p->radix[at]++] = (unsigned char)p->letters.p[i];
		}
		more = more && p->radix[at] && numbers <= (1ull << 62) / p->radix[at];
		numbers *= more ? p->radix[at] : 1;
		p->number += more;
	}
}

static uint64_t take_gap(struct packed *p)
{
	unsigned n = (unsigned)p->rate;

	while (n < 62 && take_bits(p, 1))
		n++;
	return (1ull << n) + take_bits(p, n) - (1ull << p->rate);
}

/* The letters of a number, from its last digit on. */
static void spell(const struct packed *p, uint64_t number, char name[NAME_SIZE])
{
	for (size_t at = p->number; at-- > 0; number /= p->radix[at])
		name[at] = (char)p->digits[at][number % p->radix[at]];
}

/* The letters after the number. Of a position with one letter nothing is stored. */
static void take_tail(struct packed *p, char name[NAME_SIZE])
{
	for (size_t at = p->number; at < p->longest; at++) {
		unsigned n = 0;
		uint64_t digit;

		if (at > p->shortest && name[at - 1] == 0) {
			name[at] = 0;
			continue;
		}
		while (1u << n < p->radix[at])
			n++;
		digit = take_bits(p, n);
		name[at] = (char)(digit < p->radix[at] ? p->digits[at][digit] : ' ');
	}
}

/* Takes the removal and the date of an entry. */
static void take_marks(struct packed *p, struct entry *e)
{
	uint64_t date;

	e->removed = p->removals && take_bits(p, 1);
	date = take_bits(p, p->date_bits);
	e->date = date ? (uint32_t)(p->first_date + date - 1) : 0;
}

/* Returns the bytes that the entry takes in a table that is not packed. */
static size_t front_coded(
	const struct packed *p, const struct entry *before, const struct entry *e, bool restart)
{
	size_t shared = 0;

	while (!restart && shared < before->size && before->name[shared] == e->name[shared])
		shared++;
	return 2 + (e->size - shared >= 64) + e->size - shared + (restart ? NUMBER : 0) +
		(p->dates ? NUMBER : 0);
}

static const char *read_packed(struct reader *r, struct slice data)
{
	struct packed p = { .number = 0 };
	struct entry before = { .size = 0 }, e = before;
	struct stored_totals *found = r->found;
	uint64_t number = 0;
	const char *wrong;
	bool tails;

	if (!take_packed_head(&p, data))
		return "a packed table that is none";
	take_digits(&p);
	tails = p.number < p.longest;
	*found = (struct stored_totals){ .tables = 1, .entries = p.count, .bytes = 2 + NUMBER };
	for (uint64_t i = 0; i < p.count; i++, before = e) {
		take_marks(&p, &e);
		number += take_gap(&p) + (i && !tails);
		spell(&p, number, e.name);
		take_tail(&p, e.name);
		for (e.size = 0; e.size < p.longest && e.name[e.size]; e.size++)
			;
		found->bytes += front_coded(&p, &before, &e, i % INTERVAL == 0);
		if (stored_compare(name_of(&e), name_of(&before)) <= 0)
			return "members of a packed table are out of order";
		if ((wrong = note(r, &e)))
			return wrong;
	}
	if (p.first_date != found->first)
		return "a packed table with another first date";
	return p.bits - p.bit < 8 && found->bytes == p.size ? NULL
							    : "a packed table of another size";
}

bool stored_lose_removal(struct slice table)
{
	struct packed p = { .number = 0 };
	char name[NAME_SIZE];
	uint64_t number = 0;

	if (!slice_starts(table, SLICE("T2")) || !take_packed_head(&p, table) || !p.removals)
		return false;
	take_digits(&p);
	for (uint64_t i = 0; i < p.count; i++) {
		size_t bit = p.bit;

		if (take_bits(&p, 1)) {
			((unsigned char *)p.bytes)[bit / 8] ^= (unsigned char)(1u << bit % 8);
			return true;
		}
		(void)take_bits(&p, p.date_bits);
		number += take_gap(&p) + (i && p.number == p.longest);
		spell(&p, number, name);
		take_tail(&p, name);
	}
	return false;
}

/* --- other tables: the content must be the entries and nothing else --- */

static const char *read_entries(struct reader *r, struct slice data, struct slice rest,
	struct slice restarts, const char *dates)
{
	struct entry e = { .size = 0 };

	for (uint64_t i = 0; i < r->found->entries; i++) {
		bool restart = i % INTERVAL == 0;
		const char *wrong;
		if (restart &&
			stored_little(restarts.p + i / INTERVAL * NUMBER, NUMBER) !=
				(uint64_t)(rest.p - data.p))
			return "a restart is not where its entry is";
		e.date = dates ? (uint32_t)stored_little(dates + i * NUMBER, NUMBER) : 0;
		if ((wrong = next_entry(&rest, restart, &e)) || (wrong = note(r, &e)))
			return wrong;
	}
	if (dates && !r->found->dated)
		return "a table of form 3 without dates";
	return rest.n == 0 ? NULL : "there is more in a table than its entries";
}

const char *stored_table_read(
	struct slice data, struct stored_totals *found, stored_each *each, void *arg)
{
	struct reader r = { .found = found, .each = each, .arg = arg };
	bool dated = slice_starts(data, SLICE("T3"));
	uint64_t count, behind, dates;

	if (slice_starts(data, SLICE("T2")))
		return read_packed(&r, data);
	count = data.n < 6 ? 0 : stored_little(data.p + data.n - NUMBER, NUMBER);
	dates = dated ? count * NUMBER : 0;
	behind = (count + INTERVAL - 1) / INTERVAL * NUMBER + dates + NUMBER;
	if (count == 0 || (!dated && !slice_starts(data, SLICE("T1"))) || behind + 2 > data.n)
		return "a table that is none";
	*found = (struct stored_totals){ .tables = 1, .entries = count, .bytes = data.n };
	return read_entries(&r, data, slice_of(data.p + 2, data.n - behind - 2),
		slice_skip(data, data.n - behind), dated ? data.p + data.n - NUMBER - dates : NULL);
}
