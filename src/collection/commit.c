/*
 * Committing a rewrite. Appends only ever add behind what is there, so a rewrite of the base's head stays right whatever was
 * appended since it was computed: it is put in front of the present rest, by CAS with the token of the read that showed that
 * rest. Pushes also add before it; a rewrite of a list that leaves its items as they are has its place between both. Beside the CAS goes a look at the time to live: `touch` changes it without changing the token, and a second may pass
 * between the read and the CAS.
 */
#include "collection/lane.h"
#include "collection/text/oplog.h"

static void committed(struct lane *lane, const struct result *r);
static void read_base(struct lane *lane);

static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	buf_free(&lane_rest(lane)->commit.value);
	lane_rest(lane)->commit.after(lane, status, failure);
}

/* True when no token begins with @: in the surroundings of what has no block there must be none, or it is another base. */
static bool is_plain(struct slice before, struct slice behind)
{
	return !oplog_has_block(before) && !oplog_has_block(behind);
}

/* Where in the base the part stands that is to be replaced, as whole tokens; false when it does not. */
static bool find_part(const struct lane_commit *c, struct slice base, size_t *at)
{
	struct slice part = c->prefix;
	bool has_block = oplog_has_block(part);

	for (*at = 0; part.n <= base.n - *at; ++*at) {
		struct slice rest = slice_skip(base, *at);
		const char *found = memmem(rest.p, rest.n, part.p, part.n);
		if (!found)
			return false;
		*at = (size_t)(found - base.p);
		if ((*at == 0 || base.p[*at - 1] == ' ') &&
			(has_block || is_plain(slice_of(base.p, *at), slice_skip(base, *at + part.n))))
			return true;
	}
	return false;
}

static void count_lost(struct lane *lane, bool rewritten)
{
	lane->lanes->stats.conflicts++;
	crowd_lost(&lane->lanes->crowds, lane->hash, lane_host(lane)->now, rewritten);
}

static void found(struct lane *lane, const struct result *r)
{
	struct lane_commit *c = &lane_rest(lane)->commit;
	int64_t exptime;
	size_t at = 0;

	if (result_failed(r)) {
		end(lane, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (!(c->anywhere ? find_part(c, r->value, &at) : slice_starts(r->value, c->prefix)) ||
		!lane_exptime(lane_host(lane), r->ttl, &exptime)) {
		count_lost(lane, true);
		end(lane, OUTCOME_BUSY, NULL);
	} else {
		buf_consume(&c->value, buf_size(&c->value));
		buf_add(&c->value, r->value.p, at);
		buf_add_slice(&c->value, c->replacement);
		buf_add_slice(&c->value, slice_skip(r->value, at + c->prefix.n));
		commit_cas(lane, buf_slice(&c->value), r, exptime, committed);
	}
}

static void touched(struct lane *lane, const struct result *r)
{
	(void)r;
	end(lane, OUTCOME_DONE, NULL);
}

static void date_checked(struct lane *lane, const struct result *r)
{
	struct lane_commit *c = &lane_rest(lane)->commit;

	if (lane_date_is_off(c->ttl, r, &c->exptime))
		lane_call(lane, (struct call){ .verb = CALL_TOUCH, .exptime = c->exptime }, c->mended);
	else
		c->mended(lane, r);
}

void commit_cas(struct lane *lane, struct slice value, const struct result *read, int64_t exptime, lane_step *step)
{
	struct lane_rest *rest = lane_rest(lane);

	rest->commit.ttl = read->ttl;
	rest->commit.exptime = exptime;
	rest->looked.status = RESULT_MISS;
	lane_look(lane, WANT_TTL);
	lane_call(lane,
		(struct call){
			.verb = CALL_CAS,
			.value = value,
			.flags = read->flags,
			.exptime = exptime,
			.number = read->cas,
			.connection = read->connection,
		},
		step);
}

void commit_mend_ttl(struct lane *lane, lane_step *step, const struct result *r)
{
	const struct result *looked = &lane_rest(lane)->looked;
	struct lane_commit *c = &lane_rest(lane)->commit;
	int64_t exptime;

	c->mended = step;
	if (lane_touch_is_due(lane_host(lane), c->ttl, looked, &exptime)) {
		c->ttl = looked->ttl;
		lane_call(lane, (struct call){ .verb = CALL_TOUCH, .exptime = exptime }, step);
	} else if (lane_is_date(c->exptime)) {
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_TTL }, date_checked);
	} else {
		step(lane, r);
	}
}

static void committed(struct lane *lane, const struct result *r)
{
	struct lane_commit *c = &lane_rest(lane)->commit;

	if (result_failed(r)) {
		end(lane, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (r->status == RESULT_EXISTS) {
		count_lost(lane, false);
		if (++c->attempts > LANE_ATTEMPTS)
			end(lane, OUTCOME_BUSY, NULL);
		else
			read_base(lane);
	} else {
		if (c->attempts == 0)
			crowd_won(&lane->lanes->crowds, lane->hash);
		commit_mend_ttl(lane, touched, r);
	}
}

static void read_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, found);
}

void commit_run(
	struct lane *lane, struct slice prefix, struct slice replacement, const struct result *read, lane_after *after)
{
	buf_free(&lane_rest(lane)->commit.value);
	lane_rest(lane)->commit = (struct lane_commit){ .prefix = prefix, .replacement = replacement, .after = after };
	if (read)
		found(lane, read);
	else
		read_base(lane);
}

void commit_run_anywhere(struct lane *lane, struct slice part, struct slice replacement, lane_after *after)
{
	buf_free(&lane_rest(lane)->commit.value);
	lane_rest(lane)->commit =
		(struct lane_commit){ .prefix = part, .replacement = replacement, .anywhere = true, .after = after };
	read_base(lane);
}

/* Whoever asked is told the time to live of the base too. */
static void op_committed(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct result base = { .status = RESULT_HIT, .ttl = lane_rest(lane)->commit.ttl };

	lane_end_all(lane, &(struct outcome){ .status = status, .result = status == OUTCOME_FAILED ? failure : &base });
	lane_next(lane);
}

void commit_start(struct lane *lane)
{
	struct op *op = STAILQ_FIRST(&lane->batch);

	commit_run(lane, op->prefix, op->log, NULL, op_committed);
}
