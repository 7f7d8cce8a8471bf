/* Tasks of one client: the order of their replies, and what is no task. */
#include "conversations.h"

/* However the answers come, the client hears them in the order in which it asked. */
START_TEST(replies_in_order)
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
END_TEST

/* What is about the connection or the process is its host's affair. */
START_TEST(not_for_tasks)
{
	static const char *const lines[] = { "help\r\n", "mn\r\n", "quit\r\n", "route k\r\n", "stats\r\n",
		"verbosity 1\r\n", "version\r\n" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_str_eq(fake_ask(&fake, lines[i]), "not for a task");
	client_hears_nothing();
	server_hears_nothing();
}
END_TEST

START_TEST(keep_copies)
{
	char text[] = "abc", room[8], *at = room;
	struct slice kept = task_keep(&at, slice_of(text, 3)), none = task_keep(&at, slice_of(NULL, 0));

	memset(text, '#', 3);
	assert_bytes(kept, "abc");
	ck_assert_ptr_eq(at, room + 3);
	ck_assert_uint_eq(none.n, 0);
}
END_TEST

CONVERSATIONS(task, replies_in_order, not_for_tasks, keep_copies)
