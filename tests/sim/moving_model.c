/*
 * The effects of the commands of moving.h on an object, and their replies.
 *
 *     set       a: its members, a bit each   b: 1 if it exists
 *     list      a: the number of the text of its elements, a byte each; 0 if it is missing
 *     counter   a: the number + 1, or 0
 *     item      a: the number of the text <flags>:<value>, or 0
 *               b: its cas id, 0 as long as no client has received it
 *
 * c is the time to live that a client has set.
 */
#include <stdio.h>
#include <stdlib.h>

#include "moving.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/num.h"

enum {
	APART = 1000 /* seconds; two times to live that are set differ by more, and no history takes as long */
};

/* --- texts --- */

size_t moving_text(struct moving *w, struct slice text)
{
	uint64_t hash = hash_slice(text, 1);
	struct moving_text *t;

	for (size_t i = 0; i < w->text_count; i++) {
		if (w->texts[i].hash == hash && slice_equal(buf_slice(&w->texts[i].bytes), text))
			return i + 1;
	}
	if (w->text_count == w->text_capacity) {
		w->text_capacity = w->text_capacity ? 2 * w->text_capacity : 256;
		w->texts = xrealloc(w->texts, w->text_capacity * sizeof(*w->texts));
	}
	t = &w->texts[w->text_count++];
	*t = (struct moving_text){ .hash = hash };
	buf_add_slice(&t->bytes, text);
	return w->text_count;
}

struct slice moving_text_of(const struct moving *w, size_t number)
{
	return buf_slice(&w->texts[number - 1].bytes);
}

/* --- common to all --- */

struct step {
	struct moving *world;
	const struct moving_op *op;
	struct linear_state s; /* at first the one before */
	unsigned choice;
};

static enum linear_step says(const struct step *t, const char *word)
{
	return !t->op->replied || slice_equal(t->op->got.word, slice_of(word, strlen(word)))
		? LINEAR_RIGHT
		: LINEAR_WRONG;
}

static enum linear_step says_number(const struct step *t, uint64_t number)
{
	return !t->op->replied || (t->op->got.is_number && t->op->got.number == number)
		? LINEAR_RIGHT
		: LINEAR_WRONG;
}

static bool is_there(const struct step *t)
{
	return t->world->keys[t->op->key].kind == MOVING_SET ? t->s.b : t->s.a;
}

static enum linear_step remove_item(struct step *t)
{
	bool was = is_there(t);

	t->s = (struct linear_state){ 0 };
	return says(t, was ? "DELETED" : "NOT_FOUND");
}

static enum linear_step touch(struct step *t)
{
	if (!is_there(t))
		return says(t, "NOT_FOUND");
	t->s.c = t->op->exptime;
	return says(t, "TOUCHED");
}

static enum linear_step compact(const struct step *t)
{
	if (!t->op->replied || slice_equal(t->op->got.word, SLICE("SERVER_ERROR")))
		return LINEAR_RIGHT;
	return says(t, is_there(t) ? "OK" : "NOT_FOUND");
}

/* The state at the end, and its time to live: got.number is 0 for ever. */
static enum linear_step is_final(const struct step *t)
{
	int64_t left = (int64_t)t->op->got.number;

	if (!is_there(t) || !t->op->got.is_number)
		return is_there(t) == t->op->got.is_number ? LINEAR_RIGHT : LINEAR_WRONG;
	if (!t->s.c || !left)
		return t->s.c == left ? LINEAR_RIGHT : LINEAR_WRONG;
	return left > t->s.c - APART && left < t->s.c + APART ? LINEAR_RIGHT : LINEAR_WRONG;
}

/* --- sets --- */

static enum linear_step add(struct step *t)
{
	t->s.a |= t->op->mask;
	t->s.b = 1;
	return says(t, "STORED");
}

static enum linear_step claim(struct step *t)
{
	bool is_new = !(t->s.a & t->op->mask);

	(void)add(t);
	return says_number(t, is_new);
}

static enum linear_step answer_members(const struct step *t, bool empty_is_value)
{
	if (!t->op->replied)
		return LINEAR_RIGHT;
	if (t->op->got.has_value != (t->s.b && (empty_is_value || t->s.a)))
		return LINEAR_WRONG;
	return t->op->got.mask == t->s.a ? LINEAR_RIGHT : LINEAR_WRONG;
}

/* Without a reply it may have been any member. */
static enum linear_step pop_member(struct step *t)
{
	uint64_t taken = t->op->got.mask;

	if (t->choice >= (t->op->replied ? 1 : MOVING_MEMBERS))
		return LINEAR_END;
	if (!t->op->replied)
		taken = UINT64_C(1) << t->choice;
	if ((taken & t->s.a) != taken || (t->op->replied && !taken && t->s.a))
		return LINEAR_WRONG;
	t->s.a &= ~taken;
	return LINEAR_RIGHT;
}

static enum linear_step take_members(struct step *t)
{
	enum linear_step is = answer_members(t, false);

	t->s.a = 0;
	return is;
}

static enum linear_step step_set(struct step *t)
{
	const struct moving_op *op = t->op;

	if (t->choice && op->command != COMMAND_SPOP)
		return LINEAR_END;
	switch (op->command) {
	case COMMAND_SADD:
		return add(t);
	case COMMAND_SADDX:
		return t->s.b ? add(t) : says(t, "NOT_FOUND");
	case COMMAND_SREM:
		t->s.a &= ~op->mask;
		return says(t, t->s.b ? "DELETED" : "NOT_FOUND");
	case COMMAND_SSET:
		t->s = (struct linear_state){ .a = op->mask, .b = 1 };
		return says(t, "STORED");
	case COMMAND_SCLAIM:
		return claim(t);
	case COMMAND_SPOP:
		return pop_member(t);
	case COMMAND_STAKE:
		return take_members(t);
	case COMMAND_SMEMBERS:
		return answer_members(t, true);
	case COMMAND_SCARD:
		return t->s.b ? says_number(t, (uint64_t)__builtin_popcountll(t->s.a))
			      : says(t, "NOT_FOUND");
	case COMMAND_SISMEMBER:
		return t->s.b ? says_number(t, (t->s.a & op->mask) != 0) : says(t, "NOT_FOUND");
	default:
		abort();
	}
}

/* --- lists --- */

struct sequence {
	unsigned char list[512];
	size_t n;
};

static struct sequence elements_of(const struct step *t)
{
	struct sequence q = { .n = 0 };
	struct slice text = t->s.a ? moving_text_of(t->world, t->s.a) : slice_of("", 0);

	if (text.n)
		memcpy(q.list, text.p, text.n);
	q.n = text.n;
	return q;
}

static void drop(struct sequence *q, size_t at, size_t n)
{
	memmove(q->list + at, q->list + at + n, q->n - at - n);
	q->n -= n;
}

static void insert(struct sequence *q, size_t at, unsigned char element)
{
	memmove(q->list + at + 1, q->list + at, q->n++ - at);
	q->list[at] = element;
}

static void keep(struct step *t, const struct sequence *q)
{
	t->s.a = moving_text(t->world, slice_of((const char *)q->list, q->n));
}

static enum linear_step push(struct step *t, bool front)
{
	struct sequence q = elements_of(t);
	struct slice more = moving_text_of(t->world, t->op->text);

	for (size_t i = 0; i < more.n; i++)
		insert(&q, front ? 0 : q.n, (unsigned char)more.p[i]);
	keep(t, &q);
	return says(t, "STORED");
}

/* A VALUE with these elements, or END. */
static enum linear_step answer_elements(const struct step *t, struct slice elements)
{
	const struct moving_op *op = t->op;

	if (!op->replied)
		return LINEAR_RIGHT;
	if (!op->got.has_value || elements.n == 0)
		return !op->got.has_value && elements.n == 0 ? LINEAR_RIGHT : LINEAR_WRONG;
	return slice_equal(moving_text_of(t->world, op->got.text), elements) ? LINEAR_RIGHT
									     : LINEAR_WRONG;
}

static enum linear_step pop_element(struct step *t, bool front)
{
	struct sequence q = elements_of(t), taken = { .n = 0 };

	if (!t->s.a)
		return answer_elements(t, slice_of("", 0));
	while (taken.n < t->op->number && q.n) {
		size_t at = front ? 0 : q.n - 1;
		taken.list[taken.n++] = q.list[at];
		drop(&q, at, 1);
	}
	keep(t, &q);
	return answer_elements(t, slice_of((const char *)taken.list, taken.n));
}

static enum linear_step change_elements(struct step *t)
{
	struct sequence q = elements_of(t);
	size_t at = t->op->number;

	if (!t->s.a)
		return says(t, "NOT_FOUND");
	if (t->op->command == COMMAND_LSET) {
		if (at >= q.n)
			return says(t, "CLIENT_ERROR");
		q.list[at] = (unsigned char)*moving_text_of(t->world, t->op->text).p;
	} else if (t->op->command == COMMAND_LTRIM) {
		drop(&q, 0, at < q.n ? at : q.n);
	} else {
		const unsigned char *found = memchr(q.list, (int)t->op->number, q.n);
		if (found)
			drop(&q, (size_t)(found - q.list), 1);
		keep(t, &q);
		return says_number(t, found != NULL);
	}
	keep(t, &q);
	return says(t, "STORED");
}

static enum linear_step step_list(struct step *t)
{
	const struct moving_op *op = t->op;
	struct sequence q;

	if (t->choice)
		return LINEAR_END;
	switch (op->command) {
	case COMMAND_RPUSH:
	case COMMAND_LPUSH:
		return push(t, op->command == COMMAND_LPUSH);
	case COMMAND_RPUSHX:
	case COMMAND_LPUSHX:
		return t->s.a ? push(t, op->command == COMMAND_LPUSHX) : says(t, "NOT_FOUND");
	case COMMAND_LPOP:
	case COMMAND_RPOP:
		return pop_element(t, op->command == COMMAND_LPOP);
	case COMMAND_LSET:
	case COMMAND_LTRIM:
	case COMMAND_LREM:
		return change_elements(t);
	default:
		q = elements_of(t);
	}
	if (op->command == COMMAND_LLEN)
		return t->s.a ? says_number(t, q.n) : says(t, "NOT_FOUND");
	if (op->command == COMMAND_LRANGE)
		return answer_elements(t, slice_of((const char *)q.list, q.n));
	return answer_elements(
		t, slice_of((const char *)q.list + op->number, op->number < q.n ? 1 : 0));
}

/* --- counters --- */

static enum linear_step step_counter(struct step *t)
{
	const struct moving_op *op = t->op;

	if (t->choice)
		return LINEAR_END;
	if (op->command == COMMAND_EVINCR) {
		t->s.a = (t->s.a ? t->s.a : 1) + op->number;
		return says_number(t, t->s.a - 1);
	}
	if (op->command == COMMAND_EVCOUNT)
		return says_number(t, t->s.a ? t->s.a - 1 : 0);
	if (!op->replied || !op->got.has_value)
		return !op->replied || !t->s.a ? LINEAR_RIGHT : LINEAR_WRONG;
	return t->s.a && op->got.number == t->s.a - 1 ? LINEAR_RIGHT : LINEAR_WRONG;
}

/* --- other items --- */

static enum linear_step store(struct step *t)
{
	t->s = (struct linear_state){ .a = t->op->text, .c = t->op->exptime };
	return says(t, "STORED");
}

static enum linear_step concatenate(struct step *t)
{
	struct slice text, more = moving_text_of(t->world, t->op->text);
	struct buf whole = BUF_EMPTY;
	size_t at;

	if (!t->s.a)
		return says(t, "NOT_STORED");
	text = moving_text_of(t->world, t->s.a);
	at = t->op->command == COMMAND_APPEND
		? text.n
		: (size_t)((const char *)memchr(text.p, ':', text.n) - text.p) + 1;
	buf_add(&whole, text.p, at);
	buf_add_slice(&whole, more);
	buf_add_slice(&whole, slice_skip(text, at));
	t->s.a = moving_text(t->world, buf_slice(&whole));
	t->s.b = 0;
	buf_free(&whole);
	return says(t, "STORED");
}

static enum linear_step count(struct step *t)
{
	struct slice text, flags;
	uint64_t number = 0, delta = t->op->number;
	char whole[64];

	if (!t->s.a)
		return says(t, "NOT_FOUND");
	text = moving_text_of(t->world, t->s.a);
	flags = slice_cut(&text, ':');
	(void)num_parse_u64(text, &number);
	number = t->op->command == COMMAND_INCR ? number + delta
		: number < delta                ? 0
						: number - delta;
	snprintf(whole, sizeof(whole), "%.*s:%llu", (int)flags.n, flags.p,
		(unsigned long long)number);
	t->s.a = moving_text(t->world, slice_of(whole, strlen(whole)));
	t->s.b = 0;
	return says_number(t, number);
}

/*
 * A client that has the cas id of the item received it in a reply to gets, which precedes this in
 * the order.
 */
static enum linear_step compare(struct step *t)
{
	if (!t->s.a)
		return says(t, "NOT_FOUND");
	if (t->s.b != t->op->cas || !t->op->cas)
		return says(t, "EXISTS");
	return store(t);
}

static enum linear_step answer_item(struct step *t)
{
	const struct moving_op *op = t->op;

	if (op->command == COMMAND_GAT && t->s.a)
		t->s.c = op->exptime;
	if (!op->replied)
		return LINEAR_RIGHT;
	if (!op->got.has_value || !t->s.a)
		return !op->got.has_value && !t->s.a ? LINEAR_RIGHT : LINEAR_WRONG;
	if (op->got.text != t->s.a || (op->got.cas && t->s.b && t->s.b != op->got.cas))
		return LINEAR_WRONG;
	if (op->got.cas)
		t->s.b = op->got.cas;
	return LINEAR_RIGHT;
}

static enum linear_step step_item(struct step *t)
{
	if (t->choice)
		return LINEAR_END;
	switch (t->op->command) {
	case COMMAND_SET:
		return store(t);
	case COMMAND_ADD:
		return t->s.a ? says(t, "NOT_STORED") : store(t);
	case COMMAND_REPLACE:
		return t->s.a ? store(t) : says(t, "NOT_STORED");
	case COMMAND_APPEND:
	case COMMAND_PREPEND:
		return concatenate(t);
	case COMMAND_INCR:
	case COMMAND_DECR:
		return count(t);
	case COMMAND_CAS:
		return compare(t);
	default:
		return answer_item(t);
	}
}

/* --- all of them --- */

static enum linear_step step_event(struct step *t)
{
	if (t->choice)
		return LINEAR_END;
	if (t->op->final)
		return is_final(t);
	if (t->op->lost)
		t->s = (struct linear_state){ 0 };
	else
		t->s.b = t->world->keys[t->op->key].kind == MOVING_SET ? t->s.b : 0;
	return LINEAR_RIGHT;
}

static enum linear_step step(struct step *t)
{
	command_id command = t->op->command;

	if (t->op->final || t->op->lost || t->op->moved)
		return step_event(t);
	if (command == COMMAND_TOUCH || command == COMMAND_DELETE || command == COMMAND_SCOMPACT) {
		if (t->choice)
			return LINEAR_END;
		return command == COMMAND_TOUCH     ? touch(t)
			: command == COMMAND_DELETE ? remove_item(t)
						    : compact(t);
	}
	switch (t->world->keys[t->op->key].kind) {
	case MOVING_SET:
		return step_set(t);
	case MOVING_LIST_KEY:
		return step_list(t);
	case MOVING_COUNTER:
		return step_counter(t);
	default:
		return step_item(t);
	}
}

enum linear_step moving_step_item(struct moving *w, const struct moving_op *op, uint64_t *item)
{
	struct step t = { w, op, { .a = *item }, 0 };
	enum linear_step result = step(&t);

	*item = t.s.a;
	return result;
}

/* A history of one key. */
struct key_history {
	struct moving *world;
	struct moving_op *ops[LINEAR_OPS];
	struct linear_op times[LINEAR_OPS];
	size_t count;
	bool undone; /* see moving_undone.c */
};

static enum linear_step step_of(void *arg, size_t op, const struct linear_state *before,
	unsigned choice, struct linear_state *after)
{
	const struct key_history *h = arg;
	struct step t = { h->world, h->ops[op], *before, choice };
	enum linear_step result;

	if (h->undone)
		return moving_step_undone(h->world, h->ops[op], before, choice, after);
	result = step(&t);
	*after = t.s;
	return result;
}

static void tell(const struct key_history *h, uint64_t furthest)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct moving_op *op = h->ops[i];
		printf("%c %6llu to %6llu client %d%s: %.*s -> %.*s\n",
			furthest & UINT64_C(1) << i ? ' ' : '*', (unsigned long long)op->asked,
			(unsigned long long)op->replied, op->client,
			op->former ? " at the former ring" : "", (int)buf_size(&op->line),
			op->line.data, (int)buf_size(&op->reply), op->reply.data);
		if (op->final)
			printf("  at the end it lives %s%llu seconds\n",
				op->got.is_number ? "" : "no ", (unsigned long long)op->got.number);
		else if (op->lost || op->moved)
			printf("  %s\n",
				op->lost ? "it may be lost" : "it may have another cas id");
	}
}

static bool only_reads(const struct moving_op *op)
{
	if (op->lost || op->moved)
		return false;
	switch (op->command) {
	case COMMAND_GET:
	case COMMAND_SMEMBERS:
	case COMMAND_SCARD:
	case COMMAND_SISMEMBER:
	case COMMAND_LLEN:
	case COMMAND_LRANGE:
	case COMMAND_LINDEX:
	case COMMAND_EVCOUNT:
	case COMMAND_SCOMPACT:
		return true;
	default:
		return op->final;
	}
}

/*
 * Returns whether a proxy with the old configuration has the key on another server than the
 * others.
 */
static bool has_two_places(const struct moving *w, const struct moving_key *k)
{
	const struct moving_config *c = &w->configs[1];
	struct slice name = slice_of(k->name, strlen(k->name));

	return w->forgotten >= 0 && moving_place(&c->former, name) != moving_place(&c->ring, name);
}

void moving_check_key(struct moving *w, int key)
{
	struct moving_key *k = &w->keys[key];
	struct key_history h = { .world = w, .undone = has_two_places(w, k) };
	struct linear linear = { .ops = h.times, .step = step_of, .arg = &h };
	enum linear_result result;

	if (k->kind == MOVING_DATED)
		return;
	for (size_t i = 0; i < k->count; i++) {
		struct moving_op *op = k->ops[i];
		bool reads = only_reads(op);
		/*
		 * A read without a reply shows nothing; nor does another cas id, if no client
		 * compares it.
		 */
		if ((!op->replied && (reads || op->command == COMMAND_GETS)) ||
			(op->moved && w->stale))
			continue;
		h.ops[h.count] = op;
		h.times[h.count++] =
			(struct linear_op){ op->asked, op->replied, op->replied != 0, reads };
	}
	linear.count = h.count;
	result = linear_check(&linear);
	w->undecided += result == LINEAR_UNDECIDED;
	if (result != LINEAR_NO)
		return;
	if (w->lan.verbose)
		tell(&h, linear.furthest);
	moving_fail(w, "no order of its commands explains what clients have seen", "%s", k->name);
}
