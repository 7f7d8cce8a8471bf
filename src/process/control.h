/*
 * A private Unix socket for operators. Its commands are lines: `reload` reads the configuration again, and is answered when all workers
 * use it. For the main thread.
 */
#ifndef PROCESS_CONTROL_H
#define PROCESS_CONTROL_H

#include <stdbool.h>

struct control;
struct event_base;

/* Its file gets the mode 0600. `reload` is called for each command of that name. On failure gives NULL, with the reason in `error`. */
struct control *control_create(
	struct event_base *base, const char *path, void (*reload)(void *arg), void *arg, char error[256]);

/* Answers all that wait for a reload. NULL does nothing. */
void control_reloaded(struct control *control, bool good);

/* NULL does nothing. */
void control_destroy(struct control *control);

#endif
