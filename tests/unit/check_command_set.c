
#include "conversations.h"

/* A failure takes the place of END: nothing must look complete that is not. */
TEST(members_of_some)
{
	client_asks("smembers a b c\r\n");
	server_answers(FOUND("a", 3, "+x "));
	fake_fail(&fake, RESULT_UNAVAILABLE);
	server_answers(FOUND("c", 3, "+z "));
	client_is_told("VALUE a 0 1\r\nx\r\nVALUE c 0 1\r\nz\r\nSERVER_ERROR upstream mc:11211 "
		       "unavailable\r\n");
	client_asks("smembers a b\r\n");
	server_answers(FOUND("a", 3, "+x ") FOUND("b", 3, "foo"));
	client_is_told("VALUE a 0 1\r\nx\r\nCLIENT_ERROR value is not a collection\r\n");
}

TEST(questions)
{
	client_asks("scard k\r\nsismember k a\r\nsmismember k a b\r\nsinfo k\r\n");
	server_answers("EN\r\n");
	while (fake_waiting(&fake))
		server_answers("EN\r\n");
	client_is_told("NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST(info)
{
	client_asks("sinfo k\r\n");
	server_answers("VA 12 kk f0 c1 t30\r\n+a +b +c -b \r\n");
	server_answers("VA 12 kk f0 c1 t30\r\n+a +b +c -b \r\n");
	client_is_told("STAT encoding oplog\r\n"
		       "STAT server mc:11211\r\n"
		       "STAT members 2\r\n"
		       "STAT items 2\r\n"
		       "STAT bytes 12\r\n"
		       "STAT base_bytes 12\r\n"
		       "STAT table_bytes 0\r\n"
		       "STAT tokens 4\r\n"
		       "STAT waste 0.50\r\n"
		       "STAT runs 0\r\n"
		       "STAT tables 0\r\n"
		       "STAT entries 0\r\n"
		       "STAT removals 0\r\n"
		       "STAT ttl 30\r\n"
		       "END\r\n");
}

/* An item counts as often as it is in the list. */
TEST(info_of_a_list)
{
	const char *told;

	client_asks("sinfo k\r\n");
	server_answers(FOUND("k", 9, "+a +b +a "));
	server_answers(FOUND("k", 9, "+a +b +a "));
	told = fake_told(&fake);
	ck_assert_ptr_nonnull(strstr(told, "STAT members 2\r\nSTAT items 3\r\n"));
}

TEST(wrong_arguments)
{
	static const char *const none[] = { "sadd k\r\n", "sadd k  \r\n", "saddx k\r\n", "srem k\r\n",
		"sismember k\r\n", "smismember k\r\n" };
	char line[1000];

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		client_asks(none[i]);
		client_is_told("CLIENT_ERROR no member given\r\n");
	}
	client_asks("sadd k noreply\r\n");
	client_hears_nothing();
	client_asks("scard k x\r\nsinfo k x\r\nsismember k a b\r\n");
	client_is_told("CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n"
		       "CLIENT_ERROR bad command line format\r\n");
	snprintf(line, sizeof(line), "sadd k a %0251d b\r\nsset k %0251d\r\nsismember k %0251d\r\n", 0, 0, 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR member too long\r\nCLIENT_ERROR member too "
		       "long\r\nCLIENT_ERROR member too long\r\n");
	server_hears_nothing();
}

/* Members that look like parts of the log, or of the protocol, stay what they are. */
TEST(members_do_not_smuggle)
{
	client_asks("sadd k -a +b @c noreply , x\r\n");
	serves(APPEND("k", 27, "+-a ++b +@c +noreply +, +x "), "STORED\r\n");
	client_asks("smembers k\r\n");
	server_answers(FOUND("k", 27, "+-a ++b +@c +noreply +, +x "));
	client_is_told("STORED\r\nVALUE k 0 20\r\n-a +b @c noreply , x\r\nEND\r\n");
}
