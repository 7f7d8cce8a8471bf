#include "collection/text/lease.h"

#include <assert.h>

#include "util/num.h"
#include "util/random.h"

#define FILL "@fill."
#define SET_LOADING "@set.2 "
#define LIST_LOADING "@list.2 "

/* Removes the references to runs from the front, and returns them. */
static struct slice take_runs(struct slice *rest)
{
	struct slice refs = *rest;
	struct oplog_run run;

	while (oplog_next_run(rest, &run))
		;
	refs.n -= rest->n;
	return refs;
}

static bool is_token(struct slice token)
{
	for (size_t i = 0; i < token.n; i++) {
		if (!((token.p[i] >= 'a' && token.p[i] <= 'z') ||
			    (token.p[i] >= '0' && token.p[i] <= '9')))
			return false;
	}
	return token.n == LEASE_TOKEN;
}

/* @fill.<token>.<deadline>.<seconds>, perhaps .3, and a space. */
static bool take_lease(struct slice *rest, struct lease *out, bool *wide)
{
	const char *space = rest->n ? memchr(rest->p, ' ', rest->n) : NULL;
	struct slice word = slice_of(rest->p, space ? (size_t)(space - rest->p) : 0);

	if (!slice_starts(word, SLICE(FILL)))
		return false;
	*rest = slice_skip(*rest, word.n + 1);
	word = slice_skip(word, sizeof(FILL) - 1);
	out->token = slice_cut(&word, '.');
	if (!is_token(out->token) || !num_parse_u64(slice_cut(&word, '.'), &out->deadline) ||
		!num_parse_u32(slice_cut(&word, '.'), &out->seconds))
		return false;
	*wide = slice_equal(word, SLICE("3"));
	return (*wide || word.n == 0) && out->seconds && out->seconds <= LEASE_SECONDS_MAX;
}

bool lease_split(struct slice base, struct lease_base *out)
{
	struct oplog_base split;
	struct slice rest;

	(void)oplog_split(base, &split);
	if (split.form != OPLOG_LOADING)
		return false;
	rest = slice_skip(
		split.block, split.is_list ? sizeof(LIST_LOADING) - 1 : sizeof(SET_LOADING) - 1);
	out->is_list = split.is_list;
	out->head = split.head;
	out->log = split.log;
	out->runs = split.is_list ? slice_of(rest.p, 0) : take_runs(&rest);
	if (!take_lease(&rest, &out->lease, &out->wide))
		return false;
	out->loaded = rest;
	return true;
}

void lease_new_token(uint64_t *random, char token[LEASE_TOKEN])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	uint64_t bits = random_next(random);

	for (size_t i = 0; i < LEASE_TOKEN; i++) {
		token[i] = letters[bits % (sizeof(letters) - 1)];
		bits /= sizeof(letters) - 1;
	}
}

bool lease_is_over(const struct lease *lease, int64_t now)
{
	uint64_t time = now > 0 ? (uint64_t)now : 0;

	return time > lease->deadline || lease->deadline - time > LEASE_SECONDS_MAX;
}

void lease_write(const struct lease_base *base, struct slice more, struct buf *out)
{
	buf_add_slice(out, base->head);
	if (base->is_list)
		BUF_ADD(out, LIST_LOADING);
	else
		BUF_ADD(out, SET_LOADING);
	buf_add_slice(out, base->runs);
	BUF_ADD(out, FILL);
	buf_add_slice(out, base->lease.token);
	BUF_ADD(out, ".");
	buf_add_u64(out, base->lease.deadline);
	BUF_ADD(out, ".");
	buf_add_u64(out, base->lease.seconds);
	if (base->wide)
		BUF_ADD(out, ".3");
	BUF_ADD(out, " ");
	buf_add_slice(out, base->loaded);
	buf_add_slice(out, more);
	buf_add_slice(out, base->log);
}

void lease_complete(
	const struct lease_base *base, struct slice more, struct slice log, struct buf *out)
{
	assert(base->runs.n == 0 || log.n == 0);
	buf_add_slice(out, base->head);
	if (base->is_list || base->loaded.n || more.n || base->runs.n)
		oplog_add_mark(out, base->is_list, base->wide);
	buf_add_slice(out, base->loaded);
	buf_add_slice(out, more);
	buf_add_slice(out, base->runs);
	buf_add_slice(out, log);
	buf_add_slice(out, base->log);
}

void lease_add_refs(struct slice base, struct buf *out)
{
	struct oplog_base split;
	struct lease_base loading;

	if (oplog_split(base, &split)) {
		buf_add_slice(out, split.refs);
	} else if (split.form == OPLOG_LOADING && lease_split(base, &loading)) {
		buf_add_slice(out, loading.runs);
		buf_add_slice(out, loading.loaded);
	}
}
