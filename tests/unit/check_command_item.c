/* memcached's commands of one key, and flush_all. */
#include "conversations.h"

START_TEST(storage)
{
	client_asks("set k 7 30 3\r\na\r\n\r\nadd k 0 0 0\r\n\r\nreplace k 0 0 1\r\nx\r\nappend k "
		    "0 0 1\r\nx\r\n"
		    "prepend k 0 0 1\r\nx\r\ncas k 1 2 1 99\r\nx\r\ncas k 1 2 1 99\r\nx\r\ncas k 1 "
		    "2 1 99\r\nx\r\n");
	server_is_asked("set k 7 30 3\r\na\r\n\r\nadd k 0 0 0\r\n\r\nreplace k 0 0 "
			"1\r\nx\r\nappend k 0 0 1\r\nx\r\n"
			"prepend k 0 0 1\r\nx\r\ncas k 1 2 1 99\r\nx\r\ncas k 1 2 1 99\r\nx\r\ncas "
			"k 1 2 1 99\r\nx\r\n");
	server_answers("STORED\r\nNOT_STORED\r\nNOT_STORED\r\nSTORED\r\nNOT_"
		       "STORED\r\nSTORED\r\nEXISTS\r\nNOT_FOUND\r\n");
	client_is_told("STORED\r\nNOT_STORED\r\nNOT_STORED\r\nSTORED\r\nNOT_"
		       "STORED\r\nSTORED\r\nEXISTS\r\nNOT_FOUND\r\n");
}
END_TEST

START_TEST(lines)
{
	client_asks("incr k 5\r\ndecr k 5\r\ndecr k 5\r\ndelete k\r\ndelete k 0\r\n");
	server_is_asked("incr k 5\r\ndecr k 5\r\ndecr k 5\r\ndelete k\r\ndelete k\r\n");
	server_answers("10\r\n5\r\nNOT_FOUND\r\nDELETED\r\nNOT_FOUND\r\n");
	client_is_told("10\r\n5\r\nNOT_FOUND\r\nDELETED\r\nNOT_FOUND\r\n");
}
END_TEST

/* What a collection has beside its own item lives as long as that: so it is looked at first. */
START_TEST(touching)
{
	client_asks("touch k 30\r\n");
	server_answers("VA 5 kk f0\r\nhello\r\nTOUCHED\r\n");
	server_is_asked("mg k k f v\r\ntouch k 30\r\n");
	client_is_told("TOUCHED\r\n");
	client_asks("touch k -1 noreply\r\ntouch k 7\r\n");
	server_answers("VA 3 kk f0\r\n+a \r\nVA 3 kk f0\r\n+a \r\nEN\r\n");
	server_is_asked("mg k k f v\r\nmg k T-1 k f v\r\nmg k k f v\r\n");
	client_is_told("NOT_FOUND\r\n");
	client_asks("touch k 30\r\n");
	server_answers("VA 5 kk f0\r\nhello\r\nNOT_FOUND\r\n");
	client_is_told("NOT_FOUND\r\n");
	client_asks("touch k 30\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
}
END_TEST

/* Upstream a reply is asked for in any case: it is kept back here. */
START_TEST(noreply)
{
	client_asks("set k 0 0 1 noreply\r\nx\r\nincr k 1 noreply\r\ndelete k noreply\r\nget k\r\n");
	server_is_asked("set k 0 0 1\r\nx\r\nincr k 1\r\ndelete k\r\nmg k k f v\r\n");
	server_answers("STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
		       "DELETED\r\nEN\r\n");
	client_is_told("END\r\n");
}
END_TEST

START_TEST(failures)
{
	static const enum result_status statuses[] = { RESULT_UNAVAILABLE, RESULT_TIMED_OUT, RESULT_LOST, RESULT_BUSY,
		RESULT_TOO_LARGE };

	client_asks("set k 0 0 1\r\nx\r\nincr k 1\r\ndelete k\r\ndecr k 1\r\nset k 0 0 1\r\nx\r\n");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		fake_fail(&fake, statuses[i]);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n"
		       "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n"
		       "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n"
		       "SERVER_ERROR busy\r\n"
		       "SERVER_ERROR object too large for cache\r\n");
	client_asks("set k 0 0 1\r\nx\r\n");
	server_answers("SERVER_ERROR out of memory storing object\r\n");
	client_is_told("SERVER_ERROR out of memory storing object\r\n");
}
END_TEST

START_TEST(flush_goes_to_all_servers)
{
	fake.host.env.servers = 3;
	client_asks("flush_all\r\n");
	server_is_asked("server 0: flush_all\r\nserver 1: flush_all\r\nserver 2: flush_all\r\n");
	server_answers("OK\r\nOK\r\n");
	client_hears_nothing();
	server_answers("OK\r\n");
	client_is_told("OK\r\n");
	client_asks("flush_all 10\r\nflush_all 0 noreply\r\n");
	server_is_asked("server 0: flush_all 10\r\nserver 1: flush_all 10\r\nserver 2: flush_all 10\r\n"
			"server 0: flush_all\r\nserver 1: flush_all\r\nserver 2: flush_all\r\n");
	server_answers("OK\r\nOK\r\nOK\r\nOK\r\nOK\r\nOK\r\n");
	client_is_told("OK\r\n");
}
END_TEST

/* One that fails is enough for the client to be told, when all have answered. */
START_TEST(flush_fails)
{
	client_asks("flush_all\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	client_hears_nothing();
	server_answers("OK\r\n");
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("flush_all\r\n");
	server_answers("OK\r\n");
	fake_fail(&fake, RESULT_LOST);
	client_is_told("SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
}
END_TEST

CONVERSATIONS(command_item, storage, lines, touching, noreply, failures, flush_goes_to_all_servers, flush_fails)
