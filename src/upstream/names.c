#include "upstream/names.h"

#include <ares.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "upstream/lookup.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/num.h"

enum {
	QUERY_MS = 2000,       /* Timeout of the first query; doubled for each repetition. */
	QUERY_TRIES = 3,       /* Per name server. */
	FIRST_PAUSE_MS = 1000, /* Before a failed lookup is repeated; doubled each time. */
	LONGEST_PAUSE_MS = 10000,
	LOOK_MS = 1000, /* Interval of rereading the files while a lookup is in progress. */
	LISTENERS = 64, /* At least the number of worker threads. */
	SOCKETS = 64
};

static const char *const paths[] = { "/etc/resolv.conf", "/etc/nsswitch.conf" };
static const int families[LOOKUP_FAMILIES] = { [LOOKUP_V4] = AF_INET, [LOOKUP_V6] = AF_INET6 };
static const size_t lengths[LOOKUP_FAMILIES] = { [LOOKUP_V4] = 4, [LOOKUP_V6] = 16 };

/* The reason for a warning. */
enum trouble { NO_TROUBLE, UNRESOLVED, SEVERAL, CHANGED };

/* The lookups of one family. */
struct question {
	struct name *name;
	bool asked; /* The lookup is in progress in c-ares. */
	bool again; /* It was requested again meanwhile, so its answer may be too old. */
	bool fresh; /* It was answered since it was last requested. */
	uint64_t ended;
};

struct name {
	LIST_ENTRY(name) link;
	struct names *names;
	char *host;
	bool all;
	unsigned users;
	struct question questions[LOOKUP_FAMILIES];
	struct lookup lookups[LOOKUP_FAMILIES];
	struct lookup_choice choice; /* The last unambiguous addresses. */
	bool suspect;                /* No connection has been made since one failed. */
	/* Milliseconds before a failed lookup is repeated; 0 if none has failed. */
	uint64_t pause;
	enum trouble trouble; /* The current reason for a warning. */
	char *expected;       /* Addresses of the ring; or NULL. */
	char *changed;        /* Addresses found by the last check; or NULL. */
};

struct names {
	pthread_mutex_t lock; /* Protects everything below that is not used only by the thread. */
	pthread_cond_t ended; /* Signalled when a lookup has ended. */
	pthread_t thread;
	bool running, stopping;
	int wake[2]; /* Pipe to the thread. */
	LIST_HEAD(, name) list;
	uint64_t interval;
	int listeners[LISTENERS];
	size_t listener_count;
	bool news; /* A lookup has ended, and the listeners have not been notified yet. */
	/* Used only by the thread: */
	ares_channel channel;
	struct buf files; /* Files from which the channel was created. */
	struct pollfd sockets[SOCKETS];
	nfds_t socket_count;
};

static uint64_t now_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

static void wake_thread(struct names *all)
{
	(void)!write(all->wake[1], "", 1);
}

/* --- addresses --- */

bool names_parse(const char *host, uint16_t port, union server_sockaddr *out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
			*found;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found) != 0)
		return false;
	memcpy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return true;
}

static void print(const struct lookup *lookup, int family, struct buf *out)
{
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < lookup->count; i++) {
		inet_ntop(families[family], lookup->at[i], text, sizeof(text));
		buf_printf(out, "%s%s", i ? " " : "", text);
	}
}

/* --- outcomes --- */

/* Writes to `why` which addresses are too many. */
static void explain_several(const struct name *n, char why[NAME_WHY])
{
	struct buf text = BUF_EMPTY;
	int family = n->lookups[LOOKUP_V4].count > 1 ? LOOKUP_V4 : LOOKUP_V6;

	print(&n->lookups[family], family, &text);
	BUF_ADD(&text, "\0");
	snprintf(why, NAME_WHY,
		"the name has %zu addresses (%.300s), not one; with `dns:` before the name, each "
		"of them is a server",
		n->lookups[family].count, buf_slice(&text).p);
	buf_free(&text);
}

/* Returns the addresses of a name with `all`; NULL if unknown. The caller frees them. */
static char *all_addresses(const struct name *n)
{
	struct buf text = BUF_EMPTY;
	int family = lookup_all(n->lookups);
	char *copy;

	if (family < 0)
		return NULL;
	print(&n->lookups[family], family, &text);
	BUF_ADD(&text, "\0");
	copy = xstrdup(buf_slice(&text).p);
	buf_free(&text);
	return copy;
}

/* Checks whether the addresses are still the ones that the ring uses. Logs each change once. */
static enum trouble check_all(struct name *n)
{
	char *found = all_addresses(n);
	bool same = !found || !n->expected || strcmp(found, n->expected) == 0;

	if (!found)
		return n->trouble == CHANGED ? CHANGED : UNRESOLVED;
	if (!same && (!n->changed || strcmp(found, n->changed) != 0))
		log_warn("name %s: its addresses are now %s; the servers are still %s until a "
			 "reload",
			n->host, found, n->expected);
	free(n->changed);
	n->changed = found;
	return same ? NO_TROUBLE : CHANGED;
}

/*
 * Updates the state of a name after a lookup. A warning is logged when trouble begins, and a
 * notice when it is over.
 */
static void judge_name(struct name *n)
{
	const char *failure = lookup_failure(n->lookups, n->all);
	enum trouble before = n->trouble;
	char why[NAME_WHY];

	if (!lookup_is_decided(n->lookups, n->all))
		return;
	if (n->all)
		n->trouble = check_all(n);
	else if (lookup_choose(n->lookups, &n->choice) == LOOKUP_SEVERAL)
		n->trouble = SEVERAL;
	else
		n->trouble = failure ? UNRESOLVED : NO_TROUBLE;
	if (n->trouble == before || !n->names->listener_count || (n->all && !n->expected))
		return;
	if (n->trouble == UNRESOLVED)
		log_warn("name %s: cannot be resolved: %s%s", n->host, failure,
			n->expected || n->choice.has[0] || n->choice.has[1]
				? "; the known addresses stay in use"
				: "");
	if (n->trouble == SEVERAL) {
		explain_several(n, why);
		log_warn("name %s: %s", n->host, why);
	}
	if (n->trouble == NO_TROUBLE)
		log_notice("name %s: %s", n->host,
			before == CHANGED ? "its addresses match the servers again" : "resolved");
}

/* --- when to look up --- */

static bool is_doubtful(const struct name *n)
{
	return n->suspect || n->trouble == UNRESOLVED;
}

static uint64_t longest_pause(const struct name *n)
{
	return n->names->interval ? n->names->interval : LONGEST_PAUSE_MS;
}

static uint64_t first_pause(const struct name *n)
{
	return num_least(FIRST_PAUSE_MS, longest_pause(n));
}

/* Returns when the question is due again. */
static uint64_t question_due(const struct question *q)
{
	const struct name *n = q->name;

	if (!q->fresh)
		return 0;
	if (is_doubtful(n))
		return q->ended + (n->pause ? n->pause : first_pause(n));
	return n->names->interval ? q->ended + n->names->interval : UINT64_MAX;
}

static void plan_pause(struct name *n)
{
	if (!is_doubtful(n))
		n->pause = 0;
	else
		n->pause = n->pause ? num_least(n->pause * 2, longest_pause(n)) : first_pause(n);
}

/* --- answers --- */

static void take_found(struct lookup *lookup, int family, const struct ares_addrinfo *found)
{
	const struct ares_addrinfo_node *node;
	unsigned char(*at)[LOOKUP_BYTES];
	size_t count = 0, i = 0;

	for (node = found->nodes; node; node = node->ai_next)
		count += node->ai_family == families[family];
	if (count == 0) {
		lookup_miss(lookup, LOOKUP_NONE, "it has no address");
		return;
	}
	at = xcalloc(count, LOOKUP_BYTES);
	for (node = found->nodes; node; node = node->ai_next) {
		const void *address = node->ai_addr;
		if (node->ai_family != families[family])
			continue;
		if (family == LOOKUP_V4)
			memcpy(at[i++], &((const struct sockaddr_in *)address)->sin_addr,
				lengths[family]);
		else
			memcpy(at[i++], &((const struct sockaddr_in6 *)address)->sin6_addr,
				lengths[family]);
	}
	lookup_find(lookup, at, count, xstrdup(found->name ? found->name : ""));
}

static void end_question(struct question *q, int family)
{
	struct name *n = q->name;

	q->asked = false;
	q->fresh = true;
	q->ended = now_ms();
	judge_name(n);
	if (family == LOOKUP_V4)
		plan_pause(n);
	n->names->news = true;
	pthread_cond_broadcast(&n->names->ended);
}

/* Called by c-ares, with the lock held. */
static void names_on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
	struct question *q = arg;
	struct name *n = q->name;
	int family = q == &n->questions[LOOKUP_V4] ? LOOKUP_V4 : LOOKUP_V6;
	struct lookup *lookup = &n->lookups[family];

	(void)timeouts;
	q->asked = false;
	if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED)
		return;
	if (q->again) {
		if (found)
			ares_freeaddrinfo(found);
		return;
	}
	if (status == ARES_SUCCESS)
		take_found(lookup, family, found);
	else if (status == ARES_ENOTFOUND)
		lookup_miss(lookup, LOOKUP_NONE, "it does not exist");
	else if (status == ARES_ENODATA)
		lookup_miss(lookup, LOOKUP_NONE, "it has no address");
	else
		lookup_miss(lookup, LOOKUP_FAILED, ares_strerror(status));
	if (found)
		ares_freeaddrinfo(found);
	end_question(q, family);
}

/* --- the thread --- */

static void names_on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct names *all = arg;
	short events = (short)((readable ? POLLIN : 0) | (writable ? POLLOUT : 0));
	nfds_t i = 0;

	while (i < all->socket_count && all->sockets[i].fd != fd)
		i++;
	if (i < all->socket_count && events)
		all->sockets[i].events = events;
	else if (i < all->socket_count)
		all->sockets[i] = all->sockets[--all->socket_count];
	else if (events && i < SOCKETS)
		all->sockets[all->socket_count++] = (struct pollfd){ .fd = fd, .events = events };
}

static void read_file(const char *path, struct buf *out)
{
	enum { MOST = 1 << 16 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, buf_reserve(out, MOST), MOST);

	if (n > 0)
		buf_commit(out, (size_t)n);
	if (fd >= 0)
		close(fd);
	BUF_ADD(out, "\0");
}

/*
 * systemd-resolved writes `search .`, which is no domain to search. c-ares before 1.19 rejects
 * names with it. So a channel that has it is replaced by one with the other domains.
 */
static void leave_out_root(struct names *all, struct ares_options *options, int mask)
{
	struct ares_options saved;
	int saved_mask = 0, kept = 0, count;

	if (ares_save_options(all->channel, &saved, &saved_mask) != ARES_SUCCESS)
		return;
	count = saved_mask & ARES_OPT_DOMAINS ? saved.ndomains : 0;
	options->domains = xcalloc((size_t)count + 1, sizeof(options->domains[0]));
	for (int i = 0; i < count; i++) {
		if (strcmp(saved.domains[i], ".") != 0)
			options->domains[kept++] = saved.domains[i];
	}
	options->ndomains = kept;
	if (kept < count) {
		ares_destroy(all->channel);
		if (ares_init_options(&all->channel, options, mask | ARES_OPT_DOMAINS) !=
			ARES_SUCCESS)
			all->channel = NULL;
	}
	free(options->domains);
	ares_destroy_options(&saved);
}

static void open_channel(struct names *all)
{
	struct ares_options options = { .timeout = QUERY_MS,
		.tries = QUERY_TRIES,
		.sock_state_cb = names_on_socket,
		.sock_state_cb_data = all };
	int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;

	/* Newer versions of c-ares cache answers unless that is turned off. */
#ifdef ARES_OPT_QUERY_CACHE
	options.qcache_max_ttl = 0;
	mask |= ARES_OPT_QUERY_CACHE;
#endif
	all->channel = NULL;
	if (ares_init_options(&all->channel, &options, mask) == ARES_SUCCESS)
		leave_out_root(all, &options, mask);
	if (!all->channel)
		log_rare("names: c-ares rejects its configuration");
}

/* Creates a new channel if the files have changed. Pending questions are repeated on it. */
static void follow_files(struct names *all)
{
	struct buf files = BUF_EMPTY;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		read_file(paths[i], &files);
	if (all->channel && slice_equal(buf_slice(&files), buf_slice(&all->files))) {
		buf_free(&files);
		return;
	}
	buf_free(&all->files);
	all->files = files;
	if (all->channel)
		ares_destroy(all->channel);
	open_channel(all);
}

static void free_name(struct name *n)
{
	LIST_REMOVE(n, link);
	for (int i = 0; i < LOOKUP_FAMILIES; i++)
		lookup_free(&n->lookups[i]);
	free(n->host);
	free(n->expected);
	free(n->changed);
	free(n);
}

/* c-ares 1.18 answers this question itself, unless a file does, and leaks a name each time. */
static void answer_localhost(struct question *q)
{
	unsigned char(*at)[LOOKUP_BYTES] = xcalloc(1, LOOKUP_BYTES);

	memcpy(at[0], &in6addr_loopback, sizeof(in6addr_loopback));
	lookup_find(&q->name->lookups[LOOKUP_V6], at, 1, xstrdup(q->name->host));
	end_question(q, LOOKUP_V6);
}

static void ask_question(struct names *all, struct question *q, int family)
{
	/* Without a socket type there would be one result for each. Addresses are sorted later. */
	const struct ares_addrinfo_hints hints = { .ai_family = families[family],
		.ai_socktype = SOCK_STREAM,
		.ai_flags = ARES_AI_NOSORT };

	q->asked = true;
	q->again = q->fresh = false;
	if (family == LOOKUP_V6 && strcasecmp(q->name->host, "localhost") == 0)
		answer_localhost(q);
	else
		ares_getaddrinfo(all->channel, q->name->host, NULL, &hints, names_on_answer, q);
}

/* Sends the questions that are due. Returns when the next one is due. */
static uint64_t ask_all(struct names *all)
{
	uint64_t now = now_ms(), next = UINT64_MAX;
	struct name *n, *following;

	for (n = LIST_FIRST(&all->list); n; n = following) {
		bool asked = false;
		following = LIST_NEXT(n, link);
		for (int i = 0; i < LOOKUP_FAMILIES; i++) {
			struct question *q = &n->questions[i];
			if (!q->asked && n->users && all->channel && question_due(q) <= now)
				ask_question(all, q, i);
			asked |= q->asked;
			if (n->users)
				next = num_least(next,
					q->asked || !all->channel ? now + LOOK_MS
								  : question_due(q));
		}
		if (!n->users && !asked)
			free_name(n);
	}
	return next;
}

static void tell_listeners(struct names *all)
{
	for (size_t i = 0; i < all->listener_count && all->news; i++)
		(void)!write(all->listeners[i], "", 1);
	all->news = false;
}

/* Returns the milliseconds until c-ares has a timeout or the next question is due. */
static int timeout_of(struct names *all, uint64_t next)
{
	uint64_t now = now_ms(), ms = next > now ? num_least(next - now, 60000) : 0;
	struct timeval most = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) }, room,
		       *left = &most;

	if (all->channel)
		left = ares_timeout(all->channel, &most, &room);
	return (int)(left->tv_sec * 1000 + (left->tv_usec + 999) / 1000);
}

static void process(struct names *all, const struct pollfd *ready, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		bool reads = ready[i].revents & (POLLIN | POLLERR | POLLHUP),
		     writes = ready[i].revents & POLLOUT;
		if (reads || writes)
			ares_process_fd(all->channel, reads ? ready[i].fd : ARES_SOCKET_BAD,
				writes ? ready[i].fd : ARES_SOCKET_BAD);
	}
	/*
	 * Timeouts are handled after the answers: if the process was suspended, answers may
	 * have arrived in time.
	 */
	ares_process_fd(all->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void wait_for_events(struct names *all, uint64_t next)
{
	struct pollfd ready[SOCKETS + 1];
	nfds_t count = all->socket_count;
	int timeout = timeout_of(all, next);
	char bytes[64];

	memcpy(ready, all->sockets, count * sizeof(ready[0]));
	ready[count] = (struct pollfd){ .fd = all->wake[0], .events = POLLIN };
	pthread_mutex_unlock(&all->lock);
	(void)poll(ready, count + 1, timeout);
	pthread_mutex_lock(&all->lock);
	if (ready[count].revents)
		(void)!read(all->wake[0], bytes, sizeof(bytes));
	if (all->channel)
		process(all, ready, count);
}

static void *names_run(void *arg)
{
	struct names *all = arg;
	uint64_t next;

	pthread_mutex_lock(&all->lock);
	while (!all->stopping) {
		follow_files(all);
		next = ask_all(all);
		tell_listeners(all);
		wait_for_events(all, next);
	}
	if (all->channel)
		ares_destroy(all->channel);
	all->channel = NULL;
	/* No channel is left, so this only frees the names. */
	ask_all(all);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Starts the thread with all signals blocked, since they are for the main thread. */
static void start_thread(struct names *all)
{
	sigset_t every, before;

	all->running = true;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	if (pthread_create(&all->thread, NULL, names_run, all) != 0)
		abort();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- all names --- */

struct names *names_create(void)
{
	struct names *all = xcalloc(1, sizeof(*all));
	pthread_condattr_t attributes;

	if (ares_library_init_mem(ARES_LIB_INIT_ALL, xmalloc, free, xrealloc) != ARES_SUCCESS ||
		pipe2(all->wake, O_CLOEXEC | O_NONBLOCK) < 0)
		abort();
	pthread_mutex_init(&all->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&all->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	all->interval = LONGEST_PAUSE_MS;
	LIST_INIT(&all->list);
	return all;
}

void names_destroy(struct names *all)
{
	pthread_mutex_lock(&all->lock);
	all->stopping = true;
	pthread_mutex_unlock(&all->lock);
	wake_thread(all);
	if (all->running)
		pthread_join(all->thread, NULL);
	buf_free(&all->files);
	close(all->wake[0]);
	close(all->wake[1]);
	pthread_cond_destroy(&all->ended);
	pthread_mutex_destroy(&all->lock);
	ares_library_cleanup();
	free(all);
}

void names_set_interval(struct names *all, uint64_t ms)
{
	pthread_mutex_lock(&all->lock);
	all->interval = ms;
	pthread_mutex_unlock(&all->lock);
	wake_thread(all);
}

void names_listen(struct names *all, int fd)
{
	pthread_mutex_lock(&all->lock);
	if (all->listener_count == LISTENERS)
		abort();
	all->listeners[all->listener_count++] = fd;
	pthread_mutex_unlock(&all->lock);
}

void names_unlisten(struct names *all, int fd)
{
	size_t i = 0;

	pthread_mutex_lock(&all->lock);
	while (all->listeners[i] != fd)
		i++;
	all->listeners[i] = all->listeners[--all->listener_count];
	pthread_mutex_unlock(&all->lock);
}

uint64_t names_changed(struct names *all)
{
	const struct name *n;
	uint64_t count = 0;

	pthread_mutex_lock(&all->lock);
	LIST_FOREACH(n, &all->list, link)
		count += n->expected && n->trouble == CHANGED;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* --- one name --- */

/* Makes name_await() wait for the next lookup. */
static void refresh(struct name *n)
{
	for (int i = 0; i < LOOKUP_FAMILIES; i++) {
		n->lookups[i].last = LOOKUP_PENDING;
		n->questions[i].again = n->questions[i].asked;
		n->questions[i].fresh = false;
	}
}

struct name *name_get(struct names *all, const char *host, bool every)
{
	struct name *n;

	pthread_mutex_lock(&all->lock);
	n = LIST_FIRST(&all->list);
	while (n && (n->all != every || strcmp(n->host, host) != 0))
		n = LIST_NEXT(n, link);
	if (!n) {
		n = xcalloc(1, sizeof(*n));
		n->names = all;
		n->host = xstrdup(host);
		n->all = every;
		for (int i = 0; i < LOOKUP_FAMILIES; i++)
			n->questions[i].name = n;
		LIST_INSERT_HEAD(&all->list, n, link);
	} else if (every) {
		refresh(n);
	}
	n->users++;
	wake_thread(all);
	if (!all->running)
		start_thread(all);
	pthread_mutex_unlock(&all->lock);
	return n;
}

void name_drop(struct name *n)
{
	struct names *all = n->names;

	pthread_mutex_lock(&all->lock);
	if (--n->users == 0)
		wake_thread(all);
	pthread_mutex_unlock(&all->lock);
}

void name_await(struct name *n, uint64_t deadline)
{
	struct timespec until = { (time_t)(deadline / 1000), (long)(deadline % 1000) * 1000000 };
	struct names *all = n->names;

	pthread_mutex_lock(&all->lock);
	while (!lookup_is_decided(n->lookups, n->all) && now_ms() < deadline)
		(void)pthread_cond_timedwait(&all->ended, &all->lock, &until);
	pthread_mutex_unlock(&all->lock);
}

bool name_addresses(struct name *n, struct buf *out, char why[NAME_WHY])
{
	char *found;

	pthread_mutex_lock(&n->names->lock);
	found = all_addresses(n);
	if (found)
		buf_add(out, found, strlen(found));
	else
		snprintf(why, NAME_WHY, "the addresses of the name are not known: %s",
			lookup_failure(n->lookups, true));
	pthread_mutex_unlock(&n->names->lock);
	free(found);
	return found;
}

void name_expect(struct name *n, const char *addresses)
{
	pthread_mutex_lock(&n->names->lock);
	free(n->expected);
	n->expected = addresses ? xstrdup(addresses) : NULL;
	judge_name(n);
	pthread_mutex_unlock(&n->names->lock);
}

bool name_is_several(struct name *n, char why[NAME_WHY])
{
	struct lookup_choice choice;
	bool several;

	pthread_mutex_lock(&n->names->lock);
	several = lookup_choose(n->lookups, &choice) == LOOKUP_SEVERAL;
	if (several)
		explain_several(n, why);
	pthread_mutex_unlock(&n->names->lock);
	return several;
}

static void set_address(
	const struct lookup_choice *choice, int family, uint16_t port, union server_sockaddr *out)
{
	*out = (union server_sockaddr){ .any = { .sa_family = (sa_family_t)families[family] } };
	if (family == LOOKUP_V4) {
		memcpy(&out->in.sin_addr, choice->at[family], lengths[family]);
		out->in.sin_port = htons(port);
	} else {
		memcpy(&out->in6.sin6_addr, choice->at[family], lengths[family]);
		out->in6.sin6_port = htons(port);
	}
}

static void explain(const struct name *n, char why[NAME_WHY])
{
	const char *failure = lookup_failure(n->lookups, false);

	if (failure)
		snprintf(why, NAME_WHY, "its name cannot be resolved: %s", failure);
	else
		explain_several(n, why);
}

bool name_choose(struct name *n, unsigned nth, uint16_t port, union server_sockaddr *out,
	bool *final, char why[NAME_WHY])
{
	bool found;

	pthread_mutex_lock(&n->names->lock);
	found = n->choice.has[LOOKUP_V4] || n->choice.has[LOOKUP_V6];
	*final = found || lookup_is_decided(n->lookups, false);
	if (found)
		set_address(&n->choice,
			!n->choice.has[LOOKUP_V4] || (n->choice.has[LOOKUP_V6] && nth % 2)
				? LOOKUP_V6
				: LOOKUP_V4,
			port, out);
	else
		explain(n, why);
	pthread_mutex_unlock(&n->names->lock);
	return found;
}

bool name_has(struct name *n, const union server_sockaddr *address)
{
	int family = address->any.sa_family == AF_INET ? LOOKUP_V4 : LOOKUP_V6;
	const void *bytes =
		family == LOOKUP_V4 ? (const void *)&address->in.sin_addr : &address->in6.sin6_addr;
	bool has;

	pthread_mutex_lock(&n->names->lock);
	has = n->choice.has[family] && memcmp(n->choice.at[family], bytes, lengths[family]) == 0;
	pthread_mutex_unlock(&n->names->lock);
	return has;
}

void name_suspect(struct name *n, bool suspect)
{
	pthread_mutex_lock(&n->names->lock);
	if (n->suspect != suspect) {
		n->suspect = suspect;
		wake_thread(n->names);
	}
	pthread_mutex_unlock(&n->names->lock);
}
