/* The bugs of takings.def. */
#include "expiring.h"
#include "taking.h"

/* Whether there is an addition of a member that moves. */
static bool adds_moved(const struct call *call)
{
	return call->verb == CALL_APPEND && taking_set_number(call->key) >= 0 &&
		slice_starts(call->value, SLICE("+m"));
}

static bool is_part_of_target(const struct call *call)
{
	return call->verb == CALL_ADD && call->key.n > 2 && call->key.p[0] == 't';
}

static uint64_t later(struct taking *w)
{
	return 5000 + stage_random(&w->stage, 20000);
}

void taking_mutate_sent(struct lan *lan, struct message *m)
{
	struct taking *w = lan->arg;

	switch (w->mutation) {
	case TAKING_TAKE_FIRST:
		if (taking_is_copy(w, &m->call) && lan_find(lan, m->call.key))
			lan_acknowledge(lan, m, later(w));
		break;
	case TAKING_REMOVE_FIRST:
		if (adds_moved(&m->call) && lan_find(lan, m->call.key))
			lan_acknowledge(lan, m, later(w));
		break;
	case TAKING_SMOVE_DATE:
		if (adds_moved(&m->call))
			expiring_change_dates(m->call.value, false);
		break;
	case TAKING_EARLY_STORE:
		if (is_part_of_target(&m->call))
			lan_acknowledge(lan, m, later(w));
		break;
	case TAKING_LIST_SET:
		if (m->call.verb == CALL_CAS && taking_list(m->call.key) >= 0 &&
			m->call.exptime >= 0)
			m->call.verb = CALL_SET;
		break;
	default:
		break;
	}
}

/* Elements of a base that has no segments; -1 if it has some. */
static int count(struct slice base)
{
	struct slice token;
	int elements = 0;

	while ((token = slice_token(&base)).n) {
		if (token.p[0] == '@' && !slice_starts(token, SLICE("@list")))
			return -1;
		elements += token.p[0] == '+';
	}
	return elements;
}

/*
 * Returns whether it pops an element from the target of a move, from which no command moves
 * anything.
 */
static bool takes_back(struct taking *w, const struct message *m)
{
	const struct memcached_item *item = lan_find(&w->stage.lan, m->call.key);
	int list = taking_list(m->call.key), before = item ? count(buf_slice(&item->value)) : -1;
	const struct taking_op *op;
	bool moves = false;

	if (m->call.verb != CALL_CAS || list < TAKING_SHARES || before < 1 ||
		count(m->call.value) != before - 1)
		return false;
	STAGE_FOREACH(op, w) {
		if (op->from == list)
			return false;
		moves |= op->to == list;
	}
	return moves;
}

bool taking_mutate_execute(struct lan *lan, struct message *m)
{
	struct taking *w = lan->arg;

	if (w->mutation != TAKING_NO_TAKE_BACK || !takes_back(w, m))
		return false;
	m->result = (struct result){ .status = RESULT_DONE };
	return true;
}

static bool asks(const struct message *m)
{
	return m->call.verb == CALL_GET && m->call.want == WANT_CAS &&
		taking_list(m->call.key) >= 0;
}

static void show_expired(struct message *m)
{
	if (m->call.verb != CALL_GET || taking_set_number(m->call.key) < 0 ||
		m->result.status != RESULT_HIT || m->result.value.n == 0)
		return;
	buf_add_slice(&m->value, m->result.value);
	m->result.value = buf_slice(&m->value);
	expiring_change_dates(m->result.value, false);
}

void taking_mutate_executed(struct taking *w, struct message *m)
{
	bool lost = m->call.verb == CALL_CAS && m->result.status == RESULT_EXISTS;
	uint64_t *first;

	switch (w->mutation) {
	case TAKING_PLAIN_TARGET:
		if (m->call.verb == CALL_GET && slice_equal(m->call.key, taking_plain))
			m->result = (struct result){ .status = RESULT_MISS };
		break;
	case TAKING_SEES_EXPIRED:
		show_expired(m);
		break;
	case TAKING_LOST_CAS:
		if (lost && taking_list(m->call.key) >= 0)
			m->result.status = RESULT_DONE;
		break;
	case TAKING_EARLY_DELETE:
		if (is_part_of_target(&m->call) && lan_find(&w->stage.lan, SLICE("t0")))
			memcached_remove(lan_find(&w->stage.lan, SLICE("t0")));
		break;
	case TAKING_NOT_WOKEN:
		if (asks(m))
			m->result = (struct result){ .status = RESULT_MISS };
		break;
	case TAKING_ASKS_ONCE:
		if (!asks(m) || m->result.status != RESULT_HIT)
			break;
		first = &w->polls[m->from][taking_list(m->call.key)];
		*first = *first ? *first : m->result.cas;
		m->result.cas = *first;
		break;
	default:
		break;
	}
}
