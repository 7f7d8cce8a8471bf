/*
 * How many requests of a client are under way: as many as have replies that fit client_buffer, if their values are like the largest
 * that came lately. A value of unknown size is taken to be large.
 */
#ifndef CLIENT_WINDOW_H
#define CLIENT_WINDOW_H

#include "client/client.h"

void window_open(struct client *client);

/* A task begins; it has ended with a reply of so many bytes. */
void window_task_begin(struct client *client, struct task *task);
void window_task_end(struct client *client, const struct task *task, size_t size);

/*
 * Bytes of a value that the client asks for, if it must take turns with others: the mean of those that came lately. If none has come,
 * the mean of the first values of other clients. 0 if values are small.
 */
uint32_t window_expected(const struct client *client);

/* Bytes of replies that may wait to be written before no more requests are carried out. */
size_t window_buffer(const struct client *client);

/* Whether one more request may be carried out; whether enough has ended since that was false. */
bool window_lets_go_on(const struct client *client);
bool window_lets_resume(const struct client *client);

/* A task holds `more` bytes now, and `less` no longer: of replies that wait for earlier ones; beside its object and the reply. */
static inline void window_spill(struct client *client, size_t more, size_t less)
{
	client->window.spilled += more - less;
}

static inline void window_use(struct client *client, size_t more, size_t less)
{
	client->window.asked += more - less;
}

/* Bytes of replies that wait for earlier ones; of these, and of the unfinished requests and their tasks. */
static inline size_t window_spilled(const struct client *client)
{
	return client->window.spilled;
}

static inline size_t window_memory(const struct client *client)
{
	return client->window.asked + client->window.spilled;
}

#endif
