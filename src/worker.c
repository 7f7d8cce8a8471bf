#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "client_limits.h"
#include "client_turns.h"
#include "collection/machines.h"
#include "util/alloc.h"
#include "util/log.h"
#include "util/random.h"

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	servers_call(((struct worker *)env)->servers, call, waiter);
}

/* While clients send requests, sliced work pauses for a millisecond between two slices. */
static void call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct worker *w = (struct worker *)env;
	uint64_t bytes_read = atomic_load_explicit(&w->counters[COUNT_bytes_read], memory_order_relaxed);
	bool busy = bytes_read != w->bytes_seen;

	w->bytes_seen = bytes_read;
	deferred_add(&w->deferred, waiter, ms ? ms : busy);
}

static void set_counter(struct worker *w, enum counter counter, uint64_t n)
{
	atomic_store_explicit(&w->counters[counter], n, memory_order_relaxed);
}

/* Copies the counters of the lanes to those that other threads may read. */
static void publish(struct worker *w)
{
	const struct lanes_stats *s = lanes_statistics(w->host.lanes);
	uint64_t incomplete = atomic_load_explicit(&w->counters[COUNT_incomplete_sets], memory_order_relaxed);

	if (s->incomplete_sets > incomplete)
		log_warn("%llu sets had lost a segment and were removed",
			(unsigned long long)(s->incomplete_sets - incomplete));
	set_counter(w, COUNT_appends, s->appends);
	set_counter(w, COUNT_appended_operations, s->appended_operations);
	set_counter(w, COUNT_reads, s->reads);
	set_counter(w, COUNT_cache_hits, s->cache_hits);
	set_counter(w, COUNT_compactions, s->compactions);
	set_counter(w, COUNT_spills, s->spills);
	set_counter(w, COUNT_merges, s->merges);
	set_counter(w, COUNT_conflicts, s->conflicts);
	set_counter(w, COUNT_segments_written, s->segments_written);
	set_counter(w, COUNT_segments_deleted, s->segments_deleted);
	set_counter(w, COUNT_incomplete_sets, s->incomplete_sets);
	set_counter(w, COUNT_corrupt_values, s->corrupt_values);
	set_counter(w, COUNT_cache_bytes, machines_cache_memory(w->host.lanes));
}

static void at_turn(struct loop *loop, void *arg)
{
	struct worker *w = arg;

	w->host.env.now = loop->now;
	w->host.env.unix_time = loop->unix_time;
	publish(w);
	balance_turn(w);
}

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
	w->drain_until = w->loop.now + w->daemon->config->shutdown_timeout;
	set_drain_timer(w);
	for (client = TAILQ_FIRST(&w->clients); client; client = next) {
		next = client_next(client);
		client_drain(client);
	}
	worker_stop_if_drained(w);
}

void worker_stop_if_drained(struct worker *w)
{
	if (w->draining && TAILQ_EMPTY(&w->clients) && lanes_idle(w->host.lanes))
		loop_stop(&w->loop);
}

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

/* The main thread has counted the newcomer already. */
static void replace(struct worker *w, int fd, struct tls *tls)
{
	struct daemon *d = w->daemon;

	atomic_fetch_sub(&d->replacing, 1);
	if (limits_replace(w)) {
		atomic_fetch_add(&d->accepted, 1);
		client_open(w, fd, tls);
	} else {
		daemon_reject(d, fd, tls);
	}
}

static void take(struct worker *w, struct mail mail)
{
	switch (mail.kind) {
	case WORKER_TAKE:
		client_open(w, mail.fd, mail.tls);
		break;
	case WORKER_REPLACE:
		replace(w, mail.fd, mail.tls);
		break;
	case WORKER_RECLAIM:
		limits_reclaim(w);
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

static void notify(struct worker *w, char news)
{
	(void)!write(w->daemon->news, &news, 1);
}

static void on_settled(void *arg)
{
	notify(arg, DAEMON_SETTLED);
}

static void *run(void *arg)
{
	struct worker *w = arg;

	servers_start(w->servers, on_settled, w);
	loop_run(&w->loop);
	notify(w, DAEMON_EXITED);
	return NULL;
}

/* A share of a server's queue, so that one client leaves room for others. */
static size_t calls_max(const struct config *config)
{
	enum { SHARE = 4 };
	size_t share = config->server_queue / SHARE;

	return share < ORDER_CALLS_MAX ? share : ORDER_CALLS_MAX;
}

static void init_host(struct worker *w, uint64_t seed)
{
	const struct config *config = w->daemon->config;

	w->host = (struct host){
		.env = {
			.call = send_call,
			.later = call_later,
			.random = seed,
			.servers = ring_count(w->daemon->ring),
			.rules = &config->rules,
			.pool = &w->pool,
			.large = w->daemon->large,
		},
		.begin = client_task_begin,
		.reply = client_task_reply,
		.share = client_task_share,
		.room = client_task_room,
		.hold = client_task_hold,
		.done = client_task_done,
		.calls_max = calls_max(config),
	};
	w->host.env.seed = random_next(&w->host.env.random);
	w->collection_options = (struct collection_options){
		.base_size = config->base_size,
		.segment_size = config->segment_size,
		.log_size = config->log_size,
		.table_size = config->table_size,
		.cache = config->cache_memory / config->threads,
		.result_max = config->max_result,
		.merges = config->merges,
	};
	w->host.env.options = &w->collection_options;
	w->host.lanes = lanes_create(&w->host.env, &machines);
	w->server_options = (struct server_options){
		.connect_timeout = config->connect_timeout,
		.request_timeout = config->request_timeout,
		.retry_min = config->retry_min,
		.retry_max = config->retry_max > config->retry_min ? config->retry_max : config->retry_min,
		.queue = config->server_queue,
		.value_max = config->max_value,
		.tls = config->server_tls ? w->daemon->tls : NULL,
	};
}

struct worker *worker_start(struct daemon *daemon, uint64_t seed)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	w->daemon = daemon;
	TAILQ_INIT(&w->clients);
	init_host(w, seed);
	loop_init(&w->loop);
	deferred_init(&w->deferred, &w->loop);
	limits_init(w);
	client_turns_init(w);
	w->loop.turn = at_turn;
	w->loop.turn_arg = w;
	at_turn(&w->loop, w);
	w->servers = servers_create(&w->loop, daemon->ring, &w->server_options, &w->host.env.random);
	if (pipe(w->mailbox) < 0)
		abort();
	evutil_make_socket_nonblocking(w->mailbox[0]);
	event_assign(&w->mail, w->loop.base, w->mailbox[0], EV_READ | EV_PERSIST, on_mail, w);
	event_assign(&w->deadline, w->loop.base, -1, 0, on_deadline, w);
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

void worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	servers_stop(w->servers);
	while (w->deferred.count) {
		deferred_run_all(&w->deferred);
		servers_drain(w->servers);
	}
	servers_free(w->servers);
	deferred_fini(&w->deferred);
	limits_fini(w);
	event_del(&w->mail);
	event_del(&w->deadline);
	close(w->mailbox[0]);
	close(w->mailbox[1]);
	client_free_closed(w);
	client_turns_fini(w);
	loop_fini(&w->loop);
	lanes_destroy(w->host.lanes);
	pool_free(&w->pool);
	buf_free(&w->trash);
	free(w);
}
