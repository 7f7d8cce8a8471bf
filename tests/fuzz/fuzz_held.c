/*
 * Held elements of a list. By the first byte: the input is a base; or it chooses tokens and other words of one, of which one byte
 * is changed then. What is read must be written as it was, and be found again. Then some elements are given back to the list, and
 * the input chooses changes of the held ones, which are compared with those of an array.
 */
#include <stdio.h>

#include "collection/list/hold.h"
#include "collection/text/date.h"
#include "input.h"
#include "protocol/element.h"

enum {
	WORDS_MAX = 60,
	STEPS_MAX = 100,
	FRAME = 40 /* bytes that a token counts without its word */
};

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* --- one base --- */

static bool same(const struct held *a, const struct held *b)
{
	bool equal =
		a->count == b->count && a->count_count == b->count_count && a->bytes == b->bytes;

	for (size_t i = 0; equal && i < a->count; i++) {
		const struct held_element *x = &a->list[i], *y = &b->list[i];
		equal = x->date == y->date && x->deliveries == y->deliveries &&
			x->right == y->right && slice_equal(x->ticket, y->ticket) &&
			slice_equal(x->word, y->word);
	}
	for (size_t i = 0; equal && i < a->count_count; i++)
		equal = a->counts[i].deliveries == b->counts[i].deliveries &&
			a->counts[i].hash == b->counts[i].hash;
	return equal;
}

static void check_elements(const struct held *held, struct slice base)
{
	size_t bytes = 0;

	for (size_t i = 0; i < held->count; i++) {
		const struct held_element *e = &held->list[i];
		MUST(e->date >= DATE_MIN && e->deliveries && e->ticket.n == HELD_TICKET);
		MUST(input_within(e->ticket, base) && input_within(e->word, base));
		MUST(e->word.n <= ELEMENT_WORD_MAX && element_is_word(e->word));
		bytes += e->word.n + FRAME;
	}
	MUST(held->bytes == bytes);
	for (size_t i = 0; i < held->count_count; i++)
		MUST(held->counts[i].deliveries);
}

/* Returns how many tokens held_end finds, at the beginning of any word. */
static size_t count_tokens(struct slice base)
{
	const char *end = base.p + base.n;
	size_t count = 0;

	for (const char *p = base.p; p < end; p++) {
		const char *after = p == base.p || p[-1] == ' ' ? held_end(p, end) : NULL;
		MUST(!after || (after > p && after <= end && after[-1] == ' '));
		count += after != NULL;
	}
	return count;
}

/* Tokens have one form each, so those that were written again have the same bytes. */
static void check_base(struct slice base)
{
	struct buf rest = BUF_EMPTY, none = BUF_EMPTY, written = BUF_EMPTY, copied = BUF_EMPTY;
	struct held held = { 0 }, again = { 0 };
	struct slice unheld = held_read(base, &held, &rest);

	check_elements(&held, base);
	MUST(held.count + held.count_count == count_tokens(base));
	MUST(held_any(&held) || unheld.p == base.p);
	held_write(&held, &written);
	MUST(buf_size(&written) + unheld.n == base.n);
	held_copy(base, &copied);
	MUST(slice_equal(buf_slice(&copied), buf_slice(&written)));
	MUST(slice_equal(held_read(unheld, &again, &none), unheld) && !held_any(&again));

	buf_add_slice(&written, unheld);
	MUST(slice_equal(held_read(buf_slice(&written), &again, &none), unheld));
	MUST(same(&held, &again));
	held_free(&held);
	held_free(&again);
	buf_free(&rest);
	buf_free(&none);
	buf_free(&written);
	buf_free(&copied);
}

/* All elements are in the list or held, before and after those that are due are given back. */
static void check_list(struct slice base, int64_t now)
{
	struct segmented_list list, again;
	struct buf written = BUF_EMPTY;

	if (segmented_list_read(&list, base) && !list.tangled) {
		uint64_t count = segmented_list_count(&list);
		size_t held = list.held.count;
		hold_give_back(&list, now);
		MUST(!hold_is_due(&list, now) && held_next(&list.held) > now);
		MUST(segmented_list_count(&list) == count + held - list.held.count);
		MUST(list.given == (held > list.held.count));
		segmented_list_encode(&list, slice_of("", 0), false, &written);
		MUST(segmented_list_read(&again, buf_slice(&written)));
		MUST(segmented_list_count(&again) == segmented_list_count(&list));
		MUST(same(&again.held, &list.held));
		segmented_list_free(&again);
	}
	segmented_list_free(&list);
	buf_free(&written);
}

static void any_base(struct slice bytes, int64_t now)
{
	char *copy = input_copy(bytes);

	check_base(slice_of(copy, bytes.n));
	check_list(slice_of(copy, bytes.n), now);
	free(copy);
}

/* --- tokens --- */

/* Some names are words with escapes; one is the empty element. */
static struct slice name(struct slice *in, char text[16])
{
	static const char *const ends[] = { "", "", "\001\102", "\001\042\001\102" };
	int n = input_byte(in) % 48;

	return n == 47 ? SLICE("\001!")
		       : slice_of(text, (size_t)snprintf(text, 16, "m%d%s", n % 12, ends[n / 12]));
}

static int64_t date(struct slice *in)
{
	return DATE_MIN + input_byte(in) % 64;
}

static struct held_element element(struct slice *in, char ticket[HELD_TICKET], char text[16])
{
	struct held_element e = { .date = date(in), .deliveries = 1 + input_byte(in) % 3u };

	e.right = input_byte(in) % 2;
	memset(ticket, letters[input_byte(in) % (sizeof(letters) - 1)], HELD_TICKET);
	e.ticket = slice_of(ticket, HELD_TICKET);
	e.word = name(in, text);
	return e;
}

static void add_word(struct buf *base, struct slice *in)
{
	char ticket[HELD_TICKET], text[16];
	struct held held = { 0 };
	uint8_t what = input_byte(in);

	if (what < 128) {
		struct held_element e = element(in, ticket, text);
		if (what < 100)
			held_add(&held, &e);
		else
			held_count_keep(&held, &e);
		held_write(&held, base);
		held_free(&held);
	} else {
		buf_add_slice(base, what < 250 ? SLICE("+") : SLICE("-"));
		buf_add_word(base, name(in, text));
	}
}

static void made_base(struct slice *in)
{
	struct buf base = BUF_EMPTY;

	buf_add_slice(&base, SLICE("@list "));
	for (int i = 0; in->n > 8 && i < WORDS_MAX; i++)
		add_word(&base, in);
	any_base(buf_slice(&base), date(in));
	base.data[input_number(in) % buf_size(&base)] = (char)input_byte(in);
	any_base(buf_slice(&base), date(in));
	buf_free(&base);
}

/* --- changes --- */

struct model {
	struct held_element list[STEPS_MAX];
	char tickets[STEPS_MAX][HELD_TICKET], texts[STEPS_MAX][16];
	size_t count, made;
};

static void remove_from(struct model *m, size_t i)
{
	m->count--;
	memmove(m->list + i, m->list + i + 1, (m->count - i) * sizeof(*m->list));
}

static size_t find(const struct model *m, struct slice ticket)
{
	size_t i = 0;

	while (i < m->count && !slice_equal(m->list[i].ticket, ticket))
		i++;
	return i;
}

/* The deliveries of the elements that were given back: the oldest with the same word is next. */
static void give_back(struct held *held, struct model *back, const struct held_element *e)
{
	held_count_keep(held, e);
	back->list[back->count++] = *e;
}

static uint32_t take_back(struct model *back, struct slice word)
{
	for (size_t i = 0; i < back->count; i++) {
		if (slice_equal(back->list[i].word, word)) {
			uint32_t deliveries = back->list[i].deliveries;
			remove_from(back, i);
			return deliveries;
		}
	}
	return 0;
}

static void change(struct held *held, struct model *m, struct model *back, struct slice *in)
{
	size_t made = m->made++, i, at;
	struct held_element e = element(in, m->tickets[made], m->texts[made]);
	uint8_t what = input_byte(in) % 4;

	at = find(m, e.ticket);
	if (what == 3)
		MUST(held_count_take(held, e.word) == take_back(back, e.word));
	if (at == m->count) {
		MUST(!held_find(held, e.ticket, &i) && held_has_room(held, e.word));
		held_add(held, &e);
		m->list[m->count++] = e;
		return;
	}
	MUST(held_find(held, e.ticket, &i) && i == at);
	if (what == 0) {
		held_forget(held, at);
		m->count = at;
		return;
	}
	if (what == 1)
		give_back(held, back, &m->list[at]);
	held_remove(held, at);
	remove_from(m, at);
}

static void changes(struct slice *in)
{
	static struct model m, back;
	struct held held = { 0 };

	m.count = m.made = back.count = 0;
	for (int n = 0; in->n > 8 && n < STEPS_MAX; n++) {
		int64_t next = INT64_MAX;
		change(&held, &m, &back, in);
		MUST(same(&held,
			&(struct held){ m.list, held.counts, m.count, m.count, held.bytes,
				back.count, back.count }));
		for (size_t i = 0; i < m.count; i++)
			next = m.list[i].date < next ? m.list[i].date : next;
		MUST(held_next(&held) == next);
	}
	held_free(&held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);

	switch (input_byte(&in) % 3) {
	case 0:
		any_base(in, DATE_MIN + 32);
		break;
	case 1:
		made_base(&in);
		break;
	default:
		changes(&in);
	}
	return 0;
}
