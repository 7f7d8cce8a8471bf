/* Requests of the binary protocol, cut at every byte, and the responses. */
#include "protocol/binary.h"
#include "unit.h"
#include "util/buf.h"

static const struct request_limits limits = { .max_line = 100, .max_value = 10, .max_keys = 1 };

/* A header, then the bytes of `body`. `claimed` is the length of the body that the header has. */
static struct slice packet_of(struct buf *out, unsigned opcode, size_t key, size_t extras,
	size_t claimed, uint64_t cas, struct slice body)
{
	char h[BINARY_HEADER] = { (char)0x80, (char)opcode, (char)(key >> 8), (char)key,
		(char)extras };

	for (int i = 0; i < 4; i++)
		h[8 + i] = (char)(claimed >> (24 - 8 * i));
	memcpy(h + 12, "\1\2\3\4", 4);
	for (int i = 0; i < 8; i++)
		h[16 + i] = (char)(cas >> (56 - 8 * i));
	*out = BUF_EMPTY;
	buf_add(out, h, sizeof(h));
	buf_add_slice(out, body);
	return buf_slice(out);
}

struct binary_request {
	struct request request;
	struct request_reply reply;
	struct binary_asked asked;
};

static void show(enum request_status status, const struct binary_request *b, struct buf *out)
{
	static const char *const names[] = { "more", "", "refused", "fatal", "hang up" };
	const struct request *r = &b->request;

	buf_consume(out, buf_size(out));
	buf_printf(out, "%s", names[status]);
	if (status == REQUEST_REFUSED || status == REQUEST_FATAL)
		buf_printf(out, " %s", r->error);
	if (status == REQUEST_REFUSED && r->skip.bytes)
		buf_printf(out, " skip=%zu", r->skip.bytes);
	if (status == REQUEST_READY) {
		buf_printf(out, "%s", r->command->name.p);
		if (r->key.n)
			buf_printf(out, " %.*s", (int)r->key.n, r->key.p);
		if (r->data.n)
			buf_printf(out, " {%.*s}", (int)r->data.n, r->data.p);
		buf_printf(out, "%s%s%s", r->flags ? " flags" : "",
			r->extras.wants_cas ? " wants" : "", b->asked.quiet ? " quiet" : "");
		if (r->exptime)
			buf_printf(out, " exptime=%lld", (long long)r->exptime);
		if (r->number)
			buf_printf(out, " number=%llu", (unsigned long long)r->number);
		if (r->extras.has_initial)
			buf_printf(out, " initial=%llu", (unsigned long long)r->extras.initial);
		if (r->extras.compare)
			buf_printf(out, " compare=%llu", (unsigned long long)r->extras.compare);
		buf_printf(out, "%s", r->extras.odd_key ? " odd" : "");
	}
	BUF_ADD(out, "\0");
}

/* However the request is cut, the result is the same; an early decision equals the final one. */
static void parses(struct slice packet, const char *outcome)
{
	struct request_progress kept = { 0 };
	struct buf text = BUF_EMPTY;
	struct binary_request b;
	enum request_status status = REQUEST_MORE;

	for (size_t n = 0; n <= packet.n && status == REQUEST_MORE; n++) {
		struct request_progress fresh = { 0 };
		struct slice part = guard_place(slice_of(packet.p, n));
		status = binary_parse(part, &limits, &fresh, &b.request, &b.reply, &b.asked);
		ck_assert_int_eq(
			status, binary_parse(part, &limits, &kept, &b.request, &b.reply, &b.asked));
		ck_assert_uint_eq(
			fresh.needed, status == REQUEST_MORE ? kept.needed : fresh.needed);
	}
	show(status, &b, &text);
	ck_assert_str_eq(buf_slice(&text).p, outcome);
	if (status == REQUEST_READY)
		ck_assert_uint_eq(b.request.consumed, packet.n);
	if (status == REQUEST_REFUSED)
		ck_assert_uint_le(b.request.consumed + b.request.skip.bytes, packet.n);
	if (status != REQUEST_MORE && status != REQUEST_HANGUP)
		ck_assert_mem_eq(&b.asked.opaque, "\1\2\3\4", 4);
	buf_free(&text);
}

struct packet {
	unsigned opcode;
	size_t key, extras;
	uint64_t cas;
	struct slice body;
	const char *outcome;
};

static void check_all(const struct packet *packets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct packet *p = &packets[i];
		struct buf bytes;
		parses(packet_of(&bytes, p->opcode, p->key, p->extras, p->body.n, p->cas, p->body),
			p->outcome);
		buf_free(&bytes);
	}
}

#define CHECK(packets) check_all((packets), sizeof(packets) / sizeof((packets)[0]))

TEST(requests)
{
	static const struct packet packets[] = {
		{ 0x00, 1, 0, 0, BYTES("k"), "get k wants" },
		{ 0x09, 1, 0, 0, BYTES("k"), "get k wants quiet" },
		{ 0x0d, 3, 0, 7, BYTES("key"), "get key wants quiet" },
		{ 0x01, 1, 8, 0, BYTES("\0\0\0\1\0\0\0\2kabc"),
			"set k {abc} flags wants exptime=2" },
		{ 0x01, 1, 8, 0, BYTES("\0\0\0\0\377\377\377\377k"),
			"set k wants exptime=2147483647" },
		{ 0x01, 1, 8, 9, BYTES("\0\0\0\0\0\0\0\0kabc"), "cas k {abc} wants number=9" },
		{ 0x12, 1, 8, 9, BYTES("\0\0\0\0\0\0\0\0kabc"),
			"cas k {abc} wants quiet number=9" },
		{ 0x02, 1, 8, 0, BYTES("\0\0\0\0\0\0\0\0kabc"), "add k {abc} wants" },
		{ 0x0e, 1, 0, 5, BYTES("kabc"), "append k {abc} wants compare=5" },
		{ 0x1a, 1, 0, 0, BYTES("k"), "prepend k wants quiet" },
		{ 0x05, 1, 20, 0, BYTES("\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\10\0\0\0\11k"),
			"incr k wants exptime=9 number=7 initial=8" },
		{ 0x06, 1, 20, 3, BYTES("\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\10\377\377\377\377k"),
			"decr k wants number=7 compare=3" },
		{ 0x04, 1, 0, 3, BYTES("k"), "delete k compare=3" },
		{ 0x1c, 1, 4, 0, BYTES("\0\0\0\5k"), "touch k wants exptime=5" },
		{ 0x24, 1, 4, 0, BYTES("\0\0\0\5k"), "gat k wants quiet exptime=5" },
		{ 0x08, 0, 0, 0, BYTES(""), "flush_all" },
		{ 0x18, 0, 4, 0, BYTES("\0\0\0\5"), "flush_all quiet exptime=5" },
		{ 0x0a, 0, 0, 0, BYTES(""), "mn" },
		{ 0x10, 8, 0, 0, BYTES("upstream"), "stats upstream" },
		{ 0x1b, 0, 4, 0, BYTES("\0\0\0\2"), "verbosity number=2" },
		{ 0x21, 5, 0, 0, BYTES("PLAIN\0a\0b"), "mn PLAIN {}" },
		{ 0x00, 3, 0, 0, BYTES("a b"), "get a b wants odd" },
		{ 0x04, 2, 0, 0, BYTES("a\n"), "delete a\n odd" },
	};
	CHECK(packets);
}

TEST(refused)
{
	static const struct packet packets[] = {
		{ 0x1f, 0, 0, 0, BYTES(""), "refused ERROR" },
		{ 0xff, 1, 1, 0, BYTES("abc"), "refused ERROR skip=3" },
		{ 0x01, 1, 8, 0, BYTES("\0\0\0\1\0\0\0\2k01234567890"),
			"refused SERVER_ERROR object too large for cache skip=11" },
		{ 0x0f, 1, 0, 0, BYTES("k01234567890"),
			"refused SERVER_ERROR object too large for cache skip=11" },
		{ 0x00, 0, 0, 0, BYTES(""), "fatal CLIENT_ERROR Invalid arguments" },
		{ 0x00, 1, 0, 0, BYTES("kv"), "fatal CLIENT_ERROR Invalid arguments" },
		{ 0x00, 1, 4, 0, BYTES("\0\0\0\0k"), "fatal CLIENT_ERROR Invalid arguments" },
		{ 0x01, 1, 4, 0, BYTES("\0\0\0\0kv"), "fatal CLIENT_ERROR Invalid arguments" },
		{ 0x01, 0, 8, 0, BYTES("\0\0\0\1\0\0\0\2"),
			"fatal CLIENT_ERROR Invalid arguments" },
		{ 0x05, 1, 0, 0, BYTES("k"), "fatal CLIENT_ERROR Invalid arguments" },
		{ 0x08, 0, 8, 0, BYTES("\0\0\0\1\0\0\0\2"),
			"fatal CLIENT_ERROR Invalid arguments" },
		{ 0x0a, 1, 0, 0, BYTES("k"), "fatal CLIENT_ERROR Invalid arguments" },
		{ 0x00, 251, 0, 0, BYTES("k"), "fatal ERROR" },
		{ 0x00, 2, 0, 0, BYTES("k"), "fatal ERROR" },
		{ 0x01, 0xffff, 0xff, 0, BYTES("k"), "fatal ERROR" },
	};
	CHECK(packets);
}

/* A size that is only announced is decided from the header, or awaited as far as permitted. */
TEST(claimed)
{
	static const struct {
		unsigned opcode;
		size_t key, extras, body;
		enum request_status status;
		size_t skip;
	} cases[] = {
		{ 0x01, 1, 8, 0xffffffff, REQUEST_FATAL, 0 },
		{ 0xff, 0, 0, 0xffffffff, REQUEST_FATAL, 0 },
		{ 0xff, 0, 0, 1 << 30, REQUEST_REFUSED, 1 << 30 },
		{ 0x01, 1, 8, 1 << 30, REQUEST_REFUSED, (1 << 30) - 9 },
		{ 0x01, 251, 8, 1000, REQUEST_FATAL, 0 },
		{ 0x01, 1, 8, 19, REQUEST_MORE, 0 },
	};
	struct binary_request b;
	struct buf bytes;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct request_progress progress = { 0 };
		struct slice packet = packet_of(&bytes, cases[i].opcode, cases[i].key,
			cases[i].extras, cases[i].body, 0, SLICE("12345678k"));
		ck_assert_int_eq(binary_parse(guard_place(packet), &limits, &progress, &b.request,
					 &b.reply, &b.asked),
			cases[i].status);
		if (cases[i].status == REQUEST_REFUSED)
			ck_assert_uint_eq(b.request.skip.bytes, cases[i].skip);
		buf_free(&bytes);
	}
	ck_assert_int_eq(binary_parse(SLICE("get k\r\n"), &limits, &(struct request_progress){ 0 },
				 &b.request, &b.reply, &b.asked),
		REQUEST_HANGUP);
}

/* --- responses --- */

/* The status, the cas id and the body; "nothing" if there is no response. */
static void is_response(struct buf *out, unsigned opcode, const char *expected)
{
	struct slice got = buf_slice(out);
	struct buf text = BUF_EMPTY;

	while (got.n) {
		ck_assert_uint_ge(got.n, BINARY_HEADER);
		const unsigned char *p = (const unsigned char *)got.p;
		size_t body = (size_t)p[10] << 8 | p[11], cas = (size_t)p[22] << 8 | p[23];
		ck_assert_uint_eq(p[0], 0x81);
		ck_assert_uint_eq(p[1], opcode);
		ck_assert_mem_eq(p + 12, "\1\2\3\4", 4);
		ck_assert_uint_ge(got.n, BINARY_HEADER + body);
		buf_printf(&text, "%02x", p[7]);
		if (p[4])
			buf_printf(&text, " extras=%u", p[4]);
		if (p[3])
			buf_printf(&text, " key=%u", p[3]);
		if (cas)
			buf_printf(&text, " cas=%zu", cas);
		BUF_ADD(&text, " ");
		for (size_t i = 0; i < body; i++)
			buf_printf(&text, p[24 + i] < 32 ? "\\%u" : "%c", p[24 + i]);
		BUF_ADD(&text, "|");
		got = slice_skip(got, BINARY_HEADER + body);
	}
	BUF_ADD(&text, "\0");
	ck_assert_str_eq(buf_slice(&text).p, expected);
	buf_free(&text);
	buf_free(out);
}

static void responds(unsigned opcode, bool quiet, struct reply reply, const char *expected)
{
	bool has_key = opcode == 0x0c || opcode == 0x24;
	struct binary_asked asked = { (uint8_t)opcode, quiet, has_key, 0, "k" };
	struct buf out = BUF_EMPTY;
	struct slice tail;

	memcpy(&asked.opaque, "\1\2\3\4", 4);
	if (binary_form(&out, &reply, &asked, &tail)) {
		buf_add_slice(&out, reply_bytes(&reply));
		ck_assert_uint_eq(tail.n, 0);
	}
	is_response(&out, opcode, expected);
}

static struct reply with_cas(struct reply reply, uint64_t cas)
{
	reply.cas = cas;
	return reply;
}

TEST(responses_to_writes)
{
	static const struct {
		unsigned opcode;
		bool quiet;
		struct slice line;
		const char *expected;
	} errors[] = {
		{ 0x05, false,
			BYTES("CLIENT_ERROR cannot increment or decrement non-numeric value"),
			"06 Non-numeric server-side value for incr or decr|" },
		{ 0x11, true, BYTES("SERVER_ERROR object too large for cache"), "03 Too large.|" },
		{ 0x11, true, BYTES("SERVER_ERROR out of memory storing object"),
			"82 Out of memory|" },
		{ 0x11, true, BYTES("SERVER_ERROR upstream a:1 unavailable"),
			"86 upstream a:1 unavailable|" },
		{ 0x11, true, BYTES("SERVER_ERROR upstream a:1 timed out, outcome unknown"),
			"84 upstream a:1 timed out, outcome unknown|" },
		{ 0x01, false, BYTES("SERVER_ERROR busy"), "85 busy|" },
		{ 0x01, false, BYTES("CLIENT_ERROR set is denied here"), "04 set is denied here|" },
		{ 0x1f, false, BYTES("ERROR"), "81 Unknown command|" },
		{ 0x01, false, BYTES("what is this"), "84 what is this|" },
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		responds(errors[i].opcode, errors[i].quiet, reply_error(errors[i].line),
			errors[i].expected);
	responds(0x01, false, with_cas(reply_word(WORD_STORED), 258), "00 cas=258 |");
	responds(0x01, false, reply_word(WORD_STORED), "00 |");
	responds(0x11, true, with_cas(reply_word(WORD_STORED), 258), "");
	responds(0x04, false, reply_word(WORD_DELETED), "00 |");
	responds(0x14, true, reply_word(WORD_NOT_FOUND), "01 Not found|");
	responds(0x01, false, reply_word(WORD_EXISTS), "02 Data exists for key.|");
	responds(0x02, false, reply_word(WORD_NOT_STORED), "02 Data exists for key.|");
	responds(0x13, true, reply_word(WORD_NOT_STORED), "01 Not found|");
	responds(0x0e, false, reply_word(WORD_NOT_STORED), "05 Not stored.|");
	responds(0x05, false, with_cas(reply_number(66), 3), "00 cas=3 \\0\\0\\0\\0\\0\\0\\0B|");
	responds(0x15, true, with_cas(reply_number(66), 3), "");
	responds(0x08, false, reply_word(WORD_OK), "00 |");
	responds(0x0a, false, reply_word(WORD_MN), "00 |");
}

TEST(responses_to_reads)
{
	struct reply hit = with_cas(reply_value(SLICE("k"), SLICE("abc")), 5),
		     touched = reply_word(WORD_TOUCHED);
	const struct reply miss = reply_word(WORD_END),
			   down = reply_error(SLICE("SERVER_ERROR upstream a:1 unavailable"));
	struct buf text = BUF_EMPTY;

	hit.flags = 7;
	responds(0x00, false, hit, "00 extras=4 cas=5 \\0\\0\\0\\7abc|");
	responds(0x09, true, hit, "00 extras=4 cas=5 \\0\\0\\0\\7abc|");
	responds(0x0c, false, hit, "00 extras=4 key=1 cas=5 \\0\\0\\0\\7kabc|");
	responds(0x24, true, hit, "00 extras=4 key=1 cas=5 \\0\\0\\0\\7kabc|");
	responds(0x1c, false, hit, "00 extras=4 cas=5 \\0\\0\\0\\7|");
	responds(0x1c, false, touched, "00 extras=4 \\0\\0\\0\\0|");
	responds(0x00, false, miss, "01 Not found|");
	responds(0x0c, false, miss, "01 key=1 k|");
	responds(0x09, true, miss, "");
	responds(0x09, true, down, "86 upstream a:1 unavailable|");
	BUF_ADD(&text, "shared");
	hit.shared = shared_create(&text);
	responds(0x00, false, hit, "00 extras=4 cas=5 \\0\\0\\0\\7shared|");
	responds(0x1c, false, hit, "00 extras=4 cas=5 \\0\\0\\0\\7|");
	shared_drop(hit.shared);
}

TEST(responses_about_the_proxy)
{
	struct reply unknown = reply_error(SLICE("CLIENT_ERROR usage: stats [collections]")),
		     version = reply_word(WORD_VERSION);

	unknown.word = WORD_NOT_FOUND;
	version.bytes = SLICE("1.6.18");
	responds(0x10, false,
		(struct reply){ .kind = REPLY_LINES, .bytes = SLICE("STAT a 1\r\nSTAT b c d\r\n") },
		"00 key=1 a1|00 key=1 bc d|");
	responds(0x10, false, reply_word(WORD_END), "00 |");
	responds(0x10, false, reply_word(WORD_RESET), "00 |");
	responds(0x10, false, unknown, "01 Not found|");
	responds(0x0b, false, version, "00 1.6.18|");
	responds(0x07, false, (struct reply){ .kind = REPLY_NOTHING }, "00 |");
	responds(0x17, true, (struct reply){ .kind = REPLY_NOTHING }, "");
}
