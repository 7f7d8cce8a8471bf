#include "worker/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"
#include "util/alloc.h"
#include "util/log.h"
#include "util/random.h"
#include "worker/balance.h"

enum {
	MOVES = 64, /* Maximum number of clients that are handed over at once. */
	/*
	 * Interval of checking whether all is drained, since background work does not report
	 * its end.
	 */
	DRAIN_MS = 10
};

static void send_news(struct worker *w, char news)
{
	(void)!write(w->daemon->news, &news, 1);
}

/* --- the turns of the loop --- */

static void balance(struct worker *w)
{
	struct daemon *d = w->daemon;
	size_t to;

	if (!balance_turn(d->balances, d->threads, w->number, worker_config(w)->thread_load,
		    w->loop.now, &to))
		return;
	if (to != w->number && !w->clients.draining)
		clients_hand_over(&w->clients, d->workers[to], MOVES);
	clients_watch(&w->clients);
}

static void worker_begin_turn(void *arg)
{
	struct worker *w = arg;

	meter_turn(&w->meter);
	meter_set(&w->meter, COUNT_long_turns, w->loop.work.long_turns);
	generations_turn(&w->generations);
	balance(w);
}

static void worker_end_turn(void *arg)
{
	struct worker *w = arg;

	clients_end_turn(&w->clients);
}

/* --- reloads --- */

/* Publishes the limits for other threads. */
static void set_limits(struct worker *w)
{
	pthread_mutex_lock(&w->daemon->lock);
	w->meter.max_connections = worker_config(w)->max_connections;
	pthread_mutex_unlock(&w->daemon->lock);
}

static void set_generation(struct worker *w, struct generation *g)
{
	generations_enter(&w->generations, g);
	pthread_mutex_lock(&w->daemon->lock);
	w->meter.servers = g->servers;
	w->meter.ring = g->settings->ring_hash;
	w->meter.former = g->settings->former_hash;
	w->meter.move_at = (uint64_t)g->settings->move_at;
	pthread_mutex_unlock(&w->daemon->lock);
}

/*
 * Called after an attempt to connect to every server, at the start or of the next generation.
 * Clients then move to that generation.
 */
static void worker_on_tried(void *arg)
{
	struct worker *w = arg;

	if (w->next) {
		set_generation(w, w->next);
		clients_set_generation(&w->clients, w->next);
	}
	w->next = NULL;
	send_news(w, DAEMON_TRIED);
}

/* The main thread sends the next WORKER_RELOAD only after DAEMON_TRIED. */
static void apply_settings(struct worker *w)
{
	struct settings *before = w->settings;

	w->settings = settings_share(w->daemon->settings);
	generations_set_options(&w->generations, w->settings);
	set_limits(w);
	clients_set_config(&w->clients, worker_config(w));
	meter_set_threshold(&w->meter, worker_config(w)->slow_threshold);
	settings_release(before);
	if (settings_same_data(w->generations.current->settings, w->settings)) {
		send_news(w, DAEMON_TRIED);
		return;
	}
	w->next = generation_create(&w->generations, w->settings);
	servers_start(w->next->servers, worker_on_tried, w);
}

/* --- stopping --- */

static void stop_clients(struct worker *w)
{
	clients_close(&w->clients);
	loop_stop(&w->loop);
}

static void worker_stop_if_drained(void *arg)
{
	struct worker *w = arg;

	if (w->clients.draining && TAILQ_EMPTY(&w->clients.all) &&
		generations_are_idle(&w->generations))
		loop_stop(&w->loop);
}

static void worker_on_deadline(struct loop_job *job)
{
	struct worker *w = (struct worker *)((char *)job - offsetof(struct worker, deadline));

	if (w->loop.now >= w->drain_until) {
		log_warn("shutdown_timeout is over: dropping unfinished requests");
		stop_clients(w);
	} else {
		loop_after(&w->loop, &w->deadline, DRAIN_MS);
		worker_stop_if_drained(w);
	}
}

static void drain(struct worker *w)
{
	if (w->clients.draining)
		return;
	w->drain_until = w->loop.now + worker_config(w)->shutdown_timeout;
	loop_after(&w->loop, &w->deadline, DRAIN_MS);
	clients_drain(&w->clients);
	generations_end_waits(&w->generations);
	worker_stop_if_drained(w);
}

/* --- new clients --- */

/* Refuses an accepted socket that was counted as a connection, and frees its session. */
static void reject_client(struct daemon *d, int fd, struct tls *tls)
{
	static const char full[] = "ERROR Too many open connections\r\n";

	atomic_fetch_sub(&d->clients.connections, 1);
	atomic_fetch_add(&d->rejected, 1);
	log_rare("a client was refused: max_connections is reached");
	if (!tls)
		(void)!send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL);
	tls_destroy(tls);
	close(fd);
}

/*
 * Finds a place for a client above max_connections, or refuses it. A client that is not
 * authenticated may lose its place; with replace_idle, the client that has been idle longest
 * may.
 */
static void replace_elsewhere(const struct worker *own, int fd, struct tls *tls)
{
	struct daemon *d = own->daemon;
	struct worker *worker = d->workers[0];

	for (size_t i = 1; i < d->threads; i++) {
		if (clients_oldest(&d->workers[i]->clients) < clients_oldest(&worker->clients))
			worker = d->workers[i];
	}
	if (!(worker_config(own)->replace_idle || clients_have_stranger(&worker->clients)) ||
		atomic_load(&d->replacing) >= DAEMON_REPLACING) {
		reject_client(d, fd, tls);
		return;
	}
	atomic_fetch_add(&d->replacing, 1);
	worker_send(worker, (struct mail){ WORKER_REPLACE, fd, tls });
}

void worker_accept(int fd, struct tls *tls, void *arg)
{
	struct worker *own = arg;
	struct daemon *d = own->daemon;
	size_t to;

	loop_enter(&own->loop);
	if (!clients_admit(worker_config(own), fd)) {
		atomic_fetch_add(&d->rejected, 1);
		return;
	}
	if ((uint64_t)atomic_fetch_add(&d->clients.connections, 1) >=
		worker_config(own)->max_connections) {
		replace_elsewhere(own, fd, tls);
		return;
	}
	atomic_fetch_add(&d->accepted, 1);
	to = balance_choose(d->balances, d->threads, own->number, worker_config(own)->thread_load,
		own->loop.now);
	if (to == own->number)
		clients_open(&own->clients, fd, tls, true);
	else
		worker_send(d->workers[to], (struct mail){ WORKER_TAKE, fd, tls });
}

/* The accepting thread has already counted the new client. */
static void replace_client(struct worker *w, int fd, struct tls *tls)
{
	struct daemon *d = w->daemon;

	atomic_fetch_sub(&d->replacing, 1);
	if (clients_replace(&w->clients)) {
		atomic_fetch_add(&d->accepted, 1);
		clients_open(&w->clients, fd, tls, true);
	} else {
		reject_client(d, fd, tls);
	}
}

/* --- functions for clients --- */

static struct reply worker_command(void *arg, const struct request *request, struct buf *text)
{
	struct worker *w = arg;

	return w->daemon->command(w, request, text);
}

static bool worker_reclaim_elsewhere(void *arg)
{
	struct worker *w = arg, *whose = w;
	const struct daemon *d = w->daemon;
	unsigned most = atomic_load_explicit(&w->clients.highest, memory_order_relaxed), other;

	for (size_t i = 0; i < d->threads; i++) {
		other = atomic_load_explicit(&d->workers[i]->clients.highest, memory_order_relaxed);
		if (other > most) {
			most = other;
			whose = d->workers[i];
		}
	}
	if (whose == w)
		return false;
	if (!atomic_exchange(&whose->asked_to_reclaim, true))
		worker_send(whose, (struct mail){ WORKER_RECLAIM, -1, NULL });
	return true;
}

/* Used as pushes.tell of the generations. */
static void worker_tell_of_push(void *arg)
{
	struct worker *w = arg;
	const struct daemon *d = w->daemon;

	for (size_t i = 0; i < d->threads; i++) {
		if (i != w->number && !atomic_exchange(&d->workers[i]->asked_to_look, true))
			worker_send(d->workers[i], (struct mail){ WORKER_LOOK, -1, NULL });
	}
}

static void worker_hand_over(void *to, int fd, struct tls *tls)
{
	worker_send(to, (struct mail){ WORKER_ADOPT, fd, tls });
}

static bool worker_must_wait(void *arg)
{
	const struct worker *w = arg;

	return poll_is_due(&w->poll);
}

static void worker_await(void *arg, struct clients_wait *wait)
{
	struct worker *w = arg;

	poll_wait(&w->poll, w->generations.current, wait);
}

static const struct clients_ops clients_ops = {
	worker_command,
	worker_must_wait,
	worker_await,
	worker_stop_if_drained,
	worker_reclaim_elsewhere,
	worker_hand_over,
};

/* --- messages --- */

static void take_mail(struct worker *w, struct mail mail)
{
	switch (mail.kind) {
	case WORKER_TAKE:
		clients_open(&w->clients, mail.fd, mail.tls, true);
		break;
	case WORKER_ADOPT:
		clients_open(&w->clients, mail.fd, mail.tls, false);
		break;
	case WORKER_REPLACE:
		replace_client(w, mail.fd, mail.tls);
		break;
	case WORKER_RECLAIM:
		atomic_store(&w->asked_to_reclaim, false);
		clients_reclaim(&w->clients);
		break;
	case WORKER_LOOK:
		atomic_store(&w->asked_to_look, false);
		generations_look_for_pushes(&w->generations);
		break;
	case WORKER_RELOAD:
		apply_settings(w);
		break;
	case WORKER_CALL:
		w->errand.run(w->errand.arg);
		sem_post(&w->errand.done);
		break;
	case WORKER_DRAIN:
		drain(w);
		break;
	case WORKER_STOP:
		stop_clients(w);
		break;
	}
}

/* A message is small enough for a pipe to write and read it atomically. */
static void worker_on_mail(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct mail mails[64];
	ssize_t n = read((int)fd, mails, sizeof(mails));

	(void)what;
	loop_enter(&w->loop);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(mails[0]); i++)
		take_mail(w, mails[i]);
}

/* --- the thread --- */

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	/*
	 * The balance measures the CPU time of the calling thread, so this must run in the new
	 * thread.
	 */
	worker_begin_turn(w);
	servers_start(w->generations.current->servers, worker_on_tried, w);
	loop_run(&w->loop);
	send_news(w, DAEMON_EXITED);
	return NULL;
}

static void init_generations(struct worker *w, uint64_t seed)
{
	struct daemon *d = w->daemon;

	w->generations = (struct generations){
		.loop = &w->loop,
		.meter = &w->meter,
		.large = d->large,
		.fresh_slots = d->servers.fresh,
		.pushes = { d->board, worker_tell_of_push, w },
		.news = d->servers.news,
		.threads = d->threads,
		.functions = &clients_functions,
		.arg = &w->clients,
		.random = seed,
	};
	generations_init(&w->generations, d->servers.names);
	generations_set_options(&w->generations, w->settings);
	set_generation(w, generation_create(&w->generations, w->settings));
}

static void init_clients(struct worker *w)
{
	w->clients = (struct clients){
		.loop = &w->loop,
		.meter = &w->meter,
		.total = &w->daemon->clients,
		.ops = &clients_ops,
		.arg = w,
	};
	clients_init(&w->clients, worker_config(w), w->generations.current);
}

struct worker *worker_start(struct daemon *daemon, size_t number, uint64_t seed)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	w->daemon = daemon;
	w->number = number;
	w->settings = settings_share(daemon->settings);
	w->deadline.run = worker_on_deadline;
	loop_init(&w->loop);
	meter_init(&w->meter, &w->loop, random_next(&seed));
	meter_set_threshold(&w->meter, worker_config(w)->slow_threshold);
	poll_init(&w->poll, daemon, &w->meter, &w->loop);
	set_limits(w);
	init_generations(w, seed);
	init_clients(w);
	w->loop.turn.begin = worker_begin_turn;
	w->loop.turn.end = worker_end_turn;
	w->loop.turn.arg = w;
	if (pipe(w->mailbox) < 0 || sem_init(&w->errand.done, 0, 0) < 0)
		abort();
	evutil_make_socket_nonblocking(w->mailbox[0]);
	event_assign(
		&w->mail, w->loop.base, w->mailbox[0], EV_READ | EV_PERSIST, worker_on_mail, w);
	event_add(&w->mail, NULL);
	if (pthread_create(&w->thread, NULL, worker_run, w) != 0)
		abort();
	return w;
}

void worker_send(struct worker *w, struct mail mail)
{
	while (write(w->mailbox[1], &mail, sizeof(mail)) < 0) {
		if (errno != EINTR)
			abort();
	}
}

void worker_call(struct worker *w, void (*errand)(void *arg), void *arg)
{
	w->errand.run = errand;
	w->errand.arg = arg;
	worker_send(w, (struct mail){ WORKER_CALL, -1, NULL });
	while (sem_wait(&w->errand.done) < 0) {
		if (errno != EINTR)
			abort();
	}
}

void worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	event_del(&w->mail);
	loop_forget(&w->loop, &w->deadline);
	/* A client may have been received after the message that stopped the loop. */
	clients_close(&w->clients);
	generations_stop(&w->generations, w->next);
	clients_fini(&w->clients);
	generations_fini(&w->generations);
	meter_fini(&w->meter);
	close(w->mailbox[0]);
	close(w->mailbox[1]);
	sem_destroy(&w->errand.done);
	loop_fini(&w->loop);
	settings_release(w->settings);
	free(w);
}
