/* The functions that start requests. commands.def has the start function of each command. */
#ifndef COMMAND_START_H
#define COMMAND_START_H

#include "command/host.h"
#include "protocol/request.h"

/*
 * Starts a request. `request` and its slices are borrowed for the call; `owner` is passed to
 * the host with the task.
 */
typedef void command_start(struct host *host, const struct request *request, void *owner);

/*
 * The start functions of commands.def. Not generated from it, so that other files are not
 * recompiled for a new command that uses one of them.
 */
command_start algebra_start, algebra_store_start, append_words_start, ask_list_start,
	claim_member_start, event_start, expire_members_start, flush_start, get_start,
	hold_element_start, item_start, load_words_start, members_start, meta_start,
	move_element_start, move_member_start, pop_keys_start, read_set_start, scompact_start,
	sinfo_start, spop_start, sset_start, stake_start, take_lease_start, ticket_start,
	wait_start;

/*
 * Starts a request whose target is TARGET_COMMAND: carries out get, gets, set, cas and incr,
 * and refuses all other commands.
 */
command_start keyed_start;

/* Starts mg, ms, md or ma on a key that is TARGET_COLLECTION, TARGET_EVENTS or TARGET_COMMAND. */
command_start metaform_start;

/*
 * Replies the error of a refused request, after the side effects that memcached has.
 * `request->command` may be NULL.
 */
void task_start_refused(struct host *host, const struct request *request, void *owner);

/*
 * Deletes the item whose new value is too large, like memcached, so that no client reads a
 * stale value. Replies the error.
 */
command_start item_discard_start;

/* The error line of a command whose key cannot be sent in a line, unless the key names an item. */
extern const char start_odd_key_refusal[];

/*
 * Starts a request. Fills in its target, if it is unknown, and `args`. Returns false and does
 * nothing for a PROXY_COMMAND, which the host carries out.
 */
bool task_start(struct host *host, struct request *request, void *owner)
	__attribute__((warn_unused_result));

/*
 * Starts a request inside nest->outer, which receives the reply. Sets `into` of the request,
 * and clears its `noreply`. nest->done may be called before this returns. Returns false and
 * starts nothing for a PROXY_COMMAND.
 */
bool task_start_inside(struct nest *nest, struct request *request)
	__attribute__((warn_unused_result));

#endif
