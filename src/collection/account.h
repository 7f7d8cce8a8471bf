/*
 * What the requests of a client cost. Each client has one account, which its operations and tasks carry. Lanes and tasks charge a cost
 * to it where the cost arises, and compare operations by it: two with the same account are of one client, and keep their order.
 *
 * An account is a part of its client. It stays until the last operation or task that carries it is done, also after the client has
 * gone: whoever owns the client frees it only then. From the client's end on, `gone` is set, and the account is charged as before, but
 * no longer looked at.
 *
 * The account only counts. Its owner looks at all accounts that have changed, once a turn, and decides what follows.
 */
#ifndef COLLECTION_ACCOUNT_H
#define COLLECTION_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct payer;

TAILQ_HEAD(account_list, account);

struct account {
	struct payer *payer; /* pays for slices of work; NULL: the event loop does, as for a client that has gone */
	size_t used;         /* bytes of unfinished requests, their tasks, and what these have computed so far */
	size_t held;         /* bytes of replies that wait for earlier ones, or for the rest of their own */
	size_t rewritten;    /* bytes that servers rewrote for its requests, and that have not counted in a turn yet */
	bool gone;           /* the client has disconnected; outcomes are discarded */
	bool is_changed;     /* is in the list `changed` */
	TAILQ_ENTRY(account) link;
	struct account_list *changed; /* accounts that their owner must look at; NULL if it looks at none */
};

/* Something has changed that the owner must look at in this turn. */
static inline void account_change(struct account *account)
{
	if (account->is_changed || !account->changed)
		return;
	account->is_changed = true;
	TAILQ_INSERT_TAIL(account->changed, account, link);
}

/* The owner has looked at the account. */
static inline void account_settle(struct account *account)
{
	if (account->is_changed)
		TAILQ_REMOVE(account->changed, account, link);
	account->is_changed = false;
}

/* The client has gone. */
static inline void account_close(struct account *account)
{
	account_settle(account);
	account->gone = true;
	account->payer = NULL;
	account->changed = NULL;
}

/* Memory takes `more` bytes from now on, and `less` no longer: of requests and their work; of replies. */
static inline void account_use(struct account *account, size_t more, size_t less)
{
	account->used += more - less;
	account_change(account);
}

static inline void account_hold(struct account *account, size_t more, size_t less)
{
	account->held += more - less;
	account_change(account);
}

#endif
