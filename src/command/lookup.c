#include "command/lookup.h"

#include "command/task.h"
#include "protocol/commands.h"

/* memcached's counters for a command. `changed` is used for LOOKUP_CHANGED. */
struct counters {
	bool counts;
	enum lookup_counter hit, miss, changed;
};

static const struct counters of_get = { true, LOOKUP_get_hits, LOOKUP_get_misses,
	LOOKUP_get_misses };
static const struct counters of_touch = { true, LOOKUP_touch_hits, LOOKUP_touch_misses,
	LOOKUP_touch_misses };
static const struct counters of_delete = { true, LOOKUP_delete_hits, LOOKUP_delete_misses,
	LOOKUP_delete_misses };
static const struct counters of_incr = { true, LOOKUP_incr_hits, LOOKUP_incr_misses,
	LOOKUP_incr_misses };
static const struct counters of_decr = { true, LOOKUP_decr_hits, LOOKUP_decr_misses,
	LOOKUP_decr_misses };
static const struct counters of_cas = { true, LOOKUP_cas_hits, LOOKUP_cas_misses,
	LOOKUP_cas_badval };
static const struct counters none = { .counts = false };

static const struct counters *const classic[COMMAND_COUNT] = {
	[COMMAND_CAS] = &of_cas,
	[COMMAND_DECR] = &of_decr,
	[COMMAND_DELETE] = &of_delete,
	[COMMAND_GAT] = &of_touch,
	[COMMAND_GATS] = &of_touch,
	[COMMAND_GET] = &of_get,
	[COMMAND_GETS] = &of_get,
	[COMMAND_INCR] = &of_incr,
	[COMMAND_TOUCH] = &of_touch,
};

static void count_lookup(
	const struct task *task, struct slice key, const struct counters *c, enum lookup_end end)
{
	if (task->host->looked_up && c->counts)
		task->host->looked_up(task->host,
			end == LOOKUP_HIT            ? c->hit
				: end == LOOKUP_MISS ? c->miss
						     : c->changed,
			key);
}

bool lookup_counts(const struct command *command)
{
	return command && classic[command->id];
}

static const struct counters *of_task(const struct task *task)
{
	return lookup_counts(task->command) ? classic[task->command->id] : &none;
}

void lookup_count(const struct task *task, struct slice key, enum lookup_end end)
{
	count_lookup(task, key, of_task(task), end);
}

void lookup_result(const struct task *task, struct slice key, const struct result *r)
{
	switch (r->status) {
	case RESULT_HIT:
	case RESULT_DONE:
	case RESULT_NUMBER:
		lookup_count(task, key, LOOKUP_HIT);
		break;
	case RESULT_MISS:
		lookup_count(task, key, LOOKUP_MISS);
		break;
	case RESULT_EXISTS:
		lookup_count(task, key, LOOKUP_CHANGED);
		break;
	default:
		break;
	}
}

void lookup_outcome(const struct task *task, enum outcome_status status)
{
	if (status == OUTCOME_DONE)
		lookup_count(task, task->keys.list, LOOKUP_HIT);
	else if (status == OUTCOME_MISSING)
		lookup_count(task, task->keys.list, LOOKUP_MISS);
	else if (status == OUTCOME_CHANGED)
		lookup_count(task, task->keys.list, LOOKUP_CHANGED);
}

static const struct counters *counters_of_meta(
	command_id id, const struct metaflags *flags, bool decrements)
{
	switch (id) {
	case COMMAND_MG:
		return metaflags_has(flags, 'T') ? &of_touch : &of_get;
	case COMMAND_MS:
		return metaflags_has(flags, 'C') ? &of_cas : &none;
	case COMMAND_MD:
		return &of_delete;
	case COMMAND_MA:
		return decrements ? &of_decr : &of_incr;
	default:
		return &none;
	}
}

void lookup_meta(
	const struct task *task, const struct metaflags *flags, bool decrements, struct slice code)
{
	const struct counters *c = counters_of_meta(task->command->id, flags, decrements);

	/* A quiet `ma` that succeeds has only the reply of the no-op. */
	if (slice_equal(code, SLICE("HD")) || slice_equal(code, SLICE("VA")) ||
		slice_equal(code, SLICE("MN")))
		count_lookup(task, task->keys.list, c, LOOKUP_HIT);
	else if (slice_equal(code, SLICE("EN")) || slice_equal(code, SLICE("NF")))
		count_lookup(task, task->keys.list, c, LOOKUP_MISS);
	else if (slice_equal(code, SLICE("EX")) && task->command->id != COMMAND_MA)
		count_lookup(task, task->keys.list, c, LOOKUP_CHANGED);
}
