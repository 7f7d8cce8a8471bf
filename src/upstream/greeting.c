#include "upstream/greeting.h"

#include "protocol/dialect.h"
#include "util/num.h"

void greeting_encode(struct slice login, struct buf *out)
{
	if (login.n) {
		buf_printf(out, "set setlistd-authentication 0 -1 %zu\r\n", login.n);
		buf_add_slice(out, login);
		BUF_ADD(out, "\r\n");
	}
	BUF_ADD(out, "version\r\nmn\r\nstats settings\r\nstats\r\n");
}

/* Parses "1.6.18" or "1.6.18_4_gabcdef". Missing numbers are 0. */
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
	(void)num_parse_u64(dialect_stat(text, SLICE("item_size_max")), &g->item_max);
	g->cas = !slice_equal(dialect_stat(text, SLICE("cas_enabled")), SLICE("no"));
}

static void parse_clock(const struct result *stats, struct greeting *g)
{
	int64_t uptime;

	g->time = dialect_clock(stats);
	if (g->time && num_parse_i64(dialect_stat(stats->line, SLICE("uptime")), &uptime))
		g->started = g->time - uptime;
}

ssize_t greeting_decode(struct slice in, unsigned which, struct greeting *g)
{
	static const enum call_verb verbs[GREETING_REPLIES] = { CALL_VERSION, CALL_NOOP, CALL_STATS,
		CALL_STATS };
	struct expect expect = { .verb = verbs[which] };
	struct result r = { 0 };
	ssize_t n = dialect_classic.decode(in, &expect, &r);

	if (n <= 0)
		return n;
	switch (expect.verb) {
	case CALL_VERSION:
		/* Any other line is an error, such as too many connections. */
		if (!slice_starts(r.line, SLICE("VERSION ")))
			return -1;
		g->version = parse_version(slice_skip(r.line, 8));
		break;
	case CALL_NOOP:
		g->meta = slice_equal(r.line, SLICE("MN"));
		break;
	default:
		if (which == GREETING_REPLIES - 1)
			parse_clock(&r, g);
		else if (r.status == RESULT_TEXT)
			parse_settings(r.line, g);
		else
			g->cas = true;
	}
	return n;
}

/*
 * memcached answers only the last of several requests that it refuses. So the first reply that
 * is a refusal may be the reply to any part of the greeting.
 */
static bool is_refusal(struct slice line)
{
	return slice_starts(line, SLICE("CLIENT_ERROR unauthenticated")) ||
		slice_starts(line, SLICE("CLIENT_ERROR auth"));
}

ssize_t greeting_read(struct slice in, bool has_login, struct greeting *g)
{
	struct slice rest = in, line;
	size_t length;
	ssize_t n;

	if (!dialect_line(in, &line, &length))
		return dialect_incomplete(in);
	g->refused = is_refusal(line);
	if (has_login) {
		if (!slice_equal(line, SLICE("STORED")))
			return -1;
		rest = slice_skip(rest, length);
	}
	for (unsigned which = 0; which < GREETING_REPLIES; which++) {
		n = greeting_decode(rest, which, g);
		if (n <= 0)
			return n;
		rest = slice_skip(rest, (size_t)n);
	}
	return (ssize_t)(in.n - rest.n);
}
