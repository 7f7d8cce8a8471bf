#include "collection/text/oplog.h"

#include "protocol/request.h"
#include "util/num.h"
#include "util/random.h"

static bool is_word(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
			return false;
	}
	return true;
}

/* Takes a number off the front, up to `end` or, with 0, the end of all. */
static bool take_number(struct slice *rest, char end, uint32_t *out)
{
	const char *at = end ? memchr(rest->p, end, rest->n) : rest->p + rest->n;
	size_t n;

	if (!at)
		return false;
	n = (size_t)(at - rest->p);
	if (!num_parse_u32(slice_of(rest->p, n), out))
		return false;
	*rest = slice_skip(*rest, end ? n + 1 : n);
	return true;
}

/* <letter><random>.<number>.<size> */
static bool parse_id(struct slice id, struct oplog_ref *out)
{
	struct slice rest;

	if (id.n < OPLOG_GROUP + 4 || id.n > OPLOG_ID_MAX || id.p[OPLOG_GROUP] != '.' || !memchr("cdl", id.p[0], 3))
		return false;
	out->id = id;
	out->group = slice_of(id.p, OPLOG_GROUP);
	out->kind = (enum oplog_kind)id.p[0];
	out->clean = out->kind == OPLOG_CLEAN;
	rest = slice_skip(id, OPLOG_GROUP + 1);
	return is_word(out->group) && take_number(&rest, '.', &out->count) && take_number(&rest, 0, &out->kilobytes);
}

/* <skip>:<keep>, of a list's segment alone, and of what it has. */
static bool parse_window(struct slice window, struct oplog_ref *out)
{
	return out->kind == OPLOG_LIST && take_number(&window, ':', &out->skip) &&
		take_number(&window, 0, &out->keep) && out->keep && (uint64_t)out->skip + out->keep <= out->count;
}

static bool parse_ref(struct slice token, struct oplog_ref *out)
{
	const char *colon = memchr(token.p, ':', token.n);
	size_t n = colon ? (size_t)(colon - token.p) : token.n;

	if (!parse_id(slice_of(token.p, n), out))
		return false;
	out->skip = 0;
	out->keep = out->count;
	if (colon)
		return parse_window(slice_skip(token, n + 1), out);
	return out->kind != OPLOG_LIST || out->count > 0;
}

bool oplog_next_ref(struct slice *refs, struct oplog_ref *out)
{
	const char *end = refs->n ? memchr(refs->p, ' ', refs->n) : NULL;
	size_t n;

	if (!end || refs->p[0] != '@')
		return false;
	n = (size_t)(end - refs->p);
	if (!parse_ref(slice_of(refs->p + 1, n - 1), out))
		return false;
	*refs = slice_skip(*refs, n + 1);
	return true;
}

/* Where the first token stands that begins with @; the size of the log when there is none. */
static size_t find_block(struct slice log)
{
	const char *at = log.p, *end = log.p + log.n;

	/* memchr looks at many bytes at once, memmem at one. */
	while (at < end && (at = memchr(at, '@', (size_t)(end - at)))) {
		if (at == log.p || at[-1] == ' ')
			return (size_t)(at - log.p);
		at++;
	}
	return log.n;
}

bool oplog_has_block(struct slice log)
{
	return find_block(log) < log.n;
}

/* Tokens of additions and removals and nothing else. */
static bool is_log(struct slice log)
{
	while (log.n) {
		const char *space = memchr(log.p, ' ', log.n);
		size_t n = space ? (size_t)(space - log.p) : 0;
		if (n < 2 || (log.p[0] != '+' && log.p[0] != '-') ||
			!request_key_valid(slice_of(log.p + 1, n - 1), MEMBER_MAX))
			return false;
		log = slice_skip(log, n + 1);
	}
	return true;
}

bool oplog_split(struct slice base, struct oplog_base *out)
{
	size_t at = find_block(base);
	struct slice rest = slice_skip(base, at);
	struct oplog_ref ref;

	*out = (struct oplog_base){ 0 };
	if (at == base.n) {
		out->head = out->refs = slice_of(base.p, 0);
		out->log = base;
		return true;
	}
	out->head = slice_of(base.p, at);
	if (slice_starts(rest, SLICE(OPLOG_LIST_MARK))) {
		out->is_list = true;
		rest = slice_skip(rest, sizeof(OPLOG_LIST_MARK) - 1);
	}
	out->refs = rest;
	for (; oplog_next_ref(&rest, &ref); out->ref_count++)
		out->is_list |= ref.kind == OPLOG_LIST;
	out->refs.n -= rest.n;
	out->log = rest;
	return !oplog_has_block(rest) && is_log(out->head);
}

static struct slice skip_tokens(struct slice log, size_t count)
{
	const char *space;

	while (count-- && log.n && (space = memchr(log.p, ' ', log.n)))
		log = slice_skip(log, (size_t)(space - log.p) + 1);
	return log;
}

struct slice oplog_window(struct slice data, const struct oplog_ref *ref)
{
	struct slice shown, behind;

	if (ref->kind != OPLOG_LIST || (ref->skip == 0 && ref->keep == ref->count))
		return data;
	shown = skip_tokens(data, ref->skip);
	behind = skip_tokens(shown, ref->keep);
	return slice_of(shown.p, shown.n - behind.n);
}

void oplog_add_ref(struct buf *out, struct slice id, size_t count, size_t skip, size_t keep)
{
	BUF_ADD(out, "@");
	buf_add_slice(out, id);
	if (skip || keep < count) {
		BUF_ADD(out, ":");
		buf_add_u64(out, skip);
		BUF_ADD(out, ":");
		buf_add_u64(out, keep);
	}
	BUF_ADD(out, " ");
}

void oplog_new_group(enum oplog_kind kind, uint64_t *random, char group[OPLOG_GROUP])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	uint64_t bits = random_next(random);

	group[0] = (char)kind;
	for (int i = 1; i < OPLOG_GROUP; i++) {
		group[i] = letters[bits % 36];
		bits /= 36;
	}
}

void oplog_add_id(struct buf *out, const char group[OPLOG_GROUP], size_t number, size_t bytes)
{
	buf_add(out, group, OPLOG_GROUP);
	BUF_ADD(out, ".");
	buf_add_u64(out, number);
	BUF_ADD(out, ".");
	buf_add_u64(out, (bytes + 1023) / 1024);
}

size_t oplog_cut(struct slice log, size_t max)
{
	const char *space;

	if (log.n <= max)
		return log.n;
	space = memrchr(log.p, ' ', max);
	return space ? (size_t)(space - log.p) + 1 : 0;
}

size_t oplog_cut_end(struct slice log, size_t max)
{
	const char *space;

	if (log.n <= max)
		return log.n;
	space = memchr(log.p + log.n - max - 1, ' ', max);
	return space ? (size_t)(log.p + log.n - space) - 1 : 0;
}

size_t oplog_count(struct slice log)
{
	size_t count = 0;

	for (size_t i = 0; i < log.n; i++)
		count += log.p[i] == ' ';
	return count;
}
