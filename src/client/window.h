/*
 * How many requests of a client are under way: as many as have replies that fit client_buffer, if their values are like the largest
 * that came lately. A value of unknown size is taken to be large.
 */
#ifndef CLIENT_WINDOW_H
#define CLIENT_WINDOW_H

#include "client/client.h"

void window_open(struct client *client);

/* Called when a task begins, and when it has ended with a reply of `size` bytes. client_free_task returns the memory of the task. */
void window_task_begin(struct client *client, struct task *task);
void window_task_end(struct client *client, const struct task *task, size_t size);

/*
 * Bytes of a value that the client asks for, if it must take turns with others: the mean of those that came lately. If none has come,
 * the mean of the first values of other clients. 0 if values are small.
 */
uint32_t window_expected(const struct client *client);

/* Bytes of replies that may wait to be written before no more requests are carried out. */
size_t window_buffer(const struct client *client);

/* Why no further request may be carried out: PAUSE_BACKLOG, PAUSE_WINDOW or 0. Which of these are gone, once enough has ended. */
unsigned window_is_full(const struct client *client);
unsigned window_has_room(const struct client *client);

#endif
