/* The meta form: the classic request of a meta command, and its reply for the client. */
#include "protocol/metaform.h"
#include "protocol/reply.h"
#include "requests.h"
#include "unit.h"

static struct request parse(const char *text)
{
	struct request_limits limits = { 1 << 16, 1 << 16, 1000 };
	struct request_progress progress = { 0 };
	struct request request;

	ck_assert_int_eq(request_parse(slice_of(text, strlen(text)), &limits, &progress, &request),
		REQUEST_READY);
	return request;
}

static void parses(const char *text, const char *expected)
{
	struct request meta = parse(text), classic;
	struct buf shown = BUF_EMPTY;
	const char *error = metaform_parse(&meta, SLICE("key"), &classic);

	if (error) {
		buf_add(&shown, error, strlen(error));
	} else {
		request_show(&classic, &shown);
		if (classic.extras.compare)
			buf_printf(&shown, " compare=%llu",
				(unsigned long long)classic.extras.compare);
		if (classic.extras.has_initial)
			buf_printf(&shown, " initial=%llu",
				(unsigned long long)classic.extras.initial);
	}
	ck_assert_msg(slice_equal(buf_slice(&shown), slice_of(expected, strlen(expected))),
		"%s: %.*s", text, (int)buf_size(&shown), buf_slice(&shown).p);
	buf_free(&shown);
}

TEST(requests)
{
	parses("mg a v k s f c t h l u q O1 P1 L1\r\n", "gets key number=1 keys=1");
	parses("mg YQ== b T-1\r\n", "gats key exptime=-1 number=1 keys=1");
	parses("ms a 2 F7 T60 c k O1 q MS\r\nxy\r\n", "set key {xy} flags=7 exptime=60 number=1");
	parses("ms a 2 Me\r\nxy\r\n", "add key {xy} number=1");
	parses("ms a 2 MR\r\nxy\r\n", "replace key {xy} number=1");
	parses("ms a 2 MA\r\nxy\r\n", "append key {xy} number=1");
	parses("ms a 2 Mp C9\r\nxy\r\n", "prepend key {xy} number=1 compare=9");
	parses("ms a 2 C9 MR F3\r\nxy\r\n", "cas key {xy} flags=3 number=9");
	parses("ms a 2 C0\r\nxy\r\n", "set key {xy} number=1");
	parses("md a C9 q\r\n", "delete key number=1 compare=9");
	parses("ma a M-\r\n", "decr key number=1");
	parses("ma a MD D0\r\n", "decr key");
	parses("ma a Md N60 J7 C9 c\r\n", "decr key exptime=60 number=1 compare=9 initial=7");
	parses("ma a MI N0\r\n", "incr key number=1 initial=0");
}

/* Each flag of the flag parser, with each command. */
TEST(flags_without_a_meaning)
{
	static const struct {
		const char *request, *block, *known;
	} commands[] = {
		{ "mg a", "", "bcfhklqstuvLOPT" },
		{ "ms a 2", "xy\r\n", "bckqCFLMOPT" },
		{ "md a", "", "bkqCLOP" },
		{ "ma a", "", "bckqvCDJLMNOP" },
	};
	static const char all[] = "cfhklqstuvxILPCDEJNRTFMO";
	struct request classic;
	char text[64], flag[3], line[64];

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		for (const char *letter = all; *letter; letter++) {
			snprintf(flag, sizeof(flag), "%c%s", *letter,
				*letter == 'M'                        ? (i == 3 ? "I" : "S")
					: strchr("CDEJNRTF", *letter) ? "1"
								      : "");
			snprintf(text, sizeof(text), "%s %s\r\n%s", commands[i].request, flag,
				commands[i].block);
			const struct request meta = parse(text);
			const char *error = metaform_parse(&meta, SLICE("key"), &classic);
			snprintf(line, sizeof(line), "CLIENT_ERROR the flag %c is for plain items",
				*letter);
			if (strchr(commands[i].known, *letter))
				ck_assert_msg(!error, "%s", text);
			else
				ck_assert_msg(error && strcmp(error, line) == 0, "%s", text);
		}
	}
}

static void replies(const char *text, struct reply reply, const char *expected)
{
	const struct request meta = parse(text);
	struct metaform *form = malloc(metaform_size(&meta));
	struct buf out = BUF_EMPTY;
	struct slice tail;

	metaform_init(&meta, form);
	if (metaform_form(&out, &reply, form, &tail)) {
		BUF_ADD(&out, "<shared>");
		buf_add_slice(&out, tail);
	}
	ck_assert_msg(slice_equal(buf_slice(&out), slice_of(expected, strlen(expected))),
		"%s: %.*s", text, (int)buf_size(&out), buf_slice(&out).p);
	buf_free(&out);
	free(form);
}

TEST(replies_of_reads)
{
	struct reply value = reply_value(SLICE("a"), SLICE("xyz")), number = reply_number(17);
	const struct reply miss = reply_word(WORD_END);
	struct buf text = BUF_EMPTY;

	value.flags = 7;
	value.cas = number.cas = 9;
	replies("mg a t\r\n", value, "HD t-1\r\n");
	value.ttl = 5;
	replies("mg a k v c f s t h l u q O12 L P\r\n", value,
		"VA 3 ka c9 f7 s3 t5 h0 l0 O12\r\nxyz\r\n");
	replies("mg YQ== b v k O1\r\n", value, "VA 3 kYQ== b O1\r\nxyz\r\n");
	value.ttl = TTL_NEVER;
	replies("mg a O1 t\r\n", value, "HD O1 t-1\r\n");
	replies("mg a v s c\r\n", number, "VA 2 s2 c9\r\n17\r\n");
	replies("mg YQ== b k\r\n", miss, "EN kYQ== b\r\n");
	replies("mg a v q k\r\n", miss, "");
	replies("mg a v\r\n", reply_error(SLICE("SERVER_ERROR busy")), "SERVER_ERROR busy\r\n");
	replies("mg a v\r\n", reply_error(SLICE("ERROR")), "ERROR\r\n");
	BUF_ADD(&text, "shared");
	value.shared = shared_create(&text);
	replies("mg a v s\r\n", value, "VA 6 s6\r\n<shared>\r\n");
	replies("mg a s\r\n", value, "HD s6\r\n");
	shared_drop(value.shared);
}

TEST(words_of_codes)
{
	ck_assert_int_eq(metaform_word(SLICE("EN")), WORD_END);
	ck_assert_int_eq(metaform_word(SLICE("NF")), WORD_NOT_FOUND);
	ck_assert_int_eq(metaform_word(SLICE("NS")), WORD_NOT_STORED);
	ck_assert_int_eq(metaform_word(SLICE("EX")), WORD_EXISTS);
	ck_assert_int_eq(metaform_word(SLICE("HD")), WORD_NONE);
	ck_assert_int_eq(metaform_word(SLICE("VA")), WORD_NONE);
	ck_assert_int_eq(metaform_word(SLICE("")), WORD_NONE);
}

TEST(replies_of_writes)
{
	replies("ms a 1 c k O1\r\nx\r\n", reply_word(WORD_STORED), "HD c0 ka O1\r\n");
	replies("ms a 1 c O1\r\nx\r\n", reply_word(WORD_EXISTS), "EX O1\r\n");
	replies("ms a 1 c O1\r\nx\r\n", reply_word(WORD_NOT_FOUND), "NF O1\r\n");
	replies("ms a 1 q O1\r\nx\r\n", reply_word(WORD_NOT_STORED), "NS O1\r\n");
	replies("md a q\r\n", reply_word(WORD_DELETED), "");
	replies("ms a 1 q O1\r\nx\r\n", reply_error(SLICE("SERVER_ERROR busy")),
		"SERVER_ERROR busy\r\n");
	replies("ma a q\r\n", reply_error(SLICE("CLIENT_ERROR no")), "CLIENT_ERROR no\r\n");
}
