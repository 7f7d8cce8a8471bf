/* The checks of sets in oplog: of the stored bytes after each executed call, and of each reply. */
#include "lists.h"
#include "protocol/commands.h"
#include "stored_set.h"
#include "wording.h"
#include "world.h"

/*
 * Records whether the set exists. Its stored members must be the true ones; if an item is missing,
 * this holds for the members stored before.
 */
static void check_stored(struct world *w, int key)
{
	struct truth_set *set = &w->truth.sets[key];
	bool members[SIM_MEMBERS];
	uint32_t dates[SIM_MEMBERS];
	enum stored_state state = stored_set_read(w, key, members, dates);

	leases_check(w, key, state);
	if (state == STORED_MISSING || state == STORED_LOADING) {
		truth_wipe(&w->truth, key);
		return;
	}
	if (state == STORED_LOST && !truth_at(&set->absent, w->truth.tick) && !w->evictions)
		world_fail(w, "an item of a set is gone that nobody evicted", "key %d", key);
	truth_set_absent(&w->truth, key, state == STORED_LOST);
	truth_set_gone(&w->truth, key, false);
	if (expiring_is_same(w, key, members, dates))
		expiring_drop(w, key, members);
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (members[m] != set->in[m] || dates[m] != set->dates[m])
			world_fail(w, "the stored set is another than was written",
				"key %d member %d is %d until %u", key, m, members[m],
				(unsigned)dates[m]);
		if (members[m] && !w->ever_added[key][m])
			world_fail(w, "a member that was never added", "key %d member %d", key, m);
	}
}

void check_time(struct world *w)
{
	truth_begin_tick(&w->truth, world_now(w));
	for (int key = 0; key < SIM_KEYS; key++)
		check_stored(w, key);
	lists_time(w);
}

static bool holds(struct slice log, struct slice part)
{
	const char *at = log.p;

	while ((at = memmem(at, log.n - (size_t)(at - log.p), part.p, part.n))) {
		if (at == log.p || at[-1] == ' ')
			return true;
		at++;
	}
	return false;
}

/*
 * Finds the commands whose log is a part of this one. Another command may have the same log. But a proxy writes the logs of a key
 * one after the other, so the last match before the acknowledgement is right.
 */
static void match(struct world *w, const struct message *message, int key, struct slice log)
{
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->ended || op->proxy != message->proxy || op->key != key ||
			buf_size(&op->log) == 0 || !holds(log, buf_slice(&op->log)))
			continue;
		op->log_executed = true;
		w->executed[op->number] = w->truth.tick;
	}
}

/* A member was added by a CAS or ADD: that may grant one claim, and the member must not have been there. */
static void grant_claim(struct world *w, const struct message *message, int key, int member)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_SCLAIM && op->key == key && op->members[member] &&
			op->proxy == message->proxy) {
			w->granted[key][member]++;
			if (message->call.verb == CALL_CAS && w->truth.sets[key].in[member] &&
				!expiring_may_drop(w, key, w->truth.sets[key].dates[member]))
				world_fail(w, "a member was claimed that was there",
					"key %d member %d", key, member);
			return;
		}
	}
}

static void apply_tokens(struct world *w, const struct message *message, int key, struct slice log)
{
	struct slice token;

	match(w, message, key, log);
	if (note(message)->expires)
		expiring_executed(w, message, key, log);
	while ((token = slice_token(&log)).n) {
		bool added = token.p[0] == '+';
		struct slice word = slice_skip(token, 1);
		uint32_t date = stored_take_date(&word);
		int member = truth_member(wording_name(word, false));
		if (token.p[0] == '@' || token.p[0] == '~')
			continue;
		if (member < 0) {
			world_fail(w, "a token that nobody wrote", "%.*s", (int)token.n, token.p);
			return;
		}
		if (message->call.verb != CALL_APPEND && added && !note(message)->expires)
			grant_claim(w, message, key, member);
		if (added)
			expiring_check_date(w, key, member, date);
		if (leases_word(w, key, member, added, date))
			continue;
		if (added)
			truth_add_dated(&w->truth, key, member, date);
		else
			truth_set_member(&w->truth, key, member, false);
	}
}

bool check_is_sset(struct world *w, int key, const bool *members)
{
	struct sim_op *op;
	bool found = false;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command != COMMAND_SSET || op->key != key)
			continue;
		if (members && memcmp(op->members, members, sizeof(op->members)) != 0)
			continue;
		op->executed[0] = found = true;
		if (members)
			break;
	}
	return found;
}

static void take_over(struct world *w, int key, const bool members[SIM_MEMBERS],
	const uint32_t dates[SIM_MEMBERS])
{
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (members[m]) {
			expiring_check_date(w, key, m, dates[m]);
			truth_add_dated(&w->truth, key, m, dates[m]);
		} else {
			truth_set_member(&w->truth, key, m, false);
		}
	}
}

/*
 * Applies the words that a write has added to the base `before`, if `applies`. Returns false if it
 * did more.
 */
static bool add_words(
	struct world *w, const struct message *message, int key, struct slice before, bool applies)
{
	struct buf old = BUF_EMPTY, new = BUF_EMPTY;
	bool longer;

	lives_add_undated(before, &old);
	lives_add_undated(message->call.value, &new);
	longer = slice_starts(buf_slice(&new), buf_slice(&old));
	if (longer && applies)
		apply_tokens(w, message, key, slice_skip(buf_slice(&new), buf_size(&old)));
	buf_free(&old);
	buf_free(&new);
	return longer;
}

/* Checks a base that was written whole: created, rewritten, replaced by an sset, or with a longer log. */
static void check_written(
	struct world *w, const struct message *message, int key, struct slice before)
{
	bool members[SIM_MEMBERS], adds, same;
	uint32_t dates[SIM_MEMBERS];
	struct slice value = message->call.value;
	enum stored_state state = stored_set_read(w, key, members, dates);

	if (leases_written(w, message, key, before))
		return;

	/*
	 * It may have been incomplete before. Or an item was evicted: then a read removes the base, or a rewrite refers to an
	 * item that went between its write and the CAS.
	 */
	if (state != STORED_WHOLE && !truth_was(&w->truth.sets[key].absent, w->truth.tick, true) &&
		!w->evictions)
		world_fail(w, "a rewrite that is not whole", "key %d", key);
	if (state == STORED_MISSING) {
		(void)check_is_sset(w, key, NULL);
		return;
	}
	if (message->call.verb == CALL_ADD) {
		take_over(w, key, members, dates);
		apply_tokens(w, message, key, value);
		(void)check_is_sset(w, key, members);
		return;
	}
	if (memcmp(members, w->truth.sets[key].in, sizeof(members)) != 0 &&
		!add_words(w, message, key, before, false) &&
		stakes_written(w, message, key, members))
		return;
	/* Words may set dates that are there already. */
	adds = note(message)->expires || note(message)->claims;
	same = !adds && expiring_is_same(w, key, members, dates);
	if (!adds && check_is_sset(w, key, members))
		take_over(w, key, members, dates);
	else if (!same && !add_words(w, message, key, before, true))
		world_fail(w, "a rewrite changed the set", "key %d", key);
}

/* The base of a list names its segments. A check follows each id. */
static bool list_refers(struct world *w, struct slice key)
{
	struct memcached_item *base = world_find(w, slice_of(key.p, SIM_KEY_SIZE));
	struct slice rest = base ? buf_slice(&base->value) : slice_of("", 0),
		     id = slice_skip(key, SIM_KEY_SIZE + 1);

	for (struct slice token; (token = slice_token(&rest)).n;) {
		if (token.p[0] == '@' && slice_starts(slice_skip(token, 1), id) &&
			token.n > id.n + 1 && token.p[id.n + 1] == '.')
			return true;
	}
	return false;
}

/* An item that a base refers to must stay. */
static void check_segment_deleted(struct world *w, struct slice key)
{
	if (key.p[0] == 'l' ? list_refers(w, key) : stored_set_refers(w, key))
		world_fail(w, "an item was deleted that is referred to", "%.*s", (int)key.n, key.p);
}

/* Items expire when a second begins. */
static void check_second(struct world *w)
{
	if (world_now(w) / 1000 == w->second)
		return;
	w->second = world_now(w) / 1000;
	for (int key = 0; key < SIM_KEYS; key++)
		check_stored(w, key);
	lists_time(w);
}

/* A base is removed when a client requests that, or when it refers to a missing item. */
static void check_removed(struct world *w, const struct message *message, int key, int list)
{
	const struct call *call = &message->call;
	bool whole = key >= 0 ? !truth_at(&w->truth.sets[key].absent, w->truth.tick)
			      : list >= 0 && lists_whole(w, list);

	if (whole &&
		(call->verb == CALL_DELETE ? !note(message)->asked
					   : call->verb == CALL_CAS && call->exptime < 0))
		world_fail(w, "a base was removed that is whole", "%.*s", (int)call->key.n,
			call->key.p);
}

void check_execute(struct world *w, struct message *message)
{
	struct call *call = &message->call;
	int key = world_set(call->key), list = lists_index(call->key);
	struct buf before = BUF_EMPTY;
	struct memcached_item *item, old = { .used = false };
	bool expired;

	truth_begin_tick(&w->truth, world_now(w));
	check_second(w);
	item = world_find(w, call->key);
	if (item) {
		old = *item;
		buf_add_slice(&before, buf_slice(&item->value));
	}
	message->result = memcached_call(&w->lan.servers[message->server], call, world_now(w));
	if (message->result.status == RESULT_DONE)
		check_removed(w, message, key, list);
	if (message->result.status == RESULT_DONE && key >= 0 && call->verb == CALL_DELETE)
		w->deleted[key]++;
	truth_begin_tick(&w->truth, world_now(w));
	old.value = before;
	/* The command is done, even if the rewrite arrived after the end of the base. */
	expired = item && message->result.status == RESULT_DONE && lives_has_expired(w, message);
	if (expired)
		item->expires = 0;
	else
		lives_executed(w, message, &old);
	if (list >= 0) {
		lists_executed(w, message, list, buf_slice(&before));
	} else if (message->result.status == RESULT_DONE) {
		if (key >= 0 && call->verb == CALL_APPEND)
			apply_tokens(w, message, key, call->value);
		else if (key >= 0 && call_stores(call->verb))
			check_written(w, message, key, buf_slice(&before));
		else if (key < 0 && call->key.p[0] == 's' && call_stores(call->verb))
			stored_set_written(w, call->key, call->value);
		else if (key < 0 && call->verb == CALL_DELETE)
			check_segment_deleted(w, call->key);
	}
	if (expired)
		item->expires = call->exptime;
	buf_free(&before);
	if (call->verb == CALL_GET)
		return;
	if (call->key.p[0] == 'l')
		lists_check(w, call->key.p[1] - '0');
	else
		check_stored(w, call->key.p[1] - '0');
}

/* --- replies --- */

static void check_claim_reply(struct sim_op *op)
{
	struct world *w = op->world;
	int member = 0;

	while (!op->members[member])
		member++;
	if (check_says(op, "1") && w->granted[op->key][member]-- == 0)
		world_fail(w, "a claim was granted twice, or not made", "key %d client %d", op->key,
			op->client);
	if (check_says(op, "0") &&
		!check_was(w, op->key, member, check_since(op, op->before[member]), true))
		world_fail(w, "a claim was refused, but nobody made it", "key %d client %d",
			op->key, op->client);
	w->past[op->number].done = op->log_executed;
}

bool check_says(const struct sim_op *op, const char *word)
{
	return slice_starts(buf_slice(&op->reply), slice_of(word, strlen(word)));
}

uint64_t check_since(const struct sim_op *op, size_t before)
{
	uint64_t executed = op->world->executed[before];

	return executed > op->issued ? executed : op->issued;
}

static void check_stored_reply(struct sim_op *op)
{
	struct world *w = op->world;

	if (op->command == COMMAND_SSET ? !op->executed[0] : !op->log_executed)
		world_fail(w, "acknowledged, but not done", "key %d client %d: %.*s", op->key,
			op->client, (int)buf_size(&op->log), op->log.data);
	w->past[op->number].done = op->log_executed;
}

/* Each delete that is reported as done removed a set of its own. */
static void check_deleted(struct sim_op *op)
{
	unsigned *deleted = &op->world->deleted[op->key];

	if (*deleted)
		--*deleted;
	else if (!op->world->form || !form_was_evicted(op))
		world_fail(op->world, "two deletes of one set", "key %d client %d", op->key,
			op->client);
}

static bool is_read(command_id command)
{
	enum order_class order = command_get(command)->order;

	return order == ORDER_READ || order == ORDER_READ_SETS || order == ORDER_READ_BLOCKS ||
		command == COMMAND_SPOP || command == COMMAND_STAKE;
}

void check_reply(struct sim_op *op)
{
	struct world *w = op->world;

	truth_begin_tick(&w->truth, world_now(w));
	if (!w->form)
		lives_reply(op);
	if (network_excuses(op))
		return;
	if (check_says(op, "CLIENT_ERROR") || check_says(op, "ERROR")) {
		world_fail(w, "an error that makes no sense", "%.*s", (int)buf_size(&op->reply),
			op->reply.data);
	} else if (check_says(op, "SERVER_ERROR")) {
		w->failures++;
	} else if (op->command == COMMAND_STAKE && check_says(op, "VALUE") && !w->form) {
		return;
	} else if (leases_reply(op)) {
		return;
	} else if (op->command == COMMAND_SEXPIRE && !check_says(op, "NOT_FOUND")) {
		expiring_reply(op);
	} else if (op->command == COMMAND_SCLAIM && !check_says(op, "NOT_FOUND")) {
		check_claim_reply(op);
	} else if (check_says(op, "STORED") ||
		(check_says(op, "DELETED") && op->command == COMMAND_SREM)) {
		if (w->form)
			form_stored(op);
		else
			check_stored_reply(op);
	} else if (check_says(op, "TOUCHED")) {
		if (!w->form && !truth_was(&w->truth.sets[op->key].absent, op->issued, false) &&
			!leases_ran(w, op->key, op->issued))
			world_fail(w, "a set is touched that is lost", "key %d client %d", op->key,
				op->client);
	} else if (check_says(op, "DELETED")) {
		check_deleted(op);
	} else if (is_read(op->command)) {
		check_answer(op);
	} else if (check_says(op, "NOT_FOUND")) {
		if (!truth_was(
			    &w->truth.sets[op->key].absent, check_since(op, op->before_any), true))
			world_fail(w, "a set is not found that was there all the time", "key %d",
				op->key);
	}
}
