#include "command/args.h"

#include "collection/adopted/encodings/encodings.h"
#include "util/num.h"

static const char bad_format[] = "CLIENT_ERROR bad command line format";
static const char long_member[] = "CLIENT_ERROR member too long";

bool args_allow_lists(const struct collection_rule *rule)
{
	return rule->encoding == ENCODING_OPLOG || rule->encoding == ENCODING_CSV;
}

/* --- members of a set, and elements of a list --- */

static const char *check_word(const struct args *args, struct slice word, const char *too_long)
{
	if (word.n > MEMBER_MAX)
		return too_long;
	return encoding_takes_any(args->rule) ? NULL : encoding_check_member(args->rule, word);
}

/* All that is left of the line. */
static const char *take_words(struct slice rest, const char *too_long, struct args *out)
{
	const char *error = NULL;
	struct slice word;

	out->words = rest;
	while (!error && (word = slice_token(&rest)).n) {
		error = check_word(out, word, too_long);
		out->number++;
		out->bytes += word.n + 2;
	}
	return error;
}

static const char *take_members(struct slice rest, struct args *out)
{
	const char *error = take_words(rest, long_member, out);

	return error || out->number ? error : "CLIENT_ERROR no member given";
}

static const char *take_elements(struct slice rest, struct args *out)
{
	const char *error = take_words(rest, "CLIENT_ERROR item too long", out);

	return error || out->number ? error : "CLIENT_ERROR no item given";
}

/* --- numbers --- */

static const char *take_count(struct slice word, struct args *out)
{
	if (word.n == 0)
		return bad_format;
	return num_parse_u64(word, &out->count) ? NULL : "CLIENT_ERROR invalid count";
}

static const char *take_index(struct slice word, int64_t *index)
{
	return num_parse_i64(word, index) ? NULL : "CLIENT_ERROR invalid index";
}

/* --- ranges in byte order --- */

static const char *take_range(struct slice *rest, struct args *out)
{
	struct set_range *range = &out->range;

	range->from = slice_token(rest);
	range->to = slice_token(rest);
	range->has_to = true;
	if (range->from.n == 0 || range->to.n == 0)
		return bad_format;
	return range->from.n > MEMBER_MAX || range->to.n > MEMBER_MAX ? long_member : NULL;
}

/* <count> [<after>] */
static const char *take_scan(struct slice rest, struct args *out)
{
	struct slice count = slice_token(&rest);

	out->range.from = slice_token(&rest);
	out->range.after = true;
	if (out->range.from.n > MEMBER_MAX)
		return long_member;
	return slice_token(&rest).n ? bad_format : take_count(count, out);
}

/* --- lines of few words, whose number is checked first --- */

static const struct few {
	unsigned char least, most;
} few[] = {
	[GRAMMAR_SET] = { 0, 0 },
	[GRAMMAR_SET_COUNT] = { 0, 1 },
	[GRAMMAR_LIST] = { 0, 0 },
	[GRAMMAR_LIST_COUNT] = { 0, 1 },
	[GRAMMAR_LIST_INDEX] = { 1, 1 },
	[GRAMMAR_LIST_INDEXES] = { 2, 2 },
	[GRAMMAR_LIST_ELEMENT] = { 1, 1 },
	[GRAMMAR_LIST_COUNT_ELEMENT] = { 2, 2 },
	[GRAMMAR_LIST_INDEX_ELEMENT] = { 2, 2 },
};

static const char *take_few(enum grammar grammar, struct slice rest, struct args *out)
{
	struct slice first = slice_token(&rest), second = slice_token(&rest);
	size_t number = (first.n > 0) + (second.n > 0) + (slice_token(&rest).n > 0);
	const char *error;

	if (number < few[grammar].least || number > few[grammar].most)
		return bad_format;
	switch (grammar) {
	case GRAMMAR_SET_COUNT:
	case GRAMMAR_LIST_COUNT:
		return first.n ? take_count(first, out) : NULL;
	case GRAMMAR_LIST_INDEX:
		error = take_index(first, &out->first);
		out->last = out->first;
		return error;
	case GRAMMAR_LIST_INDEXES:
		error = take_index(first, &out->first);
		return error ? error : take_index(second, &out->last);
	case GRAMMAR_LIST_ELEMENT:
		return take_elements(first, out);
	case GRAMMAR_LIST_COUNT_ELEMENT:
		/* Below 0 it counts from the tail. */
		return num_parse_i64(first, &out->first) ? take_elements(second, out) : "CLIENT_ERROR invalid count";
	case GRAMMAR_LIST_INDEX_ELEMENT:
		error = take_index(first, &out->first);
		return error ? error : take_elements(second, out);
	default:
		return NULL;
	}
}

const char *args_parse(const struct rules *rules, const struct request *request, struct args *out)
{
	enum grammar grammar = request->command->grammar;
	struct slice rest = request->rest;
	const char *error;

	*out = (struct args){ .rule = rules_collection(rules, request->key), .count = 1 };
	if (grammar >= GRAMMAR_LIST && !args_allow_lists(out->rule))
		return "CLIENT_ERROR the encoding of this key is for sets alone";
	switch (grammar) {
	case GRAMMAR_SET_MEMBERS:
		return take_members(rest, out);
	case GRAMMAR_SET_ANY_MEMBERS:
		return take_words(rest, long_member, out);
	case GRAMMAR_SET_MEMBER:
		error = take_members(rest, out);
		return error || out->number == 1 ? error : bad_format;
	case GRAMMAR_SET_RANGE:
		error = take_range(&rest, out);
		break;
	case GRAMMAR_SET_RANGE_COUNT:
		error = take_range(&rest, out);
		if (!error)
			error = take_count(slice_token(&rest), out);
		break;
	case GRAMMAR_SET_SCAN:
		return take_scan(rest, out);
	case GRAMMAR_LIST_ELEMENTS:
		return take_elements(rest, out);
	default:
		return take_few(grammar, rest, out);
	}
	return error || slice_token(&rest).n == 0 ? error : bad_format;
}
