#include "upstream/greeting.h"

#include "protocol/dialect.h"
#include "util/num.h"

void greeting_encode(struct buf *out)
{
	BUF_ADD(out, "version\r\nmn\r\nstats settings\r\n");
}

/* "1.6.18" or "1.6.18_4_gabcdef". Missing numbers are 0. */
static unsigned parse_version(struct slice text)
{
	unsigned version = 0, part = 0, parts = 0;

	for (size_t i = 0; i <= text.n && parts < 3; i++) {
		unsigned digit = i < text.n ? (unsigned)text.p[i] - '0' : 10;
		if (digit <= 9 && part < 25) {
			part = part * 10 + digit;
			continue;
		}
		version = version << 8 | part;
		parts++;
		part = 0;
		if (digit > 9 && (i == text.n || text.p[i] != '.'))
			break;
	}
	return version << 8 * (3 - parts);
}

static void parse_settings(struct slice text, struct greeting *g)
{
	struct slice line, name;
	size_t n;

	while (dialect_line(text, &line, &n)) {
		text = slice_skip(text, n);
		(void)slice_token(&line);
		name = slice_token(&line);
		if (slice_equal(name, SLICE("item_size_max")))
			(void)num_parse_u64(slice_token(&line), &g->item_max);
		else if (slice_equal(name, SLICE("cas_enabled")))
			g->cas = !slice_equal(slice_token(&line), SLICE("no"));
	}
}

ssize_t greeting_decode(struct slice in, unsigned which, struct greeting *g)
{
	static const enum call_verb verbs[GREETING_REPLIES] = { CALL_VERSION, CALL_NOOP, CALL_STATS };
	struct expect expect = { .verb = verbs[which] };
	struct result r = { 0 };
	ssize_t n = dialect_classic.decode(in, &expect, &r);

	if (n <= 0)
		return n;
	switch (expect.verb) {
	case CALL_VERSION:
		/* Not an error such as too many connections. */
		if (!slice_starts(r.line, SLICE("VERSION ")))
			return -1;
		g->version = parse_version(slice_skip(r.line, 8));
		break;
	case CALL_NOOP:
		g->meta = slice_equal(r.line, SLICE("MN"));
		break;
	default:
		g->cas = true;
		if (r.status == RESULT_TEXT)
			parse_settings(r.line, g);
	}
	return n;
}
