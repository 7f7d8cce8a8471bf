/* evcount: the counters of a range of buckets. */
#include "command/counters.h"
#include "command/event.h"
#include "protocol/reply.h"

struct count_task {
	struct task task;
	struct counters counters;
	enum granularity bucket;
	char type[];
};

static void finish(struct counters *counters)
{
	struct count_task *count = (struct count_task *)((char *)counters - offsetof(struct count_task, counters));
	struct buf *out = task_reply(&count->task), *failure = &count->task.scratch;
	char name[TIME_BUCKET_NAME_MAX];

	if (buf_size(failure)) {
		buf_add_slice(out, buf_slice(failure));
	} else {
		for (int64_t bucket = counters->range.first; bucket <= counters->range.last; bucket++) {
			size_t n = time_bucket_name(count->bucket, bucket, name);
			BUF_ADD(out, "COUNT ");
			buf_add(out, name, n);
			BUF_ADD(out, " ");
			reply_number(out, counters_get(counters, bucket));
		}
		BUF_ADD(out, "END\r\n");
	}
	counters_free(counters);
	task_done(&count->task);
}

void evcount_start(struct host *host, const struct request *request, void *owner)
{
	const struct event_rule *rule = rules_event(host->env.rules, request->key);
	struct slice rest = request->rest, from = slice_token(&rest), to = slice_token(&rest);
	struct time_bucket_range range, end;
	struct count_task *count;
	char *at;

	if (event_refuses_type(host, request, owner))
		return;
	if (!event_buckets(host, rule, from, &range) || slice_token(&rest).n) {
		task_refuse(host, request, owner, "CLIENT_ERROR bad bucket");
		return;
	}
	if (to.n) {
		if (!event_buckets(host, rule, to, &end) || end.last < range.first) {
			task_refuse(host, request, owner, "CLIENT_ERROR bad bucket");
			return;
		}
		range.last = end.last;
	}
	if (range.last - range.first >= TIME_BUCKET_RANGE_MAX) {
		task_refuse(host, request, owner, "CLIENT_ERROR too many buckets");
		return;
	}
	count = task_new(host, request, owner, sizeof(*count) + request->key.n);
	at = count->type;
	(void)task_keys(&count->task, task_keep(&at, request->key), 1);
	count->bucket = rule->bucket;
	counters_read(&count->counters, &count->task, rule, request->key, range, finish);
}
