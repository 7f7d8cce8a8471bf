/*
 * Two concurrent pops must not give the same member:
 *
 *     fetch -> choose -> CAS of the base with the removals behind its log -> lost the race: fetch again, choose others
 */
#include "collection/set/pop.h"

#include "collection/rewrite/cas.h"
#include "collection/set/fetch.h"
#include "collection/ttl.h"
#include "util/random.h"

struct pop {
	struct fetch fetch;
	struct set_request chosen; /* the answer: chosen members, as removals */
	struct lane *lane;
	struct cas cas;
};

static lane_after chosen;
static void stored(struct cas *cas, const struct result *r);

static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct pop *pop = lane->work;
	const struct outcome outcome = { .status = status, .result = failure, .log = buf_slice(&pop->chosen.text) };

	lane_end_all(lane, &outcome);
	lane->work = NULL;
	fetch_end(&pop->fetch, lane, status != OUTCOME_DONE && status != OUTCOME_FAILED);
	set_request_free(&pop->chosen);
	pool_put(lane_env(lane)->pool, pop, sizeof(*pop));
	lane_next(lane);
}

void pop_start(struct lane *lane)
{
	struct pop *pop = pool_get(lane_env(lane)->pool, sizeof(*pop));

	pop->lane = lane;
	pop->chosen = (struct set_request){
		.verb = SET_SAMPLE,
		.count = lane_first(lane)->count,
		.sign = "-",
		.random = random_next(&lane_env(lane)->random),
	};
	fetch_begin(&pop->fetch, lane, &pop->chosen, true, chosen);
}

/* Pops make the base of a list longer, and no read that sees only its items notices. */
static void request_compaction(struct lane *lane, struct slice value)
{
	struct oplog_base base;

	if (oplog_split(value, &base) && base.is_list && base.log.n > lane_env(lane)->options->base_size)
		lane_request_compaction(lane);
}

static void chosen(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct pop *pop = lane->work;
	const struct result *read = &pop->fetch.read;
	struct buf value = BUF_EMPTY;
	int64_t exptime;

	if (status != OUTCOME_DONE || buf_size(&pop->chosen.text) == 0) {
		end(lane, status, failure);
	} else if (read->cas == 0) {
		end(lane, OUTCOME_NO_CAS, NULL);
	} else if (!ttl_exptime(lane_env(lane), read->ttl, &exptime)) {
		end(lane, OUTCOME_BUSY, NULL);
	} else {
		buf_add_slice(&value, fetch_base(&pop->fetch));
		buf_add_slice(&value, buf_slice(&pop->chosen.text));
		request_compaction(lane, buf_slice(&value));
		cas_replace(&pop->cas, lane_env(lane), lane->waiter.key, buf_slice(&value), read, exptime, stored);
		buf_free(&value);
	}
}

static void stored(struct cas *cas, const struct result *r)
{
	struct pop *pop = (struct pop *)((char *)cas - offsetof(struct pop, cas));
	struct lane *lane = pop->lane;

	if (r->status == RESULT_DONE) {
		end(lane, OUTCOME_DONE, NULL);
	} else if (result_failed(r)) {
		end(lane, OUTCOME_FAILED, r);
	} else {
		pop->chosen.answered = false;
		buf_consume(&pop->chosen.text, buf_size(&pop->chosen.text));
		pop->chosen.random = random_next(&lane_env(lane)->random);
		fetch_again(lane);
	}
}
