#include "upstream/call_turns.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

struct queued_call {
	STAILQ_ENTRY(queued_call) link;
	struct call call;
	struct waiter *waiter;
};

/* The calls of one account in one struct call_turns. Exists while there are any. */
struct call_turn {
	struct turn turn;
	struct call_turns *at;
	struct account *account;
	struct call_turn *next; /* Of the same account, at another server. */
	STAILQ_HEAD(, queued_call) calls;
};

void call_turns_init(struct call_turns *t)
{
	*t = (struct call_turns){ 0 };
	turns_init(&t->turns, CALL_TURNS_WORTH);
}

/* An account has one queue at each server at most, so the list is short. */
static struct call_turn *find_or_create(struct call_turns *t, struct account *account)
{
	struct call_turn *own = account->calls;

	while (own && own->at != t)
		own = own->next;
	if (own)
		return own;
	own = xcalloc(1, sizeof(*own));
	own->at = t;
	own->account = account;
	own->next = account->calls;
	account->calls = own;
	STAILQ_INIT(&own->calls);
	turns_wait(&t->turns, &own->turn);
	return own;
}

static void destroy(struct call_turn *own)
{
	struct call_turn **at = &own->account->calls;

	while (*at != own)
		at = &(*at)->next;
	*at = own->next;
	free(own);
}

void call_turns_add(struct call_turns *t, const struct call *call, struct waiter *waiter)
{
	struct call_turn *own = find_or_create(t, call->account ? call->account : &t->own);
	struct queued_call *queued = xmalloc(sizeof(*queued));

	*queued = (struct queued_call){ .call = *call, .waiter = waiter };
	queued->call.key = waiter->key;
	STAILQ_INSERT_TAIL(&own->calls, queued, link);
	account_use(own->account, sizeof(*queued), 0);
	t->count++;
	t->background += !call->account;
}

/* Returns the queue that has its turn. */
static struct call_turn *current(struct call_turns *t)
{
	if (!t->current)
		t->current = (struct call_turn *)((char *)turns_next(&t->turns) -
			offsetof(struct call_turn, turn));
	return t->current;
}

struct waiter *call_turns_take(struct call_turns *t, struct call *call)
{
	assert(t->count > 0);
	struct call_turn *own = current(t);
	struct queued_call *queued = STAILQ_FIRST(&own->calls);
	struct waiter *waiter = queued->waiter;

	*call = queued->call;
	STAILQ_REMOVE_HEAD(&own->calls, link);
	free(queued);
	account_use(own->account, 0, sizeof(*queued));
	t->count--;
	t->background -= !call->account;
	turn_charge(&own->turn, CALL_TURNS_COST + call->expected);
	if (STAILQ_EMPTY(&own->calls)) {
		t->current = NULL;
		destroy(own);
	} else if (own->turn.credit <= 0) {
		t->current = NULL;
		turns_wait(&t->turns, &own->turn);
	}
	return waiter;
}
