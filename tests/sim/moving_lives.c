/*
 * Touches that a rewrite undoes without detecting it. A rewrite that has overridden the touch of a
 * client corrects that by a touch of its own. If another client meanwhile sets the time to live
 * that the rewrite has set, the item looks as if it had not been touched since, and memcached has
 * no touch that compares. So that second touch is undone, as described in STORAGE in
 * setlistd-protocol(7). At the end the time to live of such a key is unknown.
 */
#include "moving.h"
#include "protocol/commands.h"

/* Whether a touch of a client is under way there: then the call may be that, and no correction. */
static bool is_touched_by_client(const struct moving *w, int proxy, int key)
{
	const struct moving_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->key == key && op->command == COMMAND_TOUCH && !op->replied &&
			op->client >= 0 && w->clients[op->client].proxy == proxy)
			return true;
	}
	return false;
}

static bool is_near(int64_t a, int64_t b)
{
	return !a || !b ? a == b : a - b <= 1 && b - a <= 1;
}

/* A client has touched the item. Marks the rewrites that cannot distinguish this touch from their own. */
static void given(struct moving_key *key, int64_t expires)
{
	for (int i = 0; i < MOVING_PROXIES; i++) {
		struct moving_rewrite *r = &key->rewrites[i];
		r->given_back = r->given_back ||
			(r->wrote && (is_near(expires, r->first) || is_near(expires, r->last)));
	}
}

void moving_follow_life(struct moving *w, const struct message *m)
{
	const struct memcached_item *item;
	struct moving_rewrite *r;
	struct moving_key *k;
	int key = moving_find_key(w, m->call.key);

	if (key < 0 || w->keys[key].kind > MOVING_LIST_KEY || m->result.status > RESULT_DONE)
		return;
	item = moving_item(w, m->server, m->call.key);
	k = &w->keys[key];
	r = &k->rewrites[m->from];
	if (!item)
		return;
	if (m->call.verb == CALL_CAS) {
		*r = (struct moving_rewrite){
			.wrote = true, .first = item->expires, .last = item->expires
		};
	} else if (m->call.verb == CALL_GAT ||
		(m->call.verb == CALL_TOUCH && is_touched_by_client(w, m->from, key))) {
		given(k, item->expires);
	} else if (m->call.verb == CALL_TOUCH) {
		k->undone = k->undone || r->given_back;
		r->last = item->expires;
	}
}
