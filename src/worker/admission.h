/* Which new connections are let in, and which worker serves each. */
#ifndef WORKER_ADMISSION_H
#define WORKER_ADMISSION_H

struct tls;

/*
 * Takes a socket that the thread of `worker`, which accepts for all workers, has just accepted, and its TLS session or NULL. The
 * client gets a worker, or is refused. A listener_accepted.
 */
void admission_take(int fd, struct tls *tls, void *worker);

#endif
