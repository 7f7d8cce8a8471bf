/* Reading a set part of which is in segments, and what happens when one is gone. */
#include <stdio.h>

#include "conversations.h"

#define SEGMENT "c00000000000.0.1"
#define BASE(cas, log) "VA 21 kk f0 c" #cas " t-1\r\n@" SEGMENT " " log "\r\n"
#define FETCH_SEGMENT "mg k." SEGMENT " k f v\r\n"

START_TEST(base_and_segment)
{
	client_asks("smembers k\r\n");
	server_is_asked(FETCH("k"));
	server_answers(BASE(7, "-b "));
	server_is_asked(FETCH_SEGMENT);
	server_answers("VA 9 kk." SEGMENT " f0\r\n+a +b +c \r\n");
	client_is_told("VALUE k 0 3\r\na c\r\nEND\r\n");
}
END_TEST

/* A set that is not whole is never served: it is a miss, and goes by CAS, if it is still what was
 * read. */
START_TEST(segment_is_gone)
{
	client_asks("scard k\r\n");
	server_answers(BASE(7, "+x ") "EN\r\n" BASE(7, "+x "));
	server_is_asked(FETCH("k") FETCH_SEGMENT FETCH("k") "connection 1: cas k 0 -1 0 7\r\n\r\n");
	client_hears_nothing();
	server_answers("STORED\r\n");
	client_is_told("NOT_FOUND\r\n");
}
END_TEST

/* It was missing since another proxy had just merged it: what the base says now is read. */
START_TEST(segment_was_merged)
{
	client_asks("scard k\r\n");
	server_answers(BASE(7, "+x ") "EN\r\n");
	server_answers("VA 6 kk f0 c8 t-1\r\n+x +y \r\n");
	client_is_told("2\r\n");
}
END_TEST

/* Answers all that is asked, with a base that changes or with one that cannot be removed; gives the
 * calls it took. */
static int never_whole(bool changes)
{
	char base[64];
	int n = 0;

	for (; fake_waiting(&fake) && n < 500; n++) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		snprintf(base, sizeof(base), "VA 18 kk f0 c%d t-1\r\n@" SEGMENT " \r\n", changes ? n : 7);
		server_answers(call->verb == CALL_CAS ? "EXISTS\r\n" : call->key.n > 1 ? "EN\r\n" : base);
	}
	return n;
}

/* The command that waits behind it finds the lane in good order. */
START_TEST(base_changes_for_ever)
{
	client_asks("scard k\r\nsadd k a\r\n");
	fake.connection = 1;
	for (int n = 0; fake_waiting(&fake) && fake.calls[fake_oldest(&fake)].call.verb != CALL_APPEND; n++) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		char base[64];
		ck_assert_int_lt(n, 500);
		snprintf(base, sizeof(base), "VA 18 kk f0 c%d t-1\r\n@" SEGMENT " \r\n", n);
		server_answers(call->key.n > 1 ? "EN\r\n" : base);
	}
	client_is_told("SERVER_ERROR busy\r\n");
	server_answers("STORED\r\n");
	client_is_told("STORED\r\n");
}
END_TEST

START_TEST(bounded)
{
	client_asks("scard k\r\n");
	ck_assert_int_lt(never_whole(true), 500);
	client_is_told("SERVER_ERROR busy\r\n");
	client_asks("scard k\r\n");
	ck_assert_int_lt(never_whole(false), 500);
	client_is_told("SERVER_ERROR busy\r\n");
}
END_TEST

CONVERSATIONS(segments, base_and_segment, segment_is_gone, segment_was_merged, base_changes_for_ever, bounded)
