/*
 * Lanes: queued operations are sent together, and take effect in the order in which they were
 * sent.
 */
#include "conversations.h"

/* While one append is on its way the others gather. */
TEST(neighbouring_appends_merge)
{
	talks("sadd k a\r\nsadd k b c\r\nsrem k d\r\nsadd k e noreply\r\nsadd k f\r\n",
		APPEND("k", 3, "+a "), "STORED\r\n", "STORED\r\n");
	serves(APPEND("k", 15, "+b +c -d +e +f "), "STORED\r\n");
	client_is_told("STORED\r\nDELETED\r\nSTORED\r\n");
	server_hears_nothing();
}

TEST(other_keys_do_not_wait)
{
	client_asks("sadd k a\r\nsadd l b\r\nsmembers m\r\n");
	server_is_asked(APPEND("k", 3, "+a ") APPEND("l", 3, "+b ") FETCH("m"));
	fake_result(&fake, 1, &(struct result){ .status = RESULT_DONE });
	client_hears_nothing();
	relays("STORED\r\nEN\r\n", "STORED\r\nSTORED\r\nEND\r\n");
}

TEST(neighbouring_reads_share_a_fetch)
{
	client_asks("sadd k a\r\nscard k\r\nsmembers k\r\nsismember k b\r\nsmismember k a b "
		    "c\r\nsadd k z\r\nscard k\r\n");
	serves(APPEND("k", 3, "+a "), "STORED\r\n");
	serves(FETCH("k"), FOUND("k", 6, "+a +c "));
	client_is_told("STORED\r\n2\r\nVALUE k 0 3\r\na c\r\nEND\r\n0\r\n1 0 1\r\n");
	serves(APPEND("k", 3, "+z ") FETCH("k"), "STORED\r\n" FOUND("k", 9, "+a +c +z "));
	client_is_told("STORED\r\n3\r\n");
}

/* A refused append does not determine the result of the reads after it. */
TEST(reads_behind_a_refused_append)
{
	client_asks("sadd k a\r\nsadd k b\r\nscard k\r\n");
	serves(APPEND("k", 3, "+a "), "STORED\r\n");
	serves(APPEND("k", 3, "+b ") FETCH("k"), "NOT_STORED\r\nEN\r\n");
	serves(LOOK("k"), "EN\r\n");
	serves("add k 0 0 3\r\n+b \r\n", "STORED\r\n");
	serves(FETCH("k"), FOUND("k", 3, "+b "));
	client_is_told("STORED\r\nSTORED\r\n1\r\n");
}

/* An operation that is sent while a base is in flight may be younger than the base. */
TEST(later_reads_are_read_for)
{
	client_asks("sadd k a\r\nsadd k b\r\nscard k\r\n");
	serves(APPEND("k", 3, "+a "), "STORED\r\n");
	server_is_asked(APPEND("k", 3, "+b ") FETCH("k"));
	client_asks("scard k\r\n");
	relays("STORED\r\n" FOUND("k", 6, "+a +b "), "STORED\r\nSTORED\r\n2\r\n");
	serves(FETCH("k"), FOUND("k", 9, "+a +b +c "));
	client_is_told("3\r\n");
}

/* Each learns the value that its own part brought about. */
TEST(neighbouring_counts_merge)
{
	talks("evincr E\r\nevincr E 5\r\nevincr E 10\r\nevincr E 1\r\n", "incr E::2015022016 1\r\n",
		"7\r\n", "7\r\n");
	serves("incr E::2015022016 16\r\n", "23\r\n");
	client_is_told("12\r\n22\r\n23\r\n");
	server_hears_nothing();
}

TEST(counts_wrap_around)
{
	client_asks("evincr E\r\nevincr E 9223372036854775807\r\nevincr E "
		    "9223372036854775807\r\nevincr E 3\r\n");
	serves("incr E::2015022016 1\r\n", "7\r\n");
	serves("incr E::2015022016 1\r\n", "8\r\n");
	client_is_told("7\r\n9223372036854775814\r\n5\r\n8\r\n");
}

/* A plain command on a key with a lane is queued in it; on any other key it is not. */
TEST(plain_calls_keep_the_order)
{
	client_asks("sadd k a\r\nget k\r\nset k 1 2 1\r\nx\r\nget j\r\nsadd k b\r\ndelete k\r\nmg "
		    "k v\r\n");
	server_is_asked(APPEND("k", 3, "+a ") "mg j k f v\r\n");
	fake_result(&fake, 1, &(struct result){ .status = RESULT_MISS });
	relays("STORED\r\n", "STORED\r\n");
	serves("mg k k f v\r\nset k 1 2 1\r\nx\r\n" APPEND("k", 3, "+b "),
		"VA 3 kk f0\r\n+a \r\nSTORED\r\nSTORED\r\n");
	client_is_told("VALUE k 0 3\r\n+a \r\nEND\r\nSTORED\r\nEND\r\nSTORED\r\n");
	serves("delete k\r\nmg k v\r\n", "DELETED\r\nEN\r\n");
	client_is_told("DELETED\r\nEN\r\n");
}

/* Plain calls before a collection's command are on their way already, on the same connection. */
TEST(plain_calls_before)
{
	client_asks("delete k\r\nsadd k a\r\nget k\r\n");
	serves("delete k\r\n" APPEND("k", 3, "+a "), "DELETED\r\nSTORED\r\n");
	serves("mg k k f v\r\n", "EN\r\n");
	client_is_told("DELETED\r\nSTORED\r\nEND\r\n");
}

TEST(replacing_runs_alone)
{
	client_asks("sadd k a\r\nsset k b\r\nsset k c\r\nsadd k d\r\n");
	serves(APPEND("k", 3, "+a "), "STORED\r\n");
	serves(FETCH_TO_REPLACE("k"), "VA 3 kk f0 c9\r\n+a \r\n");
	serves("connection 1: cas k 0 0 3 9\r\n+b \r\n", "STORED\r\n");
	serves(FETCH_TO_REPLACE("k"), "VA 3 kk f0 c10\r\n+b \r\n");
	serves("connection 1: cas k 0 0 3 10\r\n+c \r\n", "STORED\r\n");
	serves(APPEND("k", 3, "+d "), "STORED\r\n");
	client_is_told("STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n");
}

/* All operations of a batch share the failure; later ones are tried separately. */
TEST(failures_reach_all_of_a_batch)
{
	client_asks("sadd k a\r\nsadd k b\r\nsrem k c\r\nscard k\r\n");
	serves(APPEND("k", 3, "+a "), "STORED\r\n");
	server_is_asked(APPEND("k", 6, "+b -c ") FETCH("k"));
	fake_fail(&fake, RESULT_TIMED_OUT);
	fake_fail(&fake, RESULT_TIMED_OUT);
	server_is_asked(FETCH("k"));
	fake_fail(&fake, RESULT_UNAVAILABLE);
	client_is_told("STORED\r\n"
		       "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n"
		       "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n"
		       "SERVER_ERROR upstream mc:11211 unavailable\r\n");
}

TEST(failures_of_counts)
{
	client_asks("evincr E\r\nevincr E\r\nevincr E\r\n");
	fake_fail(&fake, RESULT_LOST);
	server_answers("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
	client_is_told("SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n"
		       "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
		       "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
}

/* Many lanes at once: the table grows, and each finds its own. */
TEST(many_lanes)
{
	/* So large that no append looks at the size by chance. */
	static const struct collection_options options = {
		.log_size = 1u << 29, .table_size = 65536, .merges = 1
	};
	char text[64];

	fake.host.env.options = &options;
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "sadd k%d a\r\nscard k%d\r\n", i, i);
		client_asks(text);
	}
	ck_assert_uint_eq(fake_waiting(&fake), 1000);
	for (int i = 0; i < 1000; i++)
		server_answers("STORED\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 1000);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "VA 3 kk%d f0 c1 t-1\r\n+a \r\n", i);
		server_answers(text);
	}
	ck_assert_uint_eq(fake_waiting(&fake), 0);
}

/* A merged append stays within limits, and the surplus goes into the next one. */
TEST(merging_is_bounded)
{
	struct buf text = BUF_EMPTY;
	size_t appended = 0;

	client_asks("sadd k a\r\n");
	for (int i = 0; i < 100; i++) {
		buf_consume(&text, buf_size(&text));
		BUF_ADD(&text, "sadd k");
		for (int j = 0; j < 100; j++)
			buf_printf(&text, " member%04d", j);
		BUF_ADD(&text, "\r\n\0");
		client_asks(buf_slice(&text).p);
	}
	for (int i = 0; fake_waiting(&fake); i++) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		ck_assert_int_lt(i, 20);
		/* The resulting size may be requested too. */
		if (call->verb == CALL_GET) {
			fake_result(&fake, fake_oldest(&fake),
				&(struct result){
					.status = RESULT_HIT, .size = 1000, .ttl = TTL_NEVER });
			continue;
		}
		ck_assert_int_eq(call->verb, CALL_APPEND);
		ck_assert_uint_le(call->value.n, 40000);
		appended += call->value.n;
		server_answers("STORED\r\n");
	}
	ck_assert_uint_eq(appended, 3 + 100 * 1200);
	buf_free(&text);
}
