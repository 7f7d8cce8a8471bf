#include "expiring.h"

#include <stdio.h>

#include "collection/op.h"
#include "lives.h"
#include "protocol/commands.h"
#include "wording.h"
#include "world.h"

enum { MS = 1000, LATER = 100 * MS /* how far the time goes at most */, IN_FLIGHT = 1500 };

/* --- clocks --- */

static int64_t server_time(const struct world *w, int key, uint64_t time)
{
	char name[SIM_KEY_SIZE] = { 's', (char)('0' + key) };

	return (int64_t)(time + w->lan.servers[world_server(slice_of(name, SIM_KEY_SIZE))].ahead);
}

int64_t expiring_least(const struct world *w, int key, uint64_t time)
{
	return (server_time(w, key, time) - EXPIRING_ERROR) / MS;
}

int64_t expiring_most(const struct world *w, int key, uint64_t time)
{
	return (server_time(w, key, time) + EXPIRING_ERROR) / MS;
}

static void change_error(struct world *w)
{
	w->clock_errors[world_random(w, SIM_PROXIES)][world_random(w, SIM_SERVERS)] =
		(int64_t)world_random(w, 2 * EXPIRING_ERROR + 1) - EXPIRING_ERROR;
}

int64_t expiring_error(const struct lan_proxy *p, int server)
{
	const struct world *w = p->lan->arg;

	return w->clock_errors[p->index][server] + mutate_expiring_clock(p, server);
}

/* The estimate of the proxy of a command. */
static int64_t estimate(const struct sim_op *op)
{
	const struct world *w = op->world;
	char name[SIM_KEY_SIZE] = { 's', (char)('0' + op->key) };
	int server = world_server(slice_of(name, SIM_KEY_SIZE));

	return (server_time(w, op->key, world_now(w)) + w->clock_errors[op->proxy->index][server]) /
		MS;
}

/* --- histories --- */

static void add_rule(struct world *w, const char *prefix, int64_t seconds)
{
	struct collection_rule *rules = w->own_rules;
	size_t n = w->rules.collection_count;

	for (size_t i = 0; i < n; i++) {
		if (slice_equal(rules[i].prefix, slice_of(prefix, SIM_KEY_SIZE))) {
			rules[i].member_ttl = seconds;
			return;
		}
	}
	rules[n] = rules[0];
	rules[n].prefix = slice_of(prefix, SIM_KEY_SIZE);
	rules[n].member_ttl = seconds;
	w->rules.collection_count++;
}

void expiring_init(struct world *w, uint64_t seed)
{
	/* That mutation is about bases. */
	if (w->form || w->mutation == MUTATION_NO_CLOCK ||
		(seed / 3 % 3 != 1 && !mutate_expiring_needed(w)))
		return;
	w->expiring = true;
	add_rule(w, "s1", 1 + (int64_t)(seed % 4));
	if (seed % 2)
		add_rule(w, "s3", 2);
	for (int i = 0; i < 2 * SIM_PROXIES * SIM_SERVERS; i++)
		change_error(w);
}

uint64_t expiring_seconds(struct world *w)
{
	uint64_t dice = world_random(w, 100);

	return dice < 10 ? 0 : dice < 70 ? 1 + world_random(w, 3) : 4 + world_random(w, 40);
}

/* Moments around a date, by a clock that is right and by ones that are off. */
static int64_t beside(struct world *w)
{
	static const int64_t moments[] = { -MS, -EXPIRING_ERROR - 1, -EXPIRING_ERROR, -1, 0, 1,
		EXPIRING_ERROR - 1, EXPIRING_ERROR, EXPIRING_ERROR + 1, MS };

	return moments[world_random(w, sizeof(moments) / sizeof(*moments))];
}

/* A read by a client. Before a date it puts the set into memory, after it the answer must change. */
struct look {
	int client;
	command_id command;
};

enum { LOOKS = 3 };

static void look(struct world *w, int key, const struct look looks[LOOKS])
{
	for (int i = 0; i < LOOKS; i++)
		clients_issue(w, w->proxies[w->client_proxy[looks[i].client]], looks[i].client, key,
			looks[i].command);
}

static void choose_looks(struct world *w, struct look looks[LOOKS])
{
	static const command_id reads[] = { COMMAND_SMEMBERS, COMMAND_SCARD, COMMAND_SCARD,
		COMMAND_STTL, COMMAND_SMISMEMBER };

	for (int i = 0; i < LOOKS; i++)
		looks[i] = (struct look){ (int)world_random(w, SIM_CLIENTS),
			reads[world_random(w, sizeof(reads) / sizeof(*reads))] };
}

/* Returns how many milliseconds later it will be at a moment beside a date. */
static int64_t time_until(struct world *w, const struct expiring_date *d)
{
	return (int64_t)d->date * MS + beside(w) - server_time(w, d->key, world_now(w));
}

/* No call is under way for a long time: its connection would have broken. */
static void go_to_date(struct world *w)
{
	const struct expiring_date *d = &w->last_dates[world_random(w, EXPIRING_DATES)];
	int64_t later = d->date ? time_until(w, d) : 0;
	struct look looks[LOOKS];

	if (later <= 0 || later > LATER)
		return;
	choose_looks(w, looks);
	look(w, d->key, looks);
	if (later > IN_FLIGHT || world_chance(w, 50))
		world_settle(w);
	later = time_until(w, d);
	if (later > 0 && !w->violation)
		w->lan.now += (uint64_t)later * MS;
	look(w, d->key, looks);
}

void expiring_act(struct world *w)
{
	if (!w->expiring)
		return;
	if (world_chance(w, 10))
		change_error(w);
	if (world_chance(w, 15))
		go_to_date(w);
}

/* --- commands --- */

static bool adds_members(command_id command)
{
	return command == COMMAND_SADD || command == COMMAND_SADDX || command == COMMAND_SADDEX ||
		command == COMMAND_SCLAIM || command == COMMAND_SSET || command == COMMAND_SLOAD ||
		command == COMMAND_SFILL || command == COMMAND_SEXPIRE;
}

static uint64_t seconds_of(const struct sim_op *op)
{
	char name[SIM_KEY_SIZE] = { 's', (char)('0' + op->key) };

	if (op->command == COMMAND_SADDEX || op->command == COMMAND_SEXPIRE)
		return op->seconds;
	return (uint64_t)rules_collection(&op->world->rules, slice_of(name, SIM_KEY_SIZE))
		->member_ttl;
}

void expiring_start(struct sim_op *op)
{
	struct world *w = op->world;
	struct buf log = BUF_EMPTY;
	struct slice rest, token;
	uint64_t seconds;

	if (!w->expiring || op->list || op->many || !adds_members(op->command))
		return;
	seconds = seconds_of(op);
	op->date = seconds ? (uint32_t)(estimate(op) + (int64_t)seconds) : 0;
	w->past[op->number].date = op->date;
	if (!op->date)
		return;
	w->last_dates[w->date_count++ % EXPIRING_DATES] =
		(struct expiring_date){ op->key, op->date };
	rest = buf_slice(&op->log);
	while ((token = slice_token(&rest)).n) {
		buf_add_slice(&log, token);
		buf_printf(&log, "\x02%010u ", (unsigned)op->date);
	}
	buf_free(&op->log);
	op->log = log;
}

/* --- stored members --- */

bool expiring_may_drop(const struct world *w, int key, uint32_t date)
{
	return date && date <= expiring_most(w, key, world_now(w));
}

bool expiring_is_same(const struct world *w, int key, const bool members[], const uint32_t dates[])
{
	const struct truth_set *set = &w->truth.sets[key];

	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (members[m] == set->in[m]
				? dates[m] != set->dates[m]
				: !set->in[m] || !expiring_may_drop(w, key, set->dates[m]))
			return false;
	}
	return true;
}

void expiring_drop(struct world *w, int key, const bool members[])
{
	for (int m = 0; m < SIM_MEMBERS; m++) {
		w->expired += w->truth.sets[key].in[m] && !members[m];
		if (!members[m])
			truth_set_member(&w->truth, key, m, false);
	}
}

void expiring_check_date(struct world *w, int key, int member, uint32_t date)
{
	for (size_t i = 1; w->expiring && i <= w->commands; i++) {
		const struct sim_past *past = &w->past[i];
		if (past->key == key && past->members >> member & 1 && past->adds &&
			past->date == date)
			return;
	}
	if (w->expiring)
		world_fail(w, "a member has a date that no client gave it",
			"key %d member %d expires %u", key, member, (unsigned)date);
}

void expiring_change_dates(struct slice log, bool past)
{
	static const char dates[][12] = { "\x02"
					  "4000000000",
		"\x02"
		"0000000001" };
	enum { DATE_SIZE = sizeof(dates[0]) - 1 };
	const char *date = dates[past];

	for (size_t i = 0; i + DATE_SIZE < log.n; i++) {
		if (log.p[i] == date[0] && log.p[i + DATE_SIZE] == ' ')
			memcpy((char *)log.p + i, date, DATE_SIZE);
	}
}

/* --- sexpire --- */

void expiring_sent(struct message *m)
{
	const struct world *w = m->proxy ? m->proxy->lan->arg : NULL;
	bool sends = w && w->expiring && m->call.verb == CALL_CAS;
	const struct op *op = sends ? lives_sender(m) : NULL;

	note(m)->expires = op && op->kind == OP_EXPIRE;
	note(m)->claims = op && op->kind == OP_CLAIM;
}

/* Returns whether these are words of the command, and each member is among its own. */
static bool may_be_of(const struct sim_op *op, struct slice words, bool named[SIM_MEMBERS])
{
	struct slice token;

	memset(named, 0, SIM_MEMBERS * sizeof(*named));
	while ((token = slice_token(&words)).n) {
		struct slice word = slice_skip(token, 1);
		uint32_t date = stored_take_date(&word);
		int m = truth_member(wording_name(word, false));
		if (token.p[0] == '~')
			continue;
		if (m < 0 || date != op->date || !op->members[m])
			return false;
		named[m] = true;
	}
	return true;
}

/* Those that are named were members at one moment, and the others were not. */
static void check_chosen(struct sim_op *op, const bool named[SIM_MEMBERS])
{
	struct world *w = op->world;
	const struct truth_set *set = &w->truth.sets[op->key];
	int64_t least = expiring_least(w, op->key, truth_time(&w->truth, op->issued)),
		most = expiring_most(w, op->key, world_now(w));

	for (int m = 0; m < SIM_MEMBERS; m++) {
		uint32_t date = set->dates[m];
		if (op->members[m] && named[m] && set->in[m] && date && date - 1 < most)
			most = date - 1;
		else if (op->members[m] && !named[m] && date && date > least)
			least = date;
		if (op->members[m] && (named[m] ? !set->in[m] : set->in[m] && !date))
			least = INT64_MAX;
	}
	if (least > most)
		world_fail(w, "members of others were chosen to expire", "key %d client %d",
			op->key, op->client);
}

void expiring_executed(struct world *w, const struct message *m, int key, struct slice words)
{
	bool named[SIM_MEMBERS];
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command != COMMAND_SEXPIRE || op->key != key || op->proxy != m->proxy ||
			op->expired || !may_be_of(op, words, named))
			continue;
		check_chosen(op, named);
		for (int i = 0; i < SIM_MEMBERS; i++)
			op->expired += named[i];
		w->executed[op->number] = w->truth.tick;
		return;
	}
}

void expiring_reply(struct sim_op *op)
{
	char expected[16];

	snprintf(expected, sizeof(expected), "%d\r\n", op->expired);
	if (!slice_equal(buf_slice(&op->reply), slice_of(expected, strlen(expected))))
		world_fail(op->world, "a sexpire with another number than it has set",
			"key %d client %d: %.*s, not %d", op->key, op->client,
			(int)buf_size(&op->reply), op->reply.data, op->expired);
	else if (op->expired)
		op->world->past[op->number].done = true;
	else
		check_answer(op);
}
