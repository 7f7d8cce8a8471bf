/* What a client's tasks have to do with it: the functions of struct host. Replies come in the order of the requests. */
#ifndef CLIENT_REPLY_H
#define CLIENT_REPLY_H

#include "command/task.h"

void client_task_begin(struct task *task);
struct buf *client_task_reply(struct task *task);
bool client_task_share(struct task *task, struct shared *text);
bool client_task_room(const struct task *task);
void client_task_hold(struct task *task, size_t more, size_t less);
void client_task_use(struct task *task, size_t more, size_t less);
void client_task_done(struct task *task);

/* Frees a task that is done and not among those of a client. */
void client_task_free(struct task *task);

#endif
