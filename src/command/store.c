#include "command/store.h"
#include "command/word_log.h"

#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "command/op_task.h"
#include "protocol/reply.h"

enum { PENDING_MAX = 16 /* The store is full above this number of tables in flight. */ };

static void end_store(struct store *s)
{
	struct task *task = s->task;
	uint64_t number = s->number;

	task_use(task, 0, s->log.cap);
	buf_free(&s->log);
	if (s->writes)
		run_writer_fini(&s->writer);
	if (!task_fails(task))
		task_say_number(task, number);
}

/* Deletes the tables, unless a base may refer to them. */
static void store_on_replaced(struct op *op, const struct outcome *outcome)
{
	struct store *s = (struct store *)((char *)op - offsetof(struct store, op));
	bool unknown = outcome->status == OUTCOME_FAILED && !result_stored_nothing(outcome->result);

	if (outcome->status != OUTCOME_DONE) {
		task_note_outcome(s->task, outcome);
		if (s->writes && !unknown)
			part_writer_forget(&s->writer.parts);
	}
	end_store(s);
}

static void replace_set(struct store *s)
{
	if (task_has_failed(s->task)) {
		if (s->writes)
			part_writer_forget(&s->writer.parts);
		end_store(s);
		return;
	}
	if (s->writes) {
		oplog_add_mark(&s->log, false, s->writer.parts.wide);
		run_writer_ref(&s->writer, &s->log);
	}
	s->op.built = s->writes;
	s->op.log = buf_slice(&s->log);
	task_owns(s->task, &s->op);
	lanes_submit(s->task->host->lanes, &s->op);
}

static void store_on_written(void *arg)
{
	struct store *s = arg;
	const struct failure *failure = &s->writer.parts.failure;

	if (failure->happened)
		task_note_failure(s->task, &failure->result);
	if (!s->finished)
		s->wake(s);
	else if (s->writer.parts.pending == 0)
		replace_set(s);
}

void store_init(struct store *s, struct task *task, struct slice key, int64_t ttl,
	void (*wake)(struct store *store))
{
	*s = (struct store){
		.task = task,
		.op = { .kind = OP_REPLACE, .key = key, .ttl = ttl, .done = store_on_replaced },
		.rule = rules_collection(task->host->env.rules, key),
		.wake = wake,
		.log = BUF_EMPTY,
	};
	s->date = word_log_rule_date(task->host, key, s->rule);
}

/* Moves the members so far to the first table. */
static void begin_run(struct store *s)
{
	struct slice rest = buf_slice(&s->log), token;

	run_writer_init(
		&s->writer, s->task->host->lanes, s->op.key, s->op.ttl, store_on_written, s);
	s->writes = true;
	while ((token = slice_token(&rest)).n)
		run_writer_add(&s->writer, expiry_member(slice_skip(token, 1)), false, s->date);
	buf_consume(&s->log, buf_size(&s->log));
}

/* Collects a member for a set that is one log. */
static void add_to_log(struct store *s, struct slice member)
{
	const struct collection_options *options = s->task->host->env.options;
	const char *error =
		encoding_takes_any(s->rule) ? NULL : encoding_check_member(s->rule, member);
	size_t before = s->log.cap;

	BUF_ADD(&s->log, "+");
	buf_add_slice(&s->log, member);
	expiry_add(&s->log, s->date);
	BUF_ADD(&s->log, " ");
	task_use(s->task, s->log.cap, before);
	if (!error && options->result_max && buf_size(&s->log) > options->result_max)
		error = task_too_large;
	if (error)
		task_note(s->task, error);
	if (s->rule->encoding == ENCODING_OPLOG && buf_size(&s->log) > options->log_size)
		begin_run(s);
}

void store_add(struct store *s, struct slice member)
{
	s->number++;
	if (s->writes)
		run_writer_add(&s->writer, member, false, s->date);
	else
		add_to_log(s, member);
}

bool store_is_full(const struct store *s)
{
	return s->writes && s->writer.parts.pending > PENDING_MAX;
}

void store_finish(struct store *s)
{
	s->finished = true;
	if (s->writes)
		run_writer_finish(&s->writer);
	/* The last table is in flight: `store_on_written` continues. */
	if (!s->writes || s->writer.parts.pending == 0)
		replace_set(s);
}
