/* The bugs of holdings.def. */
#include <stdlib.h>

#include "collection/move/mark.h"
#include "holding.h"
#include "util/alloc.h"

/* Replaces the value of a call that was sent. */
static void replace(struct message *m, struct slice value)
{
	char *bytes = xmalloc(m->call.key.n + value.n + 1);

	memcpy(bytes, m->call.key.p, m->call.key.n);
	memcpy(bytes + m->call.key.n, value.p, value.n);
	m->call.key.p = bytes;
	m->call.value = slice_of(bytes + m->call.key.n, value.n);
	free(m->bytes);
	m->bytes = bytes;
}

static bool has(struct slice text, struct slice part)
{
	return text.n && part.n && memmem(text.p, text.n, part.p, part.n);
}

static struct slice stored(struct lan *lan, const struct message *m)
{
	const struct memcached_item *item =
		memcached_find(&lan->servers[m->server], m->call.key, lan_ms(lan));

	return item ? buf_slice(&item->value) : slice_of("", 0);
}

/* Omits the tokens that begin like this; at most `most`. */
static void omit(struct message *m, const char *like, int most)
{
	struct slice rest = m->call.value, token;
	struct buf value = BUF_EMPTY;

	BUF_ADD(&value, "");
	while ((token = slice_token(&rest)).n) {
		if (most > 0 && slice_starts(token, slice_of(like, strlen(like))))
			most--;
		else
			buf_add_word(&value, token);
	}
	replace(m, buf_slice(&value));
	buf_free(&value);
}

/* Returns a held element of the stored base that the call removes; none if there is none. */
static struct slice removed(struct lan *lan, const struct message *m)
{
	struct slice rest = stored(lan, m), token;

	while ((token = slice_token(&rest)).n) {
		if (slice_starts(token, SLICE("~h")) && !has(m->call.value, token))
			return token;
	}
	return token;
}

/* Adds a token that the call removes. */
static void bring_back(struct message *m, struct slice token)
{
	struct buf value = BUF_EMPTY;

	buf_add_slice(&value, m->call.value);
	buf_add_word(&value, token);
	replace(m, buf_slice(&value));
	buf_free(&value);
}

/* Adds the element of a held one, as it is in a list. */
static void add_element(struct buf *out, struct slice token)
{
	for (int i = 0; i < 4; i++)
		(void)slice_cut(&token, '.');
	BUF_ADD(out, "+");
	buf_add_word(out, token);
}

/* Returns whether the word of a held element is in the list, which the call writes. */
static bool is_back(const struct message *m, struct slice token)
{
	struct buf word = BUF_EMPTY;
	bool back;

	add_element(&word, token);
	back = has(m->call.value, buf_slice(&word));
	buf_free(&word);
	return back;
}

/* Moves the elements that are given back at the head to the tail. */
static void turn(struct message *m, struct slice token)
{
	struct slice word = token, rest = m->call.value, t;
	struct buf value = BUF_EMPTY;
	bool moved = false;

	for (int i = 0; i < 3; i++)
		(void)slice_cut(&word, '.');
	if (word.n < 3 || word.p[0] != 'l')
		return;
	word = slice_skip(word, 2);
	while ((t = slice_token(&rest)).n) {
		if (t.p[0] == '+' && slice_equal(slice_skip(t, 1), word))
			moved = true;
		else
			buf_add_word(&value, t);
	}
	if (moved) {
		BUF_ADD(&value, "+");
		buf_add_word(&value, word);
		replace(m, buf_slice(&value));
	}
	buf_free(&value);
}

static void mutate_cas(struct lan *lan, struct message *m)
{
	struct holding *w = lan->arg;
	struct slice gone = removed(lan, m);

	switch (w->mutation) {
	case HOLDING_COMPACTION:
		if (has(m->call.value, SLICE("@s")))
			omit(m, "~h", HOLDING_JOBS);
		break;
	case HOLDING_REWRITE:
		omit(m, "~h", stage_chance(&w->stage, 5));
		break;
	case HOLDING_COUNTS:
		omit(m, "~d", 1);
		break;
	case HOLDING_TWICE:
		if (gone.n && is_back(m, gone))
			bring_back(m, gone);
		break;
	case HOLDING_OTHER_END:
		if (gone.n)
			turn(m, gone);
		break;
	case HOLDING_FOREIGN:
		if (gone.n && !is_back(m, gone) && has(m->call.value, SLICE("~h"))) {
			omit(m, "~h", 1);
			bring_back(m, gone);
		}
		break;
	case HOLDING_LIST_SET:
		m->call.verb = CALL_SET;
		break;
	default:
		break;
	}
}

/* Whether it makes the copy of a list on its new server the item. */
static bool ends_move(struct lan *lan, const struct message *m)
{
	const struct memcached_item *item =
		memcached_find(&lan->servers[m->server], m->call.key, lan_ms(lan));

	return item && item->flags == MARK_FLAGS && m->call.value.n;
}

/* Gives back the first held element, which stays held. */
static void give_back(struct message *m)
{
	struct slice rest = m->call.value, token;
	struct buf value = BUF_EMPTY;

	buf_add_slice(&value, m->call.value);
	while ((token = slice_token(&rest)).n && !slice_starts(token, SLICE("~h")))
		;
	if (token.n)
		add_element(&value, token);
	replace(m, buf_slice(&value));
	buf_free(&value);
}

static void mutate_move(const struct holding *w, struct message *m)
{
	if (w->mutation == HOLDING_MOVE_LOSES)
		omit(m, "~h", HOLDING_JOBS);
	if (w->mutation == HOLDING_MOVE_COUNTS)
		omit(m, "~d", HOLDING_JOBS);
	if (w->mutation == HOLDING_MOVE_TWICE)
		give_back(m);
}

void holding_mutate_sent(struct lan *lan, struct message *m)
{
	struct holding *w = lan->arg;
	int list = holding_list(m->call.key);

	if (m->call.verb == CALL_CAS && list >= 0 && m->call.exptime >= 0 &&
		m->call.flags != MARK_FLAGS) {
		if (ends_move(lan, m))
			mutate_move(w, m);
		else
			mutate_cas(lan, m);
	}
	if (w->mutation == HOLDING_DEAD_FIRST && list == HOLDING_DEAD &&
		m->call.verb == CALL_APPEND && stored(lan, m).n)
		lan_acknowledge(lan, m, 5000 + lan_random(lan, 20000));
}

/* A read of a base whose held elements are not due for a long time. */
static void hide_dates(struct message *m)
{
	struct slice rest = m->result.value, token;

	while ((token = slice_token(&rest)).n) {
		struct slice date = token;
		if (!slice_starts(token, SLICE("~h"))) {
			buf_add_word(&m->value, token);
			continue;
		}
		(void)slice_cut(&date, '.');
		BUF_ADD(&m->value, "~h4000000000.");
		buf_add_word(&m->value, date);
	}
	m->result.value = buf_slice(&m->value);
}

void holding_mutate_executed(struct holding *w, struct message *m)
{
	const struct call *call = &m->call;
	int list = holding_list(call->key);

	if (w->mutation == HOLDING_LOST_CAS && call->verb == CALL_CAS && list >= 0 &&
		m->result.status == RESULT_EXISTS)
		m->result.status = RESULT_DONE;
	if (w->mutation == HOLDING_BLIND_READ && call->verb == CALL_GET && call->only_reads &&
		list >= 0 && m->result.status == RESULT_HIT && m->result.value.n)
		hide_dates(m);
}
