/*
 * The lists of taking.h: the position and number of each element, and the clients that wait for
 * it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/commands.h"
#include "taking.h"
#include "util/num.h"
#include "wording.h"

void taking_lists_init(struct taking *w)
{
	for (int i = 0; i < TAKING_LISTS; i++)
		w->filled[i] = UINT64_MAX;
}

int taking_new_element(struct taking *w)
{
	return w->element_count + 1 < TAKING_ELEMENTS ? ++w->element_count : 0;
}

int taking_element(struct taking *w, struct slice name)
{
	uint32_t number;

	if (name.n > 1 && name.p[0] == 'e' && num_parse_u32(slice_skip(name, 1), &number) &&
		number > 0 && (int)number <= w->element_count)
		return (int)number;
	stage_fail(&w->stage, "an element that nobody named", "%.*s", (int)name.n, name.p);
	return 0;
}

/* --- executed calls --- */

static bool pushes(const struct call *call)
{
	return (call->verb == CALL_APPEND || call->verb == CALL_PREPEND ||
		       call->verb == CALL_ADD) &&
		taking_list(call->key) >= 0;
}

bool taking_is_copy(struct taking *w, const struct call *call)
{
	struct slice rest = call->value, token;

	while (pushes(call) && (token = slice_token(&rest)).n) {
		if (token.p[0] == '+' &&
			w->elements[taking_element(w, wording_name(slice_skip(token, 1), true))]
				.executed)
			return true;
	}
	return false;
}

/* An element, or a segment, which is never empty. */
static bool has_elements(struct slice base)
{
	struct slice token;

	while ((token = slice_token(&base)).n) {
		if (token.p[0] == '+' ||
			(token.p[0] == '@' && !slice_starts(token, SLICE("@list"))))
			return true;
	}
	return false;
}

void taking_list_executed(struct taking *w, const struct message *m, int list)
{
	const struct memcached_item *item = lan_find(&w->stage.lan, m->call.key);
	struct slice rest = m->call.value, token;

	while (pushes(&m->call) && m->result.status == RESULT_DONE &&
		(token = slice_token(&rest)).n) {
		struct taking_element *e;
		if (token.p[0] != '+')
			continue;
		e = &w->elements[taking_element(w, wording_name(slice_skip(token, 1), true))];
		if (e->executed)
			e->copies++;
		else
			e->pushed = stage_now(&w->stage);
		e->executed = true;
	}
	if (!item || !has_elements(buf_slice(&item->value)))
		w->filled[list] = UINT64_MAX;
	else if (w->filled[list] == UINT64_MAX)
		w->filled[list] = stage_now(&w->stage);
}

/* --- replies --- */

static bool is_pop(const struct taking_op *op)
{
	return op->stage.command == COMMAND_LPOP || op->stage.command == COMMAND_RPOP ||
		op->stage.command == COMMAND_BLPOP || op->stage.command == COMMAND_BRPOP;
}

static bool is_push(const struct taking_op *op)
{
	return op->stage.command == COMMAND_LPUSH || op->stage.command == COMMAND_RPUSH;
}

/*
 * Clients that wait for only one list through one proxy are served in their order. It takes a
 * while until one is in the queue.
 */
static void check_line(const struct taking_op *op)
{
	enum { APART = 200 /* milliseconds */ };
	struct taking *w = op->world;
	struct taking_op *other;

	if (op->count != 1 || w->stage.trouble)
		return;
	STAGE_FOREACH(other, w) {
		if (other != op && other->stage.proxy == op->stage.proxy && other->count == 1 &&
			other->keys[0] == op->keys[0] && other->way == TAKING_STAYS &&
			other->stage.deadline > stage_now(&w->stage) &&
			other->stage.issued + APART < op->stage.issued)
			stage_fail(&w->stage, "who came later was served first", "%.*s",
				STAGE_LINE(op));
	}
}

static void got_element(struct taking_op *op, struct slice name)
{
	struct taking *w = op->world;
	struct taking_element *e = &w->elements[taking_element(w, name)];

	w->taken++;
	if (op->way != TAKING_STAYS && e->pushed > op->left + TAKING_GONE)
		stage_fail(&w->stage, "a client got an element that was pushed after it had left",
			"%.*s: %.*s", STAGE_LINE(op), (int)name.n, name.p);
	if (is_pop(op))
		e->delivered++;
	else if (op->from != op->to)
		e->moved++;
	check_line(op);
}

static void acknowledged(struct taking_op *op)
{
	struct slice rest = buf_slice(&op->stage.line), token;

	(void)slice_token(&rest);
	(void)slice_token(&rest);
	rest.n -= 2;
	while ((token = slice_token(&rest)).n)
		op->world->elements[taking_element(op->world, token)].acknowledged = true;
}

/* At the end each proxy reads each list. */
static void read_list(struct taking_op *op)
{
	struct taking *w = op->world;
	struct slice rest = stage_value(buf_slice(&op->stage.reply)), token;

	while (op->stage.client == 0 && (token = slice_token(&rest)).n)
		w->elements[taking_element(w, token)].stored++;
}

void taking_list_answered(struct taking_op *op)
{
	struct taking *w = op->world;
	struct slice reply = buf_slice(&op->stage.reply), value = stage_value(reply);

	if (taking_is_unknown(op)) {
		w->failed_pops += is_pop(op);
		w->failed_moves += !is_pop(op) && !is_push(op);
	} else if (op->stage.command == COMMAND_LRANGE) {
		read_list(op);
	} else if (is_push(op)) {
		acknowledged(op);
	} else if (value.n) {
		got_element(op, value);
	}
}

/* --- waiting clients --- */

/* A poll may be lost in a stalled connection, of any proxy of the process: one polls for all. */
static uint64_t works_since(const struct taking_op *op)
{
	const struct taking_proxy *proxies = op->world->proxies;
	uint64_t since = op->stage.issued;

	for (int i = 0; i < STAGE_PROXIES; i++) {
		if (taking_is_same_process(&proxies[i].stage, op->stage.proxy) &&
			proxies[i].works > since)
			since = proxies[i].works;
	}
	return since;
}

static void check_waiter(const struct taking_op *op)
{
	struct taking *w = op->world;
	uint64_t now = stage_now(&w->stage), works = works_since(op);

	for (int i = 0; i < op->count; i++) {
		uint64_t since = w->filled[op->keys[i]];
		if (since == UINT64_MAX)
			continue;
		since = since < works ? works : since;
		if (now > since + TAKING_BESIDE)
			stage_fail(&w->stage, "a client waits beside a list that has elements",
				"client %d for %llu ms: %.*s", op->stage.client,
				(unsigned long long)(now - since), STAGE_LINE(op));
	}
}

static void check_has_left(const struct taking_op *op)
{
	if (stage_now(&op->world->stage) > op->left + TAKING_GONE)
		stage_fail(&op->world->stage, "a client still waits after it has left",
			"client %d: %.*s", op->stage.client, STAGE_LINE(op));
}

/* The keys of all clients of the same process that have waited, or tried to pop, since then. */
static size_t waiting_since(const struct taking_op *asked, uint64_t since)
{
	const struct taking_op *op;
	size_t count = 0;

	STAGE_FOREACH(op, asked->world) {
		if (op->count && op->stage.issued <= since &&
			taking_is_same_process(op->stage.proxy, asked->stage.proxy))
			count += (size_t)op->count;
	}
	return count;
}

void taking_check_waiters(struct taking *w)
{
	const struct taking_op *op;

	STAGE_FOREACH(op, w) {
		if (!op->count)
			continue;
		if (op->way == TAKING_STAYS)
			check_waiter(op);
		else if (op->way == TAKING_ENDS)
			check_has_left(op);
		/* By then it has tried all its lists, so it waits. */
		if (op->stage.issued + TAKING_BESIDE < stage_now(&w->stage) &&
			waiting_since(op, stage_now(&w->stage) - TAKING_BESIDE) > w->waiting_max)
			stage_fail(&w->stage, "more keys wait than may",
				"%zu may, as those of this client: %.*s", w->waiting_max,
				STAGE_LINE(op));
	}
}

void taking_may_not_wait(const struct taking_op *op)
{
	if (waiting_since(op, stage_now(&op->world->stage)) <= op->world->waiting_max)
		stage_fail(&op->world->stage,
			"a client may not wait, although fewer keys wait than may", "%zu may: %.*s",
			op->world->waiting_max, STAGE_LINE(op));
}

/* --- when all is over --- */

static void read_all(struct taking *w)
{
	for (int client = 0; client < STAGE_PROXIES && !w->stage.violation; client++) {
		for (int list = 0; list < TAKING_LISTS && !w->stage.violation; list++) {
			char line[32];
			snprintf(line, sizeof(line), "lrange %s 0 -1", taking_list_key(list));
			taking_ask(w, client, COMMAND_LRANGE, line);
			stage_settle(&w->stage);
		}
	}
}

/* How often it is there beyond once. */
static uint64_t check_element(struct taking *w, int number, uint64_t *missing)
{
	const struct taking_element *e = &w->elements[number];
	int total = e->stored + e->delivered, left = e->copies - e->moved;

	if (e->acknowledged && !e->executed)
		stage_fail(&w->stage, "a push was acknowledged and not executed", "e%d", number);
	if (!e->executed && total)
		stage_fail(&w->stage, "an element is there that was not pushed", "e%d", number);
	if (!e->executed)
		return 0;
	if (total == 0) {
		++*missing;
		if (*missing > w->failed_pops)
			stage_fail(&w->stage, "an element was lost", "e%d", number);
		return 0;
	}
	if (total - 1 > (left > 0 ? left : 0))
		stage_fail(&w->stage, "an element was handed out more than once",
			"e%d: %d in lists, %d popped; %d copies, %d moves of it were answered",
			number, e->stored, e->delivered, e->copies, e->moved);
	return (uint64_t)total - 1;
}

void taking_check_lists(struct taking *w)
{
	uint64_t missing = 0, extra = 0, most = w->stage.trouble ? w->failed_moves : 0;

	read_all(w);
	for (int e = 1; e <= w->element_count && !w->stage.violation; e++) {
		uint64_t before = extra;
		extra += check_element(w, e, &missing);
		if (extra > most && extra > before && w->kind != TAKING_SHARED)
			stage_fail(&w->stage, "an element is there twice",
				"e%d, and %llu commands have failed", e,
				(unsigned long long)w->failed_moves);
	}
	w->left = extra;
}
