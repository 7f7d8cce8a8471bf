/* What is noted of the requests of a client when they are answered: slow ones, and a sample of keys. */
#ifndef CLIENT_MEASURE_H
#define CLIENT_MEASURE_H

#include "command/task.h"

/* A task that was slow is done. Its client may be gone. */
void client_measure_slow(const struct task *task);

/* A reply of `bytes` bytes is complete, and the keys of its request are sampled. */
void client_measure_keys(const struct task *task, size_t bytes);

#endif
