/* Writes that only the meta commands can say. */
#include "dialects.h"
#include "unit.h"

static const struct dialect *const meta = &dialect_meta;

TEST(encode)
{
	struct call call = { .verb = CALL_SET, .want = WANT_CAS, .key = SLICE("k"), .value = SLICE("abc") };

	dialect_encodes(meta, &call, "ms k 3 c\r\nabc\r\n");
	call.flags = 7;
	call.exptime = -1;
	dialect_encodes(meta, &call, "ms k 3 F7 T-1 c\r\nabc\r\n");
	call.verb = CALL_ADD;
	dialect_encodes(meta, &call, "ms k 3 ME F7 T-1 c\r\nabc\r\n");
	call.verb = CALL_CAS;
	call.number = 9;
	dialect_encodes(meta, &call, "ms k 3 F7 T-1 C9 c\r\nabc\r\n");
	call = (struct call){ .verb = CALL_APPEND, .want = WANT_CAS, .key = SLICE("k"), .value = SLICE("") };
	call.compare = 5;
	dialect_encodes(meta, &call, "ms k 0 MA C5 c\r\n\r\n");
	call.verb = CALL_PREPEND;
	call.want = WANT_ENCODED;
	call.key = SLICE("a b");
	dialect_encodes(meta, &call, "ms YSBi 0 b MP C5 c\r\n\r\n");
	call = (struct call){ .verb = CALL_REPLACE, .want = WANT_CAS, .key = SLICE("k"), .value = SLICE("x") };
	dialect_encodes(meta, &call, "ms k 1 MR c\r\nx\r\n");
	call = (struct call){ .verb = CALL_DELETE, .want = WANT_CAS, .key = SLICE("k"), .compare = 3 };
	dialect_encodes(meta, &call, "md k C3\r\n");
	call = (struct call){ .verb = CALL_INCR, .want = WANT_CAS, .key = SLICE("k"), .number = 2 };
	dialect_encodes(meta, &call, "ma k D2 v c\r\n");
	call.verb = CALL_DECR;
	call.vivifies = true;
	call.initial = 10;
	call.exptime = 60;
	dialect_encodes(meta, &call, "ma k MD D2 N60 J10 v c\r\n");
	call = (struct call){ .verb = CALL_GAT, .want = WANT_ENCODED | WANT_CAS | WANT_VALUE, .key = SLICE("a b") };
	dialect_encodes(meta, &call, "mg YSBi b T0 f c v\r\n");
}

TEST(decode)
{
	static const struct expect set = { CALL_SET, WANT_CAS, { "k", 1 }, 0 },
				   incr = { CALL_INCR, WANT_CAS, { "k", 1 }, 0 },
				   del = { CALL_DELETE, WANT_CAS, { "k", 1 }, 0 },
				   get = { CALL_GET, WANT_ENCODED | WANT_CAS | WANT_VALUE, { "a b", 3 }, 0 };
	static const struct reply_case sets[] = {
		{ "HD c5\r\n", "done cas=5" },
		{ "HD\r\n", "done" },
		{ "HD cx\r\n", "garbage" },
		{ "NS c0\r\n", "not stored" },
		{ "EX c0\r\n", "exists" },
		{ "NF c0\r\n", "miss" },
		{ "STORED\r\n", "garbage" },
		{ "VA 1 c5\r\n5\r\n", "garbage" },
		{ "SERVER_ERROR out of memory storing object\r\n",
			"refused [SERVER_ERROR out of memory storing object]" },
		{ "CLIENT_ERROR bad data chunk\r\n", "refused [CLIENT_ERROR bad data chunk] suspect" },
	};
	static const struct reply_case incrs[] = {
		{ "VA 2 c5\r\n17\r\n", "number 17 cas=5" },
		{ "VA 2 c5\r\n1x\r\n", "garbage" },
		{ "VA 21 c5\r\n000000000000000000001\r\n", "garbage" },
		{ "HD c5\r\n", "garbage" },
		{ "NF\r\n", "miss" },
		{ "EX\r\n", "exists" },
		{ "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
			"refused [CLIENT_ERROR cannot increment or decrement non-numeric value]" },
	};
	static const struct reply_case dels[] = {
		{ "HD\r\n", "done" },
		{ "NF\r\n", "miss" },
		{ "EX\r\n", "exists" },
		{ "NS\r\n", "garbage" },
	};
	static const struct reply_case gets[] = {
		{ "EN\r\n", "miss" },
		{ "VA 1 f7 c5\r\nx\r\n", "hit {x} flags=7 cas=5 ttl=-2 size=1" },
		{ "VA 1 kYSBi b f7 c5\r\nx\r\n", "garbage" },
	};

	DECODES(meta, &set, sets);
	DECODES(meta, &incr, incrs);
	DECODES(meta, &del, dels);
	DECODES(meta, &get, gets);
}
