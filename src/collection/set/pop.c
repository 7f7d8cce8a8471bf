/*
 * Taking random members out, so that no two who do it get the same: the removals are put behind the log by CAS with the token
 * of the read in which the members were found. Segments are not written for it.
 */
#include "collection/lane.h"

static void mended(struct lane *lane, const struct result *r)
{
	(void)r;
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_DONE, .log = buf_slice(&lane->log) });
	lane_next(lane);
}

static void popped(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE) {
		commit_mend_ttl(lane, mended, r);
	} else if (result_failed(r)) {
		lane_finish_failed(lane, r);
	} else if (lane_retry(lane)) {
		fetch_start(lane);
	}
}

void pop_choose(struct lane *lane, const struct set_view *view, struct slice base, const struct result *r)
{
	struct op *op = STAILQ_FIRST(&lane->batch);
	struct buf *value = &lane_rest(lane)->commit.value;

	buf_consume(&lane->log, buf_size(&lane->log));
	roster_sample(&view->roster, (size_t)op->delta, &lane_host(lane)->random, "-", &lane->log);
	buf_consume(value, buf_size(value));
	buf_add_slice(value, base);
	buf_add_slice(value, buf_slice(&lane->log));
	lane_rest(lane)->commit.read = *r;
}

void pop_commit(struct lane *lane)
{
	const struct result *r = &lane_rest(lane)->commit.read;
	int64_t exptime;

	if (buf_size(&lane->log) == 0) {
		lane_finish(lane, OUTCOME_DONE);
	} else if (!lane_exptime(lane_host(lane), r->ttl, &exptime)) {
		lane_finish(lane, OUTCOME_BUSY);
	} else {
		commit_cas(lane, buf_slice(&lane_rest(lane)->commit.value), r, exptime, popped);
	}
}
