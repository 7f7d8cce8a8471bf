/* The bugs of pairs.def: changed calls and results between the layer of copies and the network. */
#include <stdlib.h>

#include "collection/copies/copy.h"
#include "collection/copies/stamp.h"
#include "collection/text/date.h"
#include "collection/text/lease.h"
#include "pairs.h"
#include "protocol/commands.h"

/* --- what a message is --- */

/* Returns whether the proxy carries out such a command on the key, or on any if it is -1. */
static bool runs(const struct pairs *w, int proxy, int key, command_id command)
{
	const struct pairs_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->proxy == proxy && (key < 0 || op->key == key) && op->command == command)
			return true;
	}
	return false;
}

static bool only_reads(command_id command)
{
	return command == COMMAND_SMEMBERS || command == COMMAND_SISMEMBER ||
		command == COMMAND_SCARD;
}

static bool writes(const struct pairs *w, int proxy)
{
	const struct pairs_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->proxy == proxy && !only_reads(op->command))
			return true;
	}
	return false;
}

static bool is_base(const struct message *m)
{
	struct pairs_name name = pairs_name(m->call.key);

	return name.key >= 0 && !name.is_part;
}

static bool is_base_of(const struct message *m, unsigned copy)
{
	return is_base(m) && pairs_name(m->call.key).copy == copy;
}

/* Returns the server of an absence that is read or raised, or -1. */
static int absence_of(const struct message *m)
{
	static const struct slice prefix = { "@absent.server", 14 };

	return slice_starts(m->call.key, prefix) ? m->call.key.p[prefix.n] - '0' : -1;
}

static bool raises(const struct message *m)
{
	return absence_of(m) >= 0 && call_stores(m->call.verb);
}

static const struct memcached_item *item_of(struct pairs *w, const struct message *m)
{
	return memcached_find(&w->lan.servers[m->server], m->call.key, lan_ms(&w->lan));
}

/* The item of the other copy: a base or a part. */
static const struct memcached_item *twin(struct pairs *w, const struct message *m)
{
	struct pairs_name name = pairs_name(m->call.key);
	struct slice rest = slice_skip(m->call.key, pairs_base_key(name.key, name.copy).n);
	const struct memcached_item *item;
	struct buf key = BUF_EMPTY;

	buf_add_slice(&key, pairs_base_key(name.key, 1 - name.copy));
	buf_add_slice(&key, rest);
	item = memcached_find(
		&w->lan.servers[moving_place(&w->configs[w->moves ? 2 : 0].ring, buf_slice(&key))],
		buf_slice(&key), lan_ms(&w->lan));
	buf_free(&key);
	return item;
}

static bool parse(const struct memcached_item *item, struct copy *copy)
{
	return item && copy_parse(buf_slice(&item->value), copy);
}

/* --- changing it --- */

static void add_copy(struct buf *out, const struct copy *copy)
{
	copy_add_closed(out, copy);
	copy_end_closed(out, copy);
	buf_add_slice(out, copy->log);
}

/* Gives the call another base. */
static void send_base(struct message *m, const struct copy *copy)
{
	struct call call = m->call;
	struct buf base = BUF_EMPTY;
	char *bytes;

	add_copy(&base, copy);
	call.value = buf_slice(&base);
	bytes = memcached_keep_call(&call);
	buf_free(&base);
	free(m->bytes);
	m->bytes = bytes;
	m->call = call;
}

/* Gives the result another base. */
static void return_base(struct message *m, const struct copy *copy)
{
	struct buf base = BUF_EMPTY;

	add_copy(&base, copy);
	buf_free(&m->value);
	m->value = base;
	m->result.value = buf_slice(&m->value);
}

/* The start of a group: ~s or ~c, and the stamp. */
enum { GROUP = 2 };

static uint64_t stamp_of(struct slice group)
{
	return group.n > GROUP + STAMP_DIGITS && group.p[0] == '~' ? stamp_parse(group.p + GROUP)
								   : 0;
}

static void put_stamp(struct slice group, uint64_t stamp)
{
	struct buf text = BUF_EMPTY;

	stamp_add(&text, stamp);
	memcpy((char *)group.p + GROUP, text.data, STAMP_DIGITS);
	buf_free(&text);
}

/* --- calls that are sent --- */

void pairs_mutate_call(struct pairs_proxy *p, struct call *call)
{
	if (p->world->mutation == PAIRS_CLAIM_THERE)
		call->role.claims = false;
}

static uint64_t clock_of(const struct message *m)
{
	return stamp_at(lan_ms(m->proxy->lan) + (uint64_t)m->proxy->skew);
}

static void shrink(struct message *m)
{
	uint64_t stamp = stamp_of(m->call.value);

	if (m->call.verb == CALL_APPEND && stamp)
		put_stamp(m->call.value,
			stamp - (stamp >> STAMP_COUNTER_BITS) % 2 * stamp_at(2 * PAIRS_SKEW));
}

static void close_later(struct pairs *w, struct message *m, command_id command)
{
	struct copy copy;
	struct lease_base lease;

	if (!call_stores(m->call.verb) || m->call.verb == CALL_APPEND ||
		!runs(w, m->from, pairs_name(m->call.key).key, command) ||
		!copy_parse(m->call.value, &copy) ||
		(command == COMMAND_SFILL && lease_split(copy.closed, &lease)))
		return;
	copy.horizon = clock_of(m);
	send_base(m, &copy);
}

static void delete_later(struct pairs *w, struct message *m)
{
	struct copy copy;

	if (m->call.verb == CALL_CAS && copy_parse(m->call.value, &copy) && copy.gone)
		close_later(w, m, COMMAND_DELETE);
}

/* The horizon of a set that is created counts from its first word. */
static void create_late(struct message *m)
{
	struct copy copy;
	uint64_t horizon;

	if (m->call.verb != CALL_ADD || !copy_parse(m->call.value, &copy) || !copy.gone ||
		!copy.log.n)
		return;
	horizon = stamp_before(stamp_of(copy.log), PAIRS_SETTLED);
	if (horizon > copy.horizon)
		copy.horizon = horizon;
	send_base(m, &copy);
}

static void drop_fill(struct message *m)
{
	struct copy copy;

	if (m->call.verb != CALL_ADD || !copy_parse(m->call.value, &copy))
		return;
	copy.fill = 0;
	send_base(m, &copy);
}

static void send_undated(struct message *m)
{
	struct buf closed = BUF_EMPTY, log = BUF_EMPTY;
	struct copy copy;

	if (!copy_parse(m->call.value, &copy))
		return;
	copy.closed = date_undated(copy.closed, &closed);
	copy.log = date_undated(copy.log, &log);
	m->call.exptime = 0;
	send_base(m, &copy);
	buf_free(&closed);
	buf_free(&log);
}

static void sent_base(struct pairs *w, struct message *m)
{
	switch (w->mutation) {
	case PAIRS_NO_F:
		drop_fill(m);
		break;
	case PAIRS_SHRINKING:
		shrink(m);
		break;
	case PAIRS_LATE_FILL:
		close_later(w, m, COMMAND_SFILL);
		break;
	case PAIRS_NO_MARGIN:
		close_later(w, m, COMMAND_SLEASE);
		break;
	case PAIRS_LATE_DELETE:
		delete_later(w, m);
		break;
	case PAIRS_LATE_CREATE:
		create_late(m);
		break;
	case PAIRS_BLIND_REFILL:
		if (m->call.verb == CALL_ADD && twin(w, m))
			m->call.verb = CALL_SET;
		break;
	case PAIRS_FOREIGN_CAS:
		if (m->call.verb == CALL_CAS && is_base_of(m, 1))
			m->call.verb = CALL_SET, m->answered = false;
		break;
	case PAIRS_LONG_REFILL:
		if (m->call.verb == CALL_ADD && m->call.exptime > 0 && twin(w, m))
			send_undated(m);
		break;
	default:
		break;
	}
}

void pairs_mutate_sent(struct pairs *w, struct message *m)
{
	if (w->ending || m->proxy->dead)
		return;
	if (is_base(m))
		sent_base(w, m);
	else if (pairs_name(m->call.key).key >= 0 && m->call.verb == CALL_ADD)
		pairs_note(m)->refill = twin(w, m);
}

static bool is_odd_pop(const struct pairs *w, int proxy, int key)
{
	const struct pairs_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->proxy == proxy && (key < 0 || op->key == key) &&
			op->command == COMMAND_SPOP)
			return op->began % 2;
	}
	return false;
}

bool pairs_mutate_fails(const struct pairs *w, const struct message *m)
{
	return w->mutation == PAIRS_SPOP_HERE && !w->ending && is_base_of(m, 0) &&
		is_odd_pop(w, m->from, pairs_name(m->call.key).key);
}

/* --- calls that are executed --- */

/* A word gets the stamp after the largest one of its base. */
static void put_last(struct pairs *w, struct message *m)
{
	struct copy copy;
	uint64_t stamp = stamp_of(m->call.value);

	if (m->call.verb == CALL_APPEND && stamp && parse(item_of(w, m), &copy) &&
		copy_last_stamp(&copy) >= stamp)
		put_stamp(m->call.value, copy_last_stamp(&copy) + 1);
}

static void delete_plainly(struct pairs *w, struct message *m)
{
	const struct memcached_item *item = item_of(w, m);
	struct copy copy;

	if (call_stores(m->call.verb) && copy_parse(m->call.value, &copy) && copy.gone &&
		!copy.log.n && m->from >= 0 &&
		runs(w, m->from, pairs_name(m->call.key).key, COMMAND_DELETE) &&
		(m->call.verb != CALL_CAS || (item && item->cas == m->call.number)))
		m->call.verb = CALL_DELETE;
}

/* Whether a second base would get other parts. */
static bool drops_parts(struct pairs *w, const struct message *m)
{
	const struct memcached_item *item = item_of(w, m);
	struct buf before = BUF_EMPTY, after = BUF_EMPTY;
	struct copy was, is;
	bool drops;

	if (m->call.verb != CALL_CAS || !is_base_of(m, 1) || !parse(item, &was) ||
		item->cas != m->call.number || !copy_parse(m->call.value, &is))
		return false;
	lease_add_refs(was.closed, &before);
	lease_add_refs(is.closed, &after);
	drops = buf_size(&before) && !slice_equal(buf_slice(&before), buf_slice(&after));
	buf_free(&before);
	buf_free(&after);
	return drops;
}

/* Whether the set that has a copy on that server is missing there. */
static bool lacks_set(struct pairs *w, int server)
{
	for (int key = 0; key < PAIRS_KEYS; key++) {
		for (unsigned copy = 0; copy < 2; copy++) {
			if (pairs_server_of(w, key, copy) == server && !pairs_item(w, key, copy))
				return true;
		}
	}
	return false;
}

static bool is_unread(struct pairs *w, const struct message *m)
{
	int server = absence_of(m);

	if (server < 0 || m->call.verb != CALL_GET)
		return false;
	return w->mutation == PAIRS_ONE_READ ||
		(w->mutation == PAIRS_MISS_ALONE && lacks_set(w, server));
}

static bool is_unraised(const struct pairs *w, const struct message *m)
{
	enum { WITNESS = 2 };

	if (!raises(m) || m->from < 0)
		return false;
	switch (w->mutation) {
	case PAIRS_SOFT_MISS:
		return !writes(w, m->from);
	case PAIRS_NO_AWAY:
		return writes(w, m->from);
	case PAIRS_AWAY_ONE:
		return m->server != (absence_of(m) + WITNESS) % PAIRS_SERVERS;
	case PAIRS_SPOP_HERE:
		return is_odd_pop(w, m->from, -1);
	default:
		return false;
	}
}

static void pairs_on_lost(struct pairs *w, const struct pairs_event *e)
{
	pairs_evict(w, e->a, (unsigned)e->b);
}

bool pairs_mutate_execute(struct pairs *w, struct message *m)
{
	if (w->ending)
		return false;
	m->result = (struct result){ .status = RESULT_MISS };
	if (is_unread(w, m))
		return true;
	m->result.status = RESULT_DONE;
	if (is_unraised(w, m))
		return true;
	if (w->mutation == PAIRS_NO_TABLE && pairs_note(m)->refill)
		return true;
	if (!is_base(m))
		return false;
	switch (w->mutation) {
	case PAIRS_POSITION:
		put_last(w, m);
		return false;
	case PAIRS_PLAIN_DELETE:
		delete_plainly(w, m);
		return false;
	case PAIRS_FOREIGN_TABLE:
		if (!drops_parts(w, m))
			return false;
		/* While the second one is not repaired. */
		pairs_at(w, pairs_now(w) + PAIRS_TIMEOUT, pairs_on_lost,
			pairs_name(m->call.key).key, 0);
		return true;
	case PAIRS_CLAIM_ONE:
		return m->from >= 0 && is_base_of(m, 1) &&
			(m->call.verb == CALL_APPEND || m->call.verb == CALL_ADD) &&
			runs(w, m->from, pairs_name(m->call.key).key, COMMAND_SCLAIM);
	default:
		return false;
	}
}

/* --- results --- */

static void take_lower(struct pairs *w, struct message *m)
{
	struct copy copy, other;

	if (copy_parse(m->result.value, &copy) && parse(twin(w, m), &other) && copy.horizon &&
		other.horizon && copy.horizon != other.horizon) {
		copy.horizon = other.horizon;
		return_base(m, &copy);
	}
}

static void forget_fill(struct message *m)
{
	struct copy copy;

	if (copy_parse(m->result.value, &copy) && copy.fill) {
		copy.fill = 0;
		return_base(m, &copy);
	}
}

/* A base with another horizon, and nothing in it. */
static void find_empty(struct pairs *w, struct message *m)
{
	struct copy other, empty = { .horizon = 0 };

	if (!parse(twin(w, m), &other) || other.gone || !other.horizon)
		return;
	empty.horizon = other.horizon;
	m->result.status = RESULT_HIT;
	m->result.cas = 1;
	return_base(m, &empty);
}

/* Words up to the horizon get the stamp after it. */
static void count_void(struct message *m)
{
	struct copy copy;
	struct copy_reader reader;
	struct copy_word word;
	struct slice before;
	struct buf log = BUF_EMPTY;

	if (!copy_parse(m->result.value, &copy) || !copy.horizon || !copy.log.n)
		return;
	buf_add_slice(&log, copy.log);
	reader = (struct copy_reader){ .rest = buf_slice(&log), .largest = copy.horizon };
	for (before = reader.rest; copy_next(&reader, &word) == COPY_WORD; before = reader.rest) {
		if (word.starts && word.stamp <= copy.horizon && stamp_of(before))
			put_stamp(before, copy.horizon + 1);
	}
	copy.log = buf_slice(&log);
	return_base(m, &copy);
	buf_free(&log);
}

void pairs_mutate_executed(struct pairs *w, struct message *m)
{
	bool hit = m->result.status == RESULT_HIT;

	if (w->ending || !is_base(m) || m->call.verb != CALL_GET || !(m->call.want & WANT_VALUE))
		return;
	if (w->mutation == PAIRS_LOW_H && hit)
		take_lower(w, m);
	else if (w->mutation == PAIRS_ONE_READ && hit)
		forget_fill(m);
	else if (w->mutation == PAIRS_EMPTY_MISS && m->result.status == RESULT_MISS)
		find_empty(w, m);
	else if (w->mutation == PAIRS_VOID_WORDS && hit)
		count_void(m);
}
