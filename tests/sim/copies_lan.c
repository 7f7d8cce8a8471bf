/* The network and the servers of copies.h, and the programs that wait for answers. */
#include <stdlib.h>
#include <string.h>

#include "copies.h"

/* --- time --- */

static bool is_earlier(const struct copies_event *a, const struct copies_event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void add_event(struct copies_world *w, struct copies_event event)
{
	int i = w->event_count++;

	if (w->event_count == COPIES_EVENTS)
		abort();
	event.number = ++w->numbers;
	for (; i && is_earlier(&event, &w->events[(i - 1) / 2]); i = (i - 1) / 2)
		w->events[i] = w->events[(i - 1) / 2];
	w->events[i] = event;
}

static struct copies_event take_event(struct copies_world *w)
{
	struct copies_event first = w->events[0], last = w->events[--w->event_count];
	int i = 0, child;

	while ((child = 2 * i + 1) < w->event_count) {
		if (child + 1 < w->event_count &&
			is_earlier(&w->events[child + 1], &w->events[child]))
			child++;
		if (!is_earlier(&w->events[child], &last))
			break;
		w->events[i] = w->events[child];
		i = child;
	}
	w->events[i] = last;
	return first;
}

void copies_at(struct copies_world *w, int64_t at,
	void (*run)(struct copies_world *, struct copies_event *), int a, int b)
{
	add_event(w,
		(struct copies_event){
			.at = at > w->now ? at : w->now, .run = run, .a = a, .b = b });
}

static void call_at(struct copies_world *w, int64_t at,
	void (*run)(struct copies_world *, struct copies_event *), struct copies_call *call)
{
	add_event(w, (struct copies_event){ .at = at, .run = run, .call = call });
}

void copies_run(struct copies_world *w)
{
	while (w->event_count && !w->violation) {
		struct copies_event event = take_event(w);
		w->now = event.at > w->now ? event.at : w->now;
		event.run(w, &event);
	}
}

/* --- programs --- */

static bool is_alive(const struct copies_op *op)
{
	return op->life == op->w->proxies[op->proxy].life;
}

void copies_resume(struct copies_op *op)
{
	if (is_alive(op))
		op->run(op);
}

static void copies_on_start(struct copies_world *w, struct copies_event *event)
{
	(void)w;
	copies_resume(event->call->op);
}

struct copies_op *copies_start(struct copies_world *w, int proxy, struct copies_op *parent,
	void (*run)(struct copies_op *))
{
	struct copies_op *op = copies_alloc(w, sizeof(*op));
	struct copies_call *start = copies_alloc(w, sizeof(*start));

	*op = (struct copies_op){ .run = run, .w = w, .parent = parent, .proxy = proxy };
	op->life = w->proxies[proxy].life;
	op->began = w->now;
	start->op = op;
	call_at(w, w->now, copies_on_start, start);
	return op;
}

void copies_end(struct copies_op *op, bool done)
{
	if (!op->parent)
		return;
	op->parent->done = done;
	copies_resume(op->parent);
}

/* --- calls --- */

static void finish_call(struct copies_call *call)
{
	struct copies_op *op = call->op;
	unsigned enough = 0;

	if (!op || call->round != op->round || op->answers[call->slot].status != COPIES_PENDING)
		return;
	op->answers[call->slot] = call->answer;
	op->left--;
	for (unsigned i = 0; i < COPIES_SLOTS; i++)
		enough += op->answers[i].status == COPIES_OK;
	if (op->left && (!op->needed || enough < op->needed))
		return;
	/* Later answers are for calls of a former round. */
	op->round++;
	op->needed = op->left = 0;
	copies_resume(op);
}

static void copies_on_timeout(struct copies_world *w, struct copies_event *event)
{
	struct copies_call failed = *event->call;

	(void)w;
	failed.answer = (struct copies_answer){ .status = COPIES_FAIL };
	finish_call(&failed);
}

static void copies_on_answer(struct copies_world *w, struct copies_event *event)
{
	if (!w->proxies[event->call->proxy].cut[event->call->server])
		finish_call(event->call);
}

static void put(struct copies_world *w, struct copies_server *s, struct slice base)
{
	s->base = base;
	s->cas = ++w->cas;
}

static enum copies_status execute_base(
	struct copies_world *w, struct copies_server *s, struct copies_call *call)
{
	bool missing = !s->base.p;

	switch (call->verb) {
	case COPIES_APPEND:
		if (missing)
			return COPIES_MISS;
		put(w, s, copies_append(w, s->base, call->value));
		if (w->now - call->sent > COPIES_SETTLED)
			w->marks[MARK_late_words]++;
		return COPIES_OK;
	case COPIES_GET:
		call->answer.value = s->base;
		call->answer.cas = s->cas;
		return COPIES_OK;
	case COPIES_ADD:
		if (!missing && copies_is_gone(s->base) && !copies_is_gone(call->value))
			w->marks[MARK_deleted_refills]++;
		if (!missing)
			return COPIES_EXISTS;
		put(w, s, call->value);
		return COPIES_OK;
	case COPIES_CAS:
		if (missing || s->cas != call->cas)
			return COPIES_EXISTS;
		put(w, s, call->value);
		return COPIES_OK;
	case COPIES_SET:
		put(w, s, call->value);
		return COPIES_OK;
	default:
		if (missing || (call->cas && s->cas != call->cas))
			return missing ? COPIES_MISS : COPIES_EXISTS;
		put(w, s, (struct slice){ NULL, 0 });
		return COPIES_OK;
	}
}

static enum copies_status execute(struct copies_world *w, struct copies_call *call)
{
	struct copies_server *s = &w->servers[call->server];

	switch (call->verb) {
	case COPIES_ADD_TABLE:
		s->has_table[call->which] = true;
		s->tables[call->which] = (unsigned)call->number;
		return COPIES_OK;
	case COPIES_GET_TABLE:
		call->answer.table = s->tables[call->which];
		return s->has_table[call->which] ? COPIES_OK : COPIES_MISS;
	case COPIES_DELETE_TABLE:
		s->has_table[call->which] = false;
		return COPIES_OK;
	case COPIES_RAISE:
		if (s->absences[call->which] < call->number)
			s->absences[call->which] = call->number;
		return COPIES_OK;
	case COPIES_READ_ABSENCES:
		memcpy(call->answer.absences, s->absences, sizeof(s->absences));
		return COPIES_OK;
	default:
		return execute_base(w, s, call);
	}
}

static void arrive(struct copies_world *w, struct copies_call *call)
{
	struct copies_server *s = &w->servers[call->server];
	static const unsigned delays[] = { 1, 2, 20 };

	if (s->state == COPIES_HUNG) {
		if (s->waiting < (int)(sizeof(s->inbox) / sizeof(s->inbox[0])))
			s->inbox[s->waiting++] = call;
		return;
	}
	if (s->state == COPIES_DEAD)
		call->answer.status = COPIES_FAIL;
	else
		call->answer.status = execute(w, call);
	if (call->verb != COPIES_GET && call->server < 2)
		copies_trace(w, "server %d: verb %d from proxy %d: %d: %.*s", call->server,
			call->verb, call->proxy, call->answer.status, (int)s->base.n,
			s->base.n ? s->base.p : "");
	if (!call->late)
		call_at(w, w->now + delays[copies_below(w, 3)], copies_on_answer, call);
}

static void copies_on_arrival(struct copies_world *w, struct copies_event *event)
{
	arrive(w, event->call);
}

/* A call over a cut connection is lost, or arrives long after it has failed. */
static void send_call(struct copies_world *w, struct copies_call *call)
{
	static const unsigned delays[] = { 1, 1, 2, 5, 30 }, late[] = { 60, 400, 2000 };

	call_at(w, w->now + COPIES_TIMEOUT, copies_on_timeout, call);
	if (!w->proxies[call->proxy].cut[call->server]) {
		call_at(w, w->now + delays[copies_below(w, 5)], copies_on_arrival, call);
	} else if (copies_below(w, 10) < 3) {
		call->late = true;
		call_at(w, w->now + late[copies_below(w, 3)], copies_on_arrival, call);
	}
}

static void copies_on_sending(struct copies_world *w, struct copies_event *event)
{
	struct copies_call *call = event->call;

	if (!is_alive(call->op))
		return;
	if (call->verb != COPIES_SLEEP) {
		send_call(w, call);
		return;
	}
	call->answer.status = COPIES_OK;
	call_at(w, w->now + (int64_t)call->number, copies_on_answer, call);
}

struct copies_call *copies_call(
	struct copies_op *op, unsigned slot, int server, enum copies_verb verb)
{
	static const unsigned queued[] = { 60, 250, 600 };
	struct copies_call *call = copies_alloc(op->w, sizeof(*call));
	unsigned wait;

	if (!op->left)
		memset(op->answers, 0, sizeof(op->answers));
	op->left++;
	*call = (struct copies_call){ .op = op,
		.slot = slot,
		.round = op->round,
		.server = server,
		.proxy = op->proxy,
		.verb = verb,
		.sent = op->w->now };
	/* The caller completes it first. Some calls are queued, and their timeout begins later. */
	wait = !op->w->queues || copies_below(op->w, 40) ? 0 : queued[copies_below(op->w, 3)];
	call_at(op->w, op->w->now + wait, copies_on_sending, call);
	return call;
}

bool copies_has_late_append(const struct copies_world *w)
{
	for (int i = 0; i < w->event_count; i++) {
		const struct copies_call *call = w->events[i].call;
		if (w->events[i].run == copies_on_arrival && call->verb == COPIES_APPEND &&
			w->now - call->sent > COPIES_SETTLED)
			return true;
	}
	return false;
}

/* --- faults --- */

void copies_kill(struct copies_world *w, int server)
{
	struct copies_server *s = &w->servers[server];

	copies_trace(w, "server %d killed", server);
	*s = (struct copies_server){ .state = COPIES_DEAD };
	s->cas = ++w->cas;
}

void copies_hang(struct copies_world *w, int server)
{
	copies_trace(w, "server %d hangs", server);
	if (w->servers[server].state == COPIES_UP)
		w->servers[server].state = COPIES_HUNG;
}

void copies_up(struct copies_world *w, int server)
{
	static const unsigned delays[] = { 0, 1, 40 };
	struct copies_server *s = &w->servers[server];

	copies_trace(w, "server %d up", server);
	s->state = COPIES_UP;
	while (s->waiting) {
		unsigned i = copies_below(w, (unsigned)s->waiting);
		struct copies_call *call = s->inbox[i];
		s->inbox[i] = s->inbox[--s->waiting];
		call_at(w, w->now + delays[copies_below(w, 3)], copies_on_arrival, call);
	}
}

void copies_evict(struct copies_world *w, int server)
{
	const struct copies_server *other = &w->servers[1 - server];

	copies_trace(w, "server %d evicts", server);
	put(w, &w->servers[server], (struct slice){ NULL, 0 });
	if (other->state != COPIES_UP || w->cut_until > w->now)
		w->marks[MARK_evicted_alone]++;
}

void copies_kill_proxy(struct copies_world *w, int proxy)
{
	struct copies_proxy *p = &w->proxies[proxy];

	copies_trace(w, "proxy %d killed", proxy);
	for (int i = 0; i < w->event_count; i++) {
		const struct copies_call *call = w->events[i].call;
		if (w->events[i].run == copies_on_arrival && call->proxy == proxy &&
			call->verb == COPIES_APPEND) {
			w->marks[MARK_half_written]++;
			break;
		}
	}
	p->life++;
	p->clock.last = 0;
	p->absences_read = 0;
	memset(p->raised, 0, sizeof(p->raised));
}
