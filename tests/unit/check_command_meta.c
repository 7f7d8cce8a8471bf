#include "conversations.h"

START_TEST(passed_on)
{
	client_asks("mg k v t f O7 k\r\nms k 3 T30 F7\r\nabc\r\nmd k I\r\nma k N0 J5 v\r\nme k\r\n");
	server_is_asked("mg k v t f O7 k\r\nms k 3 T30 F7\r\nabc\r\nmd k I\r\nma k N0 J5 v\r\nme k\r\n");
	server_answers("VA 3 t-1 f0 O7 kk\r\nabc\r\nHD\r\nNF\r\nVA 1\r\n5\r\nME k exp=-1\r\n");
	client_is_told("VA 3 t-1 f0 O7 kk\r\nabc\r\nHD\r\nNF\r\nVA 1\r\n5\r\nME k exp=-1\r\n");
}
END_TEST

/* q never goes upstream; what it hides is kept back here, and nothing else. */
START_TEST(quiet_get)
{
	client_asks("mg a q v\r\nmg b q v\r\nmg c q s\r\n");
	server_is_asked("mg a v\r\nmg b v\r\nmg c s\r\n");
	server_answers("EN\r\nVA 1\r\nx\r\nHD s1\r\n");
	client_is_told("VA 1\r\nx\r\nHD s1\r\n");
}
END_TEST

START_TEST(quiet_writes)
{
	client_asks("ms a 1 q\r\nx\r\nms b 1 q\r\nx\r\nmd c q\r\nmd d q\r\nma e q\r\nma f q "
		    "v\r\nma g q\r\n");
	server_is_asked("ms a 1\r\nx\r\nms b 1\r\nx\r\nmd c\r\nmd d\r\nma e\r\nma f v\r\nma g\r\n");
	server_answers("HD\r\nNS\r\nHD\r\nEX\r\nHD\r\nVA 1\r\n5\r\nNS\r\n");
	client_is_told("NS\r\nEX\r\nNS\r\n");
}
END_TEST

/* An error is told even where quiet was asked for. */
START_TEST(quiet_failures)
{
	client_asks("mg a q v\r\nms b 1 q\r\nx\r\nmg c q\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	fake_fail(&fake, RESULT_LOST);
	server_answers("SERVER_ERROR out of memory\r\n");
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n"
		       "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n"
		       "SERVER_ERROR out of memory\r\n");
}
END_TEST

/* The bytes of a key that came encoded decide where it lives, and which lane it waits in. */
START_TEST(encoded_keys)
{
	client_asks("sadd foo a\r\nmg Zm9v b v\r\nmg YmFy b v\r\n");
	server_is_asked(APPEND("foo", 3, "+a ") "mg YmFy b v\r\n");
	assert_bytes(fake.calls[1].call.key, "bar");
	fake_result(&fake, 1, &(struct result){ .status = RESULT_TEXT, .line = SLICE("EN") });
	server_answers("STORED\r\n");
	server_is_asked("mg Zm9v b v\r\n");
	assert_bytes(fake.calls[2].call.key, "foo");
	server_answers("VA 3\r\n+a \r\n");
	client_is_told("STORED\r\nVA 3\r\n+a \r\nEN\r\n");
}
END_TEST

/* The length that goes upstream is written anew, the flags each behind one space. */
START_TEST(written_anew)
{
	client_asks("ms  k  003   q   T30\r\nabc\r\n");
	server_is_asked("ms k 3 T30\r\nabc\r\n");
	server_answers("HD\r\n");
	client_hears_nothing();
}
END_TEST

CONVERSATIONS(command_meta, passed_on, quiet_get, quiet_writes, quiet_failures, encoded_keys, written_anew)
