/* The commands on lists: the calls that they make, and the replies that follow from the results. */
#include <inttypes.h>

#include "conversations.h"
#include "util/alloc.h"
#include "util/check.h"

#define PREPEND(key, bytes, log) "prepend " key " 0 0 " #bytes "\r\n" log "\r\n"
#define LOOK_TTL(key) "mg " key " k f t\r\n"
#define LOOKED_TTL(key) "HD k" key " f0 t-1\r\n"
#define REWRITE(key, cas, bytes, log) \
	"connection 1: cas " key " 0 0 " #bytes " " #cas "\r\n" log "\r\n"
#define SEGMENT "s0a00000001x.3.1"
#define OLD_SEGMENT "l00000000001.3.1"
#define CHECKED SEGMENT ".ff822a2867ea9b22" /* with the check of "+a +b +c " */

/* Adjacent pushes to the same end are merged. At the head, the item pushed last is first. */
TEST(neighbouring_pushes_merge)
{
	client_asks("rpush k a\r\nrpush k b\r\nrpush k c d\r\nlpush k e f\r\nlpush k g\r\nrpush k "
		    "h\r\n");
	serves(APPEND("k", 3, "+a "), "STORED\r\n");
	serves(APPEND("k", 9, "+b +c +d "), "STORED\r\n");
	serves(PREPEND("k", 9, "+g +f +e "), "STORED\r\n");
	serves(APPEND("k", 3, "+h "), "STORED\r\n");
	client_is_told("STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n");
}

/* A push that creates a list marks it. rpushx and lpushx do not create one. */
TEST(creation)
{
	client_asks("lpush k a b\r\n");
	server_answers("NOT_STORED\r\nEN\r\n");
	serves(PREPEND("k", 6, "+b +a ") LOOK("k") ADD("k", 12, "@list +b +a "), "STORED\r\n");
	client_is_told("STORED\r\n");
	client_asks("rpushx k a\r\nlpushx k b\r\n");
	relays("NOT_STORED\r\nEN\r\nNOT_STORED\r\nEN\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n");
	fake_calls(&fake);
	client_asks("sadd k a\r\n");
	server_answers("NOT_STORED\r\nEN\r\n");
	serves(APPEND("k", 3, "+a ") LOOK("k") ADD("k", 3, "+a "), "STORED\r\n");
	client_is_told("STORED\r\n");
}

static void asks_for_a_long_push(const char *command)
{
	struct buf line = BUF_EMPTY;

	buf_add(&line, command, strlen(command));
	for (int i = 0; i < 500; i++)
		buf_printf(&line, " %0100d", i);
	BUF_ADD(&line, "\r\n\0");
	client_asks(buf_slice(&line).p);
	buf_free(&line);
}

/* A push that may have been executed is never sent again. A long push that failed half way is one. */
TEST(never_twice)
{
	client_asks("rpush k a\r\n");
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	client_asks("rpush k a\r\n");
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	asks_for_a_long_push("rpush k");
	server_answers("STORED\r\n");
	while (fake.calls[fake_oldest(&fake)].call.verb == CALL_GET)
		server_answers(LOOKED("k"));
	fails(RESULT_UNAVAILABLE,
		"SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	while (fake_waiting(&fake))
		server_answers(LOOKED("k"));
}

/* A long push at the head is sent in parts, the last part first. */
TEST(long_push_at_the_head)
{
	struct buf stored = BUF_EMPTY;

	asks_for_a_long_push("lpush k");
	while (fake_waiting(&fake)) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		if (call->verb == CALL_GET) {
			server_answers(LOOKED("k"));
			continue;
		}
		struct buf whole = BUF_EMPTY;
		ck_assert(call->verb == CALL_PREPEND && call->value.n <= 32 * 1024);
		buf_add_slice(&whole, call->value);
		buf_add_slice(&whole, buf_slice(&stored));
		buf_free(&stored);
		stored = whole;
		server_answers("STORED\r\n");
	}
	client_is_told("STORED\r\n");
	for (int i = 499; i >= 0; i--) {
		char name[104];
		sprintf(name, "+%0100d ", i);
		ck_assert(slice_starts(buf_slice(&stored), slice_of(name, 102)));
		buf_consume(&stored, 102);
	}
	ck_assert_uint_eq(buf_size(&stored), 0);
	buf_free(&stored);
}

TEST(reads_share_a_fetch)
{
	client_asks("lrange k 0 -1\r\nllen k\r\nlrange k 1 1\r\nlindex k -1\r\nlpos k b\r\nlpos k "
		    "q\r\nlindex k 7\r\n");
	server_answers(FOUND("k", 18, "+x @list +b +a +b "));
	serves(FETCH("k") FETCH("k"), FOUND("k", 18, "+x @list +b +a +b "));
	client_is_told("VALUE k 0 7\r\nx b a b\r\nEND\r\n4\r\nVALUE k 0 1\r\nb\r\nEND\r\nVALUE k 0 "
		       "1\r\nb\r\nEND\r\n1\r\n"
		       "NOT_FOUND\r\nEND\r\n");
}

/* Queued pops are one rewrite. Each returns its own items. */
TEST(neighbouring_pops_merge)
{
	client_asks("llen k\r\nlpop k\r\nrpop k 2\r\nlpop k\r\nlpop k 9\r\nlpop k\r\n");
	server_answers(FOUND("k", 21, "@list +a +b +c +d +e "));
	fake_calls(&fake);
	server_answers(FOUND("k", 21, "@list +a +b +c +d +e "));
	serves(REWRITE("k", 5, 6, "@list "), "STORED\r\n");
	client_is_told("5\r\nVALUE k 0 1\r\na\r\nEND\r\nVALUE k 0 3\r\ne d\r\nEND\r\nVALUE k 0 "
		       "1\r\nb\r\nEND\r\n"
		       "VALUE k 0 1\r\nc\r\nEND\r\nEND\r\n");
}

/* After a lost race, the pop removes elements of the new list. */
TEST(pop_loses)
{
	client_asks("lpop k\r\n");
	server_answers("VA 9 kk f3 c5 t-1\r\n+a +b +c \r\n"
		       "EXISTS\r\n");
	server_is_asked(FETCH("k") "connection 1: cas k 3 0 6 5\r\n+b +c \r\n" FETCH("k"));
	relays("VA 6 kk f3 c6 t-1\r\n+b +c \r\n"
	       "STORED\r\n",
		"VALUE k 0 1\r\nb\r\nEND\r\n");
}

TEST(pop_is_bounded)
{
	int n = 0;

	client_asks("lpop k\r\n");
	for (; fake_waiting(&fake) && n < 500; n++) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		server_answers(call->verb == CALL_CAS ? "EXISTS\r\n" : FOUND("k", 3, "+a "));
	}
	ck_assert_int_lt(n, 500);
	client_is_told("SERVER_ERROR busy\r\n");
}

/* If the outcome of the CAS is unknown, the client gets no items. */
TEST(pop_unknown)
{
	client_asks("lpop k\r\n");
	server_answers(FOUND("k", 3, "+a "));
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
}

/* A pop from a segment writes only the base: the reference excludes the popped items. */
TEST(pop_of_a_segment)
{
	client_asks("lpop k 2\r\n");
	server_answers(FOUND("k", 27, "@list @" SEGMENT " +z "));
	serves(FETCH("k") "mg k." SEGMENT " k f v\r\n", "VA 9 kk." SEGMENT " f0\r\n+a +b +c \r\n");
	serves(REWRITE("k", 5, 31, "@list @" SEGMENT ":2:1 +z "), "STORED\r\n");
	client_is_told("VALUE k 0 3\r\na b\r\nEND\r\n");
	client_asks("lpop k\r\n");
	server_answers(FOUND("k", 31, "@list @" SEGMENT ":2:1 +z "));
	server_answers("VA 9 kk." SEGMENT " f0\r\n+a +b +c \r\n");
	fake_calls(&fake);
	server_answers("STORED\r\n");
	serves("delete k." SEGMENT "\r\n", "DELETED\r\n");
	client_is_told("VALUE k 0 1\r\nc\r\nEND\r\n");
}

/* Length, and ranges in other parts, do not read a segment. So it does not matter that it is missing. */
TEST(segment_is_gone)
{
	client_asks("llen k\r\n");
	server_answers(FOUND("k", 31, "@list @" SEGMENT ":1:2 +z "));
	exchanges("lindex k -1\r\n", FOUND("k", 31, "@list @" SEGMENT ":1:2 +z "),
		"3\r\nVALUE k 0 1\r\nz\r\nEND\r\n");
	fake_calls(&fake);
	client_asks("lindex k 0\r\n");
	server_answers(FOUND("k", 27, "@list @" SEGMENT " +z ") "EN\r\n" FOUND(
		"k", 27, "@list @" SEGMENT " +z "));
	serves(FETCH("k") "mg k." SEGMENT
			  " k f v\r\n" FETCH("k") "connection 1: cas k 0 -1 0 5\r\n\r\n",
		"STORED\r\n");
	client_is_told("END\r\n");
}

/*
 * A segment of 0.1.0 is on another server than the base. A proxy that does not find it may have
 * another list of servers, so the base stays.
 */
TEST(segment_is_gone_elsewhere)
{
	client_asks("lindex k 0\r\n");
	server_answers(FOUND("k", 27, "@list @" OLD_SEGMENT " +z ") "EN\r\n" FOUND(
		"k", 27, "@list @" OLD_SEGMENT " +z "));
	server_is_asked(FETCH("k") "mg k." OLD_SEGMENT " k f v\r\n" FETCH("k"));
	client_is_told("END\r\n");
	client_asks("scard k\r\n");
	server_answers(FOUND("k", 27, "@list @" OLD_SEGMENT " +z ") "EN\r\n" FOUND(
		"k", 27, "@list @" OLD_SEGMENT " +z "));
	server_is_asked(FETCH("k") "mg k." OLD_SEGMENT " k f v\r\n" FETCH("k"));
	client_is_told("NOT_FOUND\r\n");
}

/* A segment with fewer items than in its id is corrupt. */
TEST(segment_is_wrong)
{
	client_asks("lindex k 0\r\n");
	server_answers(
		FOUND("k", 27, "@list @" SEGMENT " +z ") "VA 6 kk." SEGMENT " f0\r\n+a +b \r\n");
	client_is_told("CLIENT_ERROR value is not a collection\r\n");
	client_asks("lindex k 0\r\n");
	server_answers(
		FOUND("k", 27, "@list @" SEGMENT " +z ") "VA 9 kk." SEGMENT " f0\r\n+a +b -c \r\n");
	client_is_told("CLIENT_ERROR value is not a collection\r\n");
	exchanges(
		"lpop k\r\n", FOUND("k", 4, "text"), "CLIENT_ERROR value is not a collection\r\n");
}

/* A segment that was overwritten by another client counts as missing. */
TEST(segment_is_changed)
{
	client_asks("lindex k 0\r\n");
	server_answers(
		FOUND("k", 44, "@list @" CHECKED " +z ") "VA 9 kk." SEGMENT " f0\r\n+a +b +d \r\n");
	server_answers(FOUND("k", 44, "@list @" CHECKED " +z "));
	serves(FETCH("k") "mg k." SEGMENT
			  " k f v\r\n" FETCH("k") "connection 1: cas k 0 -1 0 5\r\n\r\n",
		"STORED\r\n");
	client_is_told("END\r\n");
}

/* A base that refers to one segment many times would need memory for each reference. */
TEST(segment_twice)
{
	client_asks("lrange k 0 -1\r\n");
	relays(FOUND("k", 45, "@list @" SEGMENT " @" SEGMENT " +z "),
		"CLIENT_ERROR value is not a collection\r\n");
	fake_calls(&fake);
	client_asks("scard k\r\n");
	relays(FOUND("k", 45, "@list @" SEGMENT " @" SEGMENT " +z "),
		"CLIENT_ERROR value is not a collection\r\n");
	server_is_asked(FETCH("k"));
}

/* Duplicates are no waste in a list, nor are items in segments. */
TEST(set_commands)
{
	client_asks("scard k\r\n");
	server_answers(FOUND("k", 37, "+z @list @" SEGMENT ":1:2 +z +z "));
	relays("VA 9 kk." SEGMENT " f0\r\n+a +b +c \r\n", "3\r\n");
	client_asks("scompact k\r\n");
	relays(FOUND("k", 18, "@list +a +a +a +a ") FOUND("k", 18, "@list +a +a +a +a "), "OK\r\n");
	fake_calls(&fake);
	exchanges("lrange k 0 -1\r\n", FOUND("k", 18, "@list +a +b -a +a "),
		"VALUE k 0 3\r\nb a\r\nEND\r\n");
	/* A log with removals is compacted immediately, unless an element was pushed before it. */
	serves(FETCH("k") FETCH("k"), FOUND("k", 18, "@list +a +b -a +a "));
	serves(FETCH("k"), FOUND("k", 21, "+a @list +a +b -a +a "));
	server_hears_nothing();
	client_asks("lpop k\r\n");
	server_answers(FOUND("k", 6, "+x -y "));
	relays("STORED\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
}

/* The seconds left become a date, by our clock as the server's is unknown here. It is kept. */
TEST(dates)
{
	client_asks("lpop k\r\n");
	server_answers("VA 6 kk f0 c5 t3000000\r\n+x +y \r\n");
	server_is_asked(FETCH("k") "connection 1: cas k 0 1427450096 16 5\r\n+y ~t1427450096 \r\n");
	relays("STORED\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
	client_asks("lpop k\r\n");
	server_answers("VA 45 kk f0 c6 t7\r\n+x ~t1427450096 +y ~t1500000000 ~t1427450096 \r\n");
	server_is_asked(FETCH("k") "connection 1: cas k 0 1427450096 16 6\r\n+y ~t1427450096 \r\n");
	relays("STORED\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
	client_asks("lpop k\r\n");
	server_answers("VA 23 kk f0 c6 t7\r\n+x ~t1427450096 +y ~t0 \r\n");
	server_is_asked(FETCH("k") "connection 1: cas k 0 0 7 6\r\n+y ~t0 \r\n");
	relays("STORED\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
	server_hears_nothing();
}

/* With a small base_size. */
static const struct collection_options small = {
	.base_size = 24, .segment_size = 64, .log_size = 6, .table_size = 64, .merges = 1
};

/* Acknowledges the write of a segment; returns the reference to it. */
static const char *write_segment(const char *log)
{
	static char id[64];
	const struct call *call = &fake.calls[fake_oldest(&fake)].call;

	ck_assert(call->verb == CALL_ADD);
	assert_bytes(call->value, log);
	snprintf(id, sizeof(id), "@%.*s.%016" PRIx64 " ", (int)call->key.n - 2, call->key.p + 2,
		check_of(call->value));
	server_answers("STORED\r\n");
	return id;
}

/* While a log moves to a segment, pushes at both ends stay. The log is found as whole tokens only. */
TEST(compaction_between_pushes)
{
	char expected[200];

	fake_takes(&small);
	client_asks("scompact k\r\n");
	server_answers(FOUND("k", 33, "@list +a +b +c +d +e +f +g +h +i "));
	const char *id = write_segment("+a +b +c +d +e +f +g +h +i ");
	fake_calls(&fake);
	server_answers(FOUND("k", 39, "+y @list +a +b +c +d +e +f +g +h +i +z "));
	snprintf(expected, sizeof(expected), "connection 1: cas k 0 0 %d 5\r\n+y @list %s+z \r\n",
		(int)(6 + 6 + strlen(id)), id);
	serves(expected, "STORED\r\n");
	relays(FOUND("k", 3, "+z "), "OK\r\n");
}

/* The same log after a block is another log, if the base had no block when it was read. */
TEST(compaction_of_another_base)
{
	struct collection_rule rule = {
		.prefix = SLICE(""), .type = COLLECTION_LIST, .compact_waste = 0.5
	};

	fake_takes(&small);
	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	client_asks("scompact k\r\n");
	server_answers(FOUND("k", 27, "+a +b +c +d +e +f +g +h +i "));
	write_segment("+a +b +c +d +e +f +g +h +i ");
	fake_calls(&fake);
	server_answers(FOUND("k", 33, "@list +a +b +c +d +e +f +g +h +i "));
	server_answers("DELETED\r\n");
	server_answers(FOUND("k", 27, "+a +b +c +d +e +f +g +h +i "));
	write_segment("+a +b +c +d +e +f +g +h +i ");
	server_answers(FOUND("k", 29, "+y+a +b +c +d +e +f +g +h +i "));
	server_answers("DELETED\r\n");
	relays("EN\r\n", "SERVER_ERROR busy\r\n");
}

#define SORTED "VA 46 kk f0 c5 t-1\r\n@set.1 @t00000000001.1.3.0.9.0123456789abcdef \r\n"

/*
 * A set in sorted tables is not a list, whatever the rule. A push does not read it, and adds
 * members.
 */
TEST(a_set_in_tables)
{
	static const char *const asked[] = { "llen k\r\n", "lpop k\r\n", "lset k 0 a\r\n" };
	struct collection_rule rule = {
		.prefix = SLICE(""), .type = COLLECTION_LIST, .compact_waste = 0.5
	};

	for (int with_rule = 0; with_rule < 2; with_rule++) {
		for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
			talks(asked[i], FETCH("k"), SORTED,
				"CLIENT_ERROR value is a set, not a list\r\n");
		}
		fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	}
	talks("rpush k a\r\n", APPEND("k", 3, "+a "), "STORED\r\n", "STORED\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->corrupt_values, 0);
}

static void rewritten(const char *request, const char *stored, const char *reply)
{
	char cas[100];

	client_asks(request);
	fake_calls(&fake);
	server_answers(FOUND("k", 10, "a,b,a,c,a,"));
	snprintf(cas, sizeof(cas), LOOK_TTL("k") "connection 1: cas k 0 0 %zu 5\r\n%s\r\n",
		strlen(stored), stored);
	serves(cas, LOOKED_TTL("k") "STORED\r\n");
	client_is_told(reply);
}

/* A csv list is stored as one item, so every change except a push is a CAS of all of it. */
TEST(csv_lists)
{
	struct collection_rule rule = { .prefix = SLICE(""),
		.type = COLLECTION_LIST,
		.encoding = ENCODING_CSV,
		.delimiter = ',' };

	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	client_asks("rpush k a b\r\nlpush k c d\r\n");
	serves(APPEND("k", 4, "a,b,"), "STORED\r\n");
	serves(PREPEND("k", 4, "d,c,"), "STORED\r\n");
	client_is_told("STORED\r\nSTORED\r\n");
	exchanges("lrange k 1 -2\r\n", FOUND("k", 10, "a,b,a,c,a,"),
		"VALUE k 0 5\r\nb a c\r\nEND\r\n");
	exchanges("lpos k c\r\n", FOUND("k", 10, "a,b,a,c,a,"), "3\r\n");
	server_is_asked(FETCH("k") FETCH("k"));
	rewritten("lpop k 2\r\n", "a,c,a,", "VALUE k 0 3\r\na b\r\nEND\r\n");
	rewritten("rpop k 9\r\n", "", "VALUE k 0 9\r\na c a b a\r\nEND\r\n");
	rewritten("lrem k -2 a\r\n", "a,b,c,", "2\r\n");
	rewritten("lset k -1 xy\r\n", "a,b,a,c,xy,", "STORED\r\n");
	rewritten("ltrim k 1 2\r\n", "b,a,", "STORED\r\n");
	client_asks("lpop k\r\n");
	server_answers(FOUND("k", 4, "a,b,") LOOKED_TTL("k") "EXISTS\r\n");
	rewritten("", "b,a,c,a,", "VALUE k 0 1\r\na\r\nEND\r\n");
	client_asks("lset k 5 x\r\nlrem k 0 x\r\n");
	server_answers(FOUND("k", 10, "a,b,a,c,a,"));
	relays(FOUND("k", 10, "a,b,a,c,a,"), "CLIENT_ERROR index out of range\r\n0\r\n");
	client_asks("lpop k\r\nlpop k\r\n");
	server_answers("VA 2 kk f0 c5 t-1\r\nab\r\n");
	relays("EN\r\n", "CLIENT_ERROR value is not a collection\r\nEND\r\n");
}
