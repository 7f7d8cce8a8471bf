#include "collection/rewrite/opening.h"

#include <string.h>

#include "collection/lane/batch.h"
#include "collection/rewrite/ahead.h"

bool base_is_possible(struct slice value)
{
	return value.n == 0 || memchr("+-@~", value.p[0], 4);
}

struct base base_sort(const struct lane *lane, const struct result *r)
{
	struct base base = { .kind = BASE_FAILED };

	if (r->status == RESULT_MISS)
		base.kind = BASE_MISSING;
	if (r->status != RESULT_HIT)
		return base;
	base.kind = BASE_FOREIGN;
	base.form = OPLOG_CORRUPT;
	if (!base_is_possible(r->value))
		return base;
	(void)oplog_split(r->value, &base.split);
	base.form = base.split.form;
	if (base.form == OPLOG_GOOD)
		base.kind = lane_is_list(lane, &base.split) ? BASE_LIST : BASE_SET;
	else if (base.form == OPLOG_OUTDATED)
		base.kind = BASE_OUTDATED;
	else if (base.form == OPLOG_LOADING && lease_split(r->value, &base.loading))
		base.kind = BASE_LOADING;
	else if (base.form == OPLOG_LOADING)
		base.form = OPLOG_CORRUPT;
	return base;
}

struct base base_sort_whole(const struct lane *lane, const struct result *r)
{
	struct base base = base_sort(lane, r);

	if ((base.kind == BASE_SET || base.kind == BASE_LIST) && !oplog_is_log(base.split.log)) {
		base.kind = BASE_FOREIGN;
		base.form = OPLOG_CORRUPT;
	}
	return base;
}

void opening_keep(struct opening *o, const struct result *r, struct slice base)
{
	o->read = result_bare(r);
	o->date = o->rewrites ? keep_date(o->lane, r, base) : KEEP_UNKNOWN;
}

void opening_start(struct opening *o)
{
	o->ahead = o->rewrites && ahead_has(o->lane);
	if (o->ahead)
		ahead_give(o->lane, o->found);
	else
		opening_read(o);
}

void opening_read(struct opening *o)
{
	o->ahead = false;
	lane_call(o->lane,
		&(struct call){ .verb = CALL_GET,
			.want = WANT_VALUE | WANT_CAS | WANT_TTL,
			/* A base that is read again was not consistent with its parts. */
			.only_reads = o->rewrites       ? 0
				: o->lane->attempts > 0 ? READS_LATEST
							: READS_ONLY },
		o->found);
}

void opening_again(struct opening *o)
{
	o->ahead = false;
	if (lane_may_retry(o->lane))
		opening_read(o);
	else
		o->ended(o->lane, OUTCOME_BUSY, NULL);
}

void opening_lost(struct opening *o)
{
	o->ahead = false;
	if (!lane_may_retry(o->lane))
		o->ended(o->lane, OUTCOME_BUSY, NULL);
	else if (!ahead_reads(o->lane, o->found))
		opening_read(o);
}

static void opening_on_removed(struct lane *lane, const struct result *r)
{
	struct opening *o = lane->work;

	if (r->status == RESULT_DONE) {
		lane->lanes->stats.incomplete_sets++;
		o->ended(lane, OUTCOME_MISSING, NULL);
	} else if (result_failed(r)) {
		o->ended(lane, OUTCOME_FAILED, r);
	} else {
		opening_again(o);
	}
}

void opening_remove(struct opening *o, const struct result *r)
{
	lane_call(o->lane,
		&(struct call){ .verb = CALL_CAS,
			.value = SLICE(""),
			.exptime = -1,
			.number = r->cas,
			.connection = r->connection },
		opening_on_removed);
}

void opening_give_up(struct opening *o, const struct result *r)
{
	if (o->missing_on) {
		opening_remove(o, r);
	} else {
		o->lane->lanes->stats.incomplete_sets++;
		o->ended(o->lane, OUTCOME_MISSING, NULL);
	}
}
