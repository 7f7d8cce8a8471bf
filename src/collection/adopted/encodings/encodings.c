#include "collection/adopted/encodings/encodings.h"

#include "protocol/element.h"

static const struct encoding *const encodings[] = {
	[ENCODING_OPLOG] = NULL,
#define ENCODING(id, name) [ENCODING_##id] = &encoding_##name,
#include "collection/encodings.def"
#undef ENCODING
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
	static const char reserved[] =
		"CLIENT_ERROR member contains a byte that its encoding reserves";
	bool delimited = rule->plain_verbs || (encoding && encoding->delimited);

	if (delimited && element_contains(member, rule->delimiter))
		return "CLIENT_ERROR member contains the delimiter";
	/* Elements of lists, too: these encodings do not read longer words, or control bytes. */
	if (encoding && member.n > MEMBER_MAX)
		return "CLIENT_ERROR member too long";
	if (encoding && word_end(member.p, member.p + member.n) != member.p + member.n)
		return reserved;
	for (const char *c = encoding ? encoding->reserved : ""; *c; c++) {
		if (memchr(member.p, *c, member.n))
			return reserved;
	}
	return encoding && member.n == 1 && member.p[0] == encoding->guard ? reserved : NULL;
}
