#include "collection/text/held.h"

#include <stdlib.h>

#include "collection/text/date.h"
#include "protocol/element.h"
#include "util/alloc.h"
#include "util/check.h"
#include "util/num.h"
#include "util/random.h"

enum {
	COUNT_MIN = 4,
	FRAME = 40 /* bytes of a token without its word, at most */
};

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";

void held_free(struct held *held)
{
	free(held->list);
	free(held->counts);
	*held = (struct held){ 0 };
}

/* --- tokens --- */

/* Removes a number without leading zeroes, and the dot after it. */
static bool take_count_field(struct slice *rest, uint32_t *out)
{
	struct slice digits = slice_cut(rest, '.');

	return num_parse_u32(digits, out) && digits.p[0] != '0';
}

static bool take_ticket(struct slice *rest, struct slice *ticket)
{
	*ticket = slice_cut(rest, '.');
	for (size_t i = 0; i < ticket->n; i++) {
		if (!memchr(letters, ticket->p[i], sizeof(letters) - 1))
			return false;
	}
	return ticket->n == HELD_TICKET;
}

/* Parses a token without its space. */
static bool parse_element(struct slice token, struct held_element *out)
{
	uint32_t date;

	if (!slice_starts(token, SLICE("~h")))
		return false;
	token = slice_skip(token, 2);
	if (!take_count_field(&token, &date) || date < DATE_MIN ||
		!take_ticket(&token, &out->ticket) || !take_count_field(&token, &out->deliveries) ||
		token.n < 2 || token.p[1] != '.')
		return false;
	out->date = date;
	out->right = token.p[0] == 'r';
	out->word = slice_skip(token, 2);
	return (out->right || token.p[0] == 'l') && out->word.n <= ELEMENT_WORD_MAX &&
		element_is_word(out->word);
}

static bool parse_count(struct slice token, struct held_count *out)
{
	if (!slice_starts(token, SLICE("~d")))
		return false;
	token = slice_skip(token, 2);
	return take_count_field(&token, &out->deliveries) && token.n == NUM_HEX &&
		num_parse_hex(token, &out->hash);
}

/* Returns the token at `p` without its space; empty if it has none, or begins otherwise. */
static struct slice token_at(const char *p, const char *end)
{
	const char *space = end - p > 2 && p[0] == '~' && (p[1] == 'h' || p[1] == 'd')
		? memchr(p, ' ', (size_t)(end - p))
		: NULL;

	return slice_of(p, space ? (size_t)(space - p) : 0);
}

const char *held_end(const char *p, const char *end)
{
	struct slice token = token_at(p, end);
	struct held_element element;
	struct held_count count;

	return token.n && (parse_element(token, &element) || parse_count(token, &count))
		? token.p + token.n + 1
		: NULL;
}

static void add_element(struct buf *out, const struct held_element *element)
{
	BUF_ADD(out, "~h");
	buf_add_u64(out, (uint64_t)element->date);
	BUF_ADD(out, ".");
	buf_add_slice(out, element->ticket);
	BUF_ADD(out, ".");
	buf_add_u64(out, element->deliveries);
	if (element->right)
		BUF_ADD(out, ".r.");
	else
		BUF_ADD(out, ".l.");
	buf_add_word(out, element->word);
}

static void add_deliveries(struct buf *out, const struct held_count *count)
{
	char digits[NUM_HEX];

	num_write_hex(digits, count->hash);
	BUF_ADD(out, "~d");
	buf_add_u64(out, count->deliveries);
	BUF_ADD(out, ".");
	buf_add_word(out, slice_of(digits, sizeof(digits)));
}

void held_write(const struct held *held, struct buf *out)
{
	for (size_t i = 0; i < held->count_count; i++)
		add_deliveries(out, &held->counts[i]);
	for (size_t i = 0; i < held->count; i++)
		add_element(out, &held->list[i]);
}

/* --- all of a base --- */

static void add_count(struct held *held, const struct held_count *count)
{
	if (held->count_count == held->count_capacity) {
		held->count_capacity = held->count_capacity ? held->count_capacity * 2 : COUNT_MIN;
		held->counts = xrealloc(held->counts, held->count_capacity * sizeof(*held->counts));
	}
	held->counts[held->count_count++] = *count;
}

/* Adds what a token has. Returns false if it is none of ours. */
static bool read_token(struct held *held, struct slice token)
{
	struct held_element element;
	struct held_count count;

	if (!token.n)
		return false;
	if (parse_element(token, &element))
		held_add(held, &element);
	else if (parse_count(token, &count))
		add_count(held, &count);
	else
		return false;
	return true;
}

struct slice held_read(struct slice base, struct held *held, struct buf *out)
{
	const char *from = base.p, *p = base.p, *end = base.p + base.n;

	while (p < end && (p = memchr(p, '~', (size_t)(end - p)))) {
		struct slice token =
			p == base.p || p[-1] == ' ' ? token_at(p, end) : slice_of(p, 0);
		if (!read_token(held, token)) {
			p++;
			continue;
		}
		buf_add(out, from, (size_t)(p - from));
		from = p = token.p + token.n + 1;
	}
	if (!held_any(held))
		return base;
	buf_add(out, from, (size_t)(end - from));
	return buf_slice(out);
}

void held_copy(struct slice base, struct buf *out)
{
	struct buf rest = BUF_EMPTY;
	struct held held = { 0 };

	(void)held_read(base, &held, &rest);
	held_write(&held, out);
	held_free(&held);
	buf_free(&rest);
}

/* --- elements --- */

void held_new_ticket(uint64_t *random, char ticket[HELD_TICKET])
{
	uint64_t bits = random_next(random);

	for (size_t i = 0; i < HELD_TICKET; i++) {
		ticket[i] = letters[bits % (sizeof(letters) - 1)];
		bits /= sizeof(letters) - 1;
	}
}

bool held_has_room(const struct held *held, struct slice word)
{
	return held->count < HELD_MAX &&
		(held->count == 0 || held->bytes + word.n + FRAME <= HELD_BYTES);
}

void held_add(struct held *held, const struct held_element *element)
{
	if (held->count == held->capacity) {
		held->capacity = held->capacity ? held->capacity * 2 : COUNT_MIN;
		held->list = xrealloc(held->list, held->capacity * sizeof(*held->list));
	}
	held->bytes += element->word.n + FRAME;
	held->list[held->count++] = *element;
}

bool held_find(const struct held *held, struct slice ticket, size_t *i)
{
	for (*i = 0; *i < held->count; ++*i) {
		if (slice_equal(held->list[*i].ticket, ticket))
			return true;
	}
	return false;
}

void held_remove(struct held *held, size_t i)
{
	held->bytes -= held->list[i].word.n + FRAME;
	held->count--;
	memmove(held->list + i, held->list + i + 1, (held->count - i) * sizeof(*held->list));
}

void held_forget(struct held *held, size_t kept)
{
	held->count = kept;
	held->bytes = kept * FRAME;
	for (size_t i = 0; i < kept; i++)
		held->bytes += held->list[i].word.n;
}

int64_t held_next(const struct held *held)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < held->count; i++)
		next = held->list[i].date < next ? held->list[i].date : next;
	return next;
}

/* --- deliveries --- */

static void remove_count(struct held *held, size_t i)
{
	held->count_count--;
	memmove(held->counts + i, held->counts + i + 1,
		(held->count_count - i) * sizeof(*held->counts));
}

void held_count_keep(struct held *held, const struct held_element *element)
{
	struct held_count count = { element->deliveries, check_of(element->word) };

	while (held->count_count >= HELD_MAX)
		remove_count(held, 0);
	add_count(held, &count);
}

uint32_t held_count_take(struct held *held, struct slice word)
{
	uint64_t hash = held->count_count ? check_of(word) : 0;

	for (size_t i = 0; i < held->count_count; i++) {
		if (held->counts[i].hash == hash) {
			uint32_t deliveries = held->counts[i].deliveries;
			remove_count(held, i);
			return deliveries;
		}
	}
	return 0;
}
