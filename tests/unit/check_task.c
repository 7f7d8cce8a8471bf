/* Tasks of one client: the order of their replies, and requests that are not tasks. */
#include "command/start.h"
#include "conversations.h"

/*
 * In whatever order the calls are answered, the client receives its replies in the order of its
 * requests.
 */
TEST(replies_in_order)
{
	struct result done = { .status = RESULT_DONE }, miss = { .status = RESULT_MISS };

	client_asks("set a 0 0 1\r\nx\r\ndelete b\r\nget c\r\nset d 0 0 1 noreply\r\nx\r\ndelete "
		    "e\r\n");
	fake_result(&fake, 4, &done);
	fake_result(&fake, 2, &miss);
	fake_result(&fake, 3, &done);
	fake_result(&fake, 1, &miss);
	client_hears_nothing();
	fake_result(&fake, 0, &done);
	client_is_told("STORED\r\nNOT_FOUND\r\nEND\r\nDELETED\r\n");
}

/* Requests about the connection or the process are handled by its host. */
TEST(not_for_tasks)
{
	static const char *const lines[] = { "help\r\n", "mn\r\n", "quit\r\n", "route k\r\n",
		"stats\r\n", "verbosity 1\r\n", "version\r\n" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_str_eq(fake_ask(&fake, lines[i]), "not for a task");
	client_hears_nothing();
	server_hears_nothing();
}

TEST(keep_copies)
{
	char text[] = "abc", room[8], *at = room;
	struct slice kept = task_keep(&at, slice_of(text, 3)),
		     none = task_keep(&at, slice_of(NULL, 0));

	memset(text, '#', 3);
	assert_bytes(kept, "abc");
	ck_assert_ptr_eq(at, room + 3);
	ck_assert_uint_eq(none.n, 0);
}

/* A task that carries out two requests, and replies with their replies, in brackets. */
struct outer {
	struct task task;
	struct nest first, second;
};

static void told_inside(struct nest *nest, const struct reply *reply)
{
	struct task *task = nest->outer;
	struct outer *outer = (struct outer *)task;
	struct buf *out = task_reply(task);

	ck_assert_ptr_null(nest->task);
	buf_printf(out, "(%d ", reply->kind);
	reply_add_line(out, reply);
	BUF_ADD(out, ")");
	if (!outer->first.task && !outer->second.task)
		task_done(task);
}

static struct outer *start_outer(void)
{
	static const struct request request = { 0 };
	struct outer *outer = task_new(&fake.host, &request, NULL, sizeof(*outer));

	outer->first = outer->second = (struct nest){ .outer = &outer->task, .done = told_inside };
	return outer;
}

static void start_inside(struct nest *nest, const char *line)
{
	struct request_limits limits = { 2048, 2048, 100 };
	struct request_progress progress = { 0 };
	struct request request;

	ck_assert_int_eq(request_parse(slice_of(line, strlen(line)), &limits, &progress, &request),
		REQUEST_READY);
	ck_assert(task_start_inside(nest, &request));
}

TEST(inside)
{
	struct outer *outer = start_outer();

	start_inside(&outer->first, "get a b\r\n");
	start_inside(&outer->second, "delete c noreply\r\n");
	client_asks("delete d\r\n");
	server_is_asked("mg a k f v\r\nmg b k f v\r\ndelete c\r\ndelete d\r\n");
	client_hears_nothing();
	fake_result(&fake, 2, &(struct result){ .status = RESULT_DONE });
	fake_result(&fake, 3, &(struct result){ .status = RESULT_DONE });
	fake_result(&fake, 1, &(struct result){ .status = RESULT_HIT, .value = SLICE("x") });
	fake_result(&fake, 0, &(struct result){ .status = RESULT_MISS });
	client_is_told("(1 DELETED)(4 VALUE b 0 1\r\nx)DELETED\r\n");
}

/* An inner task whose client has disconnected makes no more calls. */
TEST(abandoned_inside)
{
	static char line[4 * 1000];
	struct outer *outer = start_outer();
	size_t n = (size_t)sprintf(line, "get");

	for (int i = 0; i < 99; i++)
		n += (size_t)sprintf(line + n, " %d", i);
	sprintf(line + n, "\r\n");
	start_inside(&outer->first, line);
	fake.account.gone = true;
	task_abandon_inside(&outer->second);
	task_abandon_inside(&outer->first);
	ck_assert_uint_eq(fake.count, 32);
	for (size_t i = 0; i < 32; i++)
		fake_result(&fake, i, &(struct result){ .status = RESULT_MISS });
	ck_assert_uint_eq(fake.count, 32);
	client_is_told("(7 SERVER_ERROR client closed)");
}
