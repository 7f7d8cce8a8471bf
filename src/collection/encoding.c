#include "collection/encoding.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/encodings/encodings.h"
#include "util/alloc.h"

static const struct encoding *const encodings[] = {
	[ENCODING_OPLOG] = NULL,
	[ENCODING_SIGNED] = &encoding_signed,
	[ENCODING_CSV] = &encoding_csv,
	[ENCODING_TOMBSTONE] = &encoding_tombstone,
	[ENCODING_PAIRED] = &encoding_paired,
	[ENCODING_FLIP] = &encoding_flip,
	[ENCODING_INDEXED] = &encoding_indexed,
};

const struct encoding *encoding_get(enum encoding_id id)
{
	return encodings[id];
}

const char *encoding_name(enum encoding_id id)
{
	return encodings[id] ? encodings[id]->name : "oplog";
}

const char *encoding_check_member(const struct collection_rule *rule, struct slice member)
{
	const struct encoding *encoding = encodings[rule->encoding];
	static const char reserved[] = "CLIENT_ERROR member holds a byte that its encoding reserves";
	bool delimited = rule->plain_verbs || (encoding && encoding->delimited);

	if (delimited && memchr(member.p, rule->delimiter, member.n))
		return "CLIENT_ERROR member holds the delimiter";
	for (const char *c = encoding ? encoding->reserved : ""; *c; c++) {
		if (memchr(member.p, *c, member.n))
			return reserved;
	}
	return encoding && member.n == 1 && member.p[0] == encoding->guard ? reserved : NULL;
}

struct piece *snapshot_add(
	struct snapshot *s, int role, struct slice before, struct slice middle, struct slice behind, bool asked)
{
	size_t n = before.n + middle.n + behind.n;
	struct piece *piece;

	assert(n <= KEY_MAX);
	piece = xcalloc(1, sizeof(*piece));
	memcpy(piece->key, before.p, before.n);
	memcpy(piece->key + before.n, middle.p, middle.n);
	memcpy(piece->key + before.n + middle.n, behind.p, behind.n);
	piece->waiter.key = slice_of(piece->key, n);
	piece->role = role;
	piece->asked = asked;
	s->pieces = xrealloc(s->pieces, (s->count + 1) * sizeof(*s->pieces));
	s->pieces[s->count++] = piece;
	return piece;
}

struct piece *snapshot_find(const struct snapshot *s, int role)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->pieces[i]->role == role)
			return s->pieces[i];
	}
	return NULL;
}

void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		buf_free(&s->pieces[i]->value);
		free(s->pieces[i]);
	}
	free(s->pieces);
	s->pieces = NULL;
	s->count = 0;
}

struct slice piece_value(const struct piece *piece)
{
	return buf_slice(&piece->value);
}

struct buf *plan_add(struct plan *plan, enum call_verb verb, struct piece *piece, const struct piece *like)
{
	struct plan_step *step = &plan->steps[plan->count++];

	assert(plan->count <= PLAN_STEPS_MAX);
	*step = (struct plan_step){ .verb = verb, .piece = piece, .like = like };
	return &step->value;
}

struct buf *plan_store(struct plan *plan, struct piece *piece)
{
	return plan_add(plan, piece->there ? CALL_CAS : CALL_ADD, piece, NULL);
}

struct buf *plan_rewrite(struct plan *plan, struct piece *piece)
{
	return plan_add(plan, CALL_CAS, piece, piece);
}

void plan_expire(struct plan *plan, struct piece *piece)
{
	plan_add(plan, CALL_CAS, piece, NULL);
	plan->steps[plan->count - 1].expire = true;
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		buf_free(&plan->steps[i].value);
	*plan = (struct plan){ 0 };
}

bool worth_rewriting(size_t now, size_t size)
{
	return size + size / 9 < now;
}
