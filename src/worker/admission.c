#include "worker/admission.h"

#include "client/bounds.h"
#include "client/client.h"
#include "client/peer.h"
#include "worker/worker.h"

/* No place is left: a worker may have one with a client that is not authenticated, or with replace_idle the one silent longest. */
static void find_place(const struct worker *own, int fd, struct tls *tls)
{
	struct daemon *d = own->daemon;
	struct worker *worker = d->workers[0];

	for (size_t i = 1; i < d->threads; i++) {
		if (limits_oldest(d->workers[i]) < limits_oldest(worker))
			worker = d->workers[i];
	}
	if (!(worker_config(own)->replace_idle || limits_has_stranger(worker)) ||
		atomic_load(&d->replacing) >= DAEMON_REPLACING) {
		daemon_reject(d, fd, tls);
		return;
	}
	atomic_fetch_add(&d->replacing, 1);
	worker_send(worker, (struct mail){ WORKER_REPLACE, fd, tls });
}

void admission_take(int fd, struct tls *tls, void *arg)
{
	struct worker *own = arg, *worker;
	struct daemon *d = own->daemon;

	loop_enter(&own->loop);
	if (!client_peer_admit(worker_config(own), fd)) {
		atomic_fetch_add(&d->rejected, 1);
		return;
	}
	if ((uint64_t)atomic_fetch_add(&d->connections, 1) >= worker_config(own)->max_connections) {
		find_place(own, fd, tls);
		return;
	}
	atomic_fetch_add(&d->accepted, 1);
	worker = balance_choose(own);
	if (worker == own)
		client_open(own, fd, tls, true);
	else
		worker_send(worker, (struct mail){ WORKER_TAKE, fd, tls });
}
