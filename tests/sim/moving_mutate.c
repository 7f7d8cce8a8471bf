/* The bugs of movings.def. */
#include "collection/move/mark.h"
#include "expiring.h"
#include "moving.h"
#include "protocol/commands.h"

/* The calls of moves; GUARD is the read of a guard. */
enum { LOOK = 0, GUARD = WANT_CAS, ALL = WANT_VALUE | WANT_CAS | WANT_TTL };

/* Whether the message goes to the former server of a key that moves, after the time. */
static bool is_to_former(const struct moving *w, const struct message *m)
{
	const struct moving_config *c = m->proxy ? &moving_generation(m)->config : NULL;
	int former;

	if (!c || !c->moves || ((int64_t)moving_now(w) + m->proxy->skew) / 1000 < c->at)
		return false;
	former = moving_place(&c->former, m->call.key);
	return m->server == former && former != moving_place(&c->ring, m->call.key);
}

static bool begins(const struct message *m, enum call_verb verb, struct slice text)
{
	return m->call.verb == verb && slice_starts(m->call.value, text);
}

/* Whether it deletes an item by its cas id. */
static bool is_deletion(const struct message *m)
{
	return m->call.verb == CALL_CAS && m->call.value.n == 0 && m->call.exptime == -1;
}

/* Whether it makes a marked copy the item. */
static bool is_end(struct moving *w, const struct message *m)
{
	const struct memcached_item *item;

	if (m->call.verb != CALL_CAS || m->call.flags == MARK_FLAGS || m->call.value.n == 0)
		return false;
	item = moving_item(w, m->server, m->call.key);
	return item && item->flags == MARK_FLAGS;
}

/*
 * Turns data that was appended to a claim into an item, where it should be dropped. Returns false
 * if it is not dropped, or if there is none.
 */
static bool keep_words(struct moving *w, struct message *m)
{
	struct memcached_item *item = moving_item(w, m->server, m->call.key);
	struct mark mark;
	struct buf words = BUF_EMPTY;

	if (!is_deletion(m) || !item || item->cas != m->call.number)
		return false;
	mark = mark_read(m->call.key, item->flags, buf_slice(&item->value));
	if (mark.kind != MARK_CLAIM || mark.before.n + mark.behind.n == 0)
		return false;
	buf_add_slice(&words, mark.before);
	buf_add_slice(&words, mark.behind);
	buf_free(&item->value);
	item->value = words;
	item->flags = 0;
	item->expires = 0;
	item->cas = ++w->lan.servers[m->server].cas;
	return true;
}

/* Whether it copies a part: the same is on the former server. */
static bool is_part_copy(struct moving *w, const struct message *m)
{
	const struct moving_config *c = m->proxy ? &moving_generation(m)->config : NULL;
	const struct memcached_item *item;
	bool is_part;

	(void)moving_base(m->call.key, &is_part);
	if (!is_part || m->call.verb != CALL_ADD || !c || !c->moves)
		return false;
	item = moving_item(w, moving_place(&c->former, m->call.key), m->call.key);
	return item && moving_place(&c->former, m->call.key) != m->server &&
		slice_equal(buf_slice(&item->value), m->call.value);
}

void moving_mutate_sent(struct moving *w, struct message *m)
{
	switch (w->mutation) {
	case MOVING_BLIND_GUARD:
		if (is_deletion(m) && !is_to_former(w, m))
			m->call.verb = CALL_DELETE, m->answered = false;
		break;
	case MOVING_BLIND_COPY:
		if (begins(m, CALL_CAS, SLICE("@copy.")))
			m->call.verb = CALL_SET, m->answered = false;
		break;
	case MOVING_NO_TTL:
		if (begins(m, CALL_CAS, SLICE("@copy.")))
			m->call.exptime = 0;
		break;
	case MOVING_MEMBER_DATES:
	case MOVING_PAST_DATES:
		if (begins(m, CALL_CAS, SLICE("@copy.")))
			expiring_change_dates(m->call.value, w->mutation == MOVING_PAST_DATES);
		break;
	case MOVING_BLIND_DELETION:
		if (is_deletion(m) && is_to_former(w, m))
			m->call.verb = CALL_DELETE;
		break;
	default:
		break;
	}
}

static struct memcached_item *item_on_new(struct moving *w, const struct message *m)
{
	return moving_item(
		w, moving_place(&moving_generation(m)->config.ring, m->call.key), m->call.key);
}

/* When the item on the former server is deleted, that on the new one becomes it. */
static void let_former_win(struct moving *w, const struct message *m)
{
	const struct memcached_item *former = moving_item(w, m->server, m->call.key);
	struct memcached_item *item;
	int key = moving_find_key(w, m->call.key);

	if (!is_deletion(m) || !is_to_former(w, m) || key < 0 || w->keys[key].kind < MOVING_TEXT ||
		!former || former->cas != m->call.number)
		return;
	item = item_on_new(w, m);
	if (!item || mark_read(m->call.key, item->flags, buf_slice(&item->value)).kind != MARK_NONE)
		return;
	item->value.start = item->value.end = 0;
	buf_add_slice(&item->value, buf_slice(&former->value));
	item->flags = former->flags;
}

/* Of two joined logs, puts the one of the former server last. */
static void put_former_last(struct moving *w, struct message *m)
{
	const struct moving_config *c = m->proxy ? &moving_generation(m)->config : NULL;
	const struct memcached_item *former;
	int key = moving_find_key(w, m->call.key);
	struct buf joined = BUF_EMPTY;
	struct slice words;

	if (w->forgotten < 0 || key < 0 || w->keys[key].kind != MOVING_SET ||
		m->call.verb != CALL_CAS || m->call.flags == MARK_FLAGS || !c || !c->moves ||
		is_to_former(w, m))
		return;
	former = moving_item(w, moving_place(&c->former, m->call.key), m->call.key);
	words = former ? buf_slice(&former->value) : slice_of("", 0);
	if (words.n == 0 || *words.p == '@' || !slice_starts(m->call.value, words))
		return;
	buf_add_slice(&joined, slice_skip(m->call.value, words.n));
	buf_add_slice(&joined, words);
	memcpy((char *)m->call.value.p, joined.data + joined.start, buf_size(&joined));
	buf_free(&joined);
}

/* Whether it is a look at the former server, for a delete of a client, of an item that is on the new one. */
static bool is_look_of_removal(struct moving *w, const struct message *m)
{
	int key = moving_find_key(w, m->call.key);
	const struct moving_op *op;

	if (key < 0 || m->call.verb != CALL_GET || m->call.want != LOOK || !is_to_former(w, m) ||
		!item_on_new(w, m))
		return false;
	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->key == key && op->command == COMMAND_DELETE && !op->replied &&
			op->client >= 0 && w->clients[op->client].proxy == m->from)
			return true;
	}
	return false;
}

/* Shows a claim instead of an item that has only its flags. */
static void take_for_claim(struct message *m)
{
	if (m->result.status != RESULT_HIT || m->result.flags != MARK_FLAGS ||
		!(m->call.want & WANT_VALUE) ||
		mark_read(m->call.key, MARK_FLAGS, m->result.value).kind != MARK_NONE)
		return;
	m->value.start = m->value.end = 0;
	mark_add_claim(&m->value, m->call.key);
	m->result.value = buf_slice(&m->value);
}

/* An early read: the reply is the state of the item when it was looked up. */
static bool answer_early(struct moving *w, struct message *m)
{
	int key = moving_find_key(w, m->call.key);
	struct moving_seen *seen = key < 0 ? NULL : &w->seen[m->from][key];

	if (!seen || m->call.verb != CALL_GET || m->call.only_reads || !is_to_former(w, m))
		return false;
	if (m->call.want == ALL && seen->known) {
		m->result = seen->result;
		m->result.value = buf_slice(&seen->value);
		return true;
	}
	if (m->call.want == LOOK) {
		struct call call = m->call;
		call.want = ALL;
		seen->result = memcached_call(&w->lan.servers[m->server], &call, moving_now(w));
		seen->known = seen->result.status == RESULT_HIT;
		seen->value.start = seen->value.end = 0;
		buf_add_slice(&seen->value, seen->result.value);
	}
	return false;
}

bool moving_mutate_execute(struct moving *w, struct message *m)
{
	m->result = (struct result){ .status = RESULT_DONE };
	switch (w->mutation) {
	case MOVING_LOSE_APPEND:
		return m->call.verb == CALL_APPEND && moving_chance(w, 5);
	case MOVING_NO_CLAIM:
		return begins(m, CALL_ADD, SLICE("@claim."));
	case MOVING_EARLY_READ:
		return answer_early(w, m);
	case MOVING_NO_PART:
		return is_part_copy(w, m);
	case MOVING_NO_END:
		return is_end(w, m);
	case MOVING_KEPT_CLAIM:
		return keep_words(w, m);
	case MOVING_NO_FLAGS:
		if (is_end(w, m))
			m->call.flags = 0;
		return false;
	case MOVING_FORMER_WINS:
		let_former_win(w, m);
		return false;
	case MOVING_FORMER_LAST:
		put_former_last(w, m);
		return false;
	case MOVING_BLIND_REMOVAL:
		m->result.status = RESULT_MISS;
		return is_look_of_removal(w, m);
	case MOVING_NEW_FIRST:
		m->result.status = RESULT_MISS;
		return m->call.verb == CALL_GET && m->call.want == LOOK && is_to_former(w, m);
	case MOVING_NEW_READ:
		m->result.status = RESULT_MISS;
		return m->call.verb == CALL_GET && m->call.only_reads && is_to_former(w, m);
	default:
		return false;
	}
}

/* Whether it is a look of a guard that has found a claim. */
static bool guard_sees_claim(struct moving *w, const struct message *m)
{
	const struct memcached_item *item = moving_item(w, m->server, m->call.key);

	return m->call.verb == CALL_GET && m->call.want == GUARD && m->result.flags == MARK_FLAGS &&
		item && slice_starts(buf_slice(&item->value), SLICE("@claim."));
}

void moving_mutate_executed(struct moving *w, struct message *m)
{
	bool is_part;

	if (w->mutation == MOVING_UNSEEN_CLAIM && guard_sees_claim(w, m))
		m->result.flags = 0;
	if (w->mutation == MOVING_FLAGS_ALONE)
		take_for_claim(m);
	if (w->mutation != MOVING_EARLY_PART || m->call.verb != CALL_GET ||
		m->result.status != RESULT_HIT || !is_to_former(w, m))
		return;
	(void)moving_base(m->call.key, &is_part);
	if (is_part) {
		buf_add_slice(&m->value, m->result.value);
		m->result.value = slice_of("", 0);
		memcached_remove(moving_item(w, m->server, m->call.key));
	}
}
