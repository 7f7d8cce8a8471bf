/* The network and the servers of model.h, and the programs that wait for answers. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* --- time --- */

static bool is_earlier(const struct model_event *a, const struct model_event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void add_event(struct model_world *w, struct model_event event)
{
	int i = w->event_count++;

	if (w->event_count == MODEL_EVENTS)
		abort();
	event.number = ++w->numbers;
	for (; i && is_earlier(&event, &w->events[(i - 1) / 2]); i = (i - 1) / 2)
		w->events[i] = w->events[(i - 1) / 2];
	w->events[i] = event;
}

static struct model_event take_event(struct model_world *w)
{
	struct model_event first = w->events[0], last = w->events[--w->event_count];
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

void model_at(struct model_world *w, int64_t at,
	void (*run)(struct model_world *, struct model_event *), int a, int b)
{
	add_event(w,
		(struct model_event){
			.at = at > w->now ? at : w->now, .run = run, .a = a, .b = b });
}

static void call_at(struct model_world *w, int64_t at,
	void (*run)(struct model_world *, struct model_event *), struct model_call *call)
{
	add_event(w, (struct model_event){ .at = at, .run = run, .call = call });
}

void model_run(struct model_world *w)
{
	while (w->event_count && !w->violation) {
		struct model_event event = take_event(w);
		w->now = event.at > w->now ? event.at : w->now;
		event.run(w, &event);
	}
}

/* --- programs --- */

static bool is_alive(const struct model_op *op)
{
	return op->life == op->w->proxies[op->proxy].life;
}

void model_resume(struct model_op *op)
{
	if (is_alive(op))
		op->run(op);
}

static void model_on_start(struct model_world *w, struct model_event *event)
{
	(void)w;
	model_resume(event->call->op);
}

struct model_op *model_start(
	struct model_world *w, int proxy, struct model_op *parent, void (*run)(struct model_op *))
{
	struct model_op *op = model_alloc(w, sizeof(*op));
	struct model_call *start = model_alloc(w, sizeof(*start));

	*op = (struct model_op){ .run = run, .w = w, .parent = parent, .proxy = proxy };
	op->life = w->proxies[proxy].life;
	op->began = w->now;
	start->op = op;
	call_at(w, w->now, model_on_start, start);
	return op;
}

void model_end(struct model_op *op, bool done)
{
	if (!op->parent)
		return;
	op->parent->done = done;
	model_resume(op->parent);
}

/* --- calls --- */

static void finish_call(struct model_call *call)
{
	struct model_op *op = call->op;
	unsigned enough = 0;

	if (!op || call->round != op->round || op->answers[call->slot].status != MODEL_PENDING)
		return;
	op->answers[call->slot] = call->answer;
	op->left--;
	for (unsigned i = 0; i < MODEL_SLOTS; i++)
		enough += op->answers[i].status == MODEL_OK;
	if (op->left && (!op->needed || enough < op->needed))
		return;
	/* Later answers are for calls of a former round. */
	op->round++;
	op->needed = op->left = 0;
	model_resume(op);
}

static void model_on_timeout(struct model_world *w, struct model_event *event)
{
	struct model_call failed = *event->call;

	(void)w;
	failed.answer = (struct model_answer){ .status = MODEL_FAIL };
	finish_call(&failed);
}

static void model_on_answer(struct model_world *w, struct model_event *event)
{
	if (!w->proxies[event->call->proxy].cut[event->call->server])
		finish_call(event->call);
}

static void put(struct model_world *w, struct model_server *s, struct slice base)
{
	s->base = base;
	s->cas = ++w->cas;
}

static enum model_status execute_base(
	struct model_world *w, struct model_server *s, struct model_call *call)
{
	bool missing = !s->base.p;

	switch (call->verb) {
	case MODEL_APPEND:
		if (missing)
			return MODEL_MISS;
		put(w, s, model_append(w, s->base, call->value));
		if (w->now - call->sent > MODEL_SETTLED)
			w->marks[MARK_late_words]++;
		return MODEL_OK;
	case MODEL_GET:
		call->answer.value = s->base;
		call->answer.cas = s->cas;
		return MODEL_OK;
	case MODEL_ADD:
		if (!missing && model_is_gone(s->base) && !model_is_gone(call->value))
			w->marks[MARK_deleted_refills]++;
		if (!missing)
			return MODEL_EXISTS;
		put(w, s, call->value);
		return MODEL_OK;
	case MODEL_CAS:
		if (missing || s->cas != call->cas)
			return MODEL_EXISTS;
		put(w, s, call->value);
		return MODEL_OK;
	case MODEL_SET:
		put(w, s, call->value);
		return MODEL_OK;
	default:
		if (missing || (call->cas && s->cas != call->cas))
			return missing ? MODEL_MISS : MODEL_EXISTS;
		put(w, s, (struct slice){ NULL, 0 });
		return MODEL_OK;
	}
}

static enum model_status execute(struct model_world *w, struct model_call *call)
{
	struct model_server *s = &w->servers[call->server];

	switch (call->verb) {
	case MODEL_ADD_TABLE:
		s->has_table[call->which] = true;
		s->tables[call->which] = (unsigned)call->number;
		return MODEL_OK;
	case MODEL_GET_TABLE:
		call->answer.table = s->tables[call->which];
		return s->has_table[call->which] ? MODEL_OK : MODEL_MISS;
	case MODEL_DELETE_TABLE:
		s->has_table[call->which] = false;
		return MODEL_OK;
	case MODEL_RAISE:
		if (s->absences[call->which] < call->number)
			s->absences[call->which] = call->number;
		return MODEL_OK;
	case MODEL_READ_ABSENCES:
		memcpy(call->answer.absences, s->absences, sizeof(s->absences));
		return MODEL_OK;
	default:
		return execute_base(w, s, call);
	}
}

static void arrive(struct model_world *w, struct model_call *call)
{
	struct model_server *s = &w->servers[call->server];
	static const unsigned delays[] = { 1, 2, 20 };

	if (s->state == MODEL_HUNG) {
		if (s->waiting < (int)(sizeof(s->inbox) / sizeof(s->inbox[0])))
			s->inbox[s->waiting++] = call;
		return;
	}
	if (s->state == MODEL_DEAD)
		call->answer.status = MODEL_FAIL;
	else
		call->answer.status = execute(w, call);
	if (call->verb != MODEL_GET && call->server < 2)
		model_trace(w, "server %d: verb %d from proxy %d: %d: %.*s", call->server,
			call->verb, call->proxy, call->answer.status, (int)s->base.n,
			s->base.n ? s->base.p : "");
	if (!call->late)
		call_at(w, w->now + delays[model_below(w, 3)], model_on_answer, call);
}

static void model_on_arrival(struct model_world *w, struct model_event *event)
{
	arrive(w, event->call);
}

/* A call over a cut connection is lost, or arrives long after it has failed. */
static void send_call(struct model_world *w, struct model_call *call)
{
	static const unsigned delays[] = { 1, 1, 2, 5, 30 }, late[] = { 60, 400, 2000 };

	call_at(w, w->now + MODEL_TIMEOUT, model_on_timeout, call);
	if (!w->proxies[call->proxy].cut[call->server]) {
		call_at(w, w->now + delays[model_below(w, 5)], model_on_arrival, call);
	} else if (model_below(w, 10) < 3) {
		call->late = true;
		call_at(w, w->now + late[model_below(w, 3)], model_on_arrival, call);
	}
}

static void model_on_sending(struct model_world *w, struct model_event *event)
{
	struct model_call *call = event->call;

	if (!is_alive(call->op))
		return;
	if (call->verb != MODEL_SLEEP) {
		send_call(w, call);
		return;
	}
	call->answer.status = MODEL_OK;
	call_at(w, w->now + (int64_t)call->number, model_on_answer, call);
}

struct model_call *model_call(struct model_op *op, unsigned slot, int server, enum model_verb verb)
{
	static const unsigned queued[] = { 60, 250, 600 };
	struct model_call *call = model_alloc(op->w, sizeof(*call));
	unsigned wait;

	if (!op->left)
		memset(op->answers, 0, sizeof(op->answers));
	op->left++;
	*call = (struct model_call){ .op = op,
		.slot = slot,
		.round = op->round,
		.server = server,
		.proxy = op->proxy,
		.verb = verb,
		.sent = op->w->now };
	/* The caller completes it first. Some calls are queued, and their timeout begins later. */
	wait = !op->w->queues || model_below(op->w, 40) ? 0 : queued[model_below(op->w, 3)];
	call_at(op->w, op->w->now + wait, model_on_sending, call);
	return call;
}

bool model_has_late_append(const struct model_world *w)
{
	for (int i = 0; i < w->event_count; i++) {
		const struct model_call *call = w->events[i].call;
		if (w->events[i].run == model_on_arrival && call->verb == MODEL_APPEND &&
			w->now - call->sent > MODEL_SETTLED)
			return true;
	}
	return false;
}

/* --- faults --- */

void model_kill(struct model_world *w, int server)
{
	struct model_server *s = &w->servers[server];

	model_trace(w, "server %d killed", server);
	*s = (struct model_server){ .state = MODEL_DEAD };
	s->cas = ++w->cas;
}

void model_hang(struct model_world *w, int server)
{
	model_trace(w, "server %d hangs", server);
	if (w->servers[server].state == MODEL_UP)
		w->servers[server].state = MODEL_HUNG;
}

void model_up(struct model_world *w, int server)
{
	static const unsigned delays[] = { 0, 1, 40 };
	struct model_server *s = &w->servers[server];

	model_trace(w, "server %d up", server);
	s->state = MODEL_UP;
	while (s->waiting) {
		unsigned i = model_below(w, (unsigned)s->waiting);
		struct model_call *call = s->inbox[i];
		s->inbox[i] = s->inbox[--s->waiting];
		call_at(w, w->now + delays[model_below(w, 3)], model_on_arrival, call);
	}
}

void model_evict(struct model_world *w, int server)
{
	const struct model_server *other = &w->servers[1 - server];

	model_trace(w, "server %d evicts", server);
	put(w, &w->servers[server], (struct slice){ NULL, 0 });
	if (other->state != MODEL_UP || w->cut_until > w->now)
		w->marks[MARK_evicted_alone]++;
}

void model_kill_proxy(struct model_world *w, int proxy)
{
	struct model_proxy *p = &w->proxies[proxy];

	model_trace(w, "proxy %d killed", proxy);
	for (int i = 0; i < w->event_count; i++) {
		const struct model_call *call = w->events[i].call;
		if (w->events[i].run == model_on_arrival && call->proxy == proxy &&
			call->verb == MODEL_APPEND) {
			w->marks[MARK_half_written]++;
			break;
		}
	}
	p->life++;
	p->clock.last = 0;
	p->absences_read = 0;
	memset(p->raised, 0, sizeof(p->raised));
}
