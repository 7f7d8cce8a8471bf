/*
 * Requests whose keys represent other requests: the calls to servers, their order, and the replies
 * to the client.
 */
#include "command/target.h"

#include "conversations.h"
#include "protocol/commands.h"

static const struct event_rule events[] = {
	{ .prefix = BYTES("E"),
		.bucket = GRANULARITY_HOUR,
		.separator = BYTES("::"),
		.ttl = 9,
		.plain_verbs = true },
};

static void keyed_setup(void)
{
	fake_setup();
	fake.rules.commands = (struct command_keys){ SLICE("q|"), ' ' };
	fake.rules.events = events;
	fake.rules.event_count = 1;
	fake.rules.plain_events = true;
}

TEST(one_key)
{
	talks("get q|scard|a\r\n", FETCH("a"), FOUND("a", 6, "+x +y "),
		"VALUE q|scard|a 0 1\r\n2\r\nEND\r\n");
	exchanges("gets q|smembers|a\r\n", FOUND("a", 6, "+x +y "),
		"VALUE q|smembers|a 0 3 5\r\nx y\r\nEND\r\n");
	exchanges("get q|smembers|a\r\n", "EN\r\n", "END\r\n");
	client_asks("get q|scard\r\n");
	client_is_told("CLIENT_ERROR usage: scard <key>\r\n");
	client_asks("set q|sadd|a 0 60 3\r\nx y\r\n");
	fake.shown = fake.count - 1;
	serves(APPEND("a", 6, "+x +y "), "NOT_STORED\r\n");
	serves(LOOK("a"), "EN\r\n");
	serves("add a 0 60 6\r\n+x +y \r\n", "STORED\r\n");
	client_is_told("STORED\r\n");
	talks("cas q|sset|a 0 0 1 4\r\nx\r\n", FETCH_TO_REPLACE("a"), "VA 3 ka f0 c5\r\n+z \r\n",
		"EXISTS\r\n");
}

/*
 * Servers reply in any order. Refused keys have no call, and the first error is returned at the
 * end.
 */
TEST(many_keys)
{
	client_asks("get q|scard|a b q|scard q|scard|c q|x\r\n");
	server_is_asked(FETCH("a") "mg b k f v\r\n" FETCH("c"));
	fake_result(&fake, 2,
		&(struct result){
			.status = RESULT_HIT, .value = SLICE("+x "), .ttl = -1, .cas = 1 });
	fake_result(&fake, 1,
		&(struct result){ .status = RESULT_HIT, .value = SLICE("B"), .flags = 7 });
	client_hears_nothing();
	fake_result(&fake, 0, &(struct result){ .status = RESULT_MISS });
	client_is_told("VALUE b 7 1\r\nB\r\nVALUE q|scard|c 0 1\r\n1\r\nCLIENT_ERROR usage: scard "
		       "<key>\r\n");
	client_asks("get q|scard q|x\r\n");
	client_is_told("CLIENT_ERROR usage: scard <key>\r\n");
	client_asks("get q|scard|a b\r\n");
	fake_fail(&fake, RESULT_TIMED_OUT);
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
}

/*
 * More keys than are requested at first; those that the parser of the key refuses are answered
 * immediately.
 */
TEST(very_many_keys)
{
	struct buf text = BUF_EMPTY, expected = BUF_EMPTY;
	char answer[64];

	BUF_ADD(&text, "get");
	for (int i = 0; i < 900; i++) {
		buf_printf(&text, i % 3 ? " q|scard|k%d" : " q|smembers||k%d", i);
		if (i % 3)
			buf_printf(&expected, "VALUE q|scard|k%d 0 1\r\n1\r\n", i);
	}
	BUF_ADD(&text, "\r\n\0");
	BUF_ADD(&expected, "CLIENT_ERROR empty word in the key\r\n\0");
	client_asks(buf_slice(&text).p);
	for (int i = 0; i < 900; i++) {
		snprintf(answer, sizeof(answer), "VA 3 kk%d f0 c5 t-1\r\n+x \r\n", i);
		if (i % 3)
			server_answers(answer);
	}
	client_is_told(buf_slice(&expected).p);
	ck_assert_uint_eq(fake.count, 600);
	buf_free(&text);
	buf_free(&expected);
}

/* The second command must not change what the first one reads block by block. */
TEST(order_within_a_request)
{
	client_asks("get q|sinter|a|b q|spop|a\r\n");
	serves(FETCH("a") FETCH("b"), FOUND("a", 6, "+x +y ") FOUND("b", 3, "+x "));
	serves(FETCH("a"), "EN\r\n");
	client_is_told("VALUE q|sinter|a|b 0 1\r\nx\r\nEND\r\n");
	/* The ninth set is read late: it must not be changed before. */
	client_asks("get q|smembers|1|2|3|4|5|6|7|8|9 q|spop|9\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), ORDER_SETS_FIRST);
	for (int i = 0; i < ORDER_SETS_FIRST; i++)
		server_answers("EN\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	server_answers(FOUND("9", 3, "+x "));
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	relays("EN\r\n", "VALUE q|smembers|1|2|3|4|5|6|7|8|9 0 14\r\nVALUE 9 0 1\r\nx\r\nEND\r\n");
	fake.shown = fake.count;
	talks("get q|sinter|a|b q|scard|a\r\n", FETCH("a") FETCH("b"), "EN\r\nEN\r\nEN\r\n",
		"VALUE q|sinter|a|b 0 0\r\n\r\nEND\r\n");
}

static void abandon(void)
{
	struct task *task = STAILQ_FIRST(&fake.tasks);

	fake.account.gone = true;
	task->resume(task);
}

/* Nothing more is requested, neither by the get nor by its inner tasks. */
TEST(abandoned)
{
	char line[1000] = "get q|smembers|0", *end = line + strlen(line);

	for (int i = 1; i < 40; i++)
		end += sprintf(end, "|%d", i);
	sprintf(end,
		" b q|scard|c q|scard|x q|scard|y q|scard|z q|scard|u q|scard|v q|scard|w\r\n");
	client_asks(line);
	ck_assert_uint_eq(fake.count, ORDER_SETS_FIRST + 7);
	abandon();
	for (size_t i = 0; i < ORDER_SETS_FIRST + 7; i++)
		fake_result(&fake, i, &(struct result){ .status = RESULT_MISS });
	ck_assert_uint_eq(fake.count, ORDER_SETS_FIRST + 7);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
	client_is_told("SERVER_ERROR client closed\r\n");
	fake.account.gone = false;
	client_asks("get q|smembers|0|1|2|3|4|5|6|7|8|9\r\n");
	abandon();
	while (fake_waiting(&fake))
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_MISS });
	ck_assert_uint_eq(fake.count, ORDER_SETS_FIRST + 7 + ORDER_SETS_FIRST);
	client_is_told("SERVER_ERROR client closed\r\n");
}

static bool denies_spop(const struct host *host, command_id command)
{
	(void)host;
	return command == COMMAND_SPOP;
}

TEST(denied)
{
	fake.host.denies = denies_spop;
	client_asks("get q|spop|a\r\n");
	client_is_told("CLIENT_ERROR spop is denied here\r\n");
	talks("get q|spop|a b\r\n", "mg b k f v\r\n", "VA 1 kb f0\r\nx\r\n",
		"VALUE b 0 1\r\nx\r\nCLIENT_ERROR spop is denied here\r\n");
}

/* A value that is too large must not delete an item with the key of a command. */
TEST(too_large)
{
	client_asks("set q|sadd|a 0 0 2000000\r\n");
	server_hears_nothing();
	client_is_told("SERVER_ERROR object too large for cache\r\n");
	client_asks("set E 0 0 2000000\r\n");
	server_hears_nothing();
	client_is_told("SERVER_ERROR object too large for cache\r\n");
	client_asks("ms q|sadd|a 2000000 q\r\n");
	server_hears_nothing();
	client_is_told("SERVER_ERROR object too large for cache\r\n");
	client_asks("ms RQ== 2000000 b\r\n");
	server_hears_nothing();
	client_is_told("SERVER_ERROR object too large for cache\r\n");
}

/* The same calls as for the classic command. */
TEST(meta_form)
{
	talks("mg q|scard|a v t k c q\r\n", FETCH("a"), "VA 6 ka f0 c5 t30\r\n+x +y \r\n",
		"VA 1 t30 kq|scard|a c5\r\n2\r\n");
	fake.shown = fake.count;
	client_asks("ms q|sadd|a 3 T60\r\nx y\r\n");
	serves(APPEND("a", 6, "+x +y "), "STORED\r\n");
	client_is_told("HD\r\n");
	client_asks("ma q|evincr|E D3 v N60\r\n");
	serves("incr E::2015022016 3\r\n", "NOT_FOUND\r\n");
	serves("add E::2015022016 0 60 1\r\n3\r\n", "STORED\r\n");
	client_is_told("VA 1\r\n3\r\n");
	talks("mg E v t\r\n", "mg E::2015022016 k f c t v\r\n",
		"VA 1 kE::2015022016 f0 c7 t60\r\n3\r\n", "VA 1 t60\r\n3\r\n");
	client_asks("mg q|scard|a v T5\r\nmg E N5\r\n");
	server_hears_nothing();
	client_is_told("CLIENT_ERROR use get for the command scard\r\nCLIENT_ERROR the flag N is "
		       "for plain items\r\n");
}

/* The collected result of a command for a key is limited, and nothing more is requested. */
TEST(collects_too_much)
{
	static const struct collection_options options = {
		.log_size = 4096, .table_size = 65536, .result_max = 40
	};
	char line[1000] = "get q|smembers|0", *end = line + strlen(line);

	fake_takes(&options);
	for (int i = 1; i < 40; i++)
		end += sprintf(end, "|%d", i);
	sprintf(end, "\r\n");
	client_asks(line);
	while (fake_waiting(&fake))
		fake_result(&fake, fake_oldest(&fake),
			&(struct result){ .status = RESULT_HIT,
				.value = SLICE("+a-long-member "),
				.cas = 5,
				.ttl = -1 });
	ck_assert_uint_lt(fake.count, 20);
	client_is_told("SERVER_ERROR result too large\r\n");
	fake.shown = fake.count;
	talks("mg q|smembers|a v\r\n", FETCH("a"), FOUND("a", 3, "+x "), "VA 1\r\nx\r\n");
}

TEST(meta_form_abandoned)
{
	client_asks("mg q|smembers|a|b|c|d|e|f|g|h|i|j v\r\n");
	ck_assert_uint_eq(fake.count, ORDER_SETS_FIRST);
	abandon();
	while (fake_waiting(&fake))
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_MISS });
	ck_assert_uint_eq(fake.count, ORDER_SETS_FIRST);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
	client_is_told("SERVER_ERROR client closed\r\n");
}

TEST(plain_events)
{
	client_asks("incr E 4\r\n");
	serves("incr E::2015022016 4\r\n", "NOT_FOUND\r\n");
	serves("add E::2015022016 0 9 1\r\n4\r\n", "STORED\r\n");
	client_is_told("4\r\n");
	talks("get E\r\n", "mg E::2015022016 k f v\r\n", "VA 1 kE::2015022016 f0\r\n4\r\n",
		"VALUE E 0 1\r\n4\r\nEND\r\n");
	talks("get E a\r\n", "mg E::2015022016 k f v\r\nmg a k f v\r\n", "EN\r\nEN\r\n",
		"VALUE E 0 1\r\n0\r\nEND\r\n");
	client_asks("set E 5 0 1\r\nx\r\n");
	serves("incr E::2015022016 1\r\n", "5\r\n");
	serves("set E::2015022016::5 5 9 1\r\nx\r\n", "STORED\r\n");
	client_is_told("STORED\r\n");
	client_asks("incr q|evincr|E 3\r\n");
	serves("incr E::2015022016 3\r\n", "8\r\n");
	client_is_told("8\r\n");
	client_asks("decr E 1\r\ndelete E\r\nadd E 0 0 1\r\nx\r\n");
	server_hears_nothing();
	client_is_told("CLIENT_ERROR use incr, set or get for events\r\nCLIENT_ERROR use incr, set "
		       "or get for "
		       "events\r\nCLIENT_ERROR use incr, set or get for events\r\n");
	talks("get E::2015022016::5\r\n", "mg E::2015022016::5 k f v\r\n", "EN\r\n", "END\r\n");
}

/* --- the order of requests --- */

static bool find_needs(const char *line, struct order_needs *needs)
{
	struct request_limits limits = { 1 << 16, 1 << 16, 1000 };
	struct request_progress progress = { 0 };
	struct request request;

	ck_assert_int_eq(request_parse(slice_of(line, strlen(line)), &limits, &progress, &request),
		REQUEST_READY);
	target_resolve(&fake.rules, &request, needs);
	return request.needs != NULL;
}

/* `effect`: r reads in stages, h hides writes, l writes later. */
TEST(needs)
{
	static const struct {
		const char *line;
		unsigned classes;
		const char *effect;
	} cases[] = {
		{ "get q|scard|a\r\n", 1u << ORDER_READ, "" },
		{ "get q|lpop|a\r\n", 1u << ORDER_WRITE, "" },
		{ "get q|sinter|a|b\r\n", 1u << ORDER_READ_BLOCKS, "r" },
		{ "get q|smembers|1|2|3|4|5|6|7|8\r\n", 1u << ORDER_READ_SETS, "" },
		{ "get q|smembers|1|2|3|4|5|6|7|8|9\r\n", 1u << ORDER_READ_SETS, "r" },
		{ "get q|x|a\r\n", 1u << ORDER_READ, "" },
		{ "get a q|lpop|b\r\n", 1u << ORDER_READ_KEYS | 1u << ORDER_WRITE, "" },
		{ "get q|sinter|a|b q|scard|b\r\n", 1u << ORDER_READ_BLOCKS | 1u << ORDER_READ,
			"r" },
		{ "get q|sinter|a|b q|lpop|b\r\n", 1u << ORDER_READ_BLOCKS | 1u << ORDER_WRITE,
			"rl" },
		{ "get q|evcount|x q|evcount|y\r\n", 1u << ORDER_EVENT_READ, "r" },
		{ "get q|evtop|x|1\r\n", 1u << ORDER_EVENT_TOP, "r" },
		{ "get q|lpop|1 2 3 4 5 6 7 8\r\n", 1u << ORDER_READ_KEYS | 1u << ORDER_WRITE, "" },
		{ "get q|lpop|1 2 3 4 5 6 7 8 9\r\n", 1u << ORDER_READ_KEYS | 1u << ORDER_WRITE,
			"rl" },
		{ "set q|sadd|a 0 0 1\r\nx\r\n", 1u << ORDER_WRITE, "" },
		{ "set q|evadd|a 0 0 1\r\nx\r\n", 1u << ORDER_EVENT_STORE, "h" },
		{ "set q|flush_all 0 0 0\r\n\r\n", 1u << ORDER_FLUSH, "" },
		{ "set q|set|E 0 0 1\r\nx\r\n", 1u << ORDER_EVENT_STORE, "h" },
		{ "set E 0 0 1\r\nx\r\n", 1u << ORDER_EVENT_STORE, "h" },
		{ "incr E 1\r\n", 1u << ORDER_EVENT_COUNT, "" },
		{ "incr q|evincr|x 1\r\n", 1u << ORDER_EVENT_COUNT, "" },
		{ "mg q|scard|a\r\n", 1u << ORDER_READ, "" },
		{ "mg q|sinter|a|b v\r\n", 1u << ORDER_READ_BLOCKS, "r" },
		{ "mg cXxzaW50ZXJ8YXxi b v\r\n", 1u << ORDER_READ_BLOCKS, "r" },
		{ "mg q|spop|a q\r\n", 1u << ORDER_WRITE, "" },
		{ "ms q|evadd|a 1\r\nx\r\n", 1u << ORDER_EVENT_STORE, "h" },
		{ "ma q|evincr|a\r\n", 1u << ORDER_EVENT_COUNT, "" },
		{ "ma E\r\n", 1u << ORDER_EVENT_COUNT, "" },
		{ "ms E 1\r\nx\r\n", 1u << ORDER_EVENT_STORE, "h" },
		{ "set q|ms|E 0 0 1\r\nx\r\n", 1u << ORDER_EVENT_STORE, "h" },
		{ "get q|ma|E\r\n", 1u << ORDER_EVENT_COUNT, "" },
	};
	static const char *const none[] = { "get a b\r\n", "get E\r\n", "set a 0 0 1\r\nx\r\n",
		"delete q|x\r\n", "delete E\r\n", "stats q|x\r\n", "incr E::2015022016 1\r\n",
		"mg E\r\n", "md E\r\n", "mg a\r\n", "ms a 1\r\nx\r\n", "me E\r\n", "me q|x\r\n" };
	struct order_needs found;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *line = cases[i].line, *effect = cases[i].effect;
		ck_assert_msg(find_needs(line, &found), "%s", line);
		ck_assert_msg(found.classes == cases[i].classes, "%s", line);
		ck_assert_msg(found.effect.stages_reads == !!strchr(effect, 'r'), "%s", line);
		ck_assert_msg(found.effect.hides_writes == !!strchr(effect, 'h'), "%s", line);
		ck_assert_msg(found.effect.writes_later == !!strchr(effect, 'l'), "%s", line);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!find_needs(none[i], &found), "%s", none[i]);
}

/*
 * A request waits if any command in it would, and all later requests wait for commands that may
 * write later.
 */
TEST(order_of_requests)
{
	static const struct {
		const char *first, *second;
		bool waits;
	} cases[] = {
		{ "get q|lpop|a\r\n", "get q|lrange|a|0|9\r\n", false },
		{ "get q|sinter|a|b\r\n", "get q|scard|a q|scard|b\r\n", false },
		{ "get q|sinter|a|b\r\n", "get q|scard|a q|spop|b\r\n", true },
		{ "get q|sinter|a|b\r\n", "set q|sadd|a 0 0 1\r\nx\r\n", true },
		{ "get q|sinter|a|b q|lpop|c\r\n", "get q|scard|c\r\n", true },
		{ "set q|evadd|x 0 0 1\r\ny\r\n", "get q|evlast|x|1\r\n", false },
		{ "set q|evadd|x 0 0 1\r\ny\r\n", "get q|evlast|x|1 q|scard|z\r\n", true },
		{ "get q|scard|a\r\n", "set q|flush_all 0 0 0\r\n\r\n", true },
		{ "mg q|sinter|a|b\r\n", "mg q|scard|a\r\n", false },
		{ "mg q|sinter|a|b\r\n", "ms q|sadd|a 1\r\nx\r\n", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct order_needs first, second;
		struct request request = { .needs = &second };
		struct order order = { 0 };
		ck_assert(
			find_needs(cases[i].first, &first) && find_needs(cases[i].second, &second));
		order_begin(&order, first.effect);
		ck_assert_msg(order_must_wait(&order, &request) == cases[i].waits, "case %zu", i);
		order_end(&order, first.effect);
		ck_assert(!order_must_wait(&order, &request));
	}
}

FIXTURE(keyed_setup, fake_teardown)
