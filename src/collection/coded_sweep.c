/* Touching and deleting all items of a collection in an encoding beside oplog: read all -> touch or delete each. */
#include "collection/coded.h"

static void swept(struct coded *c)
{
	coded_end(c, c->missing ? OUTCOME_MISSING : OUTCOME_DONE);
}

/* Whether a touch makes an item live longer; where that is not known it may. */
static bool prolongs(const struct coded *c, const struct piece *piece)
{
	int64_t ttl = STAILQ_FIRST(&c->lane->batch)->ttl;

	if (lane_is_date(ttl))
		ttl -= lane_host(c->lane)->unix_time;
	return piece->ttl != TTL_NEVER && (ttl == 0 || piece->ttl == TTL_UNKNOWN || ttl > piece->ttl);
}

/*
 * The item at a place in the order of a sweep, or NULL for none. The main item comes first, for without it there is no
 * collection, and the others say nothing then; what is to live longer, though, comes before it and once more behind it.
 */
static struct piece *sweep_at(const struct coded *c, size_t i)
{
	const struct piece *vital = coded_main_piece(c);
	size_t n = c->s.count;
	struct piece *piece = i < n ? c->s.pieces[i] : c->s.pieces[n - 1 - (i - n) % n];

	if (i < n && (!STAILQ_FIRST(&c->lane->batch)->create || !vital || !vital->there || !prolongs(c, vital)))
		return NULL;
	if (i < 2 * n ? i >= n && piece != vital : piece == vital)
		return NULL;
	return piece->there && (i >= n || piece != vital) ? piece : NULL;
}

/* Without the main item the others go only as they were: by then they may be those of another collection. */
static void plan_sweep(struct coded *c, struct piece *piece, bool touch)
{
	if (touch) {
		plan_add(&c->plan, CALL_TOUCH, piece, NULL);
	} else if (piece == coded_main_piece(c)) {
		plan_add(&c->plan, CALL_DELETE, piece, NULL);
	} else {
		plan_add(&c->plan, CALL_CAS, piece, NULL);
		c->plan.steps[c->plan.count - 1].expire = true;
	}
}

static void sweep_run(struct coded *c)
{
	bool touch = STAILQ_FIRST(&c->lane->batch)->create;
	size_t end = 3 * c->s.count;

	plan_free(&c->plan);
	/* The steps of a plan are few, the items may be many: they go in rounds. */
	while (c->swept < end && c->plan.count < PLAN_STEPS_MAX) {
		struct piece *piece = sweep_at(c, c->swept++);
		if (piece)
			plan_sweep(c, piece, touch);
	}
	coded_run(c, c->swept < end ? sweep_run : swept, swept);
}

static void sweep_read(struct coded *c)
{
	fold_reset(&c->all);
	c->missing = c->encoding->fold(&c->s, &c->all) == CODED_MISSING;
	sweep_run(c);
}

void coded_sweep(struct coded *c)
{
	coded_read(c, &c->s, FOR_ALL, sweep_read);
}
