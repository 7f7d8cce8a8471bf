/*
 * Touch and delete of a collection in an adopted encoding: read all items -> touch or delete each.
 *
 * A compaction of flip makes another list the active one. So a delete removes first what names the active list, if it is unchanged.
 * If there is no collection, the delete leaves that item: somebody may be about to use it for a new collection.
 * A touch looks afterwards whether there are items that it did not touch, and then touches all once more.
 */
#include "collection/adopted/adopted.h"
#include "collection/ttl.h"

static adopted_next snapshot_read, run_round, round_run, touch_checked, again, finished;

/* Whether a touch makes an item live longer. If its time to live is not known, it may. */
static bool prolongs(const struct adopted *c, const struct snapshot_item *item)
{
	int64_t ttl = lane_first(c->lane)->ttl;

	if (ttl_is_date(ttl))
		ttl -= lane_env(c->lane)->unix_time;
	return item->ttl != TTL_NEVER && (ttl == 0 || item->ttl == TTL_UNKNOWN || ttl > item->ttl);
}

/*
 * The item at position `i` in the order of a touch or delete, or NULL for none. The main item comes first, since without it
 * the collection does not exist and its other items do not count. A touch that prolongs it touches the others before it as well.
 */
static struct snapshot_item *next_item(const struct adopted *c, size_t i)
{
	const struct snapshot_item *vital = adopted_main_item(c);
	size_t n = c->s.count;
	struct snapshot_item *item = i < n ? c->s.items[i] : c->s.items[n - 1 - (i - n) % n];

	if (i < n && (c->kind != OP_TOUCH || !vital || !vital->there || !prolongs(c, vital)))
		return NULL;
	if (i < 2 * n ? i >= n && item != vital : item == vital)
		return NULL;
	return item->there && (i >= n || item != vital) ? item : NULL;
}

/*
 * Once the main item is deleted, others may create the collection again. So the other items are removed by CAS, if the server
 * gives tokens.
 */
static void plan_step_for(struct adopted *c, struct snapshot_item *item, bool touch)
{
	if (touch)
		plan_add(&c->plan, CALL_TOUCH, item, NULL);
	else if ((item == adopted_main_item(c) && !c->encoding->vital_item) || item->cas == 0)
		plan_add(&c->plan, CALL_DELETE, item, NULL);
	else
		plan_expire(&c->plan, item);
}

void adopted_touch_delete(struct adopted *c)
{
	adopted_read(c, &c->s, FOR_ALL, snapshot_read);
}

static void delete_vital(struct adopted *c)
{
	struct snapshot_item *vital = c->encoding->vital_item(&c->s);

	plan_free(&c->plan);
	if (vital->there)
		plan_step_for(c, vital, false);
	c->plan.must = vital->cas != 0;
	adopted_run(c, run_round, again);
}

static void snapshot_read(struct adopted *c)
{
	fold_reset(&c->all);
	c->missing = c->encoding->fold(&c->s, &c->all) == ADOPTED_MISSING;
	c->reached = 0;
	if (c->kind != OP_DELETE || !c->encoding->vital_item)
		run_round(c);
	else if (c->missing)
		finished(c);
	else
		delete_vital(c);
}

static void run_round(struct adopted *c)
{
	bool touch = c->kind == OP_TOUCH;
	size_t end = 3 * c->s.count;

	plan_free(&c->plan);
	/* There may be more items than a plan has steps. */
	while (c->reached < end && c->plan.count < PLAN_STEPS_MAX) {
		struct snapshot_item *item = next_item(c, c->reached++);
		if (item)
			plan_step_for(c, item, touch);
	}
	adopted_run(c, c->reached < end ? run_round : round_run, finished);
}

static void round_run(struct adopted *c)
{
	if (c->kind == OP_TOUCH && c->encoding->vital_item && !c->missing)
		adopted_read(c, &c->now, FOR_ALL, touch_checked);
	else
		finished(c);
}

/* Additions and removals change the main item only. */
static void touch_checked(struct adopted *c)
{
	const struct snapshot_item *main = adopted_main_item(c);

	for (size_t i = 0; i < c->now.count; i++) {
		const struct snapshot_item *item = c->now.items[i], *before = snapshot_find(&c->s, item->role);
		if (item->there && (!before->there || (item->cas != before->cas && before != main))) {
			again(c);
			return;
		}
	}
	finished(c);
}

static void again(struct adopted *c)
{
	c->s.attempt++;
	if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_ALL, snapshot_read);
}

static void finished(struct adopted *c)
{
	adopted_end(c, c->missing ? OUTCOME_MISSING : OUTCOME_DONE);
}
