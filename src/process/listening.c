#include "process/listening.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/log.h"
#include "util/num.h"
#include "worker/worker.h"

/* The first descriptor that a parent process passes. */
enum { INHERITED_FIRST = 3, INHERITED_MAX = 64 };

/* Maximum number of clients accepted in one turn. */
enum { ACCEPT_MOST = 64 };

struct entry {
	struct address address;
	struct listener *listener;
	bool wanted; /* Is in the latest configuration. */
	bool is_new;
	bool inherited;
};

struct listening {
	struct entry *entries;
	size_t count;
};

static struct entry *add_entry(struct listening *l, struct listener *listener)
{
	l->entries = xrealloc(l->entries, (l->count + 1) * sizeof(*l->entries));
	l->entries[l->count] =
		(struct entry){ .listener = listener, .wanted = true, .is_new = true };
	return &l->entries[l->count++];
}

/* Closes listeners that are not in the configuration any more. */
static void sweep(struct listening *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (l->entries[i].wanted)
			l->entries[kept++] = l->entries[i];
		else
			listener_destroy(l->entries[i].listener);
	}
	l->count = kept;
}

struct listening *listening_create(void)
{
	return xcalloc(1, sizeof(struct listening));
}

/* --- from the parent --- */

static int64_t number_in(const char *name)
{
	const char *text = getenv(name);
	int64_t n;

	return text && num_parse_i64(slice_of(text, strlen(text)), &n) ? n : -1;
}

bool listening_inherit(struct listening *l, struct buf *errors)
{
	int64_t count = number_in("LISTEN_FDS");
	char why[256];

	if (count <= 0 || number_in("LISTEN_PID") != getpid())
		return true;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int fd = INHERITED_FIRST;
		fd < INHERITED_FIRST + (count < INHERITED_MAX ? count : INHERITED_MAX); fd++) {
		int listens = 0;
		socklen_t n = sizeof(listens);
		struct listener *listener = NULL;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0)
			snprintf(why, sizeof(why), "%s", strerror(errno));
		else if (!listens)
			snprintf(why, sizeof(why), "not a listening socket");
		else
			listener = listener_adopt(fd, why);
		if (!listener) {
			buf_printf(errors, "cannot listen: descriptor %d of LISTEN_FDS: %s\n", fd,
				why);
			listening_close(l);
			return false;
		}
		add_entry(l, listener)->inherited = true;
	}
	return true;
}

/* --- from the configuration --- */

static struct entry *find_entry(struct listening *l, const struct address *address)
{
	for (size_t i = 0; i < l->count; i++) {
		if (address_same(&l->entries[i].address, address))
			return &l->entries[i];
	}
	return NULL;
}

bool listening_is_inherited(const struct listening *l)
{
	return l->count && l->entries[0].inherited;
}

bool listening_prepare(struct listening *l, const struct config *config, struct buf *errors)
{
	char why[256];

	if (listening_is_inherited(l))
		return true;
	for (size_t i = 0; i < l->count; i++)
		l->entries[i].wanted = false;
	for (size_t i = 0; i < config->listen.count; i++) {
		const struct address *a = &config->listen.at[i];
		struct listener_place place = { a->host, a->port, config->socket_mode,
			config->reuseport };
		struct entry *entry = find_entry(l, a);

		if (!entry) {
			struct listener *listener = listener_create(&place, why);
			if (!listener) {
				(void)config_fault(
					config, a->line, errors, "cannot listen: %s", why);
				goto undo;
			}
			entry = add_entry(l, listener);
		}
		entry->wanted = true;
		entry->address = *a;
	}
	if (config->listen.count > 0)
		return true;
	(void)config_fault(config, 0, errors, "cannot listen: no address to listen on");
undo:
	for (size_t i = 0; i < l->count; i++)
		l->entries[i].wanted = !l->entries[i].is_new;
	sweep(l);
	return false;
}

void listening_commit(struct listening *l, const struct settings *settings, struct worker *worker)
{
	sweep(l);
	for (struct entry *e = l->entries; e < l->entries + l->count; e++) {
		listener_use_tls(e->listener, e->address.tls ? settings->tls : NULL);
		if (e->is_new) {
			listener_start(
				e->listener, worker->loop.base, ACCEPT_MOST, worker_accept, worker);
		} else {
			listener_set_mode(e->listener, settings->config.socket_mode);
			if (settings->config.reuseport && !e->inherited)
				listener_share(e->listener);
		}
		e->is_new = false;
	}
}

/* --- closing --- */

bool listening_step_aside(struct listening *l)
{
	bool aside = false;

	for (size_t i = 0; i < l->count; i++)
		aside |= listener_step_aside(l->entries[i].listener);
	return aside;
}

void listening_close(struct listening *l)
{
	for (size_t i = 0; i < l->count; i++)
		l->entries[i].wanted = false;
	sweep(l);
}

void listening_destroy(struct listening *l)
{
	listening_close(l);
	free(l->entries);
	free(l);
}
