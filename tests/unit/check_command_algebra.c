/* What sinter, sunion and sdiff ask for, and how much they may collect. */
#include "conversations.h"

static const struct collection_options options = { .log_size = 4096, .table_size = 65536, .result_max = 20 };

/* However often a set is named, it is read once. */
START_TEST(sets_named_twice)
{
	client_asks("sunion k l k l k\r\n");
	server_is_asked(FETCH("k") FETCH("l"));
	server_answers(FOUND("k", 6, "+a +b "));
	server_answers(FOUND("l", 6, "+b +c "));
	client_is_told("VALUE sunion 0 5\r\na b c\r\nEND\r\n");
	client_asks("sinter k k k\r\n");
	server_is_asked(FETCH("k"));
	server_answers(FOUND("k", 6, "+a +b "));
	client_is_told("VALUE sinter 0 3\r\na b\r\nEND\r\n");
}
END_TEST

/* The first set may be subtracted from itself. */
START_TEST(subtracted_from_itself)
{
	client_asks("sdiff k l l\r\n");
	server_is_asked(FETCH("k") FETCH("l"));
	server_answers(FOUND("k", 6, "+a +b "));
	server_answers(FOUND("l", 3, "+b "));
	client_is_told("VALUE sdiff 0 1\r\na\r\nEND\r\n");
	client_asks("sdiff k k k\r\n");
	server_is_asked(FETCH("k"));
	server_answers(FOUND("k", 6, "+a +b "));
	server_is_asked(FETCH("k"));
	server_answers(FOUND("k", 6, "+a +b "));
	client_is_told("VALUE sdiff 0 0\r\n\r\nEND\r\n");
}
END_TEST

START_TEST(too_large)
{
	fake_takes(&options);
	client_asks("sunion k l\r\n");
	server_answers(FOUND("k", 20, "+member-1 +member-2 "));
	server_answers(FOUND("l", 20, "+member-3 +member-4 "));
	client_is_told("SERVER_ERROR result too large\r\n");
	client_asks("sinter k l\r\n");
	server_answers(FOUND("k", 20, "+member-1 +member-2 "));
	server_answers(FOUND("l", 20, "+member-2 +member-4 "));
	client_is_told("VALUE sinter 0 8\r\nmember-2\r\nEND\r\n");
}
END_TEST

CONVERSATIONS(command_algebra, sets_named_twice, subtracted_from_itself, too_large)
