/* The true state of a set that is being loaded, and the replies to clients about its lease. */
#include "leases.h"

#include "protocol/commands.h"
#include "world.h"

enum { SKEW = 1 /* seconds by which the clock of a proxy may be ahead */ };

/* --- commands of clients --- */

/* Late loads are sent too, and all other commands for sets. */
int leases_choose(struct world *w)
{
	static const command_id while_loading[] = { COMMAND_SLOAD, COMMAND_SLOAD, COMMAND_SLOAD,
		COMMAND_SFILL, COMMAND_SADDX, COMMAND_SADDX, COMMAND_SREM, COMMAND_SREM,
		COMMAND_SMEMBERS, COMMAND_SLEASE };
	static const command_id else_[] = { COMMAND_SLEASE, COMMAND_SLEASE, COMMAND_SLEASE,
		COMMAND_DELETE, COMMAND_DELETE, COMMAND_SMEMBERS, COMMAND_SMEMBERS, COMMAND_SADDX,
		COMMAND_SLOAD, COMMAND_SFILL };
	static const command_id rare[] = { COMMAND_SADD, COMMAND_SSET, COMMAND_TOUCH,
		COMMAND_SCOMPACT, COMMAND_SPOP, COMMAND_STAKE, COMMAND_SCLAIM, COMMAND_SISMEMBER,
		COMMAND_SCARD, COMMAND_SSCAN, COMMAND_DELETE };

	if (world_chance(w, 12))
		return (int)rare[world_random(w, sizeof(rare) / sizeof(*rare))];
	return (int)(w->leases.runs ? while_loading : else_)[world_random(w, 10)];
}

/* Mostly that of the last lease, which may be over; sometimes one that is long over. */
static const char *some_token(struct sim_op *op)
{
	const struct leases *l = &op->world->leases;
	size_t number = l->last[op->client];

	if (world_chance(op->world, 70))
		number = l->last_told;
	else if (l->given_count && world_chance(op->world, 50))
		number = 1 + world_random(op->world, l->given_count);
	return number ? l->given[number - 1].token : "aaaaaaaa";
}

void leases_write_line(struct sim_op *op, struct buf *line)
{
	if (op->command == COMMAND_SLEASE) {
		buf_printf(line, " %d", 1 + (int)world_random(op->world, 2));
		return;
	}
	memcpy(op->token, some_token(op), STORED_TOKEN);
	buf_printf(line, " %.*s", STORED_TOKEN, op->token);
}

/* --- writes --- */

bool leases_word(struct world *w, int key, int member, bool added, uint32_t date)
{
	if (key != LEASES_KEY || !w->leases.runs)
		return false;
	w->leases.truth.words[member] = added ? 1 : -1;
	w->leases.truth.word_dates[member] = date;
	return true;
}

/* A rewrite may make words that have expired removals. Then they are so from now on. */
static bool says_same(struct world *w, const struct stored_lease *is)
{
	struct stored_lease *truth = &w->leases.truth;

	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (is->words[m] < 0 && truth->words[m] > 0 &&
			expiring_may_drop(w, LEASES_KEY, truth->word_dates[m])) {
			truth->words[m] = -1;
			truth->word_dates[m] = 0;
		}
	}
	return memcmp(truth->words, is->words, sizeof(is->words)) == 0 &&
		memcmp(truth->word_dates, is->word_dates, sizeof(is->word_dates)) == 0;
}

static bool is_loaded_same(const struct stored_lease *a, const struct stored_lease *b)
{
	return memcmp(a->loaded, b->loaded, sizeof(a->loaded)) == 0 &&
		memcmp(a->loaded_dates, b->loaded_dates, sizeof(a->loaded_dates)) == 0;
}

static void begin(struct world *w, const struct stored_lease *is)
{
	struct leases *l = &w->leases;
	struct given *given = &l->given[l->given_count++];

	for (size_t i = 0; i + 1 < l->given_count; i++) {
		if (memcmp(l->given[i].token, is->token, STORED_TOKEN) == 0)
			world_fail(w, "a token is given twice", "%.*s", STORED_TOKEN, is->token);
	}
	*given = (struct given){ .tick = w->truth.tick };
	memcpy(given->token, is->token, STORED_TOKEN);
	l->truth = *is;
	l->since = w->truth.tick;
	l->runs = true;
}

/* Returns whether the message may belong to this command: a killed proxy may have sent it too. */
static bool may_be_of(const struct sim_op *op, const struct message *m, command_id command)
{
	return op->command == command && op->key == LEASES_KEY &&
		(op->ended || op->proxy == m->proxy) &&
		memcmp(op->token, op->world->leases.truth.token, STORED_TOKEN) == 0;
}

/* Returns whether the loaded members are now all earlier ones and those of the command. */
static bool adds_up(
	const struct sim_op *op, const struct stored_lease *was, const struct stored_lease *is)
{
	for (int i = 0; i < SIM_MEMBERS; i++) {
		if ((was->loaded[i] || op->members[i]) != is->loaded[i] ||
			(op->members[i] ? op->date : was->loaded_dates[i]) != is->loaded_dates[i])
			return false;
	}
	return true;
}

/* With the same lease: a load, or a compaction or merge, which changes nothing. */
static void loaded(struct world *w, const struct message *m, const struct stored_lease *is)
{
	struct stored_lease *truth = &w->leases.truth;
	bool same = says_same(w, is), found = same && is_loaded_same(truth, is);
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (same && may_be_of(op, m, COMMAND_SLOAD) && adds_up(op, truth, is))
			op->executed[0] = found = true;
	}
	if (!found)
		world_fail(w, "something was loaded that nobody sent", "tick %llu",
			(unsigned long long)w->truth.tick);
	truth->deadline = is->deadline;
	memcpy(truth->loaded, is->loaded, sizeof(truth->loaded));
	memcpy(truth->loaded_dates, is->loaded_dates, sizeof(truth->loaded_dates));
}

static void taken_over(struct world *w, const struct stored_lease *is)
{
	struct stored_lease *truth = &w->leases.truth;

	if (world_now(w) / 1000 + SKEW <= truth->deadline)
		world_fail(w, "a lease was taken over that was not over", "deadline %llu, now %llu",
			(unsigned long long)truth->deadline,
			(unsigned long long)(world_now(w) / 1000));
	memset(truth->loaded, 0, sizeof(truth->loaded));
	memset(truth->loaded_dates, 0, sizeof(truth->loaded_dates));
	if (!says_same(w, is) || !is_loaded_same(truth, is))
		world_fail(w, "a new lease changed the words", "tick %llu",
			(unsigned long long)w->truth.tick);
	begin(w, is);
}

/* Returns whether a member that is completed by this command is stored so, or has expired. */
static bool is_filled(const struct sim_op *op, int i, bool in, uint32_t date)
{
	const struct stored_lease *truth = &op->world->leases.truth;
	bool added = truth->words[i] ? truth->words[i] > 0 : truth->loaded[i] || op->members[i];
	uint32_t expected = truth->words[i] ? truth->word_dates[i]
		: op->members[i]            ? op->date
					    : truth->loaded_dates[i];

	return in ? added && date == expected
		  : !added || expiring_may_drop(op->world, LEASES_KEY, expected);
}

static bool is_fill(struct world *w, const struct message *m, const bool members[SIM_MEMBERS],
	const uint32_t dates[SIM_MEMBERS])
{
	bool found = false;
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		bool fits = may_be_of(op, m, COMMAND_SFILL);
		for (int i = 0; i < SIM_MEMBERS && fits; i++)
			fits = is_filled(op, i, members[i], dates[i]);
		if (fits)
			op->executed[0] = found = true;
	}
	return found;
}

static void completed(struct world *w, const struct message *m)
{
	bool members[SIM_MEMBERS];
	uint32_t dates[SIM_MEMBERS];

	if (stored_set_read(w, LEASES_KEY, members, dates) == STORED_MISSING) {
		world_fail(w, "a base was removed that somebody loads", "tick %llu",
			(unsigned long long)w->truth.tick);
		return;
	}
	if (!is_fill(w, m, members, dates) && !check_is_sset(w, LEASES_KEY, members))
		world_fail(w, "a set was completed as nobody loaded it", "tick %llu",
			(unsigned long long)w->truth.tick);
	for (int i = 0; i < SIM_MEMBERS; i++) {
		if (members[i])
			truth_add_dated(&w->truth, LEASES_KEY, i, dates[i]);
		else
			truth_set_member(&w->truth, LEASES_KEY, i, false);
	}
}

static void end(struct world *w)
{
	if (w->leases.runs)
		w->leases.ended = w->truth.tick;
	w->leases.runs = false;
}

bool leases_ran(const struct world *w, int key, uint64_t since)
{
	return key == LEASES_KEY && (w->leases.runs || w->leases.ended >= since);
}

/* A proxy with another list of servers may not find parts that are there, and then the set is missing for it. */
static bool may_miss(const struct world *w, const struct message *m)
{
	return w->stray >= 0 && (!m->proxy || m->proxy->index == w->stray);
}

bool leases_written(struct world *w, const struct message *m, int key, struct slice before)
{
	struct leases *l = &w->leases;
	struct stored_lease is;

	if (key != LEASES_KEY)
		return false;
	if (!stored_set_lease(w, key, &is)) {
		if (l->runs)
			completed(w, m);
		end(w);
		return stored_lease_is(before);
	}
	if (l->runs && memcmp(is.token, l->truth.token, STORED_TOKEN) == 0)
		loaded(w, m, &is);
	else if (l->runs)
		taken_over(w, &is);
	else if (m->call.verb != CALL_ADD && !truth_at(&w->truth.sets[key].absent, w->truth.tick) &&
		!may_miss(w, m))
		world_fail(w, "a set became one that somebody loads", "tick %llu",
			(unsigned long long)w->truth.tick);
	else
		begin(w, &is);
	return true;
}

void leases_check(struct world *w, int key, enum stored_state state)
{
	struct stored_lease is;

	if (key != LEASES_KEY)
		return;
	if (state != STORED_LOADING)
		end(w);
	else if (!w->leases.runs)
		world_fail(w, "a lease that nobody gave", "tick %llu",
			(unsigned long long)w->truth.tick);
	else if (!stored_set_lease(w, key, &is) || !says_same(w, &is) ||
		!is_loaded_same(&w->leases.truth, &is) ||
		memcmp(is.token, w->leases.truth.token, STORED_TOKEN) != 0)
		world_fail(w, "what is loaded is another than was written", "tick %llu",
			(unsigned long long)w->truth.tick);
}

/* --- replies to clients --- */

static void told_lease(struct sim_op *op)
{
	struct world *w = op->world;
	struct leases *l = &w->leases;

	for (size_t i = 0; i < l->given_count; i++) {
		struct given *given = &l->given[i];
		if (memcmp(given->token, op->reply.data + op->reply.start + 6, STORED_TOKEN) != 0)
			continue;
		if (given->told || given->tick < op->issued)
			world_fail(w, "two clients have one lease", "%.*s", STORED_TOKEN,
				given->token);
		given->told = true;
		l->last[op->client] = l->last_told = i + 1;
		return;
	}
	world_fail(w, "a lease that was never given", "%.*s", (int)buf_size(&op->reply),
		op->reply.data);
}

static void told_of_load(struct sim_op *op)
{
	struct world *w = op->world;
	const struct leases *l = &w->leases;

	if (check_says(op, "STORED") && !op->executed[0])
		world_fail(w, "acknowledged, but not loaded", "client %d", op->client);
	if (check_says(op, "NOT_FOUND") && l->runs && l->since < op->issued &&
		memcmp(l->truth.token, op->token, STORED_TOKEN) == 0)
		world_fail(w, "a lease was valid all the time", "client %d", op->client);
}

bool leases_reply(struct sim_op *op)
{
	struct world *w = op->world;
	const struct truth_set *set = &w->truth.sets[LEASES_KEY];

	if (op->command == COMMAND_SLOAD || op->command == COMMAND_SFILL)
		told_of_load(op);
	else if (op->command != COMMAND_SLEASE)
		return false;
	else if (check_says(op, "LEASE"))
		told_lease(op);
	else if (check_says(op, "EXISTS") && !truth_was(&set->gone, op->issued, false))
		world_fail(w, "a set is said to exist that was missing", "client %d", op->client);
	else if (check_says(op, "WAIT") && !truth_was(&set->absent, op->issued, true))
		world_fail(w, "a set is said to be loaded that was there", "client %d", op->client);
	return true;
}
