/* The clients of moving.h: their commands and replies. */
#include <stdio.h>
#include <stdlib.h>

#include "collection/move/mark.h"
#include "moving.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "util/num.h"
#include "wording.h"

/* Space reserved for events that are not commands, and for the reads at the end. */
enum { OPS_MAX = LINEAR_OPS - 22, START_SECOND = 1700000000 };

#define BUCKET "2023111422"

static const struct {
	enum moving_kind kind;
	const char *name;
} names[MOVING_KEYS] = {
	{ MOVING_SET, "s0" },
	{ MOVING_SET, "s1" },
	{ MOVING_SET, "s2" },
	{ MOVING_DATED, "s3" },
	{ MOVING_LIST_KEY, "l0" },
	{ MOVING_LIST_KEY, "l1" },
	{ MOVING_COUNTER, "e0::" BUCKET },
	{ MOVING_COUNTER, "e1::" BUCKET },
	{ MOVING_TEXT, "t0" },
	{ MOVING_TEXT, "t1" },
	{ MOVING_NUMBER, "n0" },
};

/* The number of commands of each kind in a hundred. */
struct weight {
	command_id command;
	unsigned weight;
};

static const struct weight weights[][20] = {
	[MOVING_SET] = { { COMMAND_SADD, 26 }, { COMMAND_SREM, 13 }, { COMMAND_SADDX, 4 },
		{ COMMAND_SCLAIM, 5 }, { COMMAND_SPOP, 5 }, { COMMAND_STAKE, 3 },
		{ COMMAND_SSET, 5 }, { COMMAND_DELETE, 3 }, { COMMAND_TOUCH, 7 },
		{ COMMAND_SCOMPACT, 4 }, { COMMAND_SMEMBERS, 18 }, { COMMAND_SCARD, 5 },
		{ COMMAND_SISMEMBER, 5 } },
	[MOVING_DATED] = { { COMMAND_SADDEX, 45 }, { COMMAND_SMEMBERS, 50 },
		{ COMMAND_SCOMPACT, 5 } },
	[MOVING_LIST_KEY] = { { COMMAND_RPUSH, 17 }, { COMMAND_LPUSH, 12 }, { COMMAND_RPUSHX, 3 },
		{ COMMAND_LPUSHX, 3 }, { COMMAND_LPOP, 9 }, { COMMAND_RPOP, 7 },
		{ COMMAND_LSET, 4 }, { COMMAND_LREM, 4 }, { COMMAND_LTRIM, 3 }, { COMMAND_LLEN, 5 },
		{ COMMAND_LRANGE, 16 }, { COMMAND_LINDEX, 5 }, { COMMAND_DELETE, 3 },
		{ COMMAND_TOUCH, 5 }, { COMMAND_SCOMPACT, 4 } },
	[MOVING_COUNTER] = { { COMMAND_EVINCR, 55 }, { COMMAND_EVCOUNT, 22 }, { COMMAND_GET, 13 },
		{ COMMAND_TOUCH, 6 }, { COMMAND_DELETE, 4 } },
	[MOVING_TEXT] = { { COMMAND_SET, 13 }, { COMMAND_ADD, 10 }, { COMMAND_REPLACE, 4 },
		{ COMMAND_APPEND, 12 }, { COMMAND_PREPEND, 6 }, { COMMAND_CAS, 13 },
		{ COMMAND_DELETE, 9 }, { COMMAND_TOUCH, 6 }, { COMMAND_GET, 8 },
		{ COMMAND_GETS, 15 }, { COMMAND_GAT, 4 } },
	[MOVING_NUMBER] = { { COMMAND_SET, 8 }, { COMMAND_ADD, 8 }, { COMMAND_INCR, 32 },
		{ COMMAND_DECR, 14 }, { COMMAND_CAS, 6 }, { COMMAND_DELETE, 5 },
		{ COMMAND_TOUCH, 5 }, { COMMAND_GET, 12 }, { COMMAND_GETS, 10 } },
};

/*
 * If a proxy does not have the new ring, only the owner of a member writes it, and nothing is
 * removed from a list.
 */
static const struct weight stale_weights[][8] = {
	[MOVING_SET] = { { COMMAND_SADD, 50 }, { COMMAND_SREM, 30 }, { COMMAND_SMEMBERS, 20 } },
	[MOVING_DATED] = { { COMMAND_SADDEX, 50 }, { COMMAND_SMEMBERS, 50 } },
	[MOVING_LIST_KEY] = { { COMMAND_RPUSH, 50 }, { COMMAND_LPUSH, 30 },
		{ COMMAND_LRANGE, 20 } },
	[MOVING_COUNTER] = { { COMMAND_EVINCR, 80 }, { COMMAND_EVCOUNT, 20 } },
	[MOVING_TEXT] = { { COMMAND_SET, 30 }, { COMMAND_ADD, 10 }, { COMMAND_REPLACE, 5 },
		{ COMMAND_APPEND, 14 }, { COMMAND_PREPEND, 4 }, { COMMAND_DELETE, 12 },
		{ COMMAND_GET, 25 } },
	[MOVING_NUMBER] = { { COMMAND_SET, 8 }, { COMMAND_ADD, 8 }, { COMMAND_INCR, 44 },
		{ COMMAND_DECR, 8 }, { COMMAND_DELETE, 6 }, { COMMAND_GET, 26 } },
};

void moving_init_keys(struct moving *w)
{
	for (int i = 0; i < MOVING_KEYS; i++) {
		w->keys[i].kind = names[i].kind;
		snprintf(w->keys[i].name, sizeof(w->keys[i].name), "%s", names[i].name);
	}
}

int moving_find_key(const struct moving *w, struct slice name)
{
	for (int i = 0; i < MOVING_KEYS; i++) {
		if (slice_equal(name, slice_of(w->keys[i].name, strlen(w->keys[i].name))))
			return i;
	}
	return -1;
}

static command_id choose(struct moving *w, enum moving_kind kind)
{
	const struct weight *list = w->stale ? stale_weights[kind] : weights[kind];
	unsigned sum = 0, dice;

	for (size_t i = 0; list[i].weight; i++)
		sum += list[i].weight;
	for (dice = (unsigned)moving_random(w, sum); dice >= list->weight; list++)
		dice -= list->weight;
	return list->command;
}

/* --- the line of a command --- */

static void choose_exptime(struct moving_op *op, unsigned percent)
{
	struct moving *w = op->world;

	op->exptime = moving_chance(w, percent) ? 10000 * (1 + (int64_t)moving_random(w, 400)) : 0;
}

/* A long time is a date. */
static void add_exptime(struct moving_op *op)
{
	int64_t exptime = op->exptime;

	if (exptime > MOVING_DATE || (exptime && moving_chance(op->world, 20)))
		exptime += START_SECOND;
	buf_printf(&op->line, " %lld", (long long)exptime);
}

static bool has_former_ring(const struct moving *w, int proxy)
{
	return proxy == w->forgotten && w->proxies[proxy].config == 0;
}

/*
 * If reads are stale, each member has one writer. Only the proxy with the old configuration also
 * removes members of others.
 */
static int member_of(struct moving_op *op)
{
	struct moving *w = op->world;
	unsigned limit = op->key == 0 ? 12 : MOVING_MEMBERS;
	int member = (int)moving_random(w, limit);

	if (!w->stale)
		return member;
	if (op->command == COMMAND_SREM && has_former_ring(w, w->clients[op->client].proxy) &&
		moving_chance(w, 50)) {
		w->keys[op->key].contested[member] = true;
		return member;
	}
	return member / MOVING_CLIENTS * MOVING_CLIENTS + op->client;
}

static void add_members(struct moving_op *op, uint64_t count)
{
	for (; count > 0; count--) {
		int member = member_of(op);
		if (op->mask & UINT64_C(1) << member)
			continue;
		op->mask |= UINT64_C(1) << member;
		buf_printf(&op->line, " member%02d", member);
	}
}

static void write_set(struct moving_op *op)
{
	struct moving *w = op->world;
	uint64_t most = op->key == 0 ? 3 : op->key == 1 ? 8 : 5;

	switch (op->command) {
	case COMMAND_SADD:
	case COMMAND_SADDX:
	case COMMAND_SREM:
		add_members(op, 1 + moving_random(w, most));
		break;
	case COMMAND_SCLAIM:
	case COMMAND_SISMEMBER:
		add_members(op, 1);
		break;
	case COMMAND_SSET:
		add_members(op, moving_random(w, 5 * most));
		break;
	case COMMAND_SPOP:
		op->number = 1;
		break;
	default:
		break;
	}
}

/* Each element is pushed once. */
static void add_elements(struct moving_op *op, uint64_t count)
{
	struct moving_key *key = &op->world->keys[op->key];
	char elements[8];
	size_t n = 0;

	for (; n < count && key->elements < 255; n++) {
		elements[n] = (char)++key->elements;
		buf_printf(&op->line, " e%03d", key->elements);
	}
	op->text = moving_text(op->world, slice_of(elements, n));
}

static void write_list(struct moving_op *op)
{
	struct moving *w = op->world;

	op->number = moving_random(w, 6);
	switch (op->command) {
	case COMMAND_RPUSH:
	case COMMAND_LPUSH:
	case COMMAND_RPUSHX:
	case COMMAND_LPUSHX:
		add_elements(op, 1 + moving_random(w, 5));
		break;
	case COMMAND_LPOP:
	case COMMAND_RPOP:
		op->number = 1 + op->number / 2;
		buf_printf(&op->line, " %d", (int)op->number);
		break;
	case COMMAND_LSET:
		buf_printf(&op->line, " %d", (int)op->number);
		add_elements(op, 1);
		break;
	case COMMAND_LINDEX:
		buf_printf(&op->line, " %d", (int)op->number);
		break;
	case COMMAND_LREM:
		op->number = 1 + moving_random(w, 20);
		buf_printf(&op->line, " 0 e%03d", (int)op->number);
		break;
	case COMMAND_LTRIM:
		op->number /= 3;
		buf_printf(&op->line, " %d -1", (int)op->number);
		break;
	case COMMAND_LRANGE:
		BUF_ADD(&op->line, " 0 -1");
		break;
	default:
		break;
	}
}

/* A value that only looks like a mark, or any other one. */
static void write_text(struct moving_op *op, char *value, size_t size, bool imitates)
{
	struct moving *w = op->world;
	uint64_t dice = imitates ? moving_random(w, 4) : 0;

	if (w->keys[op->key].kind == MOVING_NUMBER)
		snprintf(value, size, "%d", (int)moving_random(w, 120));
	else if (dice == 3)
		snprintf(value, size, "@claim.%d ", (int)w->commands);
	else if (dice == 2)
		snprintf(value, size, "@copy.%d.1.2.3.2 ab", (int)w->commands);
	else
		snprintf(value, size, "%c%d.", 'a' + op->client, (int)w->commands);
}

/* <flags>:<value> for commands that replace an item, otherwise the value. */
static void write_data(struct moving_op *op)
{
	struct moving *w = op->world;
	bool replaces = op->command != COMMAND_APPEND && op->command != COMMAND_PREPEND;
	bool imitates = replaces && moving_chance(w, 10);
	unsigned flags = imitates ? MARK_FLAGS : replaces ? (unsigned)moving_random(w, 9) : 0;
	char text[64], *value = text;

	if (replaces)
		value += snprintf(text, sizeof(text), "%u:", flags);
	write_text(op, value, 40, imitates);
	op->text = moving_text(w, slice_of(text, strlen(text)));
	if (replaces)
		choose_exptime(op, 50);
	buf_printf(&op->line, " %u", flags);
	add_exptime(op);
	buf_printf(&op->line, " %zu", strlen(value));
	if (op->command == COMMAND_CAS) {
		op->cas = w->keys[op->key].cas[op->client];
		buf_printf(&op->line, " %llu", (unsigned long long)op->cas);
	}
	buf_printf(&op->line, "\r\n%s", value);
}

static void write_item(struct moving_op *op)
{
	struct moving *w = op->world;

	switch (op->command) {
	case COMMAND_SET:
	case COMMAND_ADD:
	case COMMAND_REPLACE:
	case COMMAND_APPEND:
	case COMMAND_PREPEND:
	case COMMAND_CAS:
		write_data(op);
		break;
	case COMMAND_INCR:
	case COMMAND_DECR:
		op->number = 1 + moving_random(w, 9);
		buf_printf(&op->line, " %d", (int)op->number);
		break;
	case COMMAND_EVINCR:
		op->number = 1 + moving_random(w, 3);
		buf_printf(&op->line, " %d %d", (int)op->number, START_SECOND);
		break;
	case COMMAND_EVCOUNT:
		BUF_ADD(&op->line, " " BUCKET);
		break;
	default:
		break;
	}
}

static void write_line(struct moving_op *op)
{
	const struct moving_key *key = &op->world->keys[op->key];
	bool event = op->command == COMMAND_EVINCR || op->command == COMMAND_EVCOUNT;

	buf_add_slice(&op->line, command_get(op->command)->name);
	if (op->command == COMMAND_GAT) {
		choose_exptime(op, 70);
		add_exptime(op);
	}
	buf_printf(&op->line, " %.*s", event ? 2 : (int)strlen(key->name), key->name);
	if (op->command == COMMAND_TOUCH) {
		choose_exptime(op, 70);
		add_exptime(op);
	} else if (key->kind == MOVING_SET) {
		write_set(op);
	} else if (key->kind == MOVING_DATED) {
		moving_dated_write(op);
	} else if (key->kind == MOVING_LIST_KEY) {
		write_list(op);
	} else {
		write_item(op);
	}
	BUF_ADD(&op->line, "\r\n");
}

/* --- sending --- */

static struct moving_op *new_op(struct moving *w, int client, int key)
{
	struct moving_op *op = xcalloc(1, sizeof(*op));

	op->world = w;
	op->client = client;
	op->key = key;
	op->asked = ++w->tick;
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	return op;
}

void moving_free_op(struct moving_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	buf_free(&op->line);
	buf_free(&op->reply);
	free(op);
}

static bool knows_new(const struct moving *w, int proxy, const char *key)
{
	const struct moving_config *c = &moving_current(&w->proxies[proxy])->config;
	struct slice name = slice_of(key, strlen(key));

	return c->moves && ((int64_t)moving_now(w) + w->proxies[proxy].lan.skew) / 1000 >= c->at &&
		moving_place(&c->former, name) != moving_place(&c->ring, name);
}

static void start(struct moving_op *op, int proxy)
{
	struct moving *w = op->world;

	op->asked = ++w->tick;
	op->former = has_former_ring(w, proxy);
	op->on_new = op->key >= 0 && knows_new(w, proxy, w->keys[op->key].name);
	if (!lan_ask(
		    &moving_current(&w->proxies[proxy])->lan, op->client, buf_slice(&op->line), op))
		moving_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
}

static void ask(struct moving *w, int client, int key, command_id command)
{
	struct moving_op *op = new_op(w, client, key);
	struct moving_key *k = &w->keys[key];

	op->command = command;
	w->commands++;
	/* Its commands are checked at once. */
	if (k->kind == MOVING_DATED)
		k->count = 0;
	write_line(op);
	k->ops[k->count++] = op;
	w->clients[client].busy = true;
	start(op, w->clients[client].proxy);
}

void moving_act(struct moving *w, int client)
{
	int key = (int)moving_random(w, MOVING_KEYS);
	struct moving_key *k = &w->keys[key];

	if (k->spoiled || k->count >= OPS_MAX)
		return;
	ask(w, client, key, choose(w, k->kind));
}

void moving_read(struct moving *w, int client, int key)
{
	static const command_id reads[] = { [MOVING_SET] = COMMAND_SMEMBERS,
		[MOVING_DATED] = COMMAND_SMEMBERS,
		[MOVING_LIST_KEY] = COMMAND_LRANGE,
		[MOVING_COUNTER] = COMMAND_EVCOUNT,
		[MOVING_TEXT] = COMMAND_GET,
		[MOVING_NUMBER] = COMMAND_GET };

	if (!w->keys[key].spoiled && w->keys[key].count < LINEAR_OPS)
		ask(w, client, key, reads[w->keys[key].kind]);
}

void moving_get(struct moving *w, int proxy, struct slice item)
{
	struct moving_op *op = new_op(w, -1, -1);

	op->command = COMMAND_GETS;
	buf_printf(&op->line, "gets %.*s\r\n", (int)item.n, item.p);
	start(op, proxy);
}

struct moving_op *moving_note(struct moving *w, int key)
{
	struct moving_key *k = &w->keys[key];
	struct moving_op *op;

	if (k->spoiled || k->count >= LINEAR_OPS)
		return NULL;
	op = new_op(w, -1, key);
	k->ops[k->count++] = op;
	return op;
}

/* --- replies --- */

static void read_members(struct moving_op *op)
{
	struct slice rest = op->got.value, word;
	uint64_t member;

	while ((word = slice_token(&rest)).n) {
		if (!slice_starts(word, SLICE("member")) ||
			!num_parse_u64(slice_skip(word, 6), &member) || member >= MOVING_MEMBERS ||
			op->got.mask & UINT64_C(1) << member)
			moving_fail(op->world, "a set has a member that nobody added, or twice",
				"%.*s", (int)op->got.value.n, op->got.value.p);
		else
			op->got.mask |= UINT64_C(1) << member;
	}
}

static void read_elements(struct moving_op *op)
{
	struct slice rest = op->got.value, word;
	char elements[256];
	uint64_t number;
	size_t n = 0;

	while ((word = slice_token(&rest)).n) {
		if (!slice_starts(word, SLICE("e")) ||
			!num_parse_u64(slice_skip(word, 1), &number) || number > 255 ||
			n == sizeof(elements))
			moving_fail(op->world, "a list has an element that nobody pushed", "%.*s",
				(int)op->got.value.n, op->got.value.p);
		else
			elements[n++] = (char)number;
	}
	op->got.text = moving_text(op->world, slice_of(elements, n));
}

static void read_item(struct moving_op *op, struct slice flags)
{
	struct buf text = BUF_EMPTY;

	buf_printf(
		&text, "%.*s:%.*s", (int)flags.n, flags.p, (int)op->got.value.n, op->got.value.p);
	op->got.text = moving_text(op->world, buf_slice(&text));
	buf_free(&text);
}

/* VALUE <key> <flags> <bytes> [<cas>], followed by the value. */
static void read_value(struct moving_op *op, struct slice line, struct slice rest)
{
	struct slice flags, key = slice_token(&line);
	uint64_t bytes = 0;

	(void)key;
	flags = slice_token(&line);
	if (!num_parse_u64(slice_token(&line), &bytes) || bytes > rest.n) {
		moving_fail(op->world, "a reply is cut off", "%.*s", (int)buf_size(&op->reply),
			op->reply.data);
		return;
	}
	(void)num_parse_u64(slice_token(&line), &op->got.cas);
	op->got.has_value = true;
	op->got.value = slice_of(rest.p, bytes);
	switch (op->world->keys[op->key].kind) {
	case MOVING_SET:
	case MOVING_DATED:
		read_members(op);
		break;
	case MOVING_LIST_KEY:
		read_elements(op);
		break;
	case MOVING_COUNTER:
		op->got.is_number = num_parse_u64(op->got.value, &op->got.number);
		break;
	default:
		read_item(op, flags);
	}
}

static void read_reply(struct moving_op *op)
{
	struct slice rest = buf_slice(&op->reply), line = slice_cut(&rest, '\n');

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	op->got.word = slice_token(&line);
	op->got.is_number = num_parse_u64(op->got.word, &op->got.number);
	if (slice_equal(op->got.word, SLICE("VALUE"))) {
		read_value(op, line, rest);
	} else if (slice_equal(op->got.word, SLICE("COUNT"))) {
		(void)slice_token(&line);
		op->got.is_number = num_parse_u64(slice_token(&line), &op->got.number);
	}
	if (op->got.cas)
		op->world->keys[op->key].cas[op->client] = op->got.cas;
}

static bool is_error(const struct moving_op *op)
{
	return slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR"));
}

/* Where reads may be stale: the last word of its only writer on each member, unless a command of it may still arrive. */
static void follow(struct moving_op *op)
{
	struct moving_key *k = &op->world->keys[op->key];
	signed char word = op->command == COMMAND_SREM ? -1 : 1;
	bool known = op->replied && !slice_equal(op->got.word, SLICE("NOT_FOUND"));
	struct slice elements = op->text ? moving_text_of(op->world, op->text) : slice_of("", 0);

	if (k->kind == MOVING_COUNTER && op->command == COMMAND_EVINCR && known)
		k->counted += op->number;
	for (int m = 0; k->kind == MOVING_SET && m < MOVING_MEMBERS; m++) {
		if (!(op->mask & UINT64_C(1) << m) || m % MOVING_CLIENTS != op->client)
			continue;
		k->removed[m] |= word < 0;
		if (k->words[m] == 2 || (op->replied && !known))
			continue;
		k->words[m] = known ? word : 2;
		k->on_new[m] = op->on_new;
	}
	for (size_t i = 0; k->kind == MOVING_LIST_KEY && known && i < elements.n; i++)
		k->words[MOVING_MEMBERS + (unsigned char)elements.p[i]] = 1;
}

void moving_answered(struct moving_op *op)
{
	struct moving *w = op->world;
	bool failed = is_error(op),
	     dead = op->client >= 0 && w->proxies[w->clients[op->client].proxy].lan.dead;
	bool busy = slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR busy\r\n"));

	wording_reply(&op->reply, op->command == COMMAND_SPOP);
	lan_say(&w->lan, "client %d %.*s: %.*s", op->client, (int)buf_size(&op->line) - 2,
		op->line.data, (int)buf_size(&op->reply), op->reply.data);
	if (failed && !w->faults && !w->losses && !w->stale &&
		!(busy && op->command == COMMAND_SCOMPACT))
		moving_fail(w, "a command failed", "%.*s -> %.*s", (int)buf_size(&op->line),
			op->line.data, (int)buf_size(&op->reply), op->reply.data);
	if (op->client < 0) {
		moving_free_op(op);
		return;
	}
	w->clients[op->client].busy = false;
	w->failures += failed;
	if (!failed && !dead && !w->keys[op->key].spoiled) {
		op->replied = ++w->tick;
		read_reply(op);
	}
	if (w->keys[op->key].kind == MOVING_DATED)
		moving_dated_answered(op);
	else if (w->stale)
		follow(op);
}
