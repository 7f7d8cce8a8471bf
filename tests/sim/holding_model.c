/* The jobs of holding.h: where each one is, and how it may get from one place to another. */
#include <stdlib.h>

#include "collection/move/mark.h"
#include "holding.h"
#include "protocol/commands.h"
#include "util/num.h"
#include "wording.h"

/* --- the stored form --- */

static int job_of(struct holding *w, struct slice word)
{
	struct slice name = wording_name(word, true);
	uint32_t number;

	if (name.n > 1 && name.p[0] == 'e' && num_parse_u32(slice_skip(name, 1), &number) &&
		(int)number < w->job_count)
		return (int)number;
	stage_fail(&w->stage, "a job that nobody named", "%.*s", (int)word.n, word.p);
	return 0;
}

static void add_listed(struct holding *w, struct holding_state *s, struct slice word)
{
	int job = job_of(w, word);

	s->jobs[job].listed++;
	s->jobs[job].at = s->count++;
	s->hash = (s->hash ^ (uint64_t)(job + 1)) * 0x100000001b3u + 1;
}

/* ~h<date>.<ticket>.<deliveries>.<l or r>.<word> */
static void add_held(struct holding *w, struct holding_state *s, struct slice token)
{
	struct slice rest = slice_skip(token, 2), field = slice_cut(&rest, '.');
	struct holding_place place = { .held = true }, *to;
	uint64_t date = 0, deliveries = 0;

	(void)num_parse_u64(field, &date);
	field = slice_cut(&rest, '.');
	if (field.n == HOLDING_TICKET)
		memcpy(place.ticket, field.p, field.n);
	(void)num_parse_u64(slice_cut(&rest, '.'), &deliveries);
	place.date = (int64_t)date;
	place.deliveries = (uint32_t)deliveries;
	place.right = slice_equal(slice_cut(&rest, '.'), SLICE("r"));
	to = &s->jobs[job_of(w, rest)];
	if (to->held)
		stage_fail(&w->stage, "a job is held twice", "%.*s", (int)token.n, token.p);
	place.listed = to->listed;
	place.at = to->at;
	*to = place;
	s->due = place.date < s->due ? place.date : s->due;
}

/* @<id>.<check>, and perhaps :<skip>:<keep> */
static void add_segment(struct holding *w, int list, struct slice token, struct holding_state *s)
{
	enum { CHECK = 17 };
	struct slice window = token, id = slice_cut(&window, ':'), rest, word;
	uint64_t skip = 0, keep = UINT64_MAX, n = 0;
	const struct memcached_item *item;
	struct buf key = BUF_EMPTY;

	id = slice_skip(slice_of(id.p, id.n - CHECK), 1);
	buf_printf(&key, "%s.%.*s", holding_key(list), (int)id.n, id.p);
	item = holding_item(w, buf_slice(&key), false);
	if (!item)
		item = holding_item(w, buf_slice(&key), true);
	buf_free(&key);
	if (window.n) {
		(void)num_parse_u64(slice_cut(&window, ':'), &skip);
		(void)num_parse_u64(window, &keep);
	}
	if (!item) {
		stage_fail(&w->stage, "a segment is missing", "%.*s", (int)token.n, token.p);
		return;
	}
	rest = buf_slice(&item->value);
	for (; (word = slice_token(&rest)).n; n++) {
		if (n >= skip && n - skip < keep)
			add_listed(w, s, slice_skip(word, 1));
	}
}

static void read_base(struct holding *w, int list, struct slice base, struct holding_state *s)
{
	struct slice token;

	while ((token = slice_token(&base)).n) {
		if (token.p[0] == '+')
			add_listed(w, s, slice_skip(token, 1));
		else if (slice_starts(token, SLICE("@s")) && token.n > 20)
			add_segment(w, list, token, s);
		else if (slice_starts(token, SLICE("~h")))
			add_held(w, s, token);
		else if (!slice_starts(token, SLICE("@list")) &&
			!slice_starts(token, SLICE("~t")) && !slice_starts(token, SLICE("~d")))
			stage_fail(&w->stage, "a token that nobody wrote", "%.*s", (int)token.n,
				token.p);
	}
}

/* --- a list before and after a call --- */

struct change {
	struct holding *w;
	int list, job;
	const struct holding_place *old, *new;
	const struct message *message;
};

static void wrong(const struct change *c, const char *what)
{
	stage_fail(&c->w->stage, what, "e%d in %s", c->job, holding_key(c->list));
}

/* Returns whether it may leave the place where it was held, and be delivered again. */
static bool is_free(const struct change *c)
{
	return c->old->date <= holding_most(c->w, c->list) || c->w->jobs[c->job].fail_sent;
}

/* The clock was read before the call was sent: up to a second, and the delay of a call, earlier. */
static void check_held(const struct change *c)
{
	enum { LATE = 1 };
	struct holding_job *job = &c->w->jobs[c->job];
	int64_t least = holding_least(c->w, c->list), most = holding_most(c->w, c->list);
	int64_t date = c->new->date;
	bool dies = c->list == HOLDING_BURIES && job->holds >= HOLDING_AFTER;
	int64_t seconds = dies ? HOLDING_DEAD_SECONDS : HOLDING_SECONDS;

	if (c->w->stage.ending)
		seconds = 1000;
	c->w->held++;
	job->holds++;
	job->ack_sent = job->fail_sent = false;
	memcpy(job->ticket, c->new->ticket, sizeof(job->ticket));
	if (c->new->deliveries != job->holds)
		wrong(c, "a job with another number of deliveries");
	if (date < least + 2 - LATE || date > most + seconds + 1)
		stage_fail(&c->w->stage, "a job is held for another time", "e%d: %lld seconds",
			c->job, (long long)(date - least));
}

/* It is next again: no job that was in the list is before it; or if it has failed, the last. */
static void check_end(const struct change *c, const struct holding_state *now)
{
	const struct holding_state *before = &c->w->lists[c->list];
	bool right = c->old->right;

	c->w->returned++;
	/* Both may be so. */
	if (c->w->jobs[c->job].fail_sent)
		return;
	for (int i = 0; i < c->w->job_count; i++) {
		if (!before->jobs[i].listed || !now->jobs[i].listed)
			continue;
		if (right ? now->jobs[i].at > c->new->at : now->jobs[i].at < c->new->at)
			wrong(c, "a job was given back to another place");
	}
}

static bool pushes(const struct message *m)
{
	return m->call.verb == CALL_APPEND || m->call.verb == CALL_PREPEND ||
		m->call.verb == CALL_ADD;
}

static void check_new(const struct change *c)
{
	struct holding_job *job = &c->w->jobs[c->job];

	if (c->new->held || !pushes(c->message)) {
		wrong(c, "a job appears");
	} else if (c->list == HOLDING_DEAD) {
		if (job->holds <= HOLDING_AFTER || job->list != HOLDING_BURIES)
			wrong(c, "a job is dead that was not delivered too often");
		job->buried++;
		c->w->dead++;
	} else {
		if (job->pushed)
			wrong(c, "a job is pushed twice");
		job->pushed = true;
		job->holds = 0;
	}
}

static void check_gone(const struct change *c)
{
	struct holding_job *job = &c->w->jobs[c->job];

	if (c->old->listed) {
		wrong(c, "a job was lost");
	} else if (!job->ack_sent && !job->buried && !job->excused) {
		wrong(c, "a job is done that was not acknowledged");
	} else {
		job->done = true;
		memcpy(job->done_by, c->old->ticket, sizeof(job->done_by));
	}
}

static void check_change(const struct change *c, const struct holding_state *now)
{
	bool same = strcmp(c->old->ticket, c->new->ticket) == 0;

	if (c->new->listed + c->new->held > 1 && c->list != HOLDING_DEAD)
		wrong(c, "a job is there twice");
	else if (!c->old->listed && !c->old->held)
		check_new(c);
	else if (!c->new->listed && !c->new->held)
		check_gone(c);
	else if (c->new->listed && c->old->listed)
		c->w->jobs[c->job].buried += c->new->listed - c->old->listed;
	else if (c->old->listed)
		check_held(c);
	else if (c->new->held && same)
		(void)(c->new->date == c->old->date && c->new->deliveries == c->old->deliveries
				? (void)0
				: wrong(c, "a held job was changed"));
	else if (!is_free(c))
		wrong(c, "a job is given back before its time");
	else if (c->new->held)
		check_held(c);
	else
		check_end(c, now);
}

static void remember(struct holding *w, int list)
{
	size_t i = w->version_count[list]++ % HOLDING_VERSIONS;

	w->versions[list][i] =
		(struct holding_version){ w->lists[list].count, w->lists[list].hash };
}

/* Of a copy that is about to become the item, others may have prepended and appended to the mark. */
static void read_stored(struct holding *w, int list, struct holding_state *out)
{
	struct slice key = slice_of(holding_key(list), 2);
	const struct memcached_item *former = holding_item(w, key, true),
				    *item = former ? former : holding_item(w, key, false);
	struct mark mark = { .kind = MARK_CLAIM };

	memset(out, 0, sizeof(*out));
	out->due = INT64_MAX;
	if (item)
		mark = mark_read(key, item->flags, buf_slice(&item->value));
	if (mark.kind == MARK_CLAIM)
		return;
	read_base(w, list, mark.before, out);
	read_base(w, list, mark.value, out);
	read_base(w, list, mark.behind, out);
}

void holding_executed(struct holding *w, const struct message *m, int list)
{
	static struct holding_state now;

	read_stored(w, list, &now);
	for (int i = 0; i < w->job_count && !w->stage.violation; i++) {
		const struct change c = { w, list, i, &w->lists[list].jobs[i], &now.jobs[i], m };
		if (memcmp(c.old, c.new, sizeof(*c.old)) != 0)
			check_change(&c, &now);
	}
	if (now.hash == w->lists[list].hash && now.count == w->lists[list].count) {
		w->lists[list] = now;
		return;
	}
	w->lists[list] = now;
	remember(w, list);
}

void holding_lost(struct holding *w, int list)
{
	for (int i = 0; i < w->job_count; i++) {
		const struct holding_place *p = &w->lists[list].jobs[i];
		w->jobs[i].excused |= p->listed || p->held;
		if (list == HOLDING_DEAD)
			w->jobs[i].buried = 0;
	}
	memset(&w->lists[list], 0, sizeof(w->lists[list]));
	w->lists[list].due = INT64_MAX;
	w->filled[list] = UINT64_MAX;
	remember(w, list);
}

bool holding_is_held(const struct holding *w, int list, const char *ticket, int *job)
{
	const struct holding_state *s = &w->lists[list];

	for (*job = 0; *job < w->job_count; ++*job) {
		if (s->jobs[*job].held && strcmp(s->jobs[*job].ticket, ticket) == 0)
			return true;
	}
	return false;
}

/* --- replies --- */

static void got_job(struct holding_op *op, struct slice value)
{
	struct holding *w = op->world;
	struct slice ticket = slice_token(&value), count = slice_token(&value),
		     name = slice_token(&value);
	struct holding_client *c = &w->clients[op->stage.client];
	uint64_t deliveries = 0;
	uint32_t job = 0;

	if (!num_parse_u64(count, &deliveries) || name.n < 2 ||
		!num_parse_u32(slice_skip(name, 1), &job) || (int)job >= w->job_count) {
		stage_fail(&w->stage, "a reply that makes no sense", "%.*s",
			(int)buf_size(&op->stage.reply), op->stage.reply.data);
		return;
	}
	if (deliveries > w->jobs[job].holds && !w->jobs[job].excused)
		stage_fail(&w->stage, "a job was handed out that is not held", "e%u", job);
	if (op->list == HOLDING_BURIES && deliveries > HOLDING_AFTER)
		stage_fail(&w->stage, "a dead job was delivered", "e%u", job);
	/* A ticket may look like the name of a job, which wording.c does not leave alone. */
	if (ticket.n != HOLDING_TICKET)
		ticket = slice_of(w->jobs[job].ticket, HOLDING_TICKET);
	c->job = (int)job;
	memcpy(c->ticket, ticket.p, ticket.n);
	c->ticket[ticket.n] = '\0';
	/* Of several deliveries, the last one counts. */
	if (deliveries == w->jobs[job].holds && !w->jobs[job].excused &&
		strcmp(w->jobs[job].ticket, c->ticket) != 0)
		stage_fail(&w->stage, "a job was handed out with another ticket", "e%u", job);
}

static void ended(struct holding_op *op, bool found)
{
	struct holding *w = op->world;
	struct holding_client *c = &w->clients[op->stage.client];
	int held;

	if (holding_is_held(w, op->list, op->ticket, &held))
		stage_fail(&w->stage,
			found ? "a hold was ended that is there" : "a ticket was refused", "e%d %s",
			held, op->ticket);
	if (op->job < 0 && found)
		stage_fail(
			&w->stage, "a ticket that nobody was given was accepted", "%s", op->ticket);
	if (found && op->job >= 0 && op->stage.command == COMMAND_LACK &&
		strcmp(w->jobs[op->job].done_by, op->ticket) != 0 && !w->jobs[op->job].excused)
		stage_fail(&w->stage, "a job was acknowledged and not done", "e%d", op->job);
	if (strcmp(c->ticket, op->ticket) == 0)
		c->job = -1;
}

static bool was(const struct holding_op *op, int count, const uint64_t *hash)
{
	const struct holding *w = op->world;
	size_t end = w->version_count[op->list];

	for (size_t i = op->version ? op->version - 1 : 0; i < end; i++) {
		const struct holding_version *v = &w->versions[op->list][i % HOLDING_VERSIONS];
		if (v->count == count && (!hash || v->hash == *hash))
			return true;
	}
	return end - op->version >= HOLDING_VERSIONS;
}

static void read_list(struct holding_op *op)
{
	struct holding *w = op->world;
	struct slice rest = stage_value(buf_slice(&op->stage.reply)), name,
		     reply = buf_slice(&op->stage.reply);
	uint64_t hash = 0, count = 0;
	uint32_t job;
	int held;

	if (op->stage.command == COMMAND_LLEN && !slice_starts(reply, SLICE("NOT_FOUND")))
		(void)num_parse_u64(slice_of(reply.p, reply.n - 2), &count);
	for (; op->stage.command == COMMAND_LRANGE && (name = slice_token(&rest)).n; count++) {
		if (name.n > 1 && num_parse_u32(slice_skip(name, 1), &job))
			hash = (hash ^ (uint64_t)(job + 1)) * 0x100000001b3u + 1;
	}
	if (!was(op, (int)count, op->stage.command == COMMAND_LRANGE ? &hash : NULL))
		stage_fail(&w->stage, "a read shows what never was", "%.*s: %.*s", STAGE_LINE(op),
			(int)reply.n, reply.p);
	if (op->overdue[0] && holding_is_held(w, op->list, op->overdue, &held))
		stage_fail(&w->stage, "a read did not give back a job that is due", "e%d", held);
}

void holding_answered(struct stage_op *answered)
{
	struct holding_op *op = (struct holding_op *)answered;
	struct holding *w = op->world;
	struct slice reply = buf_slice(&op->stage.reply), value = stage_value(reply);

	w->clients[op->stage.client].busy = false;
	if (stage_has_failed(&op->stage))
		w->stage.failures++;
	else if (slice_starts(reply, SLICE("CLIENT_ERROR")) || slice_starts(reply, SLICE("ERROR")))
		stage_fail(&w->stage, "an error that makes no sense", "%.*s: %.*s", STAGE_LINE(op),
			(int)reply.n, reply.p);
	else if (op->stage.command == COMMAND_LHOLD || op->stage.command == COMMAND_BLHOLD)
		(void)(value.n ? got_job(op, value) : (void)0);
	else if (op->stage.command == COMMAND_LACK || op->stage.command == COMMAND_LFAIL)
		ended(op, !slice_starts(reply, SLICE("NOT_FOUND")));
	else if (op->stage.command == COMMAND_LRANGE || op->stage.command == COMMAND_LLEN)
		read_list(op);
	else if (op->stage.command == COMMAND_RPUSH || op->stage.command == COMMAND_LPUSH) {
		struct slice rest = slice_of(op->stage.line.data, buf_size(&op->stage.line) - 2),
			     name;
		uint32_t job;
		for (int i = 0; (name = slice_token(&rest)).n; i++) {
			if (i > 1 && num_parse_u32(slice_skip(name, 1), &job))
				w->jobs[job].acknowledged = true;
		}
	}
}

/* --- waiting clients --- */

void holding_check_waiters(struct holding *w)
{
	/* Before a move, the clock of another server may show that a job is due. */
	uint64_t now = stage_now(&w->stage), moves = w->at ? ((uint64_t)w->at + 1) * 1000 : 0;
	const struct holding_op *op;

	for (int i = 0; i < HOLDING_DEAD; i++) {
		if (w->lists[i].count == 0 && w->lists[i].due > holding_least(w, i))
			w->filled[i] = UINT64_MAX;
		else if (w->filled[i] == UINT64_MAX)
			w->filled[i] = now;
	}
	STAGE_FOREACH(op, w) {
		uint64_t since = w->filled[op->list];
		if (op->stage.command != COMMAND_BLHOLD || since == UINT64_MAX || w->stage.trouble)
			continue;
		since = since < op->stage.issued ? op->stage.issued : since;
		since = since < moves ? moves : since;
		if (now > since + HOLDING_BESIDE)
			stage_fail(&w->stage, "a client waits beside a list with a job", "%.*s",
				STAGE_LINE(op));
	}
}

/* --- when all is over --- */

void holding_check_end(struct holding *w)
{
	for (int i = 0; i < w->job_count && !w->stage.violation; i++) {
		const struct holding_job *job = &w->jobs[i];
		if (job->acknowledged && !job->pushed)
			stage_fail(&w->stage, "a push was acknowledged and not executed", "e%d", i);
		if (!job->pushed || job->excused)
			continue;
		if (!job->done && !job->buried)
			stage_fail(&w->stage, "a job was lost", "e%d", i);
		if (job->buried > 1 && !w->stage.trouble)
			stage_fail(&w->stage, "a job is dead twice", "e%d", i);
	}
}
