#include "collection/copies/copies.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/copies/pair.h"
#include "collection/copies/recall.h"
#include "collection/text/part_key.h"
#include "util/alloc.h"

/*
 * No acknowledged word is appended later than half of this after its stamp. A call that was sent
 * in time is answered, or its connection is aborted, within a timeout; a few of them follow each
 * other.
 */
enum { SETTLED_TIMEOUTS = 4, REPAIRED_TIMEOUTS = 8 };

static struct slice copies_name(void *arg, int server)
{
	const struct copies *copies = arg;

	return copies->options.name(copies->options.arg, server);
}

static uint64_t copies_clock(void *arg)
{
	const struct copies *copies = arg;

	return copies->options.clock(copies->options.arg) / 1000;
}

static void copies_on_repaired(struct pair *pair, bool done)
{
	repairs_ended(pair->copies->repairs, pair->call.key, done);
	pair_end_as(pair, RESULT_DONE);
}

static void copies_start_repair(void *arg, struct slice key, enum repair_kind kind)
{
	const struct call call = { .verb = CALL_GET, .key = key };
	struct pair *pair = pair_create(arg, &call, NULL);

	pair->checks = kind == REPAIR_PARTS;
	pair->call.role.copied = kind == REPAIR_COUNTER;
	if (kind == REPAIR_COUNTER)
		counter_repair(pair, copies_on_repaired);
	else
		pair_repair(pair, copies_on_repaired);
}

struct copies *copies_create(const struct copies_options *options)
{
	struct copies *copies =
		xcalloc(1, sizeof(*copies) + (size_t)options->servers * sizeof(copies->started[0]));

	copies->options = *options;
	copies->connects = UINT64_MAX; /* not looked yet */
	copies->settled = SETTLED_TIMEOUTS * options->timeout;
	copies->repaired = REPAIRED_TIMEOUTS * options->timeout;
	LIST_INIT(&copies->pairs);
	copies->absences = absences_create(&(struct absences_options){
		.env = options->env,
		.call = options->call,
		.name = copies_name,
		.clock = copies_clock,
		.arg = copies,
		.servers = options->servers,
		.stamps = &copies->clock,
	});
	copies->repairs = repairs_create(&(struct repairs_options){
		.env = options->env,
		.start = copies_start_repair,
		.arg = copies,
		.first = (unsigned)options->timeout,
		.least = (unsigned)copies->settled / 2,
	});
	copies->recalls = recalls_create();
	return copies;
}

void copies_destroy(struct copies *copies)
{
	if (!copies)
		return;
	assert(LIST_EMPTY(&copies->pairs));
	recalls_destroy(copies->recalls);
	repairs_destroy(copies->repairs);
	absences_destroy(copies->absences);
	free(copies);
}

bool copies_repair(struct copies *copies, struct slice key, bool is_counter)
{
	return repairs_add(copies->repairs, key, is_counter ? REPAIR_COUNTER : REPAIR_PARTS);
}

void copies_stop(struct copies *copies)
{
	copies->stopped = true;
	repairs_stop(copies->repairs);
}

bool copies_idle(const struct copies *copies)
{
	return LIST_EMPTY(&copies->pairs) && recalls_idle(copies->recalls) &&
		repairs_idle(copies->repairs) && absences_idle(copies->absences);
}

struct copies_stats copies_statistics(const struct copies *copies)
{
	struct copies_stats stats = copies->stats;

	stats.absences = absences_raised(copies->absences);
	stats.waiting = repairs_count(copies->repairs);
	return stats;
}

bool copies_is_absent(const struct copies *copies, int server)
{
	return absences_is_absent(copies->absences, server);
}

static bool has_copies(const struct copies *copies, const struct call *call, bool *is_part)
{
	const struct rules *rules = copies->options.env->rules;
	struct slice base;

	*is_part = false;
	if (call->server != CALL_ANY_SERVER || !rules->copies || part_key_is_second(call->key))
		return false;
	base = part_key_first_base(call->key);
	*is_part = base.n < call->key.n;
	return rules_collection(rules, base)->copies > 1;
}

/* The program of a call; NULL for calls that only concern the item of the first copy. */
static pair_step *program_of(const struct call *call, bool is_part)
{
	switch (call->verb) {
	case CALL_GET:
		return is_part ? both_part : read_start;
	case CALL_APPEND:
		return is_part ? NULL : word_start;
	case CALL_ADD:
		return is_part                              ? both_part
			: call->role.change == CHANGE_WORDS ? word_create
							    : rewrite_start;
	case CALL_CAS:
		return is_part ? NULL : rewrite_start;
	case CALL_DELETE:
		return is_part ? both_part : rewrite_delete;
	case CALL_TOUCH:
	case CALL_GAT:
		return is_part ? both_part : call->exptime < 0 ? rewrite_delete : both_touch;
	default:
		return NULL;
	}
}

/*
 * A server that was restarted has lost its items. If no call failed meanwhile, nothing else shows
 * it.
 */
static void look_for_restarts(struct copies *copies)
{
	enum { STARTED_SECONDS = 2 /* more than memcached's time of its start may be early */ };
	const struct copies_options *options = &copies->options;

	copies->connects = options->env->connects;
	for (int server = 0; server < options->servers && options->started; server++) {
		int64_t *before = &copies->started[server],
			started = options->started(options->arg, server);
		if (started && *before && started != *before && !copies->stopped)
			absences_raise_until(copies->absences, server,
				(uint64_t)(started + STARTED_SECONDS) * 1000);
		*before = started ? started : *before;
	}
}

void copies_call(struct copies *copies, const struct call *call, struct waiter *waiter)
{
	struct copies_options *options = &copies->options;
	bool is_part;
	pair_step *program = call->role.copied       ? counter_start
		: has_copies(copies, call, &is_part) ? program_of(call, is_part)
						     : NULL;

	if (!program) {
		options->call(options->env, call, waiter);
		return;
	}
	if (copies->connects != options->env->connects)
		look_for_restarts(copies);
	if (program != read_start || !recall_start(copies, call, waiter))
		program(pair_create(copies, call, waiter));
}
