/*
 * The stage of taking.h and holding.h: proxies with the code under test, which are killed at any
 * of their calls, clients that may wait for elements of lists, and the time.
 */
#ifndef SIM_STAGE_H
#define SIM_STAGE_H

#include <sys/queue.h>

#include "command/task.h"
#include "histories.h"
#include "lan.h"
#include "waiting/push_board.h"
#include "waiting/waiting.h"

enum { STAGE_PROXIES = 3 };

struct stage;

/* A command of a client: the first member of that of a simulation. */
struct stage_op {
	TAILQ_ENTRY(stage_op) link;
	struct stage_proxy *proxy;
	int client;
	command_id command;
	uint64_t issued, deadline; /* milliseconds; the end of its wait */
	struct task *task;
	struct account account;
	struct buf line, reply;
};

/* A proxy: the first member of that of a simulation. */
struct stage_proxy {
	struct lan_proxy lan; /* first, since its host is the first one of the lan_proxy */
	struct stage *world;
	uint64_t kill_at; /* the call after which it is killed; 0 for none */
};

/* What a simulation does itself. */
struct stage_hooks {
	/* Called when a proxy starts: completes its host, which needs host.waiting. */
	void (*start)(struct stage_proxy *proxy);
	/* Called when it stops: returns false if something is still in flight. May be NULL. */
	bool (*stop)(struct stage_proxy *proxy);
	/* Called when the reply is complete, or the proxy was killed. Frees nothing. */
	void (*answered)(struct stage_op *op);
	/* Called after each event. */
	void (*check)(struct stage *world);
};

/* The first member of the world of a simulation, which is the arg of its lan. */
struct stage {
	struct lan lan;
	const struct stage_hooks *hooks;
	struct stage_proxy *proxies[STAGE_PROXIES];
	struct rules rules;
	const struct collection_options *options;
	bool trouble, ending;  /* proxies are killed; not any more */
	uint64_t last_arrival; /* of the calls of the proxy that was killed last, in milliseconds */
	TAILQ_HEAD(, stage_op) ops; /* in flight */
	const char *violation;
	char detail[400];
	uint64_t commands, failures, kills;
};

/* All commands in flight of a world: `op` is of its own type. */
#define STAGE_FOREACH(op, world) \
	for ((op) = (void *)TAILQ_FIRST(&(world)->stage.ops); (op); \
		(op) = (void *)TAILQ_NEXT(&(op)->stage, link))

/* --- a history --- */

/*
 * Begins a history in a world of zeroes. The items of servers have at most `item_max` bytes if all
 * elements are plain. The letters are those of the keys of lists.
 */
void stage_begin(struct stage *world, const struct stage_hooks *hooks,
	const struct lan_hooks *lan_hooks, int servers, size_t item_max, const char *lists,
	uint64_t seed, bool verbose);
/* Starts the proxies, whose pointers are set; kills them later, if there is trouble. */
void stage_start(struct stage *world);
void stage_kill_later(struct stage *world);
/* Ends all waits, and runs until all commands are answered. */
void stage_end(struct stage *world);
void stage_tear_down(struct stage *world);

void stage_fail(struct stage *world, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t stage_random(struct stage *world, uint64_t below);
bool stage_chance(struct stage *world, unsigned percent);
uint64_t stage_now(const struct stage *world); /* milliseconds */

/* Delivers everything that arrives until then, in milliseconds. Proxies are killed meanwhile. */
void stage_run_until(struct stage *world, uint64_t time);
/* Runs until nothing is in flight. */
void stage_settle(struct stage *world);

/* Breaks a connection of a proxy. */
void stage_break(struct stage *world);

/* --- the network --- */

/* For lan_hooks. */
uint64_t stage_arrival(struct lan *lan, const struct message *message, uint64_t last);
/* Returns the server of a key; on another ring with another `turn`. */
int stage_place(struct slice key, unsigned turn, unsigned servers);
/* Returns the number of a key of two characters, or -1. */
int stage_find_key(const char (*keys)[3], int count, struct slice key);

/* --- commands --- */

/* Returns a command of `size` bytes, whose line is empty. */
void *stage_new_op(struct stage *world, size_t size, int client, int proxy);
void stage_send(struct stage_op *op);
void stage_free_op(struct stage_op *op);
/* Its line without the end, for messages. */
#define STAGE_LINE(op) (int)buf_size(&(op)->stage.line) - 2, (op)->stage.line.data
/* Returns the bytes of the first value of a reply; none if it has none. */
struct slice stage_value(struct slice reply);
/* Returns whether its outcome is unknown. */
bool stage_has_failed(const struct stage_op *op);

#endif
