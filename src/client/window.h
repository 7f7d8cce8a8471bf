/*
 * Limits the requests of a client in flight to as many as have replies that fit client_buffer,
 * if their values are like the largest recent one. A value of unknown size is taken to be
 * large.
 */
#ifndef CLIENT_WINDOW_H
#define CLIENT_WINDOW_H

#include "client/client.h"

void window_open(struct client *client);

/*
 * Must be called when a task begins, and when it has ended with a reply of `size` bytes.
 * client_free_task returns the memory of the task.
 */
void window_task_begin(struct client *client, struct task *task);
void window_task_end(struct client *client, const struct task *task, size_t size);

/*
 * Returns the expected bytes of a value that the client requests, if it must take turns with
 * others: the mean of its recent values, or, if there are none, the mean of the first values of
 * other clients. 0 if values are small.
 */
uint32_t window_expected(const struct client *client);

/* Returns how many bytes of replies may be unsent before no more requests are carried out. */
size_t window_buffer(const struct client *client);

/*
 * window_is_full returns why no further request may be carried out: PAUSE_BACKLOG, PAUSE_WINDOW
 * or 0. window_has_room returns which of these no longer apply, once enough has ended.
 */
unsigned window_is_full(const struct client *client);
unsigned window_has_room(const struct client *client);

#endif
