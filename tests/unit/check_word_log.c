/*
 * The words of long requests become a log in slices: every command that takes any number of words, as a line, as a key in each
 * protocol, and the plain verbs. Replies and calls are those of work without pauses.
 */
#include "command/word_log.h"

#include "command/args.h"
#include "command/start.h"
#include "protocol/binary.h"
#include "protocol/commands.h"
#include "serving.h"

enum {
	MANY = 20000, /* Of 9 bytes with the delimiter. */
	STEPS = 640,  /* Of a slice. */
	BYTES = 16384 /* At most this much is converted in a slice. */
};

static const struct collection_options options = { .base_size = 16384,
	.segment_size = 65536,
	.log_size = 4096,
	.table_size = 32768,
	.merges = 1,
	.lease_time = 10 };

static const struct collection_rule rules[] = {
	{ .prefix = BYTES("P"), .plain_verbs = true, .delimiter = ',' },
	{ .prefix = BYTES("L"), .plain_verbs = true, .delimiter = '\n', .type = COLLECTION_LIST },
	{ .prefix = BYTES("C"), .encoding = ENCODING_CSV, .delimiter = ',' },
};

FIXTURE(NULL, NULL)

/* --- portions --- */

/* However long the portions are, the log or the error is the same, and none is too long. */
static void check_portions(
	struct word_log w, const char *now, const char *next, const char *expected)
{
	size_t n;
	char log[8000];

	w.now.rest = slice_of(now, strlen(now));
	w.next.rest = slice_of(next, strlen(next));
	n = w.now.rest.n + w.next.rest.n;
	for (size_t bytes = 1; bytes < n + 2; bytes += 1 + bytes / 8) {
		struct word_log some = w;
		bool done = false;

		some.from = some.at = log + (w.front ? sizeof(log) : 0);
		while (!done) {
			size_t before = some.now.rest.n + some.next.rest.n;
			done = word_log_convert(&some, bytes);
			ck_assert_uint_le(before - (some.now.rest.n + some.next.rest.n),
				bytes + ELEMENT_WORD_MAX + 2);
		}
		if (some.error) {
			ck_assert_str_eq(some.error, expected);
			continue;
		}
		assert_bytes(w.front ? slice_of(some.at, (size_t)(some.from - some.at))
				     : slice_of(log, (size_t)(some.at - log)),
			expected);
		ck_assert_uint_le(strlen(expected), word_log_max(&w));
	}
}

/* Elements of the data become words. */
TEST(portions_of_elements)
{
	struct word_log line = { .now = { .delimiter = ' ', .spaced = true },
		.next = { .delimiter = '\n', .raw = true },
		.rule = &rules_default_collection,
		.too_long = args_long_member,
		.sign = '+' },
			back = line, csv = line;
	char data[3100], expected[6100], *at;

	back.front = true;
	csv.rule = &rules[2];
	check_portions(line, "", "a\nbc\n\nd e\n",
		"+a +bc +\x01! +d\x01"
		"Be ");
	check_portions(back, "a b", "c\n\n\td", "+\x01+d +\x01! +c +b +a ");
	check_portions(line, "", "\n", "+\x01! ");
	check_portions(line, "", "\n\n\n\n\n\n\n\n\n",
		"+\x01! +\x01! +\x01! +\x01! +\x01! +\x01! +\x01! +\x01! +\x01! ");
	check_portions(line, "a ", "\x01\n\x7f\xff\r\n", "+a +\x01# +\x7f\xff\x01/ ");
	line.next.delimiter = '|';
	check_portions(line, "", "a\n|||b", "+a\x01, +\x01! +\x01! +b ");
	line.next.delimiter = '\xff';
	check_portions(line, "", "a\n\xff\xff|b", "+a\x01, +\x01! +|b ");
	line.next.delimiter = '\n';
	check_portions(csv, "", "a\nb,c\nd", "CLIENT_ERROR member contains the delimiter");
	/* The longest member has twice as many bytes as a word. */
	memset(data, ' ', 1000);
	strcpy(data + 1000, "\nx");
	at = expected;
	*at++ = '+';
	for (int i = 0; i < 1000; i++)
		at = stpcpy(at,
			"\x01"
			"B");
	strcpy(at, " +x ");
	check_portions(line, "", data, expected);
	check_portions(line, "", data, expected);
	memset(data, ' ', 1001);
	strcpy(data + 1001, "\nx");
	check_portions(line, "", data, "CLIENT_ERROR member too long");
}

TEST(portions)
{
	struct word_log line = { .now = { .delimiter = ' ', .spaced = true },
		.next = { .delimiter = ',', .bad = "bad" },
		.rule = &rules_default_collection,
		.too_long = "too long",
		.sign = '+' },
			back = line, checked = line;
	char long_word[2100], most[2100], expected[2100];

	back.front = true;
	checked.rule = &rules[0];
	check_portions(line, "", "", "");
	check_portions(line, "       ", "", "");
	check_portions(line, "  a   bc d     efg ", "", "+a +bc +d +efg ");
	check_portions(back, "  a   bc d     efg ", "", "+efg +d +bc +a ");
	check_portions(line, "a", "b", "+a +b ");
	check_portions(line, " a b ", "c,d,", "+a +b +c +d ");
	check_portions(back, "a b c", "d,e,f", "+f +e +d +c +b +a ");
	check_portions(line, "", "a,bc,d,efg", "+a +bc +d +efg ");
	check_portions(line, "", "a,bc,d,", "+a +bc +d ");
	check_portions(line, "", "a,bc,,d", "bad");
	check_portions(line, "", ",a", "bad");
	check_portions(line, "", "a,b c", "bad");
	check_portions(line, "", "a,b\r", "bad");
	check_portions(checked, "a b c,d e", "", "CLIENT_ERROR member contains the delimiter");
	snprintf(long_word, sizeof(long_word), "a,b,%01001d", 0);
	check_portions(line, "", long_word, "too long");
	snprintf(long_word, sizeof(long_word), "a,b,%01200d\r,c", 0);
	check_portions(line, "", long_word, "too long");
	snprintf(long_word, sizeof(long_word), "%*s", 590, "a b");
	check_portions(line, long_word, "", "+a +b ");
	snprintf(most, sizeof(most), "%01000d,%01000d,x", 0, 0);
	snprintf(expected, sizeof(expected), "+%01000d +%01000d +x ", 0, 0);
	check_portions(line, "", most, expected);
}

/* --- requests --- */

enum protocol { TEXT, META, BINARY };

static void ask_binary(const char *verb, const char *key, struct slice data)
{
	static const struct request_limits limits = { 1 << 20, 1 << 20, 2000 };
	struct request_progress progress = { 0 };
	size_t key_size = strlen(key), size = BINARY_HEADER + 8 + key_size + data.n;
	uint32_t body = (uint32_t)(size - BINARY_HEADER);
	char *packet = calloc(1, size), *at = packet + BINARY_HEADER + 8;
	struct request request;
	struct request_reply reply;
	struct binary_asked asked;

	ck_assert_str_eq(verb, "set");
	packet[0] = (char)BINARY_REQUEST;
	packet[1] = BINARY_SET;
	packet[3] = (char)key_size;
	packet[4] = 8;
	for (int i = 0; i < 4; i++)
		packet[8 + i] = (char)(body >> 8 * (3 - i));
	memcpy(at, key, key_size);
	memcpy(at + key_size, data.p, data.n);
	ck_assert_int_eq(
		binary_parse(slice_of(packet, size), &limits, &progress, &request, &reply, &asked),
		REQUEST_READY);
	ck_assert(task_start(&fake.host, &request, &fake));
	memset(packet, '#', size);
	free(packet);
}

static void ask(enum protocol protocol, const char *verb, const char *key, struct slice data)
{
	struct buf text = BUF_EMPTY;

	if (protocol == BINARY) {
		ask_binary(verb, key, data);
		return;
	}
	if (protocol == META)
		buf_printf(&text, "ms %s %zu", key, data.n);
	else
		buf_printf(&text, "%s %s 0 0 %zu%s", verb, key, data.n,
			strcmp(verb, "cas") ? "" : " 1");
	BUF_ADD(&text, "\r\n");
	buf_add_slice(&text, data);
	BUF_ADD(&text, "\r\n\0");
	client_asks(buf_slice(&text).p);
	buf_free(&text);
}

/* Returns the words, each with the delimiter after it. */
static struct buf words_of(char delimiter)
{
	struct buf text = BUF_EMPTY;

	for (int i = 0; i < MANY; i++)
		buf_printf(&text, "m%07d%c", i, delimiter);
	return text;
}

/* Returns elements that need escapes, or are empty, with a newline after each. */
static struct buf odd_elements(void)
{
	struct buf text = BUF_EMPTY;

	for (int i = 0; i < MANY; i++)
		buf_printf(&text, i % 3 ? " \t %03d\r\n" : "\n\n\n\n\n\n\n\n\n", i % 500);
	return text;
}

/* Adds all replies. While the words are converted, no operation is submitted. */
static void add_replies(struct buf *replies, size_t *pauses)
{
	do {
		*pauses += !STAILQ_EMPTY(&fake.tasks) && lanes_idle(fake.host.lanes);
		server_answer_all(&server);
		buf_printf(replies, "%s", fake_told(&fake));
	} while (fake_pass(&fake, 0));
	ck_assert(STAILQ_EMPTY(&fake.tasks));
}

static void begin(bool slices, char delimiter)
{
	serving_setup(&options);
	fake.rules = (struct rules){ .collections = rules,
		.collection_count = sizeof(rules) / sizeof(rules[0]),
		.commands = { SLICE("q|"), delimiter } };
	if (!slices)
		return;
	fake_has_time(&fake);
	fake.slice = STEPS;
}

/*
 * Returns the replies to the request, and to reads of what it has stored, if it made calls. Converts the words in slices, or all
 * at once. Without a verb the request is a line.
 */
static struct buf carry_out(enum protocol protocol, const char *verb, const char *key,
	struct slice data, char delimiter, bool slices)
{
	const char *stored = strstr(key, "Pk") ? "Pk" : strstr(key, "Lk") ? "Lk" : "k";
	struct buf replies = BUF_EMPTY, read = BUF_EMPTY;
	size_t pauses = 0;

	begin(slices, delimiter);
	if (*verb)
		ask(protocol, verb, key, data);
	else
		client_asks(data.p);
	if (slices)
		ck_assert(STAILQ_FIRST(&fake.tasks)->order.writes_later);
	add_replies(&replies, &pauses);
	ck_assert_uint_ge(pauses, slices ? data.n / BYTES : 0);
	ck_assert_uint_le(pauses, slices ? data.n : 0);
	if (fake.count) {
		buf_printf(&read, "smembers %s\r\nlrange %s 0 -1\r\n", stored, stored);
		BUF_ADD(&read, "\0");
		client_asks(buf_slice(&read).p);
		add_replies(&replies, &pauses);
		buf_free(&read);
	}
	serving_teardown();
	BUF_ADD(&replies, "\0");
	return replies;
}

/* Checks a request in slices. The first reply is this text. */
static void check(enum protocol protocol, const char *verb, const char *key, struct slice data,
	char delimiter, const char *reply)
{
	struct buf whole = carry_out(protocol, verb, key, data, delimiter, false),
		   slices = carry_out(protocol, verb, key, data, delimiter, true);
	const char *text = buf_slice(&whole).p;

	ck_assert_str_eq(buf_slice(&slices).p, text);
	ck_assert_msg(strncmp(text, reply, strlen(reply)) == 0, "%s %s: %.200s", verb, key, text);
	buf_free(&whole);
	buf_free(&slices);
}

/* Returns the number of words before those that may be in the data; 0 if these are limited. */
static int words_before(const struct command *command)
{
	switch (command->grammar) {
	case GRAMMAR_SET_MEMBERS:
	case GRAMMAR_SET_ANY_MEMBERS:
	case GRAMMAR_LIST_ELEMENTS:
		return 1;
	case GRAMMAR_SET_LOAD:
	case GRAMMAR_LIST_LOAD:
		return 2;
	default:
		return 0;
	}
}

/* Every command that takes any number of words, from the table of commands. */
TEST(all_commands)
{
	struct buf spaces = words_of(' '), commas = words_of(','), lines = words_of('\n'),
		   odd = odd_elements(), line = BUF_EMPTY;
	unsigned commands = 0;

	for (command_id id = 0; id < COMMAND_COUNT; id++) {
		const struct command *command = command_get(id);
		int before = words_before(command);
		bool stores = before == 1 && !strchr("xm", command->name.p[command->name.n - 1]);
		const char *text = stores ? "STORED\r\n" : "NOT_FOUND\r\n",
			   *word = stores ? "STORED\r\n" : "NOT_STORED\r\n";
		char key[50];

		if (before == 0)
			continue;
		commands++;
		buf_consume(&line, buf_size(&line));
		buf_printf(&line, "%s k%s %.*s\r\n", command->name.p, before > 1 ? " token" : "",
			(int)buf_size(&spaces), buf_slice(&spaces).p);
		BUF_ADD(&line, "\0");
		line.end--;
		snprintf(key, sizeof(key), "q|%s|k%s", command->name.p, before > 1 ? "|token" : "");
		check(TEXT, "", "", buf_slice(&line), ' ', text);
		check(TEXT, "set", key, buf_slice(&spaces), ' ', word);
		check(TEXT, "set", key, buf_slice(&commas), ',', word);
		check(TEXT, "set", key, buf_slice(&lines), '\n', word);
		check(TEXT, "set", key, buf_slice(&odd), '\n', word);
		check(BINARY, "set", key, buf_slice(&odd), '\n', "");
		check(META, "ms", key, buf_slice(&commas), ',', stores ? "HD\r\n" : "NS\r\n");
		check(BINARY, "set", key, buf_slice(&commas), ',', "");
		if (id == COMMAND_SSET)
			check(TEXT, "cas", key, buf_slice(&commas), ',', "NOT_FOUND\r\n");
	}
	ck_assert_uint_ge(commands, 12);
	buf_free(&spaces);
	buf_free(&commas);
	buf_free(&lines);
	buf_free(&odd);
	buf_free(&line);
}

TEST(plain_verbs)
{
	static const struct {
		const char *verb, *reply;
	} verbs[] = {
		{ "set", "STORED\r\n" },
		{ "add", "STORED\r\n" },
		{ "append", "NOT_STORED\r\n" },
		{ "prepend", "NOT_STORED\r\n" },
		{ "replace", "NOT_STORED\r\n" },
		{ "cas", "NOT_FOUND\r\n" },
	};
	struct buf commas = words_of(','), lines = words_of('\n');

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		check(TEXT, verbs[i].verb, "Pk", buf_slice(&commas), ' ', verbs[i].reply);
		check(TEXT, verbs[i].verb, "Lk", buf_slice(&lines), ' ', verbs[i].reply);
	}
	check(META, "ms", "Pk", buf_slice(&commas), ' ', "HD\r\n");
	check(BINARY, "set", "Pk", buf_slice(&commas), ' ', "");
	check(TEXT, "set", "q|set|Pk", buf_slice(&commas), ' ', "STORED\r\n");
	buf_free(&commas);
	buf_free(&lines);
}

/* A word at the end is invalid: nothing is written. */
static void check_refused(const char *key, char delimiter, const char *last, const char *reply)
{
	struct buf text = words_of(delimiter);
	struct buf steps;

	buf_printf(&text, "%s", last);
	steps = carry_out(TEXT, "set", key, buf_slice(&text), delimiter, true);
	ck_assert_str_eq(buf_slice(&steps).p, reply);
	buf_free(&text);
	buf_free(&steps);
}

TEST(refused)
{
	static char long_word[ELEMENT_MAX + 2], long_member[MEMBER_MAX + 2];

	snprintf(long_word, sizeof(long_word), "%065537d", 0);
	snprintf(long_member, sizeof(long_member), "%01001d", 0);
	check_refused("q|sadd|k", ' ', "a\tb", "CLIENT_ERROR bad word in the data\r\n");
	check_refused("q|sadd|k", ' ', "a\nb", "CLIENT_ERROR bad word in the data\r\n");
	check_refused("q|sset|k", ',', long_member, "CLIENT_ERROR member too long\r\n");
	long_member[0] = ' ';
	check_refused("q|sset|k", '\n', long_member, "CLIENT_ERROR member too long\r\n");
	check_refused("q|rpush|k", '\n', long_word, "CLIENT_ERROR element too long\r\n");
	long_member[0] = '0';
	check_refused("q|lpush|k", ' ', long_word, "CLIENT_ERROR element too long\r\n");
	check_refused("q|sadd|Ck", ' ', "a,b", "CLIENT_ERROR member contains the delimiter\r\n");
	check_refused("Pk", ',', long_member, "CLIENT_ERROR member too long\r\n");
	check_refused("Pk", ',', "a b", "CLIENT_ERROR bad member\r\n");
	check_refused("Lk", '\n', "a\n\nb", "CLIENT_ERROR bad member\r\n");
}

/* Refused at once, as no command with a limited number of words needs as many bytes. */
TEST(limited_words)
{
	struct buf text = words_of(' '), line = BUF_EMPTY;

	begin(true, ' ');
	ask(TEXT, "set", "q|smove|k", buf_slice(&text));
	client_is_told("CLIENT_ERROR usage: smove <source> <target> <member> [noreply]\r\n");
	server_hears_nothing();
	serving_teardown();
	buf_free(&text);
	buf_free(&line);
}

/* Spaces are not words. */
TEST(only_spaces)
{
	struct buf text = BUF_EMPTY;

	memset(buf_reserve(&text, MANY * 9), ' ', MANY * 9);
	buf_commit(&text, MANY * 9);
	begin(true, ' ');
	ask(TEXT, "set", "q|sadd|k", buf_slice(&text));
	client_hears_nothing();
	while (fake_pass(&fake, 0))
		;
	client_is_told("CLIENT_ERROR usage: sadd <key> <member>+ [noreply]\r\n");
	server_hears_nothing();
	serving_teardown();
	buf_free(&text);
}

/* --- the memory of the input --- */

static struct buf input;

static struct buf take_input(void *owner, struct slice text)
{
	ck_assert_ptr_eq(owner, &fake);
	return buf_is_mostly(&input, text) ? buf_take(&input) : BUF_EMPTY;
}

/* Overwrites the words of the key, which were on the stack. */
static __attribute__((noinline)) void overwrite_stack(void)
{
	char bytes[32768];

	memset(bytes, '#', sizeof(bytes));
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

/* Starts a request whose text is in `input`. Returns the memory, which the task has taken. */
static struct buf start_from_input(const char *key, char delimiter, struct slice data)
{
	static const struct request_limits limits = { 1 << 20, 1 << 20, 2000 };
	struct request_progress progress = { 0 };
	struct request request;
	struct buf memory;

	begin(true, delimiter);
	fake.host.take_input = take_input;
	buf_printf(&input, "version\r\nset %s 0 0 %zu\r\n", key, data.n);
	buf_consume(&input, strlen("version\r\n"));
	buf_add_slice(&input, data);
	BUF_ADD(&input, "\r\nthe next request");
	memory = input;
	ck_assert_int_eq(
		request_parse(buf_slice(&input), &limits, &progress, &request), REQUEST_READY);
	ck_assert(task_start(&fake.host, &request, &fake));
	overwrite_stack();
	ck_assert_ptr_null(input.data);
	ck_assert_uint_ge(fake_used(&fake), memory.cap);
	ck_assert_uint_le(fake_used(&fake), memory.cap + 2048);
	/* The next requests may still be there. */
	client_hears_nothing();
	ck_assert(slice_equal(
		slice_skip(buf_slice(&memory), buf_size(&memory) - 16), SLICE("the next request")));
	return memory;
}

/* No word is read or copied before the first pause. */
TEST(input_is_taken)
{
	static const struct {
		const char *key;
		char delimiter;
		bool some; /* Some words are in the key. */
	} keys[] = {
		{ "q|sadd|k", ',', false },
		{ "q|sadd|k", '\n', false },
		{ "q|sadd|k|a1|b", '\n', true },
		{ "q|sset|k", ' ', false },
		{ "q|rpush|k", '\n', false },
		{ "q|lpush|k|a1|b", '\n', true },
		{ "Pk", ',', false },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct buf words = words_of(keys[i].delimiter), memory, replies = BUF_EMPTY,
			   reads = BUF_EMPTY;
		const char *stored = *keys[i].key == 'P' ? "Pk" : "k";
		size_t pauses = 0;
		char *first;

		memory = start_from_input(keys[i].key, keys[i].delimiter, buf_slice(&words));
		first = memmem(memory.data, memory.end, "m0000000", 8);
		*first = 'n';
		add_replies(&replies, &pauses);
		ck_assert_uint_ge(pauses, buf_size(&words) / BYTES);
		ck_assert(slice_equal(buf_slice(&replies), SLICE("STORED\r\n")));
		buf_printf(&reads, "smembers %s\r\nlrange %s 0 -1\r\n", stored, stored);
		BUF_ADD(&reads, "\0");
		client_asks(buf_slice(&reads).p);
		add_replies(&replies, &pauses);
		ck_assert_ptr_nonnull(
			memmem(buf_slice(&replies).p, buf_size(&replies), "n0000000", 8));
		ck_assert_ptr_null(
			memmem(buf_slice(&replies).p, buf_size(&replies), "m0000000", 8));
		ck_assert(!keys[i].some ||
			memmem(buf_slice(&replies).p, buf_size(&replies), "a1", 2));
		buf_free(&replies);
		buf_free(&reads);
		buf_free(&words);
		serving_teardown();
	}
}

/* Refused at the first word, or abandoned. */
TEST(input_is_freed)
{
	struct buf words = words_of('|');

	(void)start_from_input("q|sadd|k", '\n', buf_slice(&words));
	while (fake_pass(&fake, 0))
		;
	client_is_told("CLIENT_ERROR member too long\r\n");
	server_hears_nothing();
	serving_teardown();
	(void)start_from_input("q|lpush|k", '|', buf_slice(&words));
	ck_assert_uint_eq(fake_pass(&fake, 0), 1);
	fake.account.gone = true;
	ck_assert_uint_eq(fake_pass(&fake, 0), 1);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
	server_hears_nothing();
	serving_teardown();
	buf_free(&words);
}

/* The size of the log depends on all bytes. They are counted in slices, and no memory is taken before that. */
TEST(counted_in_slices)
{
	enum { COUNTED = STEPS * 32 + 4096 /* in a slice */ };
	struct buf words = words_of('\n'), replies = BUF_EMPTY;
	size_t used, slices = 0, pauses = 0;

	begin(true, '\n');
	ask(TEXT, "set", "q|rpush|k", buf_slice(&words));
	used = fake_used(&fake);
	while (fake_used(&fake) == used) {
		ck_assert_uint_eq(fake_pass(&fake, 0), 1);
		slices++;
	}
	ck_assert_uint_ge(slices, buf_size(&words) / COUNTED);
	ck_assert_uint_ge(fake_used(&fake), used + buf_size(&words));
	add_replies(&replies, &pauses);
	ck_assert(slice_starts(buf_slice(&replies), SLICE("STORED")));
	buf_free(&replies);
	buf_free(&words);
	serving_teardown();
}

/* Nothing is written for a client that disconnects meanwhile. */
TEST(abandoned)
{
	static const char *const keys[] = { "q|sadd|k", "Pk" };
	struct buf text = words_of(',');

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		begin(true, ',');
		ask(TEXT, "set", keys[i], buf_slice(&text));
		ck_assert_uint_gt(fake_used(&fake), 0);
		fake.account.gone = true;
		ck_assert_uint_eq(fake_pass(&fake, 0), 1);
		ck_assert(STAILQ_EMPTY(&fake.tasks));
		server_hears_nothing();
		serving_teardown();
	}
	buf_free(&text);
}
