/*
 * sinfo: how a set or list is stored. A small set and a small list look alike, so it is read as both, in two operations that
 * nothing of the same client comes between.
 */
#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/set_request.h"
#include "command/outcome.h"
#include "command/start.h"
#include "protocol/reply.h"

struct info_task {
	struct task task;
	struct op read, length;
	struct set_request request;
	struct list_request list;
	const char *server;
	int64_t ttl;
	uint64_t items;
	bool is_list; /* it can be read as one */
	int pending;  /* operations */
	char key[];
};

static void describe(struct info_task *info, struct buf *out)
{
	const struct set_info *i = &info->request.info;
	const struct collection_rule *rule = rules_collection(info->task.host->env.rules, info->read.key);

	reply_stat_text(out, "encoding", encoding_name(rule->encoding));
	reply_stat_text(out, "server", info->server);
	reply_stat(out, "members", i->members);
	if (info->is_list)
		reply_stat(out, "items", info->items);
	reply_stat(out, "bytes", i->base_bytes + i->table_bytes);
	reply_stat(out, "base_bytes", i->base_bytes);
	reply_stat(out, "table_bytes", i->table_bytes);
	reply_stat(out, "tokens", i->tokens);
	buf_printf(out, "STAT waste %.2f\r\n", i->waste);
	reply_stat(out, "runs", i->runs);
	reply_stat(out, "tables", i->tables);
	reply_stat(out, "entries", i->entries);
	reply_stat(out, "removals", i->removals);
	if (info->ttl == TTL_UNKNOWN)
		reply_stat_text(out, "ttl", "unknown");
	else
		buf_printf(out, "STAT ttl %lld\r\n", (long long)info->ttl);
	reply_text(out, "END");
}

static void end_one(struct info_task *info)
{
	if (--info->pending || task_fails(&info->task))
		return;
	describe(info, task_reply(&info->task));
	task_done(&info->task);
}

static void was_measured(struct op *op, const struct outcome *outcome)
{
	struct info_task *info = (struct info_task *)((char *)op - offsetof(struct info_task, length));

	info->is_list = outcome->status == OUTCOME_DONE;
	info->items = outcome->number;
	end_one(info);
}

static void was_read(struct op *op, const struct outcome *outcome)
{
	struct info_task *info = (struct info_task *)((char *)op - offsetof(struct info_task, read));

	if (outcome->status == OUTCOME_DONE) {
		info->server = outcome->result->server;
		info->ttl = outcome->result->ttl;
	} else if (outcome->status == OUTCOME_MISSING) {
		reply_text(&info->task.scratch, "NOT_FOUND");
	} else {
		outcome_reply_failure(&info->task.scratch, outcome);
	}
	end_one(info);
}

static bool may_be_list(const struct collection_rule *rule)
{
	return rule->encoding == ENCODING_OPLOG || rule->encoding == ENCODING_CSV;
}

void sinfo_start(struct host *host, const struct request *request, void *owner)
{
	struct slice rest = request->rest, key;
	struct info_task *info;
	char *at;

	if (slice_token(&rest).n) {
		task_refuse(host, request, owner, "CLIENT_ERROR bad command line format");
		return;
	}
	info = task_new(host, request, owner, sizeof(*info) + request->key.n);
	at = info->key;
	key = task_keys(&info->task, task_keep(&at, request->key), 1);
	info->is_list = false;
	info->request = (struct set_request){ .verb = SET_INFO };
	info->list = (struct list_request){ .verb = LIST_LENGTH };
	info->read = (struct op){ .kind = OP_READ, .key = key, .set = &info->request, .done = was_read };
	info->length = (struct op){ .kind = OP_LIST, .key = key, .list = &info->list, .done = was_measured };
	info->read.client = info->length.client = task_client(host, owner);
	info->pending = may_be_list(rules_collection(host->env.rules, key)) ? 2 : 1;
	lanes_submit(host->lanes, &info->read);
	if (may_be_list(rules_collection(host->env.rules, key)))
		lanes_submit(host->lanes, &info->length);
}
