/* The true state of lists, and their stored form. */
#include "lists.h"

#include <stdlib.h>

#include "stored_set.h"
#include "util/alloc.h"
#include "util/check.h"
#include "util/num.h"
#include "wording.h"

struct truth_list *lists_of(struct world *w, int list)
{
	return &w->lists->lists[list];
}

int lists_index(struct slice key)
{
	return key.n == SIM_KEY_SIZE && key.p[0] == 'l' ? key.p[1] - '0' : -1;
}

/* --- the limit --- */

struct collection_rule lists_limit(uint64_t seed)
{
	return (struct collection_rule){ .prefix = SLICE("l2"),
		.type = COLLECTION_LIST,
		.compact_waste = 0.5,
		.delimiter = ',',
		.max = SIM_LIST_MAX,
		.newest = seed / 2 % 2 ? NEWEST_FIRST : NEWEST_LAST };
}

/* The items that a command may see: from `first` on. */
static size_t seen(struct world *w, int list, size_t *first)
{
	const struct truth_list *t = lists_of(w, list);
	bool over = list == SIM_LIMITED && t->count > SIM_LIST_MAX;

	*first = over && rules_collection(&w->rules, SLICE("l2"))->newest == NEWEST_LAST
		? t->count - SIM_LIST_MAX
		: 0;
	return over ? SIM_LIST_MAX : t->count;
}

/* Elements beyond the limit may be dropped, and are then never returned. */
static void excuse(struct world *w, int list)
{
	const struct truth_list *t = lists_of(w, list);
	size_t first, count = seen(w, list, &first);

	for (size_t i = 0; i < t->count; i++)
		w->lists->items[t->items[i]].uncertain |= i < first || i >= first + count;
}

/* --- versions --- */

static void remember(struct world *w, int list)
{
	struct truth_list *t = lists_of(w, list);
	struct list_version *last = t->version_count ? &t->versions[t->version_count - 1] : NULL;
	size_t first, count = seen(w, list, &first), bytes = count * sizeof(*t->items);

	excuse(w, list);
	if (last && last->absent == t->absent && last->spoiled == t->spoiled &&
		last->count == count &&
		(bytes == 0 || memcmp(last->items, t->items + first, bytes) == 0))
		return;
	if (t->version_count == t->version_capacity) {
		t->version_capacity = t->version_capacity ? t->version_capacity * 2 : 64;
		t->versions = xrealloc(t->versions, t->version_capacity * sizeof(*t->versions));
	}
	last = &t->versions[t->version_count++];
	*last = (struct list_version){ w->truth.tick, t->absent, t->spoiled, count,
		xmalloc(bytes + 1) };
	memcpy(last->items, t->items + first, bytes);
}

void lists_init(struct world *w)
{
	w->lists = xcalloc(1, sizeof(*w->lists));
	for (int i = 0; i < SIM_LISTS; i++) {
		lists_of(w, i)->absent = true;
		remember(w, i);
	}
}

void lists_fini(struct world *w)
{
	for (int i = 0; i < SIM_LISTS; i++) {
		struct truth_list *t = lists_of(w, i);
		for (size_t v = 0; v < t->version_count; v++)
			free(t->versions[v].items);
		free(t->versions);
	}
	free(w->lists);
}

/* --- stored items --- */

int lists_item_number(struct world *w, struct slice name)
{
	uint32_t n;

	if (name.n > 1 && name.p[0] == 'i' && num_parse_u32(slice_skip(name, 1), &n) &&
		n < SIM_ITEMS)
		return (int)n;
	world_fail(w, "an item that nobody named", "%.*s", (int)name.n, name.p);
	return 0;
}

int lists_stored_number(struct world *w, struct slice word)
{
	return lists_item_number(w, wording_name(word, true));
}

/* Reads @<group>.<count>.<kilobytes>.<check>, which :<skip>:<keep> may follow, without the code under test. */
bool lists_read_segment(
	struct world *w, int list, struct slice token, bool wide, struct list_sequence *out)
{
	enum { GROUP = 12 };
	uint64_t count = 0, kilobytes, skip = 0, keep = UINT64_MAX, n = 0, check;
	char key[80] = { 'l', (char)('0' + list), '.' };
	struct slice rest = slice_skip(token, token.n > GROUP ? GROUP + 1 : 0), name = { 0 }, item;
	struct memcached_item *segment;
	bool good = stored_number(&rest, '.', &count) && stored_number(&rest, '.', &kilobytes);

	if (good)
		name = slice_of(token.p + 1, token.n - 1 - rest.n);
	if (!good || !stored_check(&rest, &check) || token.n > sizeof(key) - 3 ||
		(rest.n &&
			(!stored_number(&rest, ':', &skip) || !stored_number(&rest, ':', &keep) ||
				rest.n))) {
		world_fail(w, "a reference that is none", "%.*s", (int)token.n, token.p);
		return false;
	}
	memcpy(key + 3, name.p, name.n);
	segment = world_find(w, slice_of(key, 3 + name.n));
	if (!segment)
		return false;
	rest = buf_slice(&segment->value);
	for (; (item = slice_token(&rest)).n; n++) {
		if (n >= skip && n - skip < keep)
			out->items[out->count++] = lists_stored_number(w, slice_skip(item, 1));
		if (!wide && !wording_is_narrow(slice_skip(item, 1)))
			world_fail(w, "a segment of form 3, and a base of form 1", "%s", key);
	}
	if (n != count)
		world_fail(w, "a segment with another count than its name says", "%s has %llu", key,
			(unsigned long long)n);
	if (check != check_of(buf_slice(&segment->value)))
		world_fail(w, "a segment with another check than its reference says", "%s", key);
	return true;
}

/* A removal applies to everything before it. */
static void remove_item(struct list_sequence *s, int item)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i] != item)
			s->items[kept++] = s->items[i];
	}
	s->count = kept;
}

bool lists_read_stored(struct world *w, int list, struct list_sequence *out)
{
	char name[SIM_KEY_SIZE] = { 'l', (char)('0' + list) };
	struct memcached_item *base = world_find(w, slice_of(name, SIM_KEY_SIZE));
	struct slice rest, token;
	bool marked = false, wide = false;

	out->count = 0;
	if (!base)
		return false;
	rest = buf_slice(&base->value);
	while ((token = slice_token(&rest)).n) {
		if (token.p[0] == '+')
			out->items[out->count++] = lists_stored_number(w, slice_skip(token, 1));
		else if (token.p[0] == '-')
			remove_item(out, lists_stored_number(w, slice_skip(token, 1)));
		else if (token.p[0] == '@' && token.p[1] == 's' && token.n > 6) {
			if (!lists_read_segment(w, list, token, wide, out))
				return false;
		} else if (slice_equal(token, SLICE("@list")) ||
			slice_equal(token, SLICE("@list.3"))) {
			marked = true;
			wide = token.n > 5;
		} else if (!slice_starts(token, SLICE("~t"))) {
			world_fail(w, "a token that nobody wrote", "%.*s", (int)token.n, token.p);
		}
	}
	if (!marked)
		world_fail(w, "a list that is none any more", "list %d", list);
	return true;
}

void lists_check(struct world *w, int list)
{
	static struct list_sequence stored;
	struct truth_list *t = lists_of(w, list);
	char name[SIM_KEY_SIZE] = { 'l', (char)('0' + list) };
	struct memcached_item *base = world_find(w, slice_of(name, SIM_KEY_SIZE));

	if (list == LOADED_LIST &&
		list_leases_check(w, base ? buf_slice(&base->value) : slice_of("", 0))) {
		t->count = 0;
		t->absent = true;
		t->spoiled = false;
	} else if (!base) {
		t->count = 0;
		t->absent = true;
		t->spoiled = false;
	} else if (!lists_read_stored(w, list, &stored)) {
		if (!t->spoiled && !w->evictions)
			world_fail(w, "a segment of a list is gone that nobody evicted", "list %d",
				list);
		t->absent = t->spoiled = true;
	} else if (!t->spoiled) {
		t->absent = false;
		if (stored.count != t->count ||
			memcmp(stored.items, t->items, t->count * sizeof(int)) != 0)
			world_fail(w, "the stored list is another than was written",
				"list %d has %zu, not %zu", list, stored.count, t->count);
	}
	remember(w, list);
}

bool lists_whole(struct world *w, int list)
{
	return !lists_of(w, list)->absent && !lists_of(w, list)->spoiled;
}

void lists_time(struct world *w)
{
	for (int i = 0; i < SIM_LISTS; i++)
		lists_check(w, i);
}

/* --- executed calls --- */

/* When the proxy has lost the connection, a call may be executed after later commands of its client. */
void lists_pushed(struct world *w, const struct message *message, int n)
{
	struct list_item *item = &w->lists->items[n];

	if (item->executed)
		world_fail(w, "an item was pushed twice", "i%d", n);
	item->executed = true;
	if (message->proxy)
		w->executed[item->command] = w->truth.tick;
}

static void push(
	struct world *w, const struct message *message, int list, struct slice log, bool front)
{
	struct truth_list *t = lists_of(w, list);
	size_t at = front ? 0 : t->count;
	struct slice token;

	while ((token = slice_token(&log)).n) {
		if (token.p[0] == '@' || token.p[0] == '~')
			continue;
		int n = lists_stored_number(w, slice_skip(token, 1));
		memmove(t->items + at + 1, t->items + at, (t->count - at) * sizeof(int));
		t->items[at++] = n;
		t->count++;
		lists_pushed(w, message, n);
	}
}

static void taken(struct world *w, const struct message *message, int list, int n)
{
	struct list_item *item = &w->lists->items[n];

	item->removed = true;
	item->remover = message->proxy;
	item->uncertain |= list == 1 || !message->proxy;
}

static bool removes(struct world *w, struct slice base, int item)
{
	struct slice token;

	while ((token = slice_token(&base)).n) {
		if (token.p[0] == '-' && lists_stored_number(w, slice_skip(token, 1)) == item)
			return true;
	}
	return false;
}

/* Returns whether all missing items are removed in the log, as by a pop of random items. */
static bool is_random_pop(struct world *w, const struct truth_list *t,
	const struct list_sequence *now, struct slice base)
{
	size_t at = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (at < now->count && t->items[i] == now->items[at])
			at++;
		else if (!removes(w, base, t->items[i]))
			return false;
	}
	return at == now->count;
}

/* Only pops change this list: items popped from an end are missing there. */
static void check_popped(struct world *w, const struct message *message, struct truth_list *t,
	const struct list_sequence *now)
{
	size_t start = 0;

	while (now->count && start < t->count && t->items[start] != now->items[0])
		taken(w, message, 0, t->items[start++]);
	if (start + now->count > t->count ||
		memcmp(t->items + start, now->items, now->count * sizeof(int)) != 0) {
		world_fail(w, "a rewrite is no part of the list", "list 0");
		return;
	}
	for (size_t i = start + now->count; i < t->count; i++)
		taken(w, message, 0, t->items[i]);
}

/*
 * Items beyond the limit may be dropped by any rewrite, also while a push or a removal changes
 * which ones these are.
 */
static void check_limited(
	struct world *w, const struct message *message, const struct list_sequence *now)
{
	const struct truth_list *t = lists_of(w, SIM_LIMITED);
	size_t at = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (at < now->count && t->items[i] == now->items[at])
			at++;
		else
			taken(w, message, SIM_LIMITED, t->items[i]);
	}
	if (at < now->count)
		world_fail(w, "a rewrite is no part of the list", "list %d", SIM_LIMITED);
}

static bool holds(const struct list_sequence *s, int item)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i] == item)
			return true;
	}
	return false;
}

/* Whether the sequence is a part of the list as it was. */
static bool is_part(const struct truth_list *t, const struct list_sequence *now)
{
	size_t at = 0;

	while (now->count && at < t->count && t->items[at] != now->items[0])
		at++;
	return at + now->count <= t->count &&
		memcmp(t->items + at, now->items, now->count * sizeof(int)) == 0;
}

static void take_missing(
	struct world *w, const struct message *message, int list, const struct list_sequence *now)
{
	const struct truth_list *t = lists_of(w, list);

	for (size_t i = 0; i < t->count; i++) {
		if (!holds(now, t->items[i]))
			taken(w, message, list, t->items[i]);
	}
}

/*
 * Items are missing between a common beginning and a common end, or at both ends; or one item
 * replaces another.
 */
static void check_changed(struct world *w, const struct message *message, struct truth_list *t,
	const struct list_sequence *now)
{
	size_t start = 0, end = 0;
	bool replaced, removed;

	while (start < t->count && start < now->count && t->items[start] == now->items[start])
		start++;
	while (end < t->count - start && end < now->count - start &&
		t->items[t->count - 1 - end] == now->items[now->count - 1 - end])
		end++;
	replaced = now->count == t->count && start + end + 1 == t->count;
	removed = start + end == now->count;
	if (!replaced && !removed && !is_part(t, now))
		world_fail(w, "a rewrite that nobody asked for", "list 1");
	if (replaced)
		lists_pushed(w, message, now->items[start]);
	take_missing(w, message, 1, now);
}

static void check_rewritten(struct world *w, const struct message *message, int list)
{
	static struct list_sequence now;
	struct truth_list *t = lists_of(w, list);

	if (t->spoiled || !lists_read_stored(w, list, &now))
		return;
	if (is_random_pop(w, t, &now, message->call.value))
		take_missing(w, message, list, &now);
	else if (list == SIM_LIMITED)
		check_limited(w, message, &now);
	else
		(list == 1 ? check_changed : check_popped)(w, message, t, &now);
	memcpy(t->items, now.items, now.count * sizeof(int));
	t->count = now.count;
}

void lists_executed(struct world *w, const struct message *message, int list, struct slice before)
{
	const struct call *call = &message->call;

	if (message->result.status != RESULT_DONE)
		return;
	if (list == LOADED_LIST && list_leases_executed(w, message, before))
		return;
	if (call->verb == CALL_APPEND || call->verb == CALL_PREPEND || call->verb == CALL_ADD)
		push(w, message, list, call->value, call->verb == CALL_PREPEND);
	else if (call_stores(call->verb) && call->exptime >= 0)
		check_rewritten(w, message, list);
}
