#include "command/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "collection/push_board.h"
#include "command/start.h"
#include "command/task.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/alloc.h"
#include "util/hash.h"

/* Times are in milliseconds. */
enum { KEYS_BUCKETS = 256, PAUSE_MIN = 5, PAUSE_MAX = 250, TICK_MAX = 50, LOOK_MS = 100 };

/* The queue of a key. */
struct wait_key {
	LIST_ENTRY(wait_key) bucket;
	TAILQ_ENTRY(wait_key) link; /* In the list of all queues. */
	struct waiting *room;
	TAILQ_HEAD(, wait_place) places;
	struct waiter poll;
	uint64_t poll_at; /* In the time of env.now. */
	uint64_t empty;   /* CAS id of the list when it was last found empty; 0 if it never was. */
	unsigned pause;
	size_t slot;
	uint32_t mark;
	unsigned pushes; /* Count of pushes in the slot that were already handled. */
	bool polls;      /* A call is in flight. */
	bool asks;       /* A task pops. */
	bool again;      /* The list may have changed meanwhile. */
	char key[];
};

/* The place of a task in the queue of one of its keys. */
struct wait_place {
	TAILQ_ENTRY(wait_place) link;
	struct wait_task *task;
	struct wait_key *line; /* NULL before it is queued. */
	struct slice key;
};

struct wait_task {
	struct task task;
	struct nest nest;
	TAILQ_ENTRY(wait_task) link; /* In the list of queued tasks. */
	struct waiting *room;
	const struct command *inside;
	uint64_t deadline;     /* In the time of env.now; UINT64_MAX for none. */
	size_t count;          /* Number of keys. */
	size_t at, end;        /* The range of keys to try now. */
	struct slice rest;     /* The line of `inside` after the key. */
	struct wait_key *line; /* The queue for which it tries to pop, or NULL. */
	bool waits, tries;
	struct wait_place places[];
};

struct waiting {
	struct host *host;
	struct push_board *board;
	size_t max, count; /* Queued tasks: the limit, and the current number. */
	size_t calls;      /* Calls in flight, including the timer. */
	TAILQ_HEAD(, wait_task) tasks;
	TAILQ_HEAD(, wait_key) keys;
	LIST_HEAD(, wait_key) buckets[KEYS_BUCKETS];
	/* Next elements of walks over all tasks and queues. Advanced if the element leaves. */
	struct wait_task *next_task;
	struct wait_key *next_line;
	struct waiter timer;
	uint64_t deadline; /* The earliest deadline, or an earlier time. */
	/* In the time of env.now: when to check for clients that send no more. */
	uint64_t look_at;
	bool is_timed, ended;
};

static void wake(struct wait_key *line);
static void start_timer(struct waiting *room);

struct waiting *waiting_create(struct host *host, struct push_board *board, size_t max)
{
	struct waiting *room = xcalloc(1, sizeof(*room));

	room->host = host;
	room->board = board;
	room->max = max;
	TAILQ_INIT(&room->tasks);
	TAILQ_INIT(&room->keys);
	return room;
}

void waiting_destroy(struct waiting *room)
{
	free(room);
}

size_t waiting_count(const struct waiting *room)
{
	return room->count;
}

bool waiting_idle(const struct waiting *room)
{
	return room->count == 0 && room->calls == 0 && TAILQ_EMPTY(&room->keys);
}

/* --- queues --- */

static struct wait_key *find(const struct waiting *room, struct slice key)
{
	struct wait_key *line;

	LIST_FOREACH(line, &room->buckets[hash_slice(key, room->host->env.seed) % KEYS_BUCKETS], bucket) {
		if (slice_equal(line->poll.key, key))
			return line;
	}
	return NULL;
}

static void polled(struct waiter *waiter, const struct result *r);

static struct wait_key *add_line(struct waiting *room, struct slice key)
{
	struct wait_key *line = xcalloc(1, sizeof(*line) + key.n);

	slice_write(line->key, key);
	line->room = room;
	line->poll = (struct waiter){ polled, slice_of(line->key, key.n) };
	line->pause = PAUSE_MIN;
	line->poll_at = room->host->env.now + PAUSE_MIN;
	TAILQ_INIT(&line->places);
	TAILQ_INSERT_TAIL(&room->keys, line, link);
	LIST_INSERT_HEAD(&room->buckets[hash_slice(key, room->host->env.seed) % KEYS_BUCKETS], line, bucket);
	if (room->board) {
		line->slot = push_board_slot(room->board, key);
		line->mark = push_board_mark(room->board, key);
		push_board_wait(room->board, line->slot, true);
		line->pushes = push_board_pushes(room->board, line->slot);
	}
	return line;
}

/* Frees the queue if it is not in use any more. */
static void settle(struct wait_key *line)
{
	if (!TAILQ_EMPTY(&line->places) || line->polls || line->asks)
		return;
	if (line->room->next_line == line)
		line->room->next_line = TAILQ_NEXT(line, link);
	TAILQ_REMOVE(&line->room->keys, line, link);
	LIST_REMOVE(line, bucket);
	if (line->room->board)
		push_board_wait(line->room->board, line->slot, false);
	free(line);
}

static void leave(struct wait_task *w)
{
	if (!w->waits)
		return;
	w->waits = false;
	w->room->count--;
	if (w->room->board)
		push_board_leave(w->room->board);
	if (w->room->next_task == w)
		w->room->next_task = TAILQ_NEXT(w, link);
	TAILQ_REMOVE(&w->room->tasks, w, link);
	for (size_t i = 0; i < w->count; i++) {
		struct wait_place *place = &w->places[i];
		TAILQ_REMOVE(&place->line->places, place, link);
		settle(place->line);
	}
}

/* --- a task --- */

static void end(struct wait_task *w, const struct reply *reply)
{
	leave(w);
	task_say(&w->task, reply);
}

static void end_in_vain(struct wait_task *w)
{
	leave(w);
	task_say_word(&w->task, WORD_END);
}

static bool is_over(const struct wait_task *w)
{
	const struct host *host = w->room->host;

	if (task_is_abandoned(&w->task) || w->room->ended || w->deadline <= host->env.now)
		return true;
	return host->ended && host->ended(w->task.owner, false);
}

/* Counts the task. Returns false if max_waiting tasks are already queued. */
static bool enter(struct waiting *room)
{
	if (room->board ? !push_board_enter(room->board, room->max) : room->count >= room->max)
		return false;
	room->count++;
	return true;
}

static void join(struct wait_task *w)
{
	struct waiting *room = w->room;

	/* Not checked yet if there were tasks in the queues of all its keys. */
	if (is_over(w)) {
		end_in_vain(w);
		return;
	}
	if (!enter(room)) {
		task_say_error(&w->task, "SERVER_ERROR too many waiting clients");
		return;
	}
	w->waits = true;
	TAILQ_INSERT_TAIL(&room->tasks, w, link);
	for (size_t i = 0; i < w->count; i++) {
		struct wait_place *place = &w->places[i];
		place->line = find(room, place->key);
		if (!place->line)
			place->line = add_line(room, place->key);
		TAILQ_INSERT_TAIL(&place->line->places, place, link);
	}
	if (w->deadline < room->deadline || room->count == 1)
		room->deadline = w->deadline;
	start_timer(room);
}

/* Excludes the time in the queue from the latency of the task. */
static void restart_clock(struct wait_task *w)
{
	struct task *task = &w->task;

	while (task->nest)
		task = task->nest->outer;
	if (task->host->restart && !task_is_abandoned(&w->task))
		task->host->restart(task);
}

static void try_next(struct wait_task *w);

/*
 * Ends an attempt of the first task. The next one may pop if this one popped, or if the list
 * may have changed.
 */
static void pass_on(struct wait_key *line, bool took)
{
	bool more = took || line->again;

	line->asks = line->again = false;
	if (more)
		wake(line);
	else
		settle(line);
}

/* Handles changes of its other lists during its attempt. Waking may end and free the task. */
static void catch_up(struct wait_task *w)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->places[i].line->again && !w->places[i].line->asks) {
			wake(w->places[i].line);
			return;
		}
	}
}

static void tried(struct nest *nest, const struct reply *reply)
{
	struct wait_task *w = (struct wait_task *)nest->outer;
	struct wait_key *line = w->line;
	bool nothing = reply->word == WORD_END;

	/* Each key is tried once, even if the deadline passes meanwhile. */
	if (nothing && ++w->at < w->end && !task_is_abandoned(&w->task)) {
		try_next(w);
		return;
	}
	w->tries = false;
	w->line = NULL;
	if (!nothing)
		end(w, reply);
	else if (w->waits && is_over(w))
		end_in_vain(w);
	else if (w->waits)
		catch_up(w);
	else
		join(w);
	if (line)
		pass_on(line, !nothing);
}

static bool has_line(const struct waiting *room, struct slice key)
{
	const struct wait_key *line = find(room, key);

	return line && !TAILQ_EMPTY(&line->places);
}

/* A new task does not overtake queued tasks. */
static void try_next(struct wait_task *w)
{
	struct request inside = { .command = w->inside, .rest = w->rest, .keys = 1 };

	while (!w->waits && w->at < w->end && has_line(w->room, w->places[w->at].key))
		w->at++;
	if (w->at == w->end) {
		w->tries = false;
		join(w);
		return;
	}
	inside.key = w->places[w->at].key;
	w->tries = true;
	w->nest = (struct nest){ .outer = &w->task, .done = tried };
	if (!task_start_inside(&w->nest, &inside))
		abort();
}

static void resume(struct task *task)
{
	struct wait_task *w = (struct wait_task *)task;

	if (!task_is_abandoned(task))
		return;
	if (w->tries)
		task_abandon_inside(&w->nest);
	else
		end_in_vain(w);
}

static void add_key(struct wait_task *w, struct slice key, char **at)
{
	w->places[w->count++] = (struct wait_place){ .task = w, .key = task_keep(at, key) };
	*(*at)++ = ' ';
}

static const struct command *inside_of(command_id id)
{
	return command_get(id == COMMAND_BLPOP ? COMMAND_LPOP : id == COMMAND_BRPOP ? COMMAND_RPOP : COMMAND_LMOVE);
}

void wait_start(struct host *host, const struct request *request, void *owner)
{
	bool moves = request->command->id == COMMAND_BLMOVE;
	size_t keys = moves ? 1 : request->keys, size = sizeof(struct wait_task) + keys * sizeof(struct wait_place);
	struct wait_task *w;
	struct slice rest = moves ? slice_of("", 0) : request->rest, key;
	char *at;

	if (!host->waiting) {
		task_refuse(host, request, owner, "SERVER_ERROR blocking commands are not available here");
		return;
	}
	w = task_new(host, request, owner, size + request->key.n + request->rest.n + 1);
	at = (char *)w + size;
	w->room = host->waiting;
	w->inside = inside_of(request->command->id);
	w->deadline = request->number ? host->env.now + request->number : UINT64_MAX;
	w->count = w->at = 0;
	w->line = NULL;
	w->waits = w->tries = false;
	add_key(w, request->key, &at);
	while ((key = slice_token(&rest)).n)
		add_key(w, key, &at);
	w->end = w->count;
	(void)task_keys(&w->task, slice_of((char *)w + size, (size_t)(at - 1 - ((char *)w + size))), w->count);
	w->rest = moves ? task_keep(&at, request->rest) : slice_of("", 0);
	w->task.resume = resume;
	try_next(w);
}

/* --- changes of lists --- */

/* Returns whether the task must not get an element any more. */
static bool is_gone(const struct wait_task *w)
{
	const struct host *host = w->room->host;

	return is_over(w) || (host->ended && host->ended(w->task.owner, true));
}

/*
 * Ends tasks at the head of the queue whose deadline has passed, or whose clients send no more.
 * No element is popped for them.
 */
static void drop_head(struct wait_key *line)
{
	struct wait_place *place;

	while ((place = TAILQ_FIRST(&line->places)) && !place->task->tries && is_gone(place->task)) {
		restart_clock(place->task);
		end_in_vain(place->task);
	}
}

/* Lets the first task pop that is not busy with another of its keys. */
static void wake(struct wait_key *line)
{
	struct wait_place *place;

	if (line->asks) {
		line->again = true;
		return;
	}
	line->again = false;
	line->asks = true; /* Keeps the queue. */
	drop_head(line);
	line->asks = false;
	TAILQ_FOREACH(place, &line->places, link) {
		struct wait_task *w = place->task;
		if (w->tries || is_gone(w)) {
			line->again = true;
			continue;
		}
		line->asks = true;
		w->line = line;
		w->at = (size_t)(place - w->places);
		w->end = w->at + 1;
		restart_clock(w);
		try_next(w);
		return;
	}
	settle(line);
}

void waiting_pushed(struct waiting *room, struct slice key)
{
	struct wait_key *line = room->count ? find(room, key) : NULL;

	if (!line)
		return;
	line->pause = PAUSE_MIN;
	line->empty = 0;
	wake(line);
}

/*
 * Returns the next queue of a walk that began with room->next_line. Waking may end tasks, and
 * so free any queue.
 */
static struct wait_key *walk_lines(struct waiting *room)
{
	struct wait_key *line = room->next_line;

	if (line)
		room->next_line = TAILQ_NEXT(line, link);
	return line;
}

void waiting_look(struct waiting *room)
{
	struct wait_key *line;

	if (!room->board)
		return;
	room->next_line = TAILQ_FIRST(&room->keys);
	while ((line = walk_lines(room))) {
		unsigned pushes = push_board_pushes(room->board, line->slot);
		if (pushes == line->pushes)
			continue;
		line->pushes = pushes;
		line->empty = 0;
		wake(line);
	}
}

/* --- the clock --- */

static void plan_poll(struct wait_key *line)
{
	line->pause = line->pause * 2 < PAUSE_MAX ? line->pause * 2 : PAUSE_MAX;
	line->poll_at = line->room->host->env.now + line->pause;
}

/* Shares a poll's result with other workers, which then need not poll. */
static void spread(const struct wait_key *line, const struct result *r, bool is_new)
{
	const struct waiting *room = line->room;

	if (!room->board)
		return;
	push_board_see(room->board, line->slot, r->status == RESULT_HIT ? r->cas : 0);
	if (is_new && push_board_is_shared(room->board, line->slot) && push_board_note(room->board, line->poll.key) &&
		room->host->tell)
		room->host->tell(room->host);
}

static void polled(struct waiter *waiter, const struct result *r)
{
	struct wait_key *line = (struct wait_key *)((char *)waiter - offsetof(struct wait_key, poll));
	bool is_new = r->status == RESULT_HIT && (r->cas == 0 || r->cas != line->empty);

	line->room->calls--;
	line->polls = false;
	plan_poll(line);
	spread(line, r, is_new);
	if (is_new || (r->status == RESULT_HIT && line->again)) {
		line->empty = r->cas;
		wake(line);
	} else {
		settle(line);
	}
}

/*
 * Returns whether another worker has polled this list lately. Its result may be new to this
 * worker.
 */
static bool is_asked(struct wait_key *line)
{
	struct waiting *room = line->room;
	uint64_t now = room->host->env.now, seen;
	unsigned left;

	if (!room->board || line->again)
		return false;
	left = push_board_ask(room->board, line->slot, line->mark, now, line->pause);
	if (left == 0)
		return false;
	line->poll_at = now + left;
	seen = push_board_seen(room->board, line->slot);
	if (seen && seen != line->empty) {
		line->empty = seen;
		wake(line);
	}
	return true;
}

/* A list of an adopted encoding may be in other items, so the first task just tries to pop. */
static void poll_line(struct wait_key *line)
{
	struct waiting *room = line->room;
	struct env *env = &room->host->env;

	if (is_asked(line))
		return;
	if (rules_collection(env->rules, line->poll.key)->encoding != ENCODING_OPLOG) {
		plan_poll(line);
		wake(line);
		return;
	}
	line->polls = true;
	room->calls++;
	env_get(env, WANT_CAS, &line->poll);
}

/* Ending a task may close its client, and so end other tasks. */
static void end_tasks(struct waiting *room)
{
	struct wait_task *w;

	room->deadline = UINT64_MAX;
	room->next_task = TAILQ_FIRST(&room->tasks);
	while ((w = room->next_task)) {
		room->next_task = TAILQ_NEXT(w, link);
		if (w->tries || !is_over(w)) {
			room->deadline = w->deadline < room->deadline ? w->deadline : room->deadline;
			continue;
		}
		restart_clock(w);
		end_in_vain(w);
	}
}

static void on_timer(struct waiter *waiter, const struct result *r)
{
	struct waiting *room = (struct waiting *)((char *)waiter - offsetof(struct waiting, timer));
	uint64_t now = room->host->env.now;
	struct wait_key *line;

	(void)r;
	room->calls--;
	room->is_timed = false;
	if (room->deadline <= now || room->look_at <= now) {
		room->look_at = now + LOOK_MS;
		end_tasks(room);
	}
	room->next_line = TAILQ_FIRST(&room->keys);
	while ((line = walk_lines(room))) {
		if (!line->polls && line->poll_at <= now && !TAILQ_EMPTY(&line->places))
			poll_line(line);
	}
	start_timer(room);
}

static void start_timer(struct waiting *room)
{
	struct env *env = &room->host->env;
	uint64_t next = env->now + TICK_MAX;
	const struct wait_key *line;

	if (room->is_timed || room->count == 0)
		return;
	TAILQ_FOREACH(line, &room->keys, link) {
		if (!line->polls && line->poll_at < next)
			next = line->poll_at;
	}
	room->is_timed = true;
	room->calls++;
	room->timer = (struct waiter){ .done = on_timer };
	env->later(env, &room->timer, next > env->now ? (unsigned)(next - env->now) : 1);
}

void waiting_end(struct waiting *room)
{
	room->ended = true;
	end_tasks(room);
}
