#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/bounds.h"
#include "client/client.h"
#include "collection/machines.h"
#include "net/tls.h"
#include "upstream/address.h"
#include "util/alloc.h"
#include "util/log.h"
#include "util/random.h"

void worker_later(struct worker *w, struct waiter *waiter, unsigned ms)
{
	uint64_t bytes_read = meter_get(&w->meter, COUNT_bytes_read);
	bool busy = bytes_read != w->bytes_seen;

	w->bytes_seen = bytes_read;
	loop_wake(&w->loop, waiter, ms ? ms : busy);
}

/* --- counters --- */

static void add_stats(struct lanes_stats *sum, const struct generation *g)
{
	const struct lanes_stats *s = lanes_statistics(g->host.lanes);

#define LANES(name, ...) sum->name += s->name;
#include "measure/facts.def"
}

/* Copies the counters of the lanes to those that other threads may read. */
static void publish(struct worker *w)
{
	uint64_t incomplete = meter_get(&w->meter, COUNT_incomplete_sets);
	size_t cache = machines_cache_memory(w->current->host.lanes);
	struct lanes_stats s = w->past;
	const struct generation *g;

	add_stats(&s, w->current);
	TAILQ_FOREACH(g, &w->retired, link) {
		add_stats(&s, g);
		cache += machines_cache_memory(g->host.lanes);
	}
	if (s.incomplete_sets > incomplete)
		log_warn("%llu sets had lost a segment and were removed",
			(unsigned long long)(s.incomplete_sets - incomplete));
#define LANES(name, ...) meter_set(&w->meter, COUNT_##name, s.name);
#include "measure/facts.def"
	meter_set(&w->meter, COUNT_cache_bytes, cache);
}

static void set_clock(struct generation *g)
{
	g->host.env.now = g->worker->loop.now;
	g->host.env.unix_time = g->worker->loop.unix_time;
}

static void at_turn(struct loop *loop, void *arg)
{
	struct worker *w = arg;
	struct generation *g;

	(void)loop;
	meter_turn(&w->meter);
	set_clock(w->current);
	TAILQ_FOREACH(g, &w->retired, link)
		set_clock(g);
	publish(w);
	balance_turn(w);
}

static void notify(struct worker *w, char news)
{
	(void)!write(w->daemon->news, &news, 1);
}

/* --- generations --- */

/* Background work does not report that it has finished, so a timer looks. A later reload does not put it off. */
static void set_retire_timer(struct worker *w)
{
	struct timeval tv = { 0, 100000 };

	if (!TAILQ_EMPTY(&w->retired) && !event_pending(&w->retire, EV_TIMEOUT, NULL))
		event_add(&w->retire, &tv);
}

static void drop_generation(struct worker *w, struct generation *g)
{
	TAILQ_REMOVE(&w->retired, g, link);
	add_stats(&w->past, g);
	servers_stop(g->servers, false);
	generation_destroy(g);
}

static void on_retire(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct generation *g, *next;

	(void)fd;
	(void)what;
	loop_enter(&w->loop);
	for (g = TAILQ_FIRST(&w->retired); g; g = next) {
		next = TAILQ_NEXT(g, link);
		if (generation_is_idle(g))
			drop_generation(w, g);
	}
	set_retire_timer(w);
}

static void set_current(struct worker *w, struct generation *g)
{
	pthread_mutex_lock(&w->daemon->lock);
	w->current = g;
	w->meter.servers = g->servers;
	w->meter.ring = g->settings->ring_hash;
	pthread_mutex_unlock(&w->daemon->lock);
}

/* The servers of the next generation were tried: clients move to it. */
static void on_settled(void *arg)
{
	struct worker *w = arg;
	struct generation *before = w->current;
	struct client *client, *next;

	set_current(w, w->next);
	w->next = NULL;
	set_clock(w->current);
	TAILQ_INSERT_TAIL(&w->retired, before, link);
	for (client = TAILQ_FIRST(&w->clients); client; client = next) {
		next = client_next(client);
		client_renew(client);
	}
	generation_retire(before);
	set_retire_timer(w);
	notify(w, DAEMON_SETTLED);
}

static void set_server_options(struct worker *w)
{
	const struct config *config = worker_config(w);

	w->server_options = (struct server_options){
		.connect_timeout = config->connect_timeout,
		.request_timeout = config->request_timeout,
		.retry_min = config->retry_min,
		.retry_max = config->retry_max > config->retry_min ? config->retry_max : config->retry_min,
		.dns_interval = config->dns_interval,
		.queue = config->server_queue,
		.value_max = config->max_value,
		.answer = &w->meter.answer,
		.news = w->daemon->server_news,
		.tls = config->server_tls ? w->settings->tls : NULL,
	};
	snprintf(w->server_options.login, sizeof(w->server_options.login), "%s", config->server_login);
}

/* The main thread sends this again only after it was told that the last one is done. */
static void reload(struct worker *w)
{
	settings_release(w->settings);
	w->settings = settings_share(w->daemon->settings);
	set_server_options(w);
	limits_renew(w);
	meter_set_threshold(&w->meter, worker_config(w)->slow_threshold);
	if (settings_same_data(w->current->settings, w->settings)) {
		notify(w, DAEMON_SETTLED);
		return;
	}
	w->next = generation_create(w, w->settings, w->current);
	servers_start(w->next->servers, on_settled, w);
}

/* --- stopping --- */

static void stop(struct worker *w)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&w->clients)))
		client_close(client);
	loop_stop(&w->loop);
}

/* Background work does not report its end, so a timer checks every 10 ms. */
static void set_drain_timer(struct worker *w)
{
	struct timeval tv = { 0, 10000 };

	event_add(&w->deadline, &tv);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;

	(void)fd;
	(void)what;
	loop_enter(&w->loop);
	if (w->loop.now >= w->drain_until) {
		log_warn("shutdown_timeout is over: unfinished requests are dropped");
		stop(w);
	} else {
		set_drain_timer(w);
		worker_stop_if_drained(w);
	}
}

/* Closes idle clients now, and the others when their requests are answered. */
static void drain(struct worker *w)
{
	struct client *client, *next;

	if (w->draining)
		return;
	w->draining = true;
	w->drain_until = w->loop.now + worker_config(w)->shutdown_timeout;
	set_drain_timer(w);
	for (client = TAILQ_FIRST(&w->clients); client; client = next) {
		next = client_next(client);
		client_drain(client);
	}
	worker_stop_if_drained(w);
}

static bool is_drained(const struct worker *w)
{
	const struct generation *g;

	TAILQ_FOREACH(g, &w->retired, link) {
		if (!lanes_idle(g->host.lanes))
			return false;
	}
	return TAILQ_EMPTY(&w->clients) && lanes_idle(w->current->host.lanes);
}

void worker_stop_if_drained(struct worker *w)
{
	if (w->draining && is_drained(w))
		loop_stop(&w->loop);
}

/* --- messages --- */

void daemon_reject(struct daemon *d, int fd, struct tls *tls)
{
	static const char full[] = "ERROR Too many open connections\r\n";

	atomic_fetch_sub(&d->connections, 1);
	atomic_fetch_add(&d->rejected, 1);
	if (!tls)
		(void)!send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL);
	tls_destroy(tls);
	close(fd);
}

/* The thread that accepts has counted the newcomer already. */
static void replace(struct worker *w, int fd, struct tls *tls)
{
	struct daemon *d = w->daemon;

	atomic_fetch_sub(&d->replacing, 1);
	if (limits_replace(w)) {
		atomic_fetch_add(&d->accepted, 1);
		client_open(w, fd, tls, true);
	} else {
		daemon_reject(d, fd, tls);
	}
}

static void take(struct worker *w, struct mail mail)
{
	switch (mail.kind) {
	case WORKER_TAKE:
		client_open(w, mail.fd, mail.tls, true);
		break;
	case WORKER_ADOPT:
		client_open(w, mail.fd, mail.tls, false);
		break;
	case WORKER_REPLACE:
		replace(w, mail.fd, mail.tls);
		break;
	case WORKER_RECLAIM:
		limits_reclaim(w);
		break;
	case WORKER_RELOAD:
		reload(w);
		break;
	case WORKER_CALL:
		w->errand.run(w->errand.arg);
		sem_post(&w->errand.done);
		break;
	case WORKER_DRAIN:
		drain(w);
		break;
	case WORKER_STOP:
		stop(w);
		break;
	}
}

/* A write to a pipe of a message this small is whole, and so is each message read. */
static void on_mail(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct mail mails[64];
	ssize_t n = read((int)fd, mails, sizeof(mails));

	(void)what;
	loop_enter(&w->loop);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(mails[0]); i++)
		take(w, mails[i]);
}

/* --- the thread --- */

static void on_first_settled(void *arg)
{
	notify(arg, DAEMON_SETTLED);
}

static void *run(void *arg)
{
	struct worker *w = arg;

	/* Not before the thread runs: its own time is measured. */
	at_turn(&w->loop, w);
	servers_start(w->current->servers, on_first_settled, w);
	loop_run(&w->loop);
	notify(w, DAEMON_EXITED);
	return NULL;
}

struct worker *worker_start(struct daemon *daemon, uint64_t seed)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	w->daemon = daemon;
	w->random = seed;
	w->settings = settings_share(daemon->settings);
	set_server_options(w);
	TAILQ_INIT(&w->clients);
	TAILQ_INIT(&w->retired);
	loop_init(&w->loop);
	meter_init(&w->meter, &w->loop, random_next(&w->random));
	meter_set_threshold(&w->meter, worker_config(w)->slow_threshold);
	limits_init(w);
	w->resolver = resolver_create(w->loop.base);
	set_current(w, generation_create(w, w->settings, NULL));
	w->loop.turn = at_turn;
	w->loop.turn_arg = w;
	if (pipe(w->mailbox) < 0 || sem_init(&w->errand.done, 0, 0) < 0)
		abort();
	evutil_make_socket_nonblocking(w->mailbox[0]);
	event_assign(&w->mail, w->loop.base, w->mailbox[0], EV_READ | EV_PERSIST, on_mail, w);
	event_assign(&w->deadline, w->loop.base, -1, 0, on_deadline, w);
	event_assign(&w->retire, w->loop.base, -1, 0, on_retire, w);
	event_add(&w->mail, NULL);
	if (pthread_create(&w->thread, NULL, run, w) != 0)
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

/* In all generations, until no failed call makes another one. Frees clients that were closed in the last turn, too. */
static void stop_calls(struct worker *w)
{
	struct generation *g;

	servers_stop(w->current->servers, true);
	TAILQ_FOREACH(g, &w->retired, link)
		servers_stop(g->servers, true);
	loop_finish(&w->loop);
}

void worker_join(struct worker *w)
{
	struct generation *g;

	pthread_join(w->thread, NULL);
	event_del(&w->mail);
	event_del(&w->deadline);
	event_del(&w->retire);
	if (w->next)
		TAILQ_INSERT_TAIL(&w->retired, w->next, link);
	stop_calls(w);
	while ((g = TAILQ_FIRST(&w->retired))) {
		TAILQ_REMOVE(&w->retired, g, link);
		generation_destroy(g);
	}
	generation_destroy(w->current);
	resolver_destroy(w->resolver);
	limits_fini(w);
	meter_fini(&w->meter);
	close(w->mailbox[0]);
	close(w->mailbox[1]);
	sem_destroy(&w->errand.done);
	loop_fini(&w->loop);
	pool_free(&w->pool);
	buf_free(&w->trash);
	settings_release(w->settings);
	free(w);
}
