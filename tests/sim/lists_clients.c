/* The commands of clients on lists, and their replies. */
#include "../unit/parts.h"
#include "lists.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "util/num.h"

/* Whether the test was true of the list at some moment since. */
static bool was(struct truth_list *t, uint64_t since,
	bool (*test)(const struct list_version *v, const void *arg), const void *arg)
{
	for (size_t i = t->version_count; i-- > 0;) {
		if (test(&t->versions[i], arg))
			return true;
		if (t->versions[i].tick <= since)
			return false;
	}
	return false;
}

static bool is_absent(const struct list_version *v, const void *arg)
{
	(void)arg;
	return v->absent;
}

static bool is_empty(const struct list_version *v, const void *arg)
{
	(void)arg;
	return v->absent || v->count == 0;
}

static bool has_count(const struct list_version *v, const void *arg)
{
	return !v->absent && v->count == *(const size_t *)arg;
}

static bool is_sequence(const struct list_version *v, const void *arg)
{
	const struct list_sequence *s = arg;

	return !v->absent && v->count == s->count &&
		memcmp(v->items, s->items, s->count * sizeof(int)) == 0;
}

/*
 * A list that has lost a segment may be complete again, after a pop of its elements by a proxy
 * that has it in memory.
 */
static bool may_be_there(const struct list_version *v, const void *arg)
{
	(void)arg;
	return !v->absent || v->spoiled;
}

void lists_check_absent(struct sim_op *op, bool absent)
{
	struct truth_list *t = lists_of(op->world, op->list->list);

	if (!was(t, op->issued, absent ? is_absent : may_be_there, NULL))
		world_fail(
			op->world, "a list is said to be what it was not", "client %d", op->client);
}

/* --- commands --- */

static struct sim_list_op *begin(struct sim_op *op, int list)
{
	struct sim_list_op *l = op->list = xcalloc(1, sizeof(*l));

	l->list = list;
	l->before = op->world->lists->last[op->client][list];
	op->key = -1;
	return l;
}

static int new_item(struct sim_op *op, bool front, bool set)
{
	struct lists *lists = op->world->lists;
	int n = lists->item_count++;

	lists->items[n] = (struct list_item){ .list = op->list->list,
		.client = op->client,
		.command = op->number,
		.front = front,
		.set = set };
	op->list->first = op->list->count++ ? op->list->first : n;
	lists->last[op->client][op->list->list] = op->number;
	return n;
}

static int some_item(struct world *w)
{
	return w->lists->item_count ? (int)world_random(w, (uint64_t)w->lists->item_count) : 0;
}

static command_id choose(struct world *w, int list)
{
	static const command_id ordinary[] = { COMMAND_RPUSH, COMMAND_RPUSH, COMMAND_RPUSH,
		COMMAND_LPUSH, COMMAND_LPUSH, COMMAND_RPUSHX, COMMAND_LPUSHX, COMMAND_LPOP,
		COMMAND_LPOP, COMMAND_RPOP, COMMAND_SPOP, COMMAND_LRANGE, COMMAND_LLEN,
		COMMAND_SCOMPACT, COMMAND_TOUCH };
	static const command_id more[] = { COMMAND_LSET, COMMAND_LREM, COMMAND_LTRIM,
		COMMAND_TOUCH };

	if (list == LOADED_LIST)
		return list_leases_choose(w);
	if (list == 1 && world_random(w, 100) < 15)
		return more[world_random(w, 4)];
	return ordinary[world_random(w, sizeof(ordinary) / sizeof(*ordinary))];
}

void lists_write_read(struct sim_op *op, int list, struct buf *line)
{
	begin(op, list);
	op->command = COMMAND_LRANGE;
	buf_printf(line, "lrange l%d 0 -1\r\n", list);
}

void lists_write_line(struct world *w, struct sim_op *op, struct buf *line)
{
	int list = (int)world_random(w, SIM_LISTS);
	struct sim_list_op *l = begin(op, list);

	op->command = choose(w, list);
	buf_printf(line, "%s l%d", command_get(op->command)->name.p, list);
	switch (op->command) {
	case COMMAND_RPUSH:
	case COMMAND_RPUSHX:
	case COMMAND_LPUSH:
	case COMMAND_LPUSHX:
		for (uint64_t n = 1 + world_random(w, 12); n > 0; n--)
			buf_printf(line, " i%d",
				new_item(op,
					op->command == COMMAND_LPUSH ||
						op->command == COMMAND_LPUSHX,
					false));
		break;
	case COMMAND_LPOP:
	case COMMAND_RPOP:
	case COMMAND_SPOP:
		l->wanted = 1 + world_random(w, 8);
		buf_printf(line, " %d", (int)l->wanted);
		break;
	case COMMAND_LLEASE:
		buf_printf(line, " %d", 1 + (int)world_random(w, 2));
		break;
	case COMMAND_LLOAD:
	case COMMAND_LFILL:
		list_leases_write_token(op, line);
		for (uint64_t n = world_random(w, 12); n > 0; n--)
			buf_printf(line, " i%d", new_item(op, false, true));
		break;
	case COMMAND_LRANGE:
		BUF_ADD(line, " 0 -1");
		break;
	case COMMAND_LSET:
		buf_printf(line, " %d", (int)world_random(w, 40) - 20);
		buf_printf(line, " i%d", new_item(op, false, true));
		break;
	case COMMAND_LREM:
		buf_printf(line, " %d i%d", (int)world_random(w, 3) - 1, some_item(w));
		break;
	case COMMAND_LTRIM:
		buf_printf(line, " %d %d", (int)world_random(w, 10), -1 - (int)world_random(w, 10));
		break;
	case COMMAND_TOUCH:
		op->exptime =
			list == 1 && world_chance(w, w->mutation == MUTATION_NO_MARGIN ? 80 : 30)
			? (int64_t)world_random(w, 3)
			: lives_choose(w);
		buf_printf(line, " %d", (int)op->exptime);
		break;
	default:
		break;
	}
	BUF_ADD(line, "\r\n");
}

/* --- replies --- */

/* Reads the items from a VALUE. */
static void read_reply(struct sim_op *op, struct list_sequence *out)
{
	struct slice rest = buf_slice(&op->reply), word;
	struct part part;

	out->count = 0;
	if (!parts_next(&rest, &part) || part.key.n == 0)
		return;
	while ((word = slice_token(&part.data)).n)
		out->items[out->count++] = lists_item_number(op->world, word);
}

static void delivered(struct sim_op *op, const struct list_sequence *got)
{
	struct world *w = op->world;
	bool spoiled = lists_of(w, op->list->list)->spoiled;

	if (got->count > op->list->wanted)
		world_fail(w, "more was popped than was asked for", "%zu", got->count);
	for (size_t i = 0; i < got->count; i++) {
		struct list_item *item = &w->lists->items[got->items[i]];
		if (item->delivered)
			world_fail(w, "an item was handed out twice", "i%d", got->items[i]);
		if (!item->removed && !spoiled && !w->evictions)
			world_fail(w, "an item was handed out that is still there", "i%d",
				got->items[i]);
		item->delivered = true;
	}
}

/*
 * Items that one client pushed at the tail must keep their order; those that it pushed at the head
 * must reverse it.
 */
static void check_order(struct world *w, int list)
{
	const struct truth_list *t = lists_of(w, list);
	int last[SIM_CLIENTS][2];

	for (int c = 0; c < SIM_CLIENTS; c++) {
		last[c][0] = -1;
		last[c][1] = SIM_ITEMS;
	}
	for (size_t i = 0; i < t->count && !t->spoiled; i++) {
		const struct list_item *item = &w->lists->items[t->items[i]];
		int *before = &last[item->client][item->front];
		if (item->set || !item->acknowledged)
			continue;
		if (item->front ? t->items[i] > *before : t->items[i] < *before)
			world_fail(w, "items of a client are out of order", "list %d i%d i%d", list,
				*before, t->items[i]);
		*before = t->items[i];
	}
}

/* Items whose pop failed with an unknown outcome may be missing. */
static void forgive(struct world *w, const struct lan_proxy *proxy, int list)
{
	for (int i = 0; i < w->lists->item_count; i++) {
		struct list_item *item = &w->lists->items[i];
		if (item->remover == proxy && (list < 0 || item->list == list) && !item->delivered)
			item->uncertain = true;
	}
}

void lists_proxy_dies(struct world *w, const struct lan_proxy *proxy)
{
	forgive(w, proxy, -1);
	/* A later proxy may have the same address. */
	for (int i = 0; i < w->lists->item_count; i++) {
		if (w->lists->items[i].remover == proxy)
			w->lists->items[i].remover = NULL;
	}
}

static void check_stored_reply(struct sim_op *op)
{
	struct world *w = op->world;

	for (int i = op->list->first; i < op->list->first + op->list->count; i++) {
		struct list_item *item = &w->lists->items[i];
		if (!item->executed && !(item->set && w->evictions))
			world_fail(w, "acknowledged, but not pushed", "i%d", i);
		item->acknowledged = true;
	}
	check_order(w, op->list->list);
}

static void check_read(struct sim_op *op, uint64_t since)
{
	static struct list_sequence got;
	struct world *w = op->world;
	struct truth_list *t = lists_of(w, op->list->list);
	uint64_t count;

	read_reply(op, &got);
	if (op->command == COMMAND_LPOP || op->command == COMMAND_RPOP ||
		op->command == COMMAND_SPOP)
		delivered(op, &got);
	if (t->spoiled)
		return;
	if (check_says(op, "END")) {
		if (!was(t, since, is_empty, NULL))
			world_fail(w, "a list is empty that was not", "list %d", op->list->list);
	} else if (op->command == COMMAND_LRANGE) {
		if (!was(t, since, is_sequence, &got) && !was(t, since, is_absent, NULL))
			world_fail(w, "a read shows what never was", "list %d client %d",
				op->list->list, op->client);
	} else if (op->command == COMMAND_LLEN &&
		num_parse_u64(slice_of(op->reply.data, buf_size(&op->reply) - 2), &count)) {
		size_t n = (size_t)count;
		if (!was(t, since, has_count, &n) && !was(t, since, is_absent, NULL))
			world_fail(w, "a length that never was", "list %d client %d",
				op->list->list, op->client);
	}
}

void lists_reply(struct sim_op *op)
{
	struct world *w = op->world;
	struct truth_list *t = lists_of(w, op->list->list);
	uint64_t since = check_since(op, op->list->before);

	w->truth.tick++;
	lives_reply(op);
	if (network_excuses(op))
		return;
	if (check_says(op, "CLIENT_ERROR index out of range"))
		return;
	if (check_says(op, "CLIENT_ERROR") || check_says(op, "ERROR")) {
		world_fail(w, "an error that makes no sense", "%.*s", (int)buf_size(&op->reply),
			op->reply.data);
	} else if (check_says(op, "SERVER_ERROR")) {
		w->failures++;
		forgive(w, op->proxy, op->list->list);
	} else if (list_leases_reply(op)) {
		return;
	} else if (check_says(op, "STORED")) {
		check_stored_reply(op);
	} else if (check_says(op, "NOT_FOUND")) {
		if (op->command != COMMAND_LREM && !t->spoiled && !was(t, since, is_absent, NULL))
			world_fail(w, "a list is not found that was there all the time", "list %d",
				op->list->list);
	} else {
		check_read(op, since);
	}
}

void lists_end(struct world *w)
{
	for (int i = 0; i < w->lists->item_count; i++) {
		const struct list_item *item = &w->lists->items[i];
		if (item->removed && !item->delivered && !item->uncertain)
			world_fail(w, "an item was taken out and handed to nobody", "i%d", i);
	}
}
