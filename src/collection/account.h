/*
 * The cost of a client's requests. Each client has one account, and its operations and tasks
 * point to it. Lanes and tasks add a cost where it arises. Two operations with the same account
 * belong to the same client and keep their order.
 *
 * The account is embedded in its client, and must outlive the last operation or task that points
 * to it, even after the client has disconnected: the owner of the client frees it only then. Once
 * the client has disconnected, `gone` is set: costs are still added, but no longer read, and lanes
 * drop queued operations.
 *
 * The account only counts. Once per turn its owner processes all accounts that have changed.
 */
#ifndef COLLECTION_ACCOUNT_H
#define COLLECTION_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct call_turn;
struct payer;
struct stay;

TAILQ_HEAD(account_list, account);

/*
 * The rooms of room.h: for the first blocks of sets, while it is not known how large they are; and
 * for reading large sets to their end.
 */
enum room_kind { ROOM_BLOCKS, ROOM_MERGES, ROOMS };

/* What an account has in a room. */
struct room_share {
	TAILQ_ENTRY(room_share) link;
	size_t held; /* Bytes. */
	bool queued;
	TAILQ_HEAD(stays, stay) waiting;
};

struct account {
	/*
	 * Is charged for slices of work; NULL: the event loop is, e.g. after the
	 * client has disconnected.
	 */
	struct payer *payer;
	/* Bytes of unfinished requests, their tasks, and the results computed so far. */
	size_t used;
	size_t held; /* bytes of replies that are queued for earlier replies, or still incomplete */
	/* Bytes that servers rewrote for its requests and that no turn has accounted for yet. */
	size_t rewritten;
	uint64_t gone_at; /* If it is gone: since when, in milliseconds of env.now. */
	bool gone;        /* The client has disconnected; outcomes are discarded. */
	bool is_changed;  /* The account is in the list `changed`. */
	TAILQ_ENTRY(account) link;
	struct call_turn
		*calls; /* Its calls that are queued for servers; see upstream/call_turns.h. */
	struct room_share rooms[ROOMS];
	size_t waiting; /* Stays that wait in all rooms. */
	/* Accounts for the owner to process; NULL if it processes none. */
	struct account_list *changed;
};

/* Queues the account for its owner, which processes it in this turn. */
static inline void account_change(struct account *account)
{
	if (account->is_changed || !account->changed)
		return;
	account->is_changed = true;
	TAILQ_INSERT_TAIL(account->changed, account, link);
}

/* Marks the account as processed. */
static inline void account_end_turn(struct account *account)
{
	if (account->is_changed)
		TAILQ_REMOVE(account->changed, account, link);
	account->is_changed = false;
}

/* The client has disconnected; `now` is env.now. */
static inline void account_close(struct account *account, uint64_t now)
{
	account_end_turn(account);
	account->gone = true;
	account->gone_at = now;
	account->payer = NULL;
	account->changed = NULL;
}

/*
 * Adds `more` bytes and subtracts `less` from the memory of requests and their work
 * (account_use), or of replies (account_hold).
 */
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
