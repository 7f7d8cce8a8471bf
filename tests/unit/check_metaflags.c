#include "protocol/commands.h"
#include "protocol/metaflags.h"
#include "protocol/request.h"
#include "unit.h"

static const char *parse(command_id id, const char *flags, struct metaflags *out)
{
	return metaflags_parse(id, guard_text(flags), out);
}

static void good(command_id id, const char *flags)
{
	struct metaflags out;
	const char *error = parse(id, flags, &out);

	ck_assert_msg(!error, "%s: %s: %s", command_get(id)->name.p, flags, error);
}

static void bad(command_id id, const char *flags, const char *expected)
{
	struct metaflags out;
	const char *error = parse(id, flags, &out);

	ck_assert_msg(error && strcmp(error, expected) == 0, "%s: %s: %s", command_get(id)->name.p,
		flags, error);
}

TEST(known_flags)
{
	good(COMMAND_MG, "");
	good(COMMAND_MG, " b c f h k l q s t u v N30 R30 T-1 Oabc");
	good(COMMAND_MS, " b c k q C18446744073709551615 E1 F4294967295 I T0 MA N5");
	good(COMMAND_MD, " b C1 I k O q T30 x");
	good(COMMAND_MA, " b C1 D18446744073709551615 E1 J0 N0 T1 MI k q t v c");
	good(COMMAND_ME, " b");
	good(COMMAND_ME, " b b \xff T Mx");
	for (const char *mode = "EeAaPpRrSs"; *mode; mode++)
		good(COMMAND_MS, (char[]){ 'M', *mode, '\0' });
	for (const char *mode = "IiDd+-"; *mode; mode++)
		good(COMMAND_MA, (char[]){ 'M', *mode, '\0' });
}

TEST(unknown_flags)
{
	bad(COMMAND_MG, " Z", "CLIENT_ERROR invalid flag");
	bad(COMMAND_MG, " b1", "CLIENT_ERROR invalid flag");
	bad(COMMAND_MS, " G", "CLIENT_ERROR invalid flag");
	bad(COMMAND_MD, " -", "CLIENT_ERROR invalid flag");
	bad(COMMAND_MG, " M", "CLIENT_ERROR invalid mode");
	bad(COMMAND_MS, " M", "CLIENT_ERROR invalid mode");
	bad(COMMAND_MS, " MZ", "CLIENT_ERROR invalid mode");
	bad(COMMAND_MS, " MSS", "CLIENT_ERROR invalid mode");
	bad(COMMAND_MA, " MS", "CLIENT_ERROR invalid mode");
	bad(COMMAND_MG, " v v", "CLIENT_ERROR duplicate flag");
	bad(COMMAND_MG, " O1 O2", "CLIENT_ERROR duplicate flag");
	bad(COMMAND_MG, " \xff", "CLIENT_ERROR invalid flag");
}

/*
 * memcached accepts them for any of the four commands; those without a meaning for one are
 * ignored.
 */
TEST(ignored_flags)
{
	static const command_id commands[] = { COMMAND_MG, COMMAND_MS, COMMAND_MD, COMMAND_MA };

	for (size_t i = 0; i < 4; i++) {
		good(commands[i], " c f h k l q s t u v I x L P");
		good(commands[i], " v1 kk qx");
		good(commands[i], " C1 D1 E1 F1 J1 N1 R1 T1");
	}
	good(COMMAND_MG, " MA");
	good(COMMAND_MD, " Mxy");
}

TEST(numbers)
{
	static const char wrong[] = "CLIENT_ERROR bad token in command line format";

	bad(COMMAND_MG, " T", wrong);
	bad(COMMAND_MG, " Tx", wrong);
	bad(COMMAND_MG, " T4294967296", wrong);
	bad(COMMAND_MG, " C", wrong);
	bad(COMMAND_MG, " C-1", wrong);
	bad(COMMAND_MS, " C18446744073709551616", wrong);
	bad(COMMAND_MS, " F4294967296", wrong);
	bad(COMMAND_MS, " F-1", wrong);
	bad(COMMAND_MA, " D-1", wrong);
	bad(COMMAND_MA, " Nx", wrong);
}

/* A server that receives more than it accepts gets out of step. */
TEST(bounded)
{
	good(COMMAND_MG, " O12345678901234567890123456789012");
	bad(COMMAND_MG, " O123456789012345678901234567890123",
		"CLIENT_ERROR opaque token too long");
	good(COMMAND_MG, " b c f h k l q s t u v N1 R1 T1 O1 E1");
	bad(COMMAND_MG, " b c f h k l q s t u v N1 R1 T1 O1 E1 C1",
		"CLIENT_ERROR options flags too long");
}

TEST(what_is_asked_for)
{
	struct metaflags out;

	ck_assert_ptr_null(parse(COMMAND_MG, " q v b", &out));
	ck_assert(metaflags_has(&out, 'q') && metaflags_has(&out, 'v') && metaflags_has(&out, 'b'));
	ck_assert_ptr_null(parse(COMMAND_MG, " k Oqvb", &out));
	ck_assert(!metaflags_has(&out, 'q') && !metaflags_has(&out, 'v') &&
		!metaflags_has(&out, 'b'));
}

TEST(item)
{
	static const struct {
		const char *line;
		bool names;
	} cases[] = { { "Pitem", true }, { "v k Pitem q", true }, { "P", false },
		{ "Pitems", false }, { "P0 v", false }, { "OPitem v", false }, { "Litem", false },
		{ "v", false } };
	struct metaflags out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_ptr_null(parse(COMMAND_MG, cases[i].line, &out));
		ck_assert_msg(
			metaflags_name_item(&out, slice_of(cases[i].line, strlen(cases[i].line))) ==
				cases[i].names,
			"%s", cases[i].line);
	}
}

TEST(copies_all_but_q)
{
	char out[32];

	assert_bytes(slice_of(out, metaflags_copy(guard_text("  v  q Oq T30   q"), "q", out)),
		" v Oq T30");
	assert_bytes(slice_of(out, metaflags_copy(guard_text(""), "q", out)), "");
}

static void decodes(const char *in, struct slice expected)
{
	char out[KEY_MAX];
	size_t n = metaflags_decode_key(guard_text(in), out);

	ck_assert_msg(slice_equal(slice_of(out, n), expected), "%s", in);
}

TEST(base64)
{
	decodes("Zg==", SLICE("f"));
	decodes("Zm8=", SLICE("fo"));
	decodes("Zm9v", SLICE("foo"));
	decodes("Zm9vYg==", SLICE("foob"));
	decodes("Zm9vYmE=", SLICE("fooba"));
	decodes("Zm9vYmFy", SLICE("foobar"));
	decodes("AP+/", SLICE("\0\xff\xbf"));
	decodes("+/+/", SLICE("\xfb\xff\xbf"));
}

TEST(not_base64)
{
	const char *wrong[] = { "", "Z", "Zg", "Zg=", "====", "Z===", "Zm9v=", "Zg==Zg==", "Zm=v",
		"Z g=", "Zm9-", "Zm9_", "Zm9vZg=", "Zm9\x80" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		decodes(wrong[i], SLICE(""));
}
