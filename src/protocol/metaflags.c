#include "protocol/metaflags.h"

#include <stdint.h>

#include "protocol/limits.h"
#include "util/num.h"

/* memcached takes 20 tokens, flags and others. On an `ms` with more it loses sync: it reads the data block as commands. */
enum { FLAGS_MAX = 16 };

struct letters {
	const char *bare;    /* without an argument */
	const char *number;  /* an unsigned number follows */
	const char *seconds; /* a time follows, which may be negative */
	const char *modes;   /* the arguments of M */
};

/* Beside these, O, P and L are allowed with all commands. Servers ignore P and L, which are reserved for proxies. */
static struct letters letters_of(enum command_id command)
{
	switch (command) {
	case COMMAND_MG:
		return (struct letters){ "bcfhklqstuv", "CE", "NRT", "" };
	case COMMAND_MS:
		return (struct letters){ "bcfIkqs", "CEF", "NT", "EeAaPpRrSs" };
	case COMMAND_MD:
		return (struct letters){ "bIkqx", "CE", "T", "" };
	case COMMAND_MA:
		return (struct letters){ "bckqtv", "CDEJ", "NT", "IiDd+-" };
	default:
		return (struct letters){ "bkq", "", "", "" };
	}
}

static bool has(const char *letters, char c)
{
	return c && strchr(letters, c);
}

static const char *check_flag(const struct letters *known, struct slice flag)
{
	struct slice token = slice_skip(flag, 1);
	uint64_t number;
	int32_t seconds;

	switch (flag.p[0]) {
	case 'O':
		return token.n > OPAQUE_MAX ? "CLIENT_ERROR opaque token too long" : NULL;
	case 'L':
	case 'P':
		return NULL;
	}
	if (has(known->bare, flag.p[0]))
		return token.n ? "CLIENT_ERROR invalid flag" : NULL;
	if (has(known->number, flag.p[0])) {
		bool flags = flag.p[0] == 'F';
		bool good = num_parse_u64(token, &number) && (!flags || number <= UINT32_MAX);
		return good ? NULL : "CLIENT_ERROR bad token in command line format";
	}
	if (has(known->seconds, flag.p[0]))
		return num_parse_i32(token, &seconds) ? NULL : "CLIENT_ERROR bad token in command line format";
	if (flag.p[0] == 'M' && known->modes[0])
		return token.n == 1 && has(known->modes, token.p[0]) ? NULL : "CLIENT_ERROR invalid mode";
	return "CLIENT_ERROR invalid flag";
}

const char *metaflags_parse(enum command_id command, struct slice flags, struct metaflags *out)
{
	struct letters known = letters_of(command);
	uint64_t seen[2] = { 0, 0 };
	struct slice flag;
	int count = 0;

	*out = (struct metaflags){ 0 };
	while ((flag = slice_token(&flags)).n) {
		unsigned char c = (unsigned char)flag.p[0];
		const char *error = check_flag(&known, flag);

		if (error)
			return error;
		if (++count > FLAGS_MAX)
			return "CLIENT_ERROR options flags too long";
		if (seen[c / 64] & UINT64_C(1) << c % 64)
			return "CLIENT_ERROR duplicate flag";
		seen[c / 64] |= UINT64_C(1) << c % 64;
		out->quiet |= c == 'q';
		out->base64 |= c == 'b';
		out->value |= c == 'v';
	}
	return NULL;
}

void metaflags_copy(struct slice flags, struct buf *out)
{
	struct slice flag;

	while ((flag = slice_token(&flags)).n) {
		if (flag.p[0] == 'q')
			continue;
		BUF_ADD(out, " ");
		buf_add_slice(out, flag);
	}
}

static int sextet(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t metaflags_decode_key(struct slice in, char *out)
{
	size_t n = 0, padding = 0;

	if (in.n == 0 || in.n % 4)
		return 0;
	while (padding < 2 && in.p[in.n - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < in.n; i += 4) {
		uint32_t bits = 0;
		for (size_t j = i; j < i + 4; j++) {
			int value = j >= in.n - padding ? 0 : sextet(in.p[j]);
			if (value < 0)
				return 0;
			bits = bits << 6 | (uint32_t)value;
		}
		out[n++] = (char)(bits >> 16);
		out[n++] = (char)(bits >> 8);
		out[n++] = (char)bits;
	}
	return n - padding;
}
