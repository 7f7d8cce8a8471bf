/*
 * Sets the date at which members expire. Those that are not in the set are skipped:
 *
 *     read -> choose -> none: done
 *                    -> CAS of the base with their additions after its log
 *                       -> lost the race: read again, choose again
 */
#include "collection/set/fetch.h"

#include "collection/lane/batch.h"
#include "collection/machines.h"
#include "collection/set_request.h"
#include "collection/text/fold.h"

struct expire {
	struct fetch fetch;
	struct set_request asked; /* tests the members of the log */
	struct buf members;
	struct fold named; /* those of them that are in the set, each once */
	struct buf chosen; /* their additions with the new date */
	struct slice rest; /* the tokens that were not copied, or not chosen from */
	size_t tested;     /* bytes of the answer that were used */
};

enum { TOKEN_STEPS = 2, CHOICE_STEPS = 3 };

static lane_after expire_on_tested;
static lane_step expire_list_members, expire_choose, expire_on_stored;

static void end_expire(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct expire *e = lane->work;

	fetch_end(&e->fetch, lane,
		&(struct outcome){ .status = status, .number = e->named.live, .result = failure });
	set_request_free(&e->asked);
	buf_free(&e->members);
	fold_free(&e->named);
	buf_free(&e->chosen);
	pool_put(lane_env(lane)->pool, e, sizeof(*e));
	lane_next(lane);
}

static struct set_request test_of(const struct expire *e)
{
	return (struct set_request){ .verb = SET_TEST, .members = buf_slice(&e->members) };
}

void expire_start(struct lane *lane)
{
	struct expire *e = pool_get(lane_env(lane)->pool, sizeof(*e));

	*e = (struct expire){ .rest = lane_first(lane)->log,
		.named = { .seed = lane_env(lane)->seed } };
	lane->work = e;
	expire_list_members(lane, NULL);
}

static void expire_list_members(struct lane *lane, const struct result *r)
{
	struct expire *e = lane->work;
	struct slice token;

	(void)r;
	while ((token = slice_token(&e->rest)).n) {
		buf_add_word(&e->members, expiry_member(slice_skip(token, 1)));
		if (lane_pauses(lane, TOKEN_STEPS, expire_list_members))
			return;
	}
	e->asked = test_of(e);
	fetch_begin(&e->fetch, lane, &e->asked, true, expire_on_tested);
}

/* The answer has a digit for each member, with spaces between them. */
static void expire_on_tested(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct expire *e = lane->work;

	/* Elements of a list do not expire. */
	if (status == OUTCOME_DONE && e->fetch.may_have_long)
		status = OUTCOME_CORRUPT;
	if (status != OUTCOME_DONE) {
		end_expire(lane, status, failure);
		return;
	}
	fold_reset(&e->named);
	buf_consume(&e->chosen, buf_size(&e->chosen));
	e->rest = lane_first(lane)->log;
	e->tested = 0;
	expire_choose(lane, NULL);
}

static void store_additions(struct lane *lane)
{
	struct expire *e = lane->work;
	const struct opening *open = &e->fetch.open;
	struct slice base = fetch_base(&e->fetch), words = buf_slice(&e->chosen);
	enum outcome_status may = keep_check(&open->read, open->date);

	if (may != OUTCOME_DONE) {
		end_expire(lane, may, NULL);
		return;
	}
	lane_grew(lane, base.n + words.n);
	keep_append(lane, &open->read, base, open->date, words, expire_on_stored);
}

static void expire_choose(struct lane *lane, const struct result *r)
{
	struct expire *e = lane->work;
	struct slice token;

	(void)r;
	while ((token = slice_token(&e->rest)).n) {
		struct slice member = expiry_member(slice_skip(token, 1));
		if (buf_slice(&e->asked.text).p[e->tested] == '1' &&
			!fold_contains(&e->named, member)) {
			fold_add(&e->named, member);
			buf_add_word(&e->chosen, token);
		}
		e->tested += 2;
		if (lane_pauses(lane, CHOICE_STEPS, expire_choose))
			return;
	}
	if (e->named.live == 0)
		end_expire(lane, OUTCOME_DONE, NULL);
	else
		store_additions(lane);
}

static void expire_on_stored(struct lane *lane, const struct result *r)
{
	struct expire *e = lane->work;

	if (r->status == RESULT_DONE) {
		end_expire(lane, OUTCOME_DONE, NULL);
	} else if (result_failed(r)) {
		end_expire(lane, OUTCOME_FAILED, r);
	} else {
		set_request_free(&e->asked);
		e->asked = test_of(e);
		opening_lost(&e->fetch.open);
	}
}
