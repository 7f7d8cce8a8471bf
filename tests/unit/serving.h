/*
 * Conversations with a server behind the fake. The test puts items there: runs of sets from a
 * cupboard, or any item.
 */
#ifndef UNIT_SERVING_H
#define UNIT_SERVING_H

#include "conversations.h"
#include "stored.h"

static struct server server;
static struct cupboard cupboard;
static size_t seen; /* number of calls that makes() has checked */

static inline void serving_setup(const struct collection_options *options)
{
	fake_setup();
	fake_takes(options);
	server_init(&server, &fake);
	cupboard.random = 99; /* ids that differ from those of the fake */
}

static inline void serving_teardown(void)
{
	server_free(&server);
	cupboard_free(&cupboard);
	fake_teardown();
}

/* Checks the reply to the client when all calls are answered. */
static inline void hears(const char *reply)
{
	server_answer_all(&server);
	client_is_told(reply);
}

static inline void asks_and_hears(const char *request, const char *reply)
{
	client_asks(request);
	hears(reply);
}

/*
 * Answers the calls before the next call of that kind, on a base or, with `item`, on another item.
 */
static inline struct call *comes_to_one(enum call_verb verb, bool item)
{
	while (fake_waiting(&fake)) {
		struct call *call = &fake.calls[fake_oldest(&fake)].call;
		if (call->verb == verb && (!item || memchr(call->key.p, '.', call->key.n)))
			return call;
		server_answer_one(&server);
	}
	ck_abort_msg("there was no such call");
}

static inline struct call *comes_to(enum call_verb verb)
{
	return comes_to_one(verb, false);
}

/* Sends a request of the client, and answers the calls before the next call of that kind. */
static inline void asks_up_to(const char *request, enum call_verb verb)
{
	client_asks(request);
	(void)comes_to(verb);
}

/*
 * Check the set k, as stored_show() prints it; the calls since the last time, as stored_calls()
 * prints them.
 */
static inline void stores(const char *text)
{
	ck_assert_str_eq(stored_show(&server), text);
}

static inline void makes(const char *letters)
{
	ck_assert_str_eq(stored_calls(&fake, &seen), letters);
}

/* The same after one more call is answered. */
static inline void then_makes(const char *calls)
{
	server_answer_one(&server);
	makes(calls);
}

#endif
