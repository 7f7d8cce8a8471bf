/*
 * Dates of sets in other encodings than oplog. In some histories clients touch sets with dates that lie a round number of
 * seconds apart, and the clocks of servers and proxies differ. Whoever rewrites an item, it never ends more than NEAR seconds
 * off such a date.
 */
#include "form.h"
#include "world.h"

enum { APART = 1000, NEAR = 2, AHEAD = 1000 /* milliseconds */ };

void dates_init(struct world *w, uint64_t seed)
{
	w->dated = w->form && seed % 3 == 0;
	w->slow = w->form && seed % 2 == 0;
	if (!w->dated)
		return;
	w->skewed = true;
	for (int i = 0; i < SIM_SERVERS; i++)
		w->servers[i].ahead = (uint64_t)i * AHEAD;
}

int64_t dates_choose(struct world *w)
{
	int64_t first = (int64_t)(w->now / 1000) + SIM_DATE;

	return (first / APART + 2 + (int64_t)world_random(w, 20)) * APART;
}

/*
 * If a touch comes between the read and the CAS of a rewrite, the rewrite touches the item once more. If its replies take more
 * than a second, or the server reads its clock more than a second after the time to live, it cannot know the date exactly.
 */
static bool is_excused(struct world *w, const struct message *m, int key)
{
	uint64_t *written = m->proxy ? &w->date_written[m->proxy->index][key] : NULL;
	uint64_t *read = m->proxy ? &w->date_read[m->proxy->index][key] : NULL;

	if (read && m->call.verb == CALL_GET && m->call.want == WANT_TTL)
		*read = w->now;
	else if (read && m->call.verb == CALL_STATS && w->now - *read >= 1000)
		w->date_lost[key] = true;
	if (written && m->call.verb == CALL_CAS && m->result.status == RESULT_DONE)
		*written = w->now;
	else if (m->call.verb == CALL_TOUCH && m->call.exptime % APART && (!written || w->now - *written >= 1000))
		w->date_lost[key] = true;
	return w->date_lost[key];
}

void dates_check(struct world *w, const struct message *m)
{
	const struct fake_item *item = world_find(w, m->call.key);
	int key = form_key(w->form, m->call.key);
	int64_t off;

	if (!w->dated || key < 0 || is_excused(w, m, key) || !item || item->expires == 0)
		return;
	off = (item->expires + APART / 2) % APART - APART / 2;
	if (off < -NEAR || off > NEAR)
		world_fail(w, "a date that no client has set", "%.*s expires %lld", (int)m->call.key.n, m->call.key.p,
			(long long)item->expires);
}
