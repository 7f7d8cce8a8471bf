#include "collection/copies/absences.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

enum {
	WITNESSES_MAX = 3,
	TAKERS = 2,    /* the number of witnesses that must take a raised absence */
	WRITES_MAX = 8 /* attempts of a raise at one witness; other proxies may overtake them */
};

/* A call to a witness. */
struct witness {
	struct waiter waiter;
	struct absence *of;
	struct absence_read *read; /* NULL: it is part of a raise */
	int server, writes;
};

/* The absence of a server. Of the stamps, 0 is none. */
struct absence {
	struct absences *all;
	struct buf key;
	uint64_t known;   /* the largest one that was read or raised */
	uint64_t raised;  /* the last one that this proxy raised, and all proxies see */
	uint64_t raising; /* the one that is being raised */
	struct absence_waiter *sharing, *queued;
	int pending, taken; /* witnesses without a result, and the ones that have taken `raising` */
	struct witness witnesses[WITNESSES_MAX];
};

/* A read of the absences of all servers. */
struct absence_read {
	uint64_t sent; /* by env.now */
	struct absence_waiter *sharing;
	size_t pending;
	int unread; /* servers for which no majority has answered yet */
	struct absence_answers {
		int answers, failures;
		struct witness witnesses[WITNESSES_MAX];
	} of[];
};

struct absences {
	struct absences_options options;
	int witnesses;             /* of each server */
	struct absence_read *read; /* the latest one, if it is in progress; else NULL */
	uint64_t known_before;     /* by env.now; from then on absences must be read again */
	uint64_t until;            /* the latest result of absent_until */
	uint64_t latest;           /* the largest absence that is known */
	uint64_t changes;          /* counts absences that became known */
	size_t pending;            /* reads and raises */
	uint64_t raised;           /* counts raises that have succeeded */
	struct absence of[];
};

typedef void waiter_done(struct waiter *waiter, const struct result *r);
static waiter_done absences_on_witness, absences_on_raised;
static const struct call get = { .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS };

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void note_known(struct absence *y, uint64_t stamp)
{
	y->all->changes += stamp > y->known;
	y->known = larger(y->known, stamp);
	y->all->latest = larger(y->all->latest, stamp);
}

/* A queue is its last waiter, whose `next` is the first one. */
static void add_waiter(struct absence_waiter **queue, struct absence_waiter *waiter)
{
	waiter->next = *queue ? (*queue)->next : waiter;
	if (*queue)
		(*queue)->next = waiter;
	*queue = waiter;
}

/* The waiters may make other requests, so the caller has removed the queue. */
static void end_waiters(struct absence_waiter *last, bool ok)
{
	struct absence_waiter *waiter, *next = last ? last->next : NULL;

	while ((waiter = next)) {
		next = waiter == last ? NULL : waiter->next;
		waiter->done(waiter, ok);
	}
}

static void call_witness(struct witness *w, struct call call, waiter_done *done)
{
	const struct absences_options *options = &w->of->all->options;

	call.server = w->server;
	call.key = buf_slice(&w->of->key);
	w->waiter = (struct waiter){ done, call.key };
	options->call(options->env, &call, &w->waiter);
}

static void call_witnesses(
	struct absence *y, struct witness *w, struct absence_read *read, waiter_done *done)
{
	for (int i = 1; i <= y->all->witnesses; i++) {
		int server = ((int)(y - y->all->of) + i) % y->all->options.servers;
		*w = (struct witness){ .of = y, .read = read, .server = server };
		call_witness(w++, get, done);
	}
}

/*
 * Stores the absence that a witness has returned, 0 if it has none. Returns false if the result is
 * not an answer. A malformed value is not one, since it may have been any absence.
 */
static bool parse_absence(const struct result *r, uint64_t *out)
{
	*out = r->status == RESULT_HIT && r->value.n == STAMP_DIGITS ? stamp_parse(r->value.p) : 0;
	return *out || r->status == RESULT_MISS;
}

/* A read needs one of any TAKERS witnesses of each server, so a witness that hangs delays none. */
static void absences_on_read(struct waiter *waiter, const struct result *r)
{
	struct witness *w = (struct witness *)waiter;
	struct absence_read *read = w->read;
	struct absences *all = w->of->all;
	struct absence_answers *y = &read->of[w->of - all->of];
	struct absence_waiter *ending = NULL;
	uint64_t stamp;
	bool answered = parse_absence(r, &stamp), ok;

	y->answers += answered;
	y->failures += !answered;
	note_known(w->of, stamp);
	read->unread -= answered && y->answers == all->witnesses - TAKERS + 1;
	ok = read->unread == 0;
	if (ok)
		all->known_before = larger(all->known_before, read->sent + ABSENCE_LEASE_MS + 1);
	if (ok || y->failures == TAKERS) {
		ending = read->sharing;
		read->sharing = NULL;
		all->read = all->read == read ? NULL : all->read;
	}
	if (--read->pending == 0) {
		all->pending--;
		free(read);
	}
	end_waiters(ending, ok);
}

bool absences_known(const struct absences *all)
{
	return all->options.env->now < all->known_before;
}

/*
 * Another proxy may raise an absence right after a read was sent, and answer a client once
 * ABSENCE_LEASE_MS have passed. So a request after this time may not share the read.
 */
bool absences_request(struct absences *all, struct absence_waiter *waiter)
{
	uint64_t now = all->options.env->now;
	size_t servers = (size_t)all->options.servers;
	struct absence_read *read = all->read;

	if (absences_known(all))
		return true;
	if (!read || now > read->sent + ABSENCE_LEASE_MS) {
		read = xcalloc(1, sizeof(*read) + servers * sizeof(read->of[0]));
		read->sent = now;
		read->pending = servers * (size_t)all->witnesses;
		read->unread = all->options.servers;
		all->read = read;
		all->pending++;
		for (size_t y = 0; y < servers; y++)
			call_witnesses(&all->of[y], read->of[y].witnesses, read, absences_on_read);
	}
	add_waiter(&read->sharing, waiter);
	return false;
}

uint64_t absences_of(const struct absences *all, int server)
{
	return all->of[server].known;
}

/* Returns the stamp up to which a server that is absent now is absent by any clock; it grows. */
static uint64_t absent_until(struct absences *all)
{
	uint64_t now = stamp_at(all->options.clock(all->options.arg) + ABSENCE_SKEW_MS);

	all->until = larger(all->until, larger(now, all->options.stamps->last));
	return all->until;
}

/* Begins a raise for the queued waiters; in the background if there are none. */
static void begin_raise(struct absence *y, uint64_t raising)
{
	y->raising = raising;
	y->sharing = y->queued;
	y->queued = NULL;
	y->pending = y->all->witnesses;
	y->taken = 0;
	y->all->pending++;
	call_witnesses(y, y->witnesses, NULL, absences_on_witness);
}

static void begin_raise_ahead(struct absence *y)
{
	begin_raise(y, absent_until(y->all) + stamp_at(ABSENCE_AHEAD_MS));
}

static void absences_on_raised(struct waiter *waiter, const struct result *r)
{
	struct absence *y = ((struct witness *)waiter)->of;
	struct absence_waiter *ending = y->sharing;
	bool ok = y->taken >= TAKERS;

	(void)r;
	y->raised = ok ? larger(y->raised, y->raising) : y->raised;
	y->all->raised += ok;
	note_known(y, y->raised);
	y->raising = 0;
	y->all->pending--;
	if (y->queued)
		begin_raise_ahead(y);
	end_waiters(ending, ok);
}

/* After the last witness, waits until no proxy uses what it read before. */
static void end_witness(struct witness *w, bool taken)
{
	struct absence *y = w->of;
	struct env *env = y->all->options.env;

	y->taken += taken;
	if (--y->pending == 0) {
		w->waiter.done = absences_on_raised;
		env->later(env, &w->waiter, y->taken >= TAKERS ? ABSENCE_WAIT_MS : 0);
	}
}

/* Reads the absence at a witness, and raises it. After a lost race it is read again. */
static void absences_on_witness(struct waiter *waiter, const struct result *r)
{
	struct witness *w = (struct witness *)waiter;
	struct call call = { .verb = r->status == RESULT_HIT ? CALL_CAS : CALL_ADD };
	struct buf value = BUF_EMPTY;
	uint64_t stamp;
	bool answered = parse_absence(r, &stamp), taken = stamp >= w->of->raising;

	if (r->status == RESULT_NOT_STORED || r->status == RESULT_EXISTS) {
		call_witness(w, get, absences_on_witness);
	} else if (!answered || taken || w->writes++ == WRITES_MAX) {
		end_witness(w, taken || r->status == RESULT_DONE);
	} else {
		stamp_add(&value, w->of->raising);
		call.value = buf_slice(&value);
		call.number = r->cas;
		call.connection = r->connection;
		call_witness(w, call, absences_on_witness);
		buf_free(&value);
	}
}

bool absences_raise(struct absences *all, int server, struct absence_waiter *waiter)
{
	struct absence *y = &all->of[server];
	uint64_t until = absent_until(all);

	if (y->raised < until)
		add_waiter(y->raising >= until ? &y->sharing : &y->queued, waiter);
	if (!y->raising && y->raised < until + stamp_at(ABSENCE_AHEAD_MS / 2))
		begin_raise_ahead(y);
	return y->raised >= until;
}

void absences_raise_until(struct absences *all, int server, uint64_t ms)
{
	struct absence *y = &all->of[server];
	uint64_t now = absent_until(all), until = stamp_at(ms + ABSENCE_SKEW_MS);

	if (!y->raising && y->raised < until)
		begin_raise(y, until < now ? until : now);
}

uint64_t absences_latest(const struct absences *all)
{
	return all->latest;
}

uint64_t absences_changes(const struct absences *all)
{
	return all->changes;
}

uint64_t absences_raised(const struct absences *all)
{
	return all->raised;
}

bool absences_is_absent(const struct absences *all, int server)
{
	uint64_t now = stamp_at(all->options.clock(all->options.arg));

	return all->of[server].known > stamp_before(now, ABSENCE_AHEAD_MS);
}

int absences_now(const struct absences *all)
{
	int count = 0;

	for (int y = 0; y < all->options.servers; y++)
		count += absences_is_absent(all, y);
	return count;
}

struct absences *absences_create(const struct absences_options *options)
{
	int servers = options->servers;
	struct absences *all = xcalloc(1, sizeof(*all) + (size_t)servers * sizeof(all->of[0]));

	assert(servers > TAKERS);
	all->options = *options;
	all->witnesses = servers > WITNESSES_MAX ? WITNESSES_MAX : servers - 1;
	for (int y = 0; y < servers; y++) {
		all->of[y].all = all;
		BUF_ADD(&all->of[y].key, "@absent.");
		buf_add_slice(&all->of[y].key, options->name(options->arg, y));
	}
	return all;
}

bool absences_idle(const struct absences *all)
{
	return all->pending == 0;
}

void absences_destroy(struct absences *all)
{
	if (!all)
		return;
	assert(absences_idle(all));
	for (int y = 0; y < all->options.servers; y++)
		buf_free(&all->of[y].key);
	free(all);
}
