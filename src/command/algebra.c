/*
 * sunion sinter sdiff; sunioncard sintercard sdiffcard, which only count; sunionstore
 * sinterstore sdiffstore, which store the result. All of them merge sets in byte order. Each
 * set is read in blocks of members:
 *
 *     enter a room -> algebra_add_sets -> read_blocks (a block of each set)
 *              -> merge (until a block is used up) -> read_blocks (the next block) -> merge ...
 *
 * Its blocks are in a room (collection/room.h), which it enters before its first slice of work, as
 * a client whose request waits there sends no more. If a set is larger than a block, the task moves
 * to another room, where few are at a time. If it must wait for that, it drops its blocks, and
 * reads them again.
 *
 * An intersection or a difference skips blocks without a member to compare. So only the result
 * and one block of each set are in memory, and other requests run between the blocks. A missing
 * set is empty. If a set is missing after its first block, it was lost or deleted meanwhile. As
 * the members of that block are already merged, the reply is an error.
 */
#include "collection/lane/lanes.h"
#include "collection/room.h"
#include "collection/set_request.h"
#include "collection/text/fold.h"
#include "collection/text/table.h"
#include "command/conversion.h"
#include "command/op_task.h"
#include "command/start.h"
#include "command/store.h"
#include "protocol/commands.h"
#include "protocol/reply.h"

enum {
	/* Bytes of a block. With one more member, its buffer has 32 KB. */
	BLOCK_MAX = 32 * 1024 - MEMBER_MAX - 1,
	BLOCK_LEAST = 1024,           /* Minimum, for many sets. */
	BLOCKS_MAX = 8 * 1024 * 1024, /* Bytes of all blocks. */
	/* Bytes. A block is read for at most bytes / MEMBER_USUAL members. */
	MEMBER_USUAL = 8
};

struct algebra_part {
	struct op op;
	struct set_request request;
	struct algebra_task *algebra;
	struct slice rest;   /* The block after `member`. */
	struct slice member; /* The current member; empty if the block is used up. */
	bool asking, ended;  /* `ended`: this is the last block. */
	uint16_t from_size;
	char from[MEMBER_WORD_MAX]; /* The start of the next block. */
};

/* Why a merge has stopped: the slice is over, a block is used up, or the result is complete. */
enum merged { MERGED_SLICE, MERGED_BLOCK, MERGED_ALL };

struct algebra_task {
	struct task task;
	enum merged (*merge)(struct algebra_task *a);
	struct buf result;      /* Each member is followed by a space. Empty if the task counts. */
	uint64_t number, limit; /* Numbers of members: in the result, and the maximum. */
	bool counts, stores;
	struct store store; /* Used if the task stores. */
	enum merged merged; /* Where the task resumes after the store is full. */
	size_t count, asking;
	struct fold keys;   /* Keys of the sets, while they are added. */
	char *list, *at;    /* The list of keys; its end so far, before `words`. */
	struct slice words; /* The keys that are not in the list yet. */
	size_t next;        /* The set whose block is read next. */
	bool reads;         /* A read is in flight. */
	/*
	 * The pause between two slices of work. `done` is NULL while the client has its share of
	 * calls: then the next block is read when a read ends.
	 */
	struct waiter pause;
	struct {
		size_t size;      /* Bytes of each, at most. */
		struct stay stay; /* The room of all of them. */
		bool has_more;    /* A set is larger than a block. */
		bool is_large;    /* The task is in the room for such sets. */
	} blocks;
	struct algebra_part parts[];
};

static void merge(struct algebra_task *a);

static void free_block(struct algebra_part *part)
{
	task_use(&part->algebra->task, 0, part->request.text.cap);
	set_request_free(&part->request);
}

static void reply_result(struct algebra_task *a)
{
	struct shared *text;
	struct reply r;

	for (size_t i = 0; i < a->count; i++)
		free_block(&a->parts[i]);
	room_leave(&a->task.host->env, &a->blocks.stay);
	if (a->stores) {
		store_finish(&a->store);
		return;
	}
	/* From now on the result counts as a part of the reply. */
	task_use(&a->task, 0, a->result.cap);
	/* Removes the space after the last member. */
	a->result.end -= buf_size(&a->result) > 0;
	text = shared_create(&a->result);
	if (task_fails(&a->task)) {
		/* Replied by task_fails. */
	} else if (a->counts) {
		task_say_number(&a->task, a->number);
	} else {
		r = reply_elements(CONTENT_ELEMENTS, a->task.command->name, SLICE(""));
		r.shared = text;
		task_say_elements(&a->task, &r);
	}
	shared_drop(text);
}

/* --- reading --- */

static bool is_used_up(const struct algebra_part *part)
{
	return part->member.n == 0;
}

/* Advances to the next member. */
static void step(struct algebra_part *part)
{
	struct slice last = part->member;

	part->member = slice_token(&part->rest);
	if (part->member.n || part->ended)
		return;
	memcpy(part->from, last.p, last.n);
	part->from_size = (uint16_t)last.n;
	part->request.range.after = true;
}

static void algebra_read_more(struct waiter *waiter, const struct result *r);

/*
 * Called when a set turns out to be larger than a block, before anything is merged. If the task
 * must wait, it drops the blocks that it will read again.
 */
static bool enter_merges(struct algebra_task *a)
{
	struct env *env = &a->task.host->env;
	size_t bytes = a->blocks.stay.bytes;

	a->blocks.is_large = true;
	room_leave(env, &a->blocks.stay);
	if (room_enter(env, ROOM_MERGES, &a->blocks.stay, a->task.account, bytes))
		return true;
	for (size_t i = 0; i < a->count; i++) {
		struct algebra_part *part = &a->parts[i];
		if (part->ended)
			continue;
		free_block(part);
		part->rest = part->member = slice_of("", 0);
	}
	return false;
}

static void merge_blocks(struct algebra_task *a)
{
	const struct task *task = &a->task;

	if (!a->blocks.has_more || a->blocks.is_large || task_has_failed(task) ||
		task_is_abandoned(task) || enter_merges(a))
		merge(a);
}

/* A set that ends in this block needs no more memory than the block has. */
static void block_is_last(struct algebra_part *part)
{
	struct algebra_task *a = part->algebra;
	size_t cap = part->request.text.cap;

	part->ended = true;
	if (cap < a->blocks.size)
		room_return(&a->task.host->env, &a->blocks.stay, a->blocks.size - cap);
}

static void algebra_on_read(struct op *op, const struct outcome *outcome)
{
	struct algebra_part *part = (struct algebra_part *)op;
	struct algebra_task *a = part->algebra;

	part->asking = false;
	a->asking--;
	/* The size of a block is known only now: most sets are small. */
	task_use(&a->task, part->request.text.cap, 0);
	if (outcome->status != OUTCOME_DONE || !part->request.more)
		block_is_last(part);
	a->blocks.has_more |= !part->ended;
	if (outcome->status == OUTCOME_DONE) {
		part->rest = buf_slice(&part->request.text);
		part->member = slice_token(&part->rest);
	} else if (outcome->status != OUTCOME_MISSING) {
		task_note_outcome(&a->task, outcome);
	} else if (part->from_size > 0) {
		task_note(&a->task, "SERVER_ERROR set lost or deleted meanwhile");
	}
	if (!a->pause.done)
		algebra_read_more(&a->pause, NULL);
	else if (a->asking == 0)
		merge_blocks(a);
}

static void read_block(struct algebra_part *part)
{
	struct algebra_task *a = part->algebra;

	free_block(part);
	part->request = (struct set_request){
		.verb = SET_RANGE,
		.range = { .from = slice_of(part->from, part->from_size),
			.after = part->request.range.after },
		.bytes = a->blocks.size,
		.count = a->blocks.size / MEMBER_USUAL,
	};
	part->asking = true;
	a->asking++;
	lanes_submit(a->task.host->lanes, &part->op);
}

/*
 * Returns whether a set is left to read, and the client's share of calls permits it. While reads
 * are submitted, `asking` is one more than their number.
 */
static bool may_read(const struct algebra_task *a)
{
	size_t share = a->task.host->calls_max;

	return a->next < a->count && (!share || a->asking <= share);
}

/* Reads more blocks; completes the result if no set has a next block. */
static void algebra_read_more(struct waiter *waiter, const struct result *r)
{
	enum { STEPS = 32 };
	struct algebra_task *a =
		(struct algebra_task *)((char *)waiter - offsetof(struct algebra_task, pause));

	(void)r;
	a->pause.done = algebra_read_more;
	while (may_read(a) && !task_is_abandoned(&a->task)) {
		struct algebra_part *part = &a->parts[a->next++];
		if (!is_used_up(part) || part->ended)
			continue;
		a->reads = true;
		read_block(part);
		if (task_pauses(&a->task, STEPS, &a->pause))
			return;
	}
	if (a->next < a->count && !task_is_abandoned(&a->task)) {
		a->pause.done = NULL;
		return;
	}
	if (--a->asking > 0)
		return;
	if (a->reads || task_is_abandoned(&a->task))
		merge_blocks(a);
	else
		reply_result(a);
}

/* Reads the next block of each set whose block is used up. */
static void read_blocks(struct algebra_task *a)
{
	/* Keeps the count above 0 until all reads are submitted. */
	a->asking = 1;
	a->next = 0;
	a->reads = false;
	algebra_read_more(&a->pause, NULL);
}

/* --- merging --- */

/*
 * Advances a part to its first member that is not less than `member`. Skips the blocks in
 * between.
 */
static void seek(struct algebra_part *part, struct slice member)
{
	while (!is_used_up(part) && member_compare(part->member, member) < 0)
		step(part);
	if (is_used_up(part) && !part->ended &&
		member_compare(slice_of(part->from, part->from_size), member) < 0) {
		memcpy(part->from, member.p, member.n);
		part->from_size = (uint16_t)member.n;
		part->request.range.after = false;
	}
}

static enum merged used_up(const struct algebra_part *part)
{
	return part->ended ? MERGED_ALL : MERGED_BLOCK;
}

/* Adds a member to the result. Returns true if the result is now complete. */
static bool add_result(struct algebra_task *a, struct slice member)
{
	if (a->stores)
		store_add(&a->store, member);
	else if (!a->counts)
		buf_add_word(&a->result, member);
	return ++a->number == a->limit;
}

/* Returns whether the slice is over. Each member of the result counts as one step per set. */
static bool is_slice_over(const struct algebra_task *a)
{
	return env_is_over(&a->task.host->env, a->count);
}

static enum merged algebra_intersect(struct algebra_task *a)
{
	struct algebra_part *first = &a->parts[0];

	do {
		struct slice highest = first->member;
		bool all = true;

		for (size_t i = 0; i < a->count; i++) {
			struct algebra_part *part = &a->parts[i];
			if (is_used_up(part))
				return used_up(part);
			if (member_compare(part->member, highest) > 0)
				highest = part->member;
		}
		for (size_t i = 0; i < a->count; i++) {
			seek(&a->parts[i], highest);
			all &= slice_equal(a->parts[i].member, highest);
		}
		if (!all)
			continue;
		if (add_result(a, highest))
			return MERGED_ALL;
		for (size_t i = 0; i < a->count; i++)
			step(&a->parts[i]);
	} while (!is_slice_over(a));
	return MERGED_SLICE;
}

static enum merged algebra_subtract(struct algebra_task *a)
{
	struct algebra_part *first = &a->parts[0];

	while (!is_used_up(first)) {
		bool found = false;

		for (size_t i = 1; i < a->count; i++) {
			struct algebra_part *part = &a->parts[i];
			seek(part, first->member);
			if (is_used_up(part) && !part->ended)
				return MERGED_BLOCK;
			found |= slice_equal(part->member, first->member);
		}
		if (!found && add_result(a, first->member))
			return MERGED_ALL;
		step(first);
		if (is_slice_over(a))
			return MERGED_SLICE;
	}
	return used_up(first);
}

static enum merged algebra_unite(struct algebra_task *a)
{
	do {
		struct algebra_part *low = NULL;
		struct slice member;

		for (size_t i = 0; i < a->count; i++) {
			struct algebra_part *part = &a->parts[i];
			if (is_used_up(part) && !part->ended)
				return MERGED_BLOCK;
			if (!is_used_up(part) &&
				(!low || member_compare(part->member, low->member) < 0))
				low = part;
		}
		if (!low)
			return MERGED_ALL;
		member = low->member;
		if (add_result(a, member))
			return MERGED_ALL;
		for (size_t i = 0; i < a->count; i++) {
			if (slice_equal(a->parts[i].member, member))
				step(&a->parts[i]);
		}
	} while (!is_slice_over(a));
	return MERGED_SLICE;
}

static void algebra_merge_more(struct waiter *waiter, const struct result *r)
{
	(void)r;
	merge((struct algebra_task *)((char *)waiter - offsetof(struct algebra_task, pause)));
}

static void continue_merge(struct algebra_task *a)
{
	a->pause.done = algebra_merge_more;
	if (a->merged == MERGED_ALL)
		reply_result(a);
	else if (a->merged == MERGED_BLOCK)
		read_blocks(a);
	else
		task_pause(&a->task, &a->pause);
}

static void merge(struct algebra_task *a)
{
	size_t most = a->task.host->env.options->result_max, before = a->result.cap;
	enum merged merged = MERGED_ALL;

	/*
	 * The client has disconnected. End early, as the memory of the task no longer counts
	 * for any client.
	 */
	if (task_is_abandoned(&a->task))
		task_note(&a->task, "SERVER_ERROR client closed");
	if (!task_has_failed(&a->task))
		merged = a->merge(a);
	task_use(&a->task, a->result.cap, before);
	if (most && buf_size(&a->result) > most) {
		task_note(&a->task, task_too_large);
		merged = MERGED_ALL;
	}
	a->store.held = a->stores && merged != MERGED_ALL && store_is_full(&a->store);
	a->merged = merged;
	if (!a->store.held)
		continue_merge(a);
}

static void algebra_on_room(struct store *store)
{
	struct algebra_task *a =
		(struct algebra_task *)((char *)store - offsetof(struct algebra_task, store));

	if (a->store.held && !store_is_full(store)) {
		a->store.held = false;
		continue_merge(a);
	}
}

/* A client that has disconnected waits for nothing. The task ends in its next slice. */
static void algebra_resume(struct task *task)
{
	struct algebra_task *a = (struct algebra_task *)task;

	if (!task_is_abandoned(task) || !a->blocks.stay.waits)
		return;
	room_leave(&task->host->env, &a->blocks.stay);
	task_pause(task, &a->blocks.stay.waiter);
}

/* Adds a set, unless it is already in `keys`. */
static void add_set(struct algebra_task *a, struct slice key)
{
	struct algebra_part *part = &a->parts[a->count];

	/* The list is not longer than the words read so far. */
	memmove(a->at, key.p, key.n);
	key.p = a->at;
	if (fold_contains(&a->keys, key))
		return;
	fold_add(&a->keys, key);
	a->at += key.n;
	*a->at++ = ' ';
	a->count++;
	*part = (struct algebra_part){
		.algebra = a,
		.op = { .kind = OP_READ,
			.key = key,
			.set = &part->request,
			.done = algebra_on_read },
	};
	task_owns(&a->task, &part->op);
}

static size_t block_size(const struct collection_options *options, size_t sets)
{
	size_t share = BLOCKS_MAX / sets, most = options->block ? options->block : BLOCK_MAX;

	return most < share ? most : share < BLOCK_LEAST ? BLOCK_LEAST : share;
}

static void algebra_add_sets(struct waiter *waiter, const struct result *r)
{
	enum { STEPS = 32 };
	struct algebra_task *a =
		(struct algebra_task *)((char *)waiter - offsetof(struct algebra_task, pause));
	struct slice key;

	(void)r;
	while (!task_is_abandoned(&a->task) && (key = slice_token(&a->words)).n) {
		add_set(a, key);
		/* A set may be subtracted from itself. */
		if (a->merge == algebra_subtract && a->count == 1)
			fold_reset(&a->keys);
		if (task_pauses(&a->task, STEPS, &a->pause))
			return;
	}
	fold_free(&a->keys);
	(void)task_keys(&a->task, slice_of(a->list, (size_t)(a->at - 1 - a->list)),
		a->count + (a->stores ? 1 : 0));
	/* A set that is named twice has only one block. */
	room_return(&a->task.host->env, &a->blocks.stay,
		a->blocks.stay.bytes - a->count * a->blocks.size);
	read_blocks(a);
}

/* Called in the first room before any set is added, and in the second room after all are. */
static void algebra_on_entered(struct waiter *waiter, const struct result *r)
{
	struct algebra_task *a = (struct algebra_task *)((char *)waiter -
		offsetof(struct algebra_task, blocks.stay.waiter));

	(void)r;
	if (a->count == 0 && !task_is_abandoned(&a->task))
		algebra_add_sets(&a->pause, NULL);
	else
		read_blocks(a);
}

/* Enters the first room with a block for each of the sets, which are not added yet. */
static void enter_blocks(struct algebra_task *a, size_t sets)
{
	struct env *env = &a->task.host->env;

	a->blocks.size = block_size(env->options, sets);
	if (room_enter(env, ROOM_BLOCKS, &a->blocks.stay, a->task.account, sets * a->blocks.size))
		algebra_add_sets(&a->pause, NULL);
}

static enum merged (*merge_of(command_id id))(struct algebra_task *a)
{
	if (id == COMMAND_SINTER || id == COMMAND_SINTERCARD || id == COMMAND_SINTERSTORE)
		return algebra_intersect;
	return id == COMMAND_SDIFF || id == COMMAND_SDIFFCARD || id == COMMAND_SDIFFSTORE
		? algebra_subtract
		: algebra_unite;
}

static void start_algebra(
	struct host *host, const struct request *request, void *owner, bool stores)
{
	size_t size = sizeof(struct algebra_task) + request->keys * sizeof(struct algebra_part);
	struct algebra_task *a =
		task_new(host, request, owner, size + request->key.n + request->rest.n + 2);
	char *at = (char *)a + size;
	struct slice key;

	a->merge = merge_of(request->command->id);
	a->result = BUF_EMPTY;
	a->counts = request->command->grammar == GRAMMAR_COUNTED_KEYS;
	a->limit = a->counts && request->number ? request->number : UINT64_MAX;
	a->number = 0;
	a->stores = stores;
	a->count = a->asking = 0;
	a->blocks.stay = (struct stay){ .waiter.done = algebra_on_entered };
	a->blocks.has_more = a->blocks.is_large = false;
	a->task.resume = algebra_resume;
	a->keys = (struct fold){ .seed = host->env.seed };
	a->list = a->at = at;
	key = task_keep(&at, request->key);
	*at++ = ' ';
	/* The first key is the target, which is not one of the sets that are read. */
	if (stores) {
		store_init(&a->store, &a->task, key,
			task_ttl(request, rules_collection(host->env.rules, key)->ttl),
			algebra_on_room);
		a->at = at;
	}
	(void)task_keep(&at, request->rest);
	a->words = stores ? slice_of(a->at, request->rest.n)
			  : slice_of(a->list, (size_t)(at - a->list));
	a->pause.done = algebra_add_sets;
	enter_blocks(a, request->keys - stores);
}

void algebra_start(struct host *host, const struct request *request, void *owner)
{
	start_algebra(host, request, owner, false);
}

void algebra_store_start(struct host *host, const struct request *request, void *owner)
{
	if (request->keys < 2)
		task_refuse(host, request, owner, command_usage(request->command->id));
	else
		start_algebra(host, request, owner, true);
}
