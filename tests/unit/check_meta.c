
#include "dialects.h"
#include "unit.h"

static const struct dialect *const meta = &dialect_meta;

TEST(encode_reads)
{
	struct call call = { .verb = CALL_GET, .key = SLICE("k"), .want = WANT_VALUE };

	dialect_encodes(meta, &call, "mg k k f v\r\n");
	call.want = 0;
	dialect_encodes(meta, &call, "mg k k f\r\n");
	call.want = WANT_VALUE | WANT_CAS | WANT_TTL | WANT_SIZE;
	dialect_encodes(meta, &call, "mg k k f c t s v\r\n");
	call.verb = CALL_GAT;
	call.exptime = -1;
	dialect_encodes(meta, &call, "mg k T-1 k f c t s v\r\n");
}

/* Writes use the classic commands: `ms` deletes the existing item when it fails. */
TEST(encode_the_rest_as_classic)
{
	for (enum call_verb verb = CALL_SET; verb <= CALL_STATS; verb++) {
		struct call call = {
			.verb = verb, .key = SLICE("k"), .value = SLICE("x"), .line = SLICE("mg k")
		};
		struct buf out = BUF_EMPTY;
		dialect_classic.encode(&call, &out);
		BUF_ADD(&out, "\0");
		dialect_encodes(meta, &call, buf_slice(&out).p);
		buf_free(&out);
	}
}

TEST(decode_value)
{
	static const struct expect expect = { CALL_GET, WANT_VALUE, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "EN\r\n", "miss" },
		{ "EN kk\r\n", "miss" },
		{ "EN kother\r\n", "garbage" },
		{ "VA 3 kk f7\r\nabc\r\n", "hit {abc} flags=7 ttl=-2 size=3" },
		{ "VA 3 f7 kk\r\nabc\r\n", "hit {abc} flags=7 ttl=-2 size=3" },
		{ "VA 0 kk f0\r\n\r\n", "hit {} ttl=-2" },
		{ "VA 4 kk f0\r\nEN\r\n\r\n", "hit {EN\r\n} ttl=-2 size=4" },
		{ "VA 3 kk f0 W Z X hnew\r\nabc\r\n", "hit {abc} ttl=-2 size=3" },
		{ "VA 3 kaw== b f0\r\nabc\r\n", "hit {abc} ttl=-2 size=3" },
		{ "VA 3 kaw== f0\r\nabc\r\n", "garbage" },
		{ "VA 3 kbA== b f0\r\nabc\r\n", "garbage" },
		{ "VA 3 f0\r\nabc\r\n", "garbage" },
		{ "VA 3 kother f0\r\nabc\r\n", "garbage" },
		{ "VA 3 k f0\r\nabc\r\n", "garbage" },
		{ "VA 3 kk f4294967296\r\nabc\r\n", "garbage" },
		{ "VA 3 kk f\r\nabc\r\n", "garbage" },
		{ "VA 3 kk f0\r\nabcd\r\n", "garbage" },
		{ "VA 3 kk f0\r\nabc\n\r", "garbage" },
		{ "VA -1 kk f0\r\n", "garbage" },
		{ "VA 4294967295 kk f0\r\n", "garbage" },
		{ "VA 18446744073709551615 kk f0\r\n", "garbage" },
		{ "VA 18446744073709551616 kk f0\r\n", "garbage" },
		{ "VA kk f0\r\n", "garbage" },
		{ "VA\r\n", "garbage" },
		{ "HD kk f0\r\n", "garbage" },
		{ "END\r\n", "garbage" },
		{ "NF\r\n", "garbage" },
		{ "\r\n", "garbage" },
		{ "VALUE k 0 1\r\n", "garbage" },
		{ "ERROR\r\n", "refused [ERROR]" },
		{ "SERVER_ERROR out of memory\r\n", "refused [SERVER_ERROR out of memory]" },
	};
	DECODES(meta, &expect, cases);
}

TEST(decode_all_that_may_be_wanted)
{
	static const struct expect expect = { CALL_GAT, WANT_VALUE | WANT_CAS | WANT_TTL,
		{ "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "VA 1 kk f0 c18446744073709551615 t30\r\nx\r\n",
			"hit {x} cas=18446744073709551615 ttl=30 size=1" },
		{ "VA 1 kk f0 c1 t-1\r\nx\r\n", "hit {x} cas=1 ttl=-1 size=1" },
		{ "VA 1 kk f0 c1 t0\r\nx\r\n", "hit {x} cas=1 size=1" },
		{ "VA 1 kk f0 c18446744073709551616 t1\r\nx\r\n", "garbage" },
		{ "VA 1 kk f0 c-1 t1\r\nx\r\n", "garbage" },
		{ "VA 1 kk f0 c1 tx\r\nx\r\n", "garbage" },
	};
	DECODES(meta, &expect, cases);
}

/* Also in forms that memcached does not write: other flags, in another order. */
TEST(decode_value_and_cas)
{
	static const struct expect expect = { CALL_GET, WANT_VALUE | WANT_CAS, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "VA 1 kk f0 c9\r\nx\r\n", "hit {x} cas=9 ttl=-2 size=1" },
		{ "VA 1 kk f4294967295 c18446744073709551615\r\nx\r\n",
			"hit {x} flags=4294967295 cas=18446744073709551615 ttl=-2 size=1" },
		{ "VA 01 kk f00 c09\r\nx\r\n", "hit {x} cas=9 ttl=-2 size=1" },
		{ "VA 1 c9 f0 kk\r\nx\r\n", "hit {x} cas=9 ttl=-2 size=1" },
		{ "VA 1 kk f0 c9 W\r\nx\r\n", "hit {x} cas=9 ttl=-2 size=1" },
		{ "VA 1 kk f4294967296 c9\r\nx\r\n", "garbage" },
		{ "VA 1 kk f0 c18446744073709551616\r\nx\r\n", "garbage" },
		{ "VA 1 kk f0 c\r\nx\r\n", "garbage" },
		{ "VA 1 kk f0\r\nx\r\n", "garbage" },
		{ "VA 1 kkk f0 c9\r\nx\r\n", "garbage" },
		{ "VA 1 k f0 c9\r\nx\r\n", "garbage" },
		{ "VA 1 kk f0 c9\r\nxx\r\n", "garbage" },
	};
	DECODES(meta, &expect, cases);
}

TEST(decode_without_value)
{
	static const struct expect expect = { CALL_GET, WANT_SIZE, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "EN\r\n", "miss" },
		{ "HD kk f0 s65536\r\n", "hit ttl=-2 size=65536" },
		{ "HD kother f0 s65536\r\n", "garbage" },
		{ "HD kk f0 s-1\r\n", "garbage" },
		{ "VA 3 kk f0\r\nabc\r\n", "garbage" },
	};
	DECODES(meta, &expect, cases);
}

/* The first call of a read of a collection: with flags in the order of the call, and in others. */
TEST(decode_cas_and_ttl)
{
	static const struct expect expect = { CALL_GET, WANT_CAS | WANT_TTL, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "HD kk f1 c5 t30\r\n", "hit flags=1 cas=5 ttl=30" },
		{ "HD kk f0 c5 t-1\r\n", "hit cas=5 ttl=-1" },
		{ "HD kk f0 c18446744073709551615 t9223372036854775807\r\n",
			"hit cas=18446744073709551615 ttl=9223372036854775807" },
		{ "HD kk f0 t-1 c5\r\n", "hit cas=5 ttl=-1" },
		{ "HD kk f0 c5 t-1 s9\r\n", "hit cas=5 ttl=-1 size=9" },
		{ "HD kk f0 c5\r\n", "hit cas=5 ttl=-2" },
		{ "HD kk f0 c5 t9223372036854775808\r\n", "garbage" },
		{ "HD kk f0 c5 t-1x\r\n", "garbage" },
		{ "HD kk f0 t-1\r\n", "garbage" },
		{ "HDkk f0 c5 t-1\r\n", "garbage" },
		{ "VA 1 kk f0 c5 t-1\r\nx\r\n", "garbage" },
	};
	DECODES(meta, &expect, cases);
}

TEST(decode_the_rest_as_classic)
{
	static const struct expect append = { CALL_APPEND, 0, { "k", 1 }, 0 },
				   cas = { CALL_CAS, 0, { "k", 1 }, 0 };
	static const struct reply_case appends[] = { { "STORED\r\n", "done" },
		{ "NOT_STORED\r\n", "not stored" }, { "HD\r\n", "garbage" } };
	static const struct reply_case loses[] = { { "EXISTS\r\n", "exists" },
		{ "NOT_FOUND\r\n", "miss" } };

	DECODES(meta, &append, appends);
	DECODES(meta, &cas, loses);
}

/* A key of 250 bytes, encoded and not, and one of more. */
TEST(long_keys)
{
	char key[251], reply[700];
	struct expect expect = { CALL_GET, WANT_VALUE, slice_of(key, 250), 0 };
	struct result r = { 0 };
	int n;

	memset(key, 'f', 250);
	n = snprintf(reply, sizeof(reply), "VA 1 k%.250s f0\r\nx\r\n", key);
	ck_assert_int_eq(meta->decode(guard_place(slice_of(reply, (size_t)n)), &expect, &r), n);
	n = snprintf(reply, sizeof(reply), "VA 1 k%.250sf f0\r\nx\r\n", key);
	ck_assert_int_eq(meta->decode(guard_place(slice_of(reply, (size_t)n)), &expect, &r), -1);
	/* 336 letters encode 252 bytes, 400 encode 300: more than a key may have. */
	n = snprintf(reply, sizeof(reply), "VA 1 k%0336d b f0\r\nx\r\n", 0);
	ck_assert_int_eq(meta->decode(guard_place(slice_of(reply, (size_t)n)), &expect, &r), -1);
	n = snprintf(reply, sizeof(reply), "VA 1 k%0400d b f0\r\nx\r\n", 0);
	ck_assert_int_eq(meta->decode(guard_place(slice_of(reply, (size_t)n)), &expect, &r), -1);
}

/* --- writes that only the meta commands support --- */

TEST(encode_writes)
{
	struct call call = {
		.verb = CALL_SET, .want = WANT_CAS, .key = SLICE("k"), .value = SLICE("abc")
	};

	dialect_encodes(meta, &call, "ms k 3 c\r\nabc\r\n");
	call.flags = 7;
	call.exptime = -1;
	dialect_encodes(meta, &call, "ms k 3 F7 T-1 c\r\nabc\r\n");
	call.verb = CALL_ADD;
	dialect_encodes(meta, &call, "ms k 3 ME F7 T-1 c\r\nabc\r\n");
	call.verb = CALL_CAS;
	call.number = 9;
	dialect_encodes(meta, &call, "ms k 3 F7 T-1 C9 c\r\nabc\r\n");
	call = (struct call){
		.verb = CALL_APPEND, .want = WANT_CAS, .key = SLICE("k"), .value = SLICE("")
	};
	call.compare = 5;
	dialect_encodes(meta, &call, "ms k 0 MA C5 c\r\n\r\n");
	call.verb = CALL_PREPEND;
	call.want = WANT_ENCODED;
	call.key = SLICE("a b");
	dialect_encodes(meta, &call, "ms YSBi 0 b MP C5 c\r\n\r\n");
	call = (struct call){
		.verb = CALL_REPLACE, .want = WANT_CAS, .key = SLICE("k"), .value = SLICE("x")
	};
	dialect_encodes(meta, &call, "ms k 1 MR c\r\nx\r\n");
	call = (struct call){
		.verb = CALL_DELETE, .want = WANT_CAS, .key = SLICE("k"), .compare = 3
	};
	dialect_encodes(meta, &call, "md k C3\r\n");
	call = (struct call){ .verb = CALL_INCR, .want = WANT_CAS, .key = SLICE("k"), .number = 2 };
	dialect_encodes(meta, &call, "ma k D2 v c\r\n");
	call.verb = CALL_DECR;
	call.vivifies = true;
	call.initial = 10;
	call.exptime = 60;
	dialect_encodes(meta, &call, "ma k MD D2 N60 J10 v c\r\n");
	call = (struct call){
		.verb = CALL_GAT, .want = WANT_ENCODED | WANT_CAS | WANT_VALUE, .key = SLICE("a b")
	};
	dialect_encodes(meta, &call, "mg YSBi b T0 f c v\r\n");
	call = (struct call){
		.verb = CALL_GET, .want = WANT_ENCODED | WANT_TTL, .key = SLICE("a b")
	};
	dialect_encodes(meta, &call, "mg YSBi b f t\r\n");
}

TEST(decode_writes)
{
	static const struct expect set = { CALL_SET, WANT_CAS, { "k", 1 }, 0 },
				   incr = { CALL_INCR, WANT_CAS, { "k", 1 }, 0 },
				   del = { CALL_DELETE, WANT_CAS, { "k", 1 }, 0 },
				   get = { CALL_GET, WANT_ENCODED | WANT_CAS | WANT_VALUE,
					   { "a b", 3 }, 0 };
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
		{ "CLIENT_ERROR bad data chunk\r\n",
			"refused [CLIENT_ERROR bad data chunk] suspect" },
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
