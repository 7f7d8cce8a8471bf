/* memcached's commands of one key, and flush_all. */
#include "conversations.h"

TEST(results)
{
	talks("incr k 5\r\nreplace k 0 0 1\r\nx\r\n", "incr k 5\r\nreplace k 0 0 1\r\nx\r\n",
		"10\r\nNOT_STORED\r\n", "10\r\nNOT_STORED\r\n");
	talks("cas k 1 2 1 99\r\nx\r\n", "cas k 1 2 1 99\r\nx\r\n", "EXISTS\r\n", "EXISTS\r\n");
	talks("gets k\r\ngats -1 k\r\n", "mg k k f c v\r\nmg k T-1 k f c v\r\n",
		"VA 0 kk f7 c9\r\n\r\nEN\r\n", "VALUE k 7 0 9\r\n\r\nEND\r\nEND\r\n");
	talks("gat 30 k\r\n", "mg k T30 k f v\r\n", "VA 1 kk f7\r\nx\r\n",
		"VALUE k 7 1\r\nx\r\nEND\r\n");
}

/* The parts of a collection live as long as its own item: so it is read first. */
TEST(touching)
{
	client_asks("touch k 30\r\n");
	server_answers("VA 5 kk f0 c5 t-1\r\nhello\r\nTOUCHED\r\n");
	server_is_asked("mg k k f c t v\r\ntouch k 30\r\n");
	client_is_told("TOUCHED\r\n");
	client_asks("touch k -1 noreply\r\ntouch k 7\r\n");
	server_answers("VA 3 kk f0 c5 t9\r\n+a \r\nVA 3 kk f0 c5 t9\r\n+a \r\nEN\r\n");
	server_is_asked("mg k k f c t v\r\nmg k T-1 k f c t v\r\nmg k k f c t v\r\n");
	client_is_told("NOT_FOUND\r\n");
	exchanges("touch k 30\r\n", "VA 5 kk f0 c5 t-1\r\nhello\r\nNOT_FOUND\r\n", "NOT_FOUND\r\n");
	(void)fake_calls(&fake);
	/* A base gets a date. If it is empty, it may also be an item, whose bytes stay. */
	client_asks("touch k 30\r\n");
	server_answers(
		"VA 3 kk f0 c5 t9\r\n+a \r\nSTORED\r\nVA 16 kk f0 c6 t30\r\n+a ~t1424450126 \r\n");
	server_is_asked(
		"mg k k f c t v\r\nappend k 0 0 13\r\n~t1424450126 \r\nmg k T30 k f c t v\r\n");
	client_is_told("TOUCHED\r\n");
	client_asks("touch k 30\r\n");
	server_answers("VA 0 kk f7 c5 t9\r\n\r\nSTORED\r\n");
	server_is_asked("mg k k f c t v\r\nconnection 1: cas k 7 30 0 5\r\n\r\n");
	client_is_told("TOUCHED\r\n");
	client_asks("touch k 30\r\n");
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
}

/* A reply is always requested from the server: it is suppressed here. */
TEST(noreply)
{
	client_asks(
		"set k 0 0 1 noreply\r\nx\r\nincr k 1 noreply\r\ndelete k noreply\r\nget k\r\n");
	server_is_asked("set k 0 0 1\r\nx\r\nincr k 1\r\ndelete k\r\nmg k k f v\r\n");
	server_answers("STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
		       "DELETED\r\nEN\r\n");
	client_is_told("END\r\n");
}

TEST(failures)
{
	static const enum result_status statuses[] = { RESULT_UNAVAILABLE, RESULT_TIMED_OUT,
		RESULT_LOST, RESULT_BUSY, RESULT_TOO_LARGE };

	client_asks("set k 0 0 1\r\nx\r\nincr k 1\r\ndelete k\r\ndecr k 1\r\nset k 0 0 1\r\nx\r\n");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		fake_fail(&fake, statuses[i]);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n"
		       "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n"
		       "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n"
		       "SERVER_ERROR busy\r\n"
		       "SERVER_ERROR object too large for cache\r\n");
	client_asks("set k 0 0 1\r\nx\r\n");
	relays("SERVER_ERROR out of memory storing object\r\n",
		"SERVER_ERROR out of memory storing object\r\n");
}

/*
 * memcached deletes the item that a `set` with a value that is too large would have replaced, so
 * that no stale value is read.
 */
TEST(too_large)
{
	client_asks("set k 0 0 2000000\r\n");
	talks("set k 0 0 2000000 noreply\r\n", "delete k\r\ndelete k\r\n",
		"DELETED\r\nNOT_FOUND\r\n", "SERVER_ERROR object too large for cache\r\n");
	client_asks("set k 0 0 2000000\r\n");
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	ck_assert_str_eq(fake_ask(&fake, "add k 0 0 2000000\r\n"),
		"SERVER_ERROR object too large for cache");
	/* The same if the value is too large for the server. */
	client_asks("set k 0 0 1\r\nx\r\nadd k 0 0 1\r\nx\r\ncas k 0 0 1 5\r\nx\r\n");
	ck_assert(fake.calls[3].call.discards && !fake.calls[4].call.discards &&
		!fake.calls[5].call.discards);
	relays("STORED\r\nSTORED\r\nSTORED\r\n", "STORED\r\nSTORED\r\nSTORED\r\n");
}

/*
 * The parts of a set or list have longer keys than its base, so a base with a key of this length
 * has none.
 */
TEST(touching_a_long_key)
{
	char line[300], asked[300];

	snprintf(line, sizeof(line), "touch %0250d 30\r\n", 0);
	client_asks(line);
	snprintf(asked, sizeof(asked), "touch %0250d 30\r\n", 0);
	serves(asked, "TOUCHED\r\n");
	client_is_told("TOUCHED\r\n");
}

#define REFUSED "CLIENT_ERROR the key is a part of a set or list, and can only be read\r\n"

/* The parts of a set or list. */
TEST(keys_of_parts)
{
	client_asks("set k.t1abcdefghij 0 0 1\r\nx\r\ncas k.i1abcdefghij 0 0 1 1\r\nx\r\n"
		    "append k.labcdefghijk.1.2 0 0 1\r\nx\r\ndelete k.t1abcdefghij\r\nincr "
		    "k.t1abcdefghij 1\r\n"
		    "touch k.t1abcdefghij 1\r\ngat 1 a k.t1abcdefghij\r\nsadd k.t1abcdefghij m\r\n"
		    "rpop k.labcdefghijk.1.2\r\nsmembers a k.labcdefghijk.1.2\r\nset "
		    "k.t1abcdefghij 0 0 1 noreply\r\nx\r\n"
		    "sunion k.t1abcdefghij\r\n");
	server_hears_nothing();
	client_is_told(REFUSED REFUSED REFUSED REFUSED REFUSED REFUSED REFUSED REFUSED REFUSED
			REFUSED REFUSED);
	client_asks("set k.t1abcdefghij 0 0 2000000\r\n");
	server_hears_nothing();
	client_is_told("SERVER_ERROR object too large for cache\r\n");
	talks("get k.t1abcdefghij\r\nset k.transactions 0 0 1\r\nx\r\n",
		"mg k.t1abcdefghij k f v\r\nset k.transactions 0 0 1\r\nx\r\n", "EN\r\nSTORED\r\n",
		"END\r\nSTORED\r\n");
}

#define COPY "CLIENT_ERROR the key is that of a second copy, and can only be read\r\n"

TEST(keys_of_second_copies)
{
	client_asks("set k.~copy 0 0 1\r\nx\r\ncas k.~copy 0 0 1 1\r\nx\r\nappend k.~copy 0 0 "
		    "1\r\nx\r\n"
		    "delete k.~copy\r\nincr k.~copy 1\r\ntouch k.~copy 1\r\ngat 1 a k.~copy\r\n"
		    "sadd k.~copy m\r\nrpop k.~copy\r\nsmembers a k.~copy\r\n"
		    "set k.~copy 0 0 1 noreply\r\nx\r\nsunion k.~copy\r\n");
	server_hears_nothing();
	client_is_told(COPY COPY COPY COPY COPY COPY COPY COPY COPY COPY COPY);
	/* The first of the keys that cannot be written decides. */
	client_asks("sunion a k.t1abcdefghij k.~copy\r\nsunion a k.~copy k.t1abcdefghij\r\n"
		    "delete k.~copy.t1abcdefghij\r\n");
	server_hears_nothing();
	client_is_told(REFUSED COPY REFUSED);
	talks("get k.~copy\r\nset k.copy 0 0 1\r\nx\r\n",
		"mg k.~copy k f v\r\nset k.copy 0 0 1\r\nx\r\n", "EN\r\nSTORED\r\n",
		"END\r\nSTORED\r\n");
}

TEST(flush_goes_to_all_servers)
{
	fake.host.env.servers = 3;
	client_asks("flush_all\r\n");
	serves("server 0: flush_all\r\nserver 1: flush_all\r\nserver 2: flush_all\r\n",
		"OK\r\nOK\r\n");
	client_hears_nothing();
	relays("OK\r\n", "OK\r\n");
	client_asks("flush_all 10\r\nflush_all 0 noreply\r\n");
	server_is_asked(
		"server 0: flush_all 10\r\nserver 1: flush_all 10\r\nserver 2: flush_all 10\r\n"
		"server 0: flush_all\r\nserver 1: flush_all\r\nserver 2: flush_all\r\n");
	relays("OK\r\nOK\r\nOK\r\nOK\r\nOK\r\nOK\r\n", "OK\r\n");
}

/* A single failure makes the reply to the client an error, when all have been answered. */
TEST(flush_fails)
{
	client_asks("flush_all\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	client_hears_nothing();
	relays("OK\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("flush_all\r\n");
	server_answers("OK\r\n");
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
}
