/*
 * Dates of sets in encodings other than oplog. In some histories clients touch sets with dates
 * that differ by a round number of seconds, and the clocks of servers and proxies differ.
 * Whichever proxy rewrites an item, it never expires more than NEAR seconds off such a date.
 *
 * A touch with a reply determines the date of a set, unless another command set one meanwhile. A
 * rewrite that keeps the earlier time to live corrects that.
 */
#include <stdio.h>

#include "form.h"
#include "protocol/commands.h"
#include "world.h"

enum { APART = 1000, NEAR = 2, AHEAD = 1000 /* milliseconds */, SETTLED_NAME = 16, NEXT = 20 };

void dates_init(struct world *w, uint64_t seed)
{
	bool needed = w->mutation == MUTATION_NO_TTL || w->mutation == MUTATION_NO_FOLLOW;

	w->dated = w->form && (seed % 3 == 0 || needed);
	w->slow = w->form && seed % 2 == 0;
	if (!w->dated)
		return;
	w->skewed = true;
	for (int i = 0; i < SIM_SERVERS; i++)
		w->lan.servers[i].ahead = (uint64_t)i * AHEAD;
}

int64_t dates_choose(struct world *w)
{
	int64_t first = (int64_t)(world_now(w) / 1000) + SIM_DATE;

	return (first / APART + 2 + (int64_t)world_random(w, NEXT) + NEXT * w->dates++) * APART;
}

/*
 * If a touch is executed between the read and the CAS of a rewrite, the rewrite touches the item
 * once more. If its replies take more than a second, or the server reads its clock more than a
 * second after the time to live, it cannot know the date exactly.
 */
static bool is_excused(struct world *w, const struct message *m, int key)
{
	uint64_t *written = m->proxy ? &w->date_written[m->proxy->index][key] : NULL;
	uint64_t *read = m->proxy ? &w->date_read[m->proxy->index][key] : NULL;

	if (read && m->call.verb == CALL_GET && m->call.want == WANT_TTL)
		*read = world_now(w);
	else if (read && m->call.verb == CALL_STATS && world_now(w) - *read >= 1000)
		w->date_lost[key] = true;
	if (written && m->call.verb == CALL_CAS && m->result.status == RESULT_DONE)
		*written = world_now(w);
	else if (m->call.verb == CALL_TOUCH && m->call.exptime % APART &&
		(!written || world_now(w) - *written >= 1000))
		w->date_lost[key] = true;
	return w->date_lost[key];
}

static bool is_by_client(const struct world *w, const struct message *m, int key)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_TOUCH && op->key == key && op->proxy == m->proxy &&
			op->exptime == m->call.exptime)
			return true;
	}
	return false;
}

/* Whether the call corrects an item that another proxy has written or corrected since the CAS of this one. */
static bool is_crossed(const struct world *w, const struct message *m, int key)
{
	const struct rewrite *own = &w->rewrites[m->proxy->index][key];

	if (!slice_equal(slice_of(own->item, strlen(own->item)), m->call.key))
		return false;
	for (int i = 0; i < SIM_PROXIES; i++) {
		const struct rewrite *other = &w->rewrites[i][key];
		if (other != own && other->changed > own->written &&
			strcmp(own->item, other->item) == 0)
			return true;
	}
	return false;
}

/* Notes rewrites of an item, and corrections that may undo a touch. */
static void follow_rewrites(struct world *w, const struct message *m, int key)
{
	struct rewrite *r = m->proxy ? &w->rewrites[m->proxy->index][key] : NULL;
	int64_t settled = w->settled[key];

	if (!r || m->result.status != RESULT_DONE ||
		(m->call.verb != CALL_CAS && m->call.verb != CALL_TOUCH))
		return;
	if (m->call.verb == CALL_TOUCH && is_by_client(w, m, key))
		return;
	r->changed = w->truth.tick;
	if (m->call.verb == CALL_CAS) {
		r->written = w->truth.tick;
		snprintf(r->item, sizeof(r->item), "%.*s", (int)m->call.key.n, m->call.key.p);
	} else if (is_crossed(w, m, key)) {
		w->crossed[key] = w->truth.tick;
		if (settled &&
			(m->call.exptime < settled - NEAR || m->call.exptime > settled + NEAR)) {
			w->settled[key] = 0;
			w->undone++;
		}
	}
}

/* Commands that may set the time to live of the set `key`, and had no reply yet at tick `since`. */
static bool is_dated_since(const struct world *w, int key, uint64_t since, size_t except)
{
	for (size_t i = 1; i <= w->commands; i++) {
		const struct form_command *c = &w->form_truth.commands[i];
		if (c->key == key && c->dates && c->ended > since && i != except)
			return true;
	}
	return false;
}

void dates_reply(struct sim_op *op)
{
	struct world *w = op->world;
	const struct form_truth *t = &w->form_truth;

	if (!w->dated || op->command != COMMAND_TOUCH || !check_says(op, "TOUCHED"))
		return;
	if (t->state[op->key] == FORM_WHOLE && t->gone[op->key] < op->issued &&
		t->lost[op->key] < op->issued && w->broken < op->issued &&
		w->crossed[op->key] < op->issued &&
		!is_dated_since(w, op->key, op->issued, op->number))
		w->settled[op->key] = op->exptime;
}

/* Whether the set would be another without that item. */
static bool matters(struct world *w, int key, struct memcached_item *item)
{
	uint64_t members = 0;
	enum form_state state;

	item->used = false;
	state = w->form->read(w, key, &members);
	item->used = true;
	return state != FORM_WHOLE || members != w->form_truth.members[key];
}

/* When the first item expires without which the set would be another; INT64_MAX for never. `name` is its name. */
static int64_t ends(struct world *w, int key, char name[SETTLED_NAME])
{
	static const char *const suffixes[] = { "", ".a", ".b", ".active", "+" };
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char tried[SETTLED_NAME];
		bool removals = suffixes[i][0] == '+';
		size_t n = (size_t)snprintf(tried, sizeof(tried), "%c%d%s", removals ? 't' : 's',
			key, removals ? "" : suffixes[i]);
		struct memcached_item *item = world_find(w, slice_of(tried, n));
		if (item && item->expires && item->expires < first && matters(w, key, item)) {
			first = item->expires;
			memcpy(name, tried, sizeof(tried));
		}
	}
	return first;
}

void dates_broken(struct world *w)
{
	memset(w->settled, 0, sizeof(w->settled));
	w->broken = w->truth.tick;
}

void dates_quiet(struct world *w)
{
	for (int key = 0; key < SIM_KEYS; key++) {
		char name[SETTLED_NAME] = "no item";
		int64_t first;
		if (w->settled[key] == 0 || w->date_lost[key])
			continue;
		first = ends(w, key, name);
		if (first < w->settled[key] - NEAR || first > w->settled[key] + NEAR)
			world_fail(w, "a touch was undone", "key %d, %s expires %lld, not %lld",
				key, name, (long long)first, (long long)w->settled[key]);
	}
}

void dates_follow(struct world *w, int key, const struct message *m)
{
	bool late = m && !m->proxy && (m->call.verb == CALL_CAS || m->call.verb == CALL_TOUCH);

	if (late || w->form_truth.state[key] != FORM_WHOLE ||
		is_dated_since(w, key, w->truth.tick, 0))
		w->settled[key] = 0;
}

void dates_check(struct world *w, const struct message *m)
{
	const struct memcached_item *item = world_find(w, m->call.key);
	int key = form_key(w->form, m->call.key);
	int64_t off;

	if (!w->dated || key < 0)
		return;
	follow_rewrites(w, m, key);
	if (is_excused(w, m, key) || !item || item->expires == 0)
		return;
	off = (item->expires + APART / 2) % APART - APART / 2;
	if (off < -NEAR || off > NEAR)
		world_fail(w, "a date that no client has set", "%.*s expires %lld",
			(int)m->call.key.n, m->call.key.p, (long long)item->expires);
}
