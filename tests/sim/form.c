#include "form.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "world.h"

/*
 * Returns the value of an item whose key is formatted as by printf; its `p` is NULL if the item is
 * missing.
 */
static struct slice item(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static struct slice item(struct world *w, const char *format, ...)
{
	struct memcached_item *found;
	char name[64];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	found = world_find(w, slice_of(name, (size_t)n));
	return found ? buf_slice(&found->value) : (struct slice){ NULL, 0 };
}

static uint64_t bit_of(struct slice name)
{
	int member = truth_member(name);

	return member < 0 ? 0 : 1ull << member;
}

/* --- texts --- */

/* `+a-b`: later words win. */
static bool read_words(struct slice text, uint64_t *members)
{
	while (text.n) {
		size_t n = 1;
		while (n < text.n && text.p[n] != '+' && text.p[n] != '-')
			n++;
		uint64_t bit = bit_of(slice_of(text.p + 1, n - 1));
		bool seal = n == 2 && memcmp(text.p, "-^", 2) == 0;
		if ((!bit && !seal) || (text.p[0] != '+' && text.p[0] != '-'))
			return false;
		*members = text.p[0] == '+' ? *members | bit : *members & ~bit;
		text = slice_skip(text, n);
	}
	return true;
}

/* `a,b,`: adds `by` for each. */
static bool count_list(struct slice text, int by, int counts[SIM_MEMBERS])
{
	while (text.n) {
		const char *end = memchr(text.p, ',', text.n);
		int member = end ? truth_member(slice_of(text.p, (size_t)(end - text.p))) : -1;
		if (member < 0)
			return false;
		counts[member] += by;
		text = slice_skip(text, (size_t)(end - text.p) + 1);
	}
	return true;
}

static uint64_t counted(const int counts[SIM_MEMBERS])
{
	uint64_t members = 0;

	for (int m = 0; m < SIM_MEMBERS; m++)
		members |= counts[m] > 0 ? 1ull << m : 0;
	return members;
}

/* --- encodings --- */

static enum form_state read_signed(struct world *w, int key, uint64_t *members)
{
	struct slice text = item(w, "s%d", key);

	if (!text.p)
		return FORM_MISSING;
	return read_words(text, members) ? FORM_WHOLE : FORM_WRONG;
}

static enum form_state read_csv(struct world *w, int key, uint64_t *members)
{
	struct slice text = item(w, "s%d", key);
	int counts[SIM_MEMBERS] = { 0 };

	if (!text.p)
		return FORM_MISSING;
	if (!count_list(text, 1, counts))
		return FORM_WRONG;
	*members = counted(counts);
	return FORM_WHOLE;
}

static enum form_state read_tombstone(struct world *w, int key, uint64_t *members)
{
	struct slice text = item(w, "s%d", key), removed;
	const char *bar = text.n ? memchr(text.p, '|', text.n) : NULL;
	int counts[SIM_MEMBERS] = { 0 };

	if (!text.p)
		return FORM_MISSING;
	if (!bar)
		return FORM_WRONG;
	removed = slice_of(text.p, (size_t)(bar - text.p));
	if (!count_list(removed, -1, counts) ||
		!count_list(slice_skip(text, removed.n + 1), 1, counts))
		return FORM_WRONG;
	*members = counted(counts);
	return FORM_WHOLE;
}

static enum form_state read_paired(struct world *w, int key, uint64_t *members)
{
	struct slice added = item(w, "s%d", key), removed = item(w, "t%d", key);
	int counts[SIM_MEMBERS] = { 0 };

	if (!count_list(removed, -1, counts) || !count_list(added, 1, counts))
		return FORM_WRONG;
	*members = counted(counts);
	return added.p ? FORM_WHOLE : FORM_MISSING;
}

/* A removal of the member `^`, and not of one whose name only begins with it. */
static bool skip_guard(struct slice *list)
{
	bool guarded = list->n >= 2 && memcmp(list->p, "-^", 2) == 0 &&
		(list->n == 2 || list->p[2] == '+' || list->p[2] == '-');

	*list = slice_skip(*list, guarded ? 2 : 0);
	return guarded;
}

/* A removal of `^` at the head of the active list means that the other list has more entries. */
static enum form_state read_both(struct slice inactive, struct slice active, uint64_t *members)
{
	skip_guard(&inactive);
	if (!active.p)
		return inactive.n ? FORM_LOST : FORM_MISSING;
	if (skip_guard(&active) && !inactive.p)
		return FORM_LOST;
	return read_words(inactive, members) && read_words(active, members) ? FORM_WHOLE
									    : FORM_WRONG;
}

/* Without the pointer there is no set. */
static enum form_state read_flip(struct world *w, int key, uint64_t *members)
{
	struct slice a = item(w, "s%d.a", key), b = item(w, "s%d.b", key),
		     pointer = item(w, "s%d.active", key);
	struct slice a_words = a, b_words = b;

	if (pointer.p &&
		(pointer.n != 4 || pointer.p[2] != '.' ||
			(pointer.p[3] != 'a' && pointer.p[3] != 'b')))
		return FORM_WRONG;
	skip_guard(&a_words);
	skip_guard(&b_words);
	if (!pointer.p)
		return a_words.n || b_words.n ? FORM_LOST : FORM_MISSING;
	return pointer.p[3] == 'b' ? read_both(a, b, members) : read_both(b, a, members);
}

static bool is_marked(struct slice list)
{
	return list.n && list.p[0] == '^';
}

/* With both marked a flip is half done, to the one with the guard, or without one to the shorter one. */
static enum form_state read_marked(struct world *w, int key, uint64_t *members)
{
	struct slice a = item(w, "s%d.a", key), b = item(w, "s%d.b", key);
	bool marked_a = is_marked(a), marked_b = is_marked(b), guarded_a, guarded_b;
	struct slice a_words = slice_skip(a, marked_a), b_words = slice_skip(b, marked_b),
		     a_said = a_words, b_said = b_words;

	guarded_a = skip_guard(&a_said);
	guarded_b = skip_guard(&b_said);
	if (a.p && b.p && marked_a && marked_b) {
		if (guarded_a == guarded_b ? a_said.n <= b_said.n : guarded_a)
			return read_both(b_words, a_words, members);
		return read_both(a_words, b_words, members);
	}
	if (a.p && b.p && !marked_a && !marked_b) {
		if (a_said.n && b_said.n)
			return FORM_WRONG;
		return a_said.n || !b_said.n ? read_both(b_words, a_words, members)
					     : read_both(a_words, b_words, members);
	}
	if (a.p && !marked_a)
		return read_both(b_words, a_words, members);
	if (b.p && !marked_b)
		return read_both(a_words, b_words, members);
	return a_said.n || b_said.n ? FORM_LOST : FORM_MISSING;
}

static enum form_state read_indexed(struct world *w, int key, uint64_t *members)
{
	struct slice index = item(w, "s%d", key), list;
	enum form_state state = FORM_WHOLE;

	if (!index.p)
		return FORM_MISSING;
	while (index.n) {
		size_t n = 1;
		while (n < index.n && index.p[n] != '+')
			n++;
		list = item(w, "s%d.%.*s", key, (int)n - 1, index.p + 1);
		if (index.p[0] != '+' || n == 1 || !read_words(list, members))
			return FORM_WRONG;
		if (!list.p)
			state = FORM_LOST;
		index = slice_skip(index, n);
	}
	return state;
}

/* Plain verbs act on the collection, so that `delete` and `touch` reach all of its items. */
#define RULE(id, ...) \
	{ \
		.prefix = { "s", 1 }, .encoding = (id), .compact_waste = 0.5, .delimiter = ',', \
		.plain_verbs = true, __VA_ARGS__ \
	}

static const struct form forms[] = {
	{ "signed", RULE(ENCODING_SIGNED, .type = COLLECTION_SET), read_signed, 0 },
	{ "csv", RULE(ENCODING_CSV, .type = COLLECTION_SET), read_csv, 0 },
	{ "tombstone", RULE(ENCODING_TOMBSTONE, .type = COLLECTION_SET), read_tombstone, 0 },
	{ "paired", RULE(ENCODING_PAIRED, .removed = { "t", 1 }), read_paired,
		EXEMPT_PARTS | EXEMPT_SSET_RACES | EXEMPT_LATE },
	{ "flip", RULE(ENCODING_FLIP, .pointer = true), read_flip,
		EXEMPT_FLICKER | EXEMPT_SSET_RACES | EXEMPT_LATE },
	{ "flip-mark", RULE(ENCODING_FLIP, .pointer = false), read_marked,
		EXEMPT_FLICKER | EXEMPT_SSET_RACES | EXEMPT_LATE },
	{ "indexed", RULE(ENCODING_INDEXED, .type = COLLECTION_SET), read_indexed,
		EXEMPT_SSET_RACES | EXEMPT_LATE },
};

const struct form *form_named(const char *name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	}
	return NULL;
}

int form_key(const struct form *form, struct slice name)
{
	bool known =
		name.n >= 2 && (name.p[0] == 's' || (name.p[0] == 't' && form->rule.removed.n));
	int key = known ? name.p[1] - '0' : -1;

	return key >= 0 && key < SIM_KEYS ? key : -1;
}
