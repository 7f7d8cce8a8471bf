/* The commands that hold elements of lists: the calls that they make, and the replies. */
#include "conversations.h"
#include "waiting/waiting.h"

#define REWRITE(key, bytes, log) "connection 1: cas " key " 0 0 " #bytes " 5\r\n" log "\r\n"
#define OVER "~h1424450096.0123456789ab.1.l.x "  /* the fake's clock */
#define STILL "~h1424450097.0123456789ab.1.l.x " /* a second later */
#define COUNT "~d1.5c80c09683041123 "            /* the hash of "x" */
#define TICKET "53prtya0vie7"
#define HELD "~h1424450157." TICKET ".1.l.a "

static void rule_is(const struct collection_rule *rule)
{
	static struct rules rules;

	rules = (struct rules){ .collections = rule, .collection_count = 1 };
	fake.host.env.rules = &rules;
}

/* One read and one CAS, on the connection of the read. */
TEST(hold)
{
	client_asks("lhold k 60\r\n");
	serves(FETCH("k"), FOUND("k", 6, "+a +b "));
	serves(REWRITE("k", 41, "@list +b " HELD), "STORED\r\n");
	client_is_told("VALUE k 0 16\r\n" TICKET " 1 a\r\nEND\r\n");
}

TEST(nothing_to_hold)
{
	talks("lhold k 60\r\n", FETCH("k"), "EN\r\n", "END\r\n");
	talks("lhold k 60 right\r\n", FETCH("k"), FOUND("k", 6, "@list "), "END\r\n");
	talks("lhold k 60 right\r\n", FETCH("k"), FOUND("k", 38, "@list " STILL), "END\r\n");
}

TEST(form)
{
	client_asks(
		"lhold k\r\nlhold k 0\r\nlhold k 2592001\r\nlhold k 5 up\r\nlhold k 5 left x\r\n"
		"lack k\r\nlfail k a b\r\n");
	client_is_told("CLIENT_ERROR usage: lhold <key> <seconds> [left|right]\r\n"
		       "CLIENT_ERROR invalid seconds\r\nCLIENT_ERROR invalid seconds\r\n"
		       "CLIENT_ERROR usage: lhold <key> <seconds> [left|right]\r\n"
		       "CLIENT_ERROR usage: lhold <key> <seconds> [left|right]\r\n"
		       "CLIENT_ERROR usage: lack <key> <ticket>\r\n"
		       "CLIENT_ERROR usage: lfail <key> <ticket>\r\n");
	server_hears_nothing();
}

TEST(not_in_an_adopted_encoding)
{
	static const struct collection_rule csv = {
		.type = COLLECTION_LIST, .encoding = ENCODING_CSV, .delimiter = ','
	};

	rule_is(&csv);
	client_asks("lhold k 5\r\nlack k x\r\n");
	client_is_told("CLIENT_ERROR the encoding of this key has no held elements\r\n"
		       "CLIENT_ERROR the encoding of this key has no held elements\r\n");
}

TEST(acknowledge)
{
	client_asks("lack k 0123456789ab\r\n");
	server_answers(FOUND("k", 44, "@list +a " STILL "+b "));
	serves(FETCH("k") REWRITE("k", 12, "@list +a +b "), "STORED\r\n");
	client_is_told("DELETED\r\n");
	talks("lack k 0123456789ab\r\n", FETCH("k"), FOUND("k", 12, "@list +a +b "),
		"NOT_FOUND\r\n");
	talks("lack k 0123456789ac\r\n", FETCH("k"), FOUND("k", 38, "@list " STILL),
		"NOT_FOUND\r\n");
	talks("lack k 0123456789ab\r\n", FETCH("k"), "EN\r\n", "NOT_FOUND\r\n");
}

/* Its time is over: it is given back, and the ticket is refused. */
TEST(too_late)
{
	client_asks("lack k 0123456789ab\r\n");
	server_answers(FOUND("k", 41, "@list +a " OVER));
	serves(FETCH("k") REWRITE("k", 33, "+x @list +a " COUNT), "STORED\r\n");
	client_is_told("NOT_FOUND\r\n");
}

TEST(fail)
{
	client_asks("lfail k 0123456789ab\r\n");
	server_answers(FOUND("k", 41, "@list +a " STILL));
	serves(FETCH("k") REWRITE("k", 33, "@list +a +x " COUNT), "STORED\r\n");
	client_is_told("STORED\r\n");
	talks("lfail k 0123456789ab\r\n", FETCH("k"), FOUND("k", 9, "@list +a "), "NOT_FOUND\r\n");
}

/* Queued requests are one rewrite, in their order. */
TEST(neighbours_merge)
{
	client_asks("llen k\r\nlack k 0123456789ab\r\nlpop k\r\nlfail k 0123456789ab\r\n"
		    "lack k 0123456789ab\r\n");
	server_answers(FOUND("k", 44, "@list +a +b " STILL));
	fake_calls(&fake);
	server_answers(FOUND("k", 44, "@list +a +b " STILL));
	serves(REWRITE("k", 9, "@list +b "), "STORED\r\n");
	client_is_told("2\r\nDELETED\r\nVALUE k 0 1\r\na\r\nEND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

/* A read gives back first, so that no later acknowledgment finds what it has shown. */
TEST(read_of_one_that_is_due)
{
	client_asks("lrange k 0 -1\r\n");
	serves(FETCH("k"), FOUND("k", 41, "@list +a " OVER));
	serves(FETCH("k"), FOUND("k", 41, "@list +a " OVER));
	serves(REWRITE("k", 33, "+x @list +a " COUNT), "STORED\r\n");
	serves(FETCH("k"), FOUND("k", 33, "+x @list +a " COUNT));
	client_is_told("VALUE k 0 3\r\nx a\r\nEND\r\n");
	talks("lrange k 0 -1\r\n", FETCH("k"), FOUND("k", 41, "@list +a " STILL),
		"VALUE k 0 1\r\na\r\nEND\r\n");
}

/* If it cannot be given back, it stays held. */
TEST(read_without_cas)
{
	client_asks("llen k\r\n");
	server_answers("VA 41 kk f0 c0 t-1\r\n@list +a " OVER "\r\n");
	server_answers("VA 41 kk f0 c0 t-1\r\n@list +a " OVER "\r\n");
	server_answers("VA 41 kk f0 c0 t-1\r\n@list +a " OVER "\r\n");
	client_is_told("1\r\n");
}

/* Another proxy was first. */
TEST(read_loses)
{
	client_asks("llen k\r\n");
	server_answers(FOUND("k", 41, "@list +a " OVER));
	server_answers(FOUND("k", 41, "@list +a " OVER));
	server_answers("EXISTS\r\n");
	fake_calls(&fake);
	relays("VA 12 kk f0 c6 t-1\r\n+x @list +a \r\n", "2\r\n");
}

/* Sets see nothing of it, and what takes all members leaves it. */
TEST(as_a_set)
{
	talks("smembers k\r\n", FETCH("k"), FOUND("k", 41, "@list +a " STILL),
		"VALUE k 0 1\r\na\r\nEND\r\n");
	client_asks("stake k\r\n");
	server_answers(FOUND("k", 41, "@list +a " STILL));
	serves(FETCH("k") REWRITE("k", 38, "@list " STILL), "STORED\r\n");
	client_is_told("VALUE k 0 1\r\na\r\nEND\r\n");
}

/* --- too many deliveries --- */

static const struct collection_rule buries = {
	.prefix = BYTES("k"), .type = COLLECTION_LIST, .dead = BYTES("dead"), .dead_after = 1
};

#define LATE "~h1424450157." TICKET ".2.l.x "

/* The dead list is read, the element is pushed to it, and only then removed; then the next is held. */
TEST(dead)
{
	rule_is(&buries);
	client_asks("lhold k 5\r\n");
	server_answers(FOUND("k", 30, "@list +x " COUNT));
	serves(FETCH("k") REWRITE("k", 38, "@list " LATE), "STORED\r\n");
	serves(FETCH("dead"), "EN\r\n");
	serves(APPEND("dead", 3, "+x "), "STORED\r\n");
	while (fake_waiting(&fake) && fake.calls[fake_oldest(&fake)].call.want == WANT_SIZE)
		server_answers(LOOKED("dead"));
	serves(FETCH("k"), FOUND("k", 38, "@list " LATE));
	serves(REWRITE("k", 6, "@list "), "STORED\r\n");
	serves(FETCH("k"), FOUND("k", 6, "@list "));
	client_is_told("END\r\n");
}

/* It stays held, and is moved when it is due again. */
TEST(dead_cannot_be_moved)
{
	rule_is(&buries);
	client_asks("lhold k 5\r\n");
	server_answers(FOUND("k", 30, "@list +x " COUNT));
	serves(FETCH("k") REWRITE("k", 38, "@list " LATE), "STORED\r\n");
	serves(FETCH("dead"), FOUND("dead", 5, "hello"));
	client_is_told("CLIENT_ERROR value is not a collection\r\n");
	server_hears_nothing();
}

/* --- waiting --- */

static void note_due(struct env *env, struct slice key, int64_t seconds)
{
	(void)env;
	ck_assert_int_eq(seconds, 1);
	waiting_due(fake.host.waiting, key, (uint64_t)seconds * 1000);
}

/* Returns how many times the value was read. */
static int pass_time(int ms)
{
	int reads = 0;

	for (; ms > 0; ms--) {
		while (fake_waiting(&fake)) {
			const struct call *call = &fake.calls[fake_oldest(&fake)].call;
			bool whole = (call->want & WANT_VALUE) != 0;
			reads += whole;
			server_answers(whole ? FOUND("k", 38, "@list " STILL) : "HD kk f0 c5\r\n");
		}
		fake_pass(&fake, 1);
	}
	return reads;
}

TEST(wait)
{
	fake_has_time(&fake);
	fake.slice = fake.host.env.grain = SIZE_MAX;
	client_asks("blhold 0 k 60\r\n");
	serves(FETCH("k"), "EN\r\n");
	client_hears_nothing();
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 1);
	waiting_pushed(fake.host.waiting, SLICE("k"));
	serves(FETCH("k"), FOUND("k", 6, "+a +b "));
	serves(REWRITE("k", 41, "@list +b ~h1424450157.788nfh5fcriw.1.l.a "), "STORED\r\n");
	client_is_told("VALUE k 0 16\r\n788nfh5fcriw 1 a\r\nEND\r\n");
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 0);
	pass_time(1000);
}

/*
 * The CAS id does not change when the time of a held element is over, so the client tries again
 * then, and not before.
 */
TEST(wait_for_one_that_is_held)
{
	int attempts;

	fake_has_time(&fake);
	fake.slice = fake.host.env.grain = SIZE_MAX;
	fake.host.env.due = note_due;
	client_asks("blpop 0 k\r\n");
	attempts = pass_time(2600);
	client_hears_nothing();
	/* At the start, when it has joined the queue, and after each second. */
	ck_assert_int_eq(attempts, 4);
	waiting_end(fake.host.waiting);
	client_is_told("END\r\n");
	pass_time(1000);
}
