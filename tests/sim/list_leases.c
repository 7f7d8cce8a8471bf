/* The true state of a list that is being loaded, and the replies to clients about its lease. */
#include "lists.h"
#include "protocol/commands.h"
#include "stored_set.h"

enum {
	SKEW = 1 /* seconds by which the clock of a proxy may be ahead */,
	MARK = 6 /* bytes of "@fill." */
};

static struct list_lease *lease_of(struct world *w)
{
	return &w->lists->lease;
}

/* --- commands of clients --- */

command_id list_leases_choose(struct world *w)
{
	static const command_id while_loading[] = { COMMAND_LLOAD, COMMAND_LLOAD, COMMAND_LLOAD,
		COMMAND_LFILL, COMMAND_RPUSHX, COMMAND_RPUSH, COMMAND_LPUSHX, COMMAND_LPUSH,
		COMMAND_LRANGE, COMMAND_LLEASE };
	static const command_id else_[] = { COMMAND_LLEASE, COMMAND_LLEASE, COMMAND_LLEASE,
		COMMAND_DELETE, COMMAND_DELETE, COMMAND_LPOP, COMMAND_LRANGE, COMMAND_RPUSHX,
		COMMAND_LLOAD, COMMAND_LFILL };

	if (world_chance(w, 6))
		return world_chance(w, 50) ? COMMAND_SCOMPACT : COMMAND_DELETE;
	return (lease_of(w)->runs ? while_loading : else_)[world_random(w, 10)];
}

/* Mostly that of the last lease, which may be over. */
void list_leases_write_token(struct sim_op *op, struct buf *line)
{
	const struct list_lease *l = lease_of(op->world);
	size_t number = l->last_told;

	if (l->given_count && world_chance(op->world, 20))
		number = 1 + world_random(op->world, l->given_count);
	memcpy(op->token, number ? l->given[number - 1].token : "aaaaaaaa", STORED_TOKEN);
	buf_printf(line, " %.*s", STORED_TOKEN, op->token);
}

/* --- stored items --- */

bool list_leases_is(struct slice base)
{
	return memmem(base.p, base.n, "@list.2 ", 8) != NULL;
}

/*
 * Parses `head @list.2 @fill.<token>.<deadline>.<seconds> @segment* log`. Returns false if a
 * segment is missing.
 */
static bool read_base(struct world *w, struct slice base, struct list_lease *out)
{
	static struct list_sequence s;
	struct slice token;
	uint64_t seconds;
	bool whole = true, wide = false;

	out->front = out->count = out->loaded_count = 0;
	s.count = 0;
	while ((token = slice_token(&base)).n) {
		if (token.p[0] == '+') {
			out->words[out->count++] = lists_stored_number(w, slice_skip(token, 1));
		} else if (slice_equal(token, SLICE("@list.2"))) {
			out->front = out->count;
		} else if (slice_starts(token, SLICE("@fill.")) && token.n > MARK + STORED_TOKEN) {
			memcpy(out->token, token.p + MARK, STORED_TOKEN);
			token = slice_skip(token, MARK + STORED_TOKEN);
			if (!stored_number(&token, '.', &out->deadline) ||
				!stored_number(&token, '.', &seconds) ||
				(token.n && !(wide = slice_equal(token, SLICE(".3")))))
				world_fail(w, "a lease that is none", "%s", "");
		} else if (whole && token.p[0] != '~') {
			whole = lists_read_segment(w, LOADED_LIST, token, wide, &s);
		}
	}
	out->loaded_count = s.count;
	memcpy(out->loaded, s.items, s.count * sizeof(int));
	return whole;
}

static bool same_words(const struct list_lease *a, const struct list_lease *b)
{
	return a->count == b->count && a->front == b->front &&
		memcmp(a->words, b->words, a->count * sizeof(int)) == 0;
}

static void begin(struct world *w, const struct list_lease *is)
{
	struct list_lease *l = lease_of(w);
	struct list_given *given = &l->given[l->given_count++];

	for (size_t i = 0; i + 1 < l->given_count; i++) {
		if (memcmp(l->given[i].token, is->token, STORED_TOKEN) == 0)
			world_fail(w, "a token is given twice", "%.*s", STORED_TOKEN, is->token);
	}
	*given = (struct list_given){ .tick = w->truth.tick };
	memcpy(given->token, is->token, STORED_TOKEN);
	memcpy(l->token, is->token, STORED_TOKEN);
	l->deadline = is->deadline;
	l->since = w->truth.tick;
	l->loaded_count = 0;
	l->damaged = false;
	l->runs = true;
}

/* Returns whether the message may belong to this command: a killed proxy may have sent it too. */
static bool may_be_of(const struct sim_op *op, const struct message *m, command_id command)
{
	return op->command == command && op->list && op->list->list == LOADED_LIST &&
		(op->ended || op->proxy == m->proxy) &&
		memcmp(op->token, lease_of(op->world)->token, STORED_TOKEN) == 0;
}

/* Returns whether the items are those of the command, which have consecutive numbers. */
static bool are_of(const struct sim_op *op, const int *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (items[i] != op->list->first + (int)i)
			return false;
	}
	return count == (size_t)op->list->count;
}

static void loaded(
	struct world *w, const struct message *m, const struct list_lease *is, bool whole)
{
	struct list_lease *l = lease_of(w);
	size_t old = l->loaded_count;
	bool found = is->loaded_count == old;
	struct sim_op *op;

	if (!same_words(l, is))
		world_fail(w, "a load changed what others pushed", "tick %llu",
			(unsigned long long)w->truth.tick);
	l->damaged |= !whole;
	l->deadline = is->deadline;
	TAILQ_FOREACH(op, &w->ops, link) {
		if (may_be_of(op, m, COMMAND_LLOAD) &&
			(l->damaged ||
				(is->loaded_count >= old &&
					are_of(op, is->loaded + old, is->loaded_count - old))))
			op->executed[0] = found = true;
	}
	if (l->damaged)
		return;
	if (!found || memcmp(l->loaded, is->loaded, old * sizeof(int)) != 0)
		world_fail(w, "something was loaded that nobody sent", "tick %llu",
			(unsigned long long)w->truth.tick);
	memcpy(l->loaded, is->loaded, is->loaded_count * sizeof(int));
	l->loaded_count = is->loaded_count;
}

static void taken_over(struct world *w, const struct list_lease *is)
{
	struct list_lease *l = lease_of(w);

	if (world_now(w) / 1000 + SKEW <= l->deadline)
		world_fail(w, "a lease was taken over that was not over", "deadline %llu, now %llu",
			(unsigned long long)l->deadline, (unsigned long long)(world_now(w) / 1000));
	if (!same_words(l, is) || is->loaded_count)
		world_fail(w, "a new lease changed the words", "tick %llu",
			(unsigned long long)w->truth.tick);
	begin(w, is);
}

/*
 * The elements that others pushed are around the loaded ones, which are followed by those of the
 * last command.
 */
static bool is_fill(const struct sim_op *op, const struct list_sequence *now)
{
	const struct list_lease *l = lease_of(op->world);
	size_t last = (size_t)op->list->count;
	const int *at = now->items;

	if (now->count != l->count + l->loaded_count + last ||
		memcmp(at, l->words, l->front * sizeof(int)) != 0 ||
		memcmp(at + l->front, l->loaded, l->loaded_count * sizeof(int)) != 0)
		return false;
	at += l->front + l->loaded_count;
	return are_of(op, at, last) &&
		memcmp(at + last, l->words + l->front, (l->count - l->front) * sizeof(int)) == 0;
}

static void completed(struct world *w, const struct message *m)
{
	static struct list_sequence now;
	struct truth_list *t = lists_of(w, LOADED_LIST);
	bool found = false;
	struct sim_op *op;

	if (!lists_read_stored(w, LOADED_LIST, &now)) {
		/* It is lost: its content is unknown. */
		TAILQ_FOREACH(op, &w->ops, link) {
			if (may_be_of(op, m, COMMAND_LFILL))
				op->executed[0] = true;
		}
		return;
	}
	/* Without elements, it may belong to any of several commands. */
	TAILQ_FOREACH(op, &w->ops, link) {
		if (may_be_of(op, m, COMMAND_LFILL) && is_fill(op, &now))
			op->executed[0] = found = true;
	}
	if (!found)
		world_fail(w, "a list was completed as nobody loaded it", "tick %llu",
			(unsigned long long)w->truth.tick);
	memcpy(t->items, now.items, now.count * sizeof(int));
	t->count = now.count;
	t->spoiled = false;
}

static void word(struct world *w, const struct message *m, struct slice log)
{
	struct list_lease *l = lease_of(w);
	bool front = m->call.verb == CALL_PREPEND;
	size_t at = front ? 0 : l->count;
	struct slice token;

	while ((token = slice_token(&log)).n) {
		if (token.p[0] == '~')
			continue;
		int n = lists_stored_number(w, slice_skip(token, 1));
		memmove(l->words + at + 1, l->words + at, (l->count - at) * sizeof(int));
		l->words[at++] = n;
		l->count++;
		l->front += front;
		lists_pushed(w, m, n);
	}
}

/* --- executed calls --- */

static void written(struct world *w, const struct message *m)
{
	static struct list_lease is;
	struct list_lease *l = lease_of(w);
	bool whole;

	if (!list_leases_is(m->call.value)) {
		completed(w, m);
		l->runs = false;
		return;
	}
	whole = read_base(w, m->call.value, &is);
	if (l->runs && memcmp(is.token, l->token, STORED_TOKEN) == 0) {
		loaded(w, m, &is, whole);
	} else if (l->runs) {
		taken_over(w, &is);
	} else {
		if (m->call.verb != CALL_ADD && lists_whole(w, LOADED_LIST) && !w->evictions &&
			!(w->stray >= 0 && (!m->proxy || m->proxy->index == w->stray)))
			world_fail(w, "a list became one that somebody loads", "tick %llu",
				(unsigned long long)w->truth.tick);
		/* The rest of a list that has lost a segment counts as pushed meanwhile. */
		l->count = is.count;
		l->front = is.front;
		memcpy(l->words, is.words, is.count * sizeof(int));
		begin(w, &is);
	}
}

bool list_leases_executed(struct world *w, const struct message *m, struct slice before)
{
	struct list_lease *l = lease_of(w);
	bool pushes = m->call.verb == CALL_APPEND || m->call.verb == CALL_PREPEND;

	if (m->call.verb == CALL_GET || !call_stores(m->call.verb))
		return false;
	l->runs &= list_leases_is(before);
	if (m->call.verb == CALL_CAS && m->call.exptime < 0 && l->runs)
		world_fail(w, "a base was removed that somebody loads", "tick %llu",
			(unsigned long long)w->truth.tick);
	if (!l->runs && (pushes || !list_leases_is(m->call.value)))
		return false;
	if (pushes)
		word(w, m, m->call.value);
	else
		written(w, m);
	return true;
}

bool list_leases_check(struct world *w, struct slice base)
{
	static struct list_lease is;
	struct list_lease *l = lease_of(w);
	bool whole;

	if (!list_leases_is(base)) {
		l->runs = false;
		return false;
	}
	whole = read_base(w, base, &is);
	l->damaged |= !whole;
	if (!whole && !w->evictions)
		world_fail(w, "a segment of a list is gone that nobody evicted", "list %d",
			LOADED_LIST);
	if (!l->runs || !same_words(l, &is) || memcmp(l->token, is.token, STORED_TOKEN) != 0 ||
		(!l->damaged &&
			(l->loaded_count != is.loaded_count ||
				memcmp(l->loaded, is.loaded, is.loaded_count * sizeof(int)) != 0)))
		world_fail(w, "what is loaded is another than was written", "tick %llu",
			(unsigned long long)w->truth.tick);
	return true;
}

/* --- replies to clients --- */

static void told_lease(struct sim_op *op)
{
	struct world *w = op->world;
	struct list_lease *l = lease_of(w);

	for (size_t i = 0; i < l->given_count; i++) {
		struct list_given *given = &l->given[i];
		if (memcmp(given->token, op->reply.data + op->reply.start + MARK, STORED_TOKEN) !=
			0)
			continue;
		if (given->told || given->tick < op->issued)
			world_fail(w, "two clients have one lease", "%.*s", STORED_TOKEN,
				given->token);
		given->told = true;
		l->last_told = i + 1;
		return;
	}
	world_fail(w, "a lease that was never given", "%.*s", (int)buf_size(&op->reply),
		op->reply.data);
}

bool list_leases_reply(struct sim_op *op)
{
	struct world *w = op->world;
	const struct list_lease *l = lease_of(w);

	if (op->command == COMMAND_LLEASE) {
		if (check_says(op, "LEASE"))
			told_lease(op);
		else if (check_says(op, check_says(op, "WAIT") ? "WAIT" : "EXISTS"))
			lists_check_absent(op, check_says(op, "WAIT"));
		return true;
	}
	if (op->command != COMMAND_LLOAD && op->command != COMMAND_LFILL)
		return false;
	if (check_says(op, "STORED") && !op->executed[0])
		world_fail(w, "acknowledged, but not loaded", "client %d", op->client);
	if (check_says(op, "NOT_FOUND") && l->runs && l->since < op->issued &&
		memcmp(l->token, op->token, STORED_TOKEN) == 0)
		world_fail(w, "a lease was valid all the time", "client %d", op->client);
	return true;
}
