#include "command/args.h"

#include "collection/text/held.h"
#include "collection/text/lease.h"
#include "collection/text/part_key.h"
#include "protocol/command_key.h"
#include "protocol/commands.h"
#include "protocol/element.h"
#include "util/glob.h"
#include "util/num.h"

/* A marker for the usage of the command. */
static const char bad_form[] = "";
static const char bad_count[] = "CLIENT_ERROR invalid count";
static const char bad_seconds[] = "CLIENT_ERROR invalid seconds";

const char args_long_member[] = "CLIENT_ERROR member too long";
const char args_long_item[] = "CLIENT_ERROR element too long";
const char args_long_key[] = "CLIENT_ERROR key too long";

const char *args_part_refusal(struct slice key)
{
	if (part_key_base(key).n)
		return "CLIENT_ERROR the key is a part of a set or list, and can only be read";
	return "CLIENT_ERROR the key is that of a second copy, and can only be read";
}

bool args_allow_lists(const struct collection_rule *rule)
{
	return rule->copies < 2 &&
		(rule->encoding == ENCODING_OPLOG || rule->encoding == ENCODING_CSV);
}

const char *args_no_list(const struct collection_rule *rule)
{
	return rule->copies < 2 ? "CLIENT_ERROR the encoding of this key is only for sets"
				: "CLIENT_ERROR keys with two copies are only for sets";
}

/* --- members of a set, and elements of a list --- */

/* Returns whether the element of a word has at most `max` bytes. */
static bool word_fits(struct slice word, size_t max)
{
	return word.n <= max || element_size(word) <= max;
}

const char *args_check_special_word(
	const struct collection_rule *rule, struct slice word, const char *too_long)
{
	if (!word_fits(word, too_long == args_long_item ? ELEMENT_MAX : MEMBER_MAX))
		return too_long;
	return encoding_takes_any(rule) ? NULL : encoding_check_member(rule, word);
}

/* Takes the rest of the line. Returns NULL, or the error of the first invalid word. */
static const char *take_members(struct slice rest, struct args *out, size_t *number)
{
	const char *error = NULL;
	struct slice word;

	*number = 0;
	while (!error && (word = slice_token(&rest)).n) {
		if ((*number)++ == 0)
			out->words.p = word.p;
		out->words.n = (size_t)(word.p + word.n - out->words.p);
		error = args_check_word(out->rule, word, args_long_member);
	}
	return error;
}

static const char *args_take_members(struct slice rest, struct args *out)
{
	size_t number;
	const char *error = take_members(rest, out, &number);

	return number ? error : bad_form;
}

static const char *args_take_member(struct slice rest, struct args *out)
{
	size_t number;
	const char *error = take_members(rest, out, &number);

	return error || number == 1 ? error : bad_form;
}

static const char *take_element(struct slice word, struct args *out)
{
	out->words = word;
	return args_check_word(out->rule, word, args_long_item);
}

/* Takes the rest of the line. */
static const char *args_take_any_words(struct slice rest, struct args *out)
{
	out->words = rest;
	return NULL;
}

static const char *args_take_words(struct slice rest, struct args *out)
{
	out->some = true;
	return args_take_any_words(rest, out);
}

/* --- ranges in byte order, of a set --- */

static const char *parse_positive(struct slice word, uint64_t *count)
{
	if (word.n == 0)
		return bad_form;
	return num_parse_u64(word, count) ? NULL : bad_count;
}

static const char *parse_range(struct slice *rest, struct set_range *range)
{
	range->from = slice_token(rest);
	range->to = slice_token(rest);
	range->has_to = true;
	if (range->from.n == 0 || range->to.n == 0)
		return bad_form;
	return word_fits(range->from, MEMBER_MAX) && word_fits(range->to, MEMBER_MAX)
		? NULL
		: args_long_member;
}

static const char *args_take_range(struct slice rest, struct args *out)
{
	const char *error = parse_range(&rest, &out->range);

	return error || slice_token(&rest).n == 0 ? error : bad_form;
}

static const char *args_take_range_count(struct slice rest, struct args *out)
{
	const char *error = parse_range(&rest, &out->range);

	if (!error)
		error = parse_positive(slice_token(&rest), &out->count);
	return error || slice_token(&rest).n == 0 ? error : bad_form;
}

/* Parses `[<after>] [match <pattern>]`. */
static const char *parse_scan(struct slice rest, struct args *out)
{
	struct slice word[3];
	size_t n = 0;

	while (n < 3 && (word[n] = slice_token(&rest)).n)
		n++;
	if (slice_token(&rest).n || (n >= 2 && !slice_equal(word[n - 2], SLICE("match"))))
		return bad_form;
	if (n >= 2)
		out->pattern = word[n - 1];
	if (n % 2)
		out->range.from = word[0];
	out->range.after = true;
	if (!word_fits(out->range.from, MEMBER_MAX))
		return args_long_member;
	return word_fits(out->pattern, GLOB_MAX) ? NULL : "CLIENT_ERROR pattern too long";
}

static const char *args_take_scan(struct slice rest, struct args *out)
{
	struct slice count = slice_token(&rest);
	const char *error = parse_scan(rest, out);

	if (!error)
		error = parse_positive(count, &out->count);
	/*
	 * A count of 0 is not useful here, but clients of Redis start with a cursor of 0, and
	 * would take the reply for an empty set.
	 */
	return !error && out->count == 0 ? bad_form : error;
}

/* --- lines with a fixed number of words --- */

/* Splits the line into words. Returns false if it has more or fewer than `number`. */
static bool split(struct slice rest, size_t number, struct slice *word)
{
	for (size_t i = 0; i < number; i++) {
		word[i] = slice_token(&rest);
		if (word[i].n == 0)
			return false;
	}
	return slice_token(&rest).n == 0;
}

static const char *parse_index(struct slice word, int64_t *index)
{
	return num_parse_i64(word, index) ? NULL : "CLIENT_ERROR invalid index";
}

static const char *args_take_nothing(struct slice rest, struct args *out)
{
	(void)out;
	return slice_token(&rest).n ? bad_form : NULL;
}

static const char *args_take_count(struct slice rest, struct args *out)
{
	struct slice word = slice_token(&rest);

	if (slice_token(&rest).n)
		return bad_form;
	out->counted = word.n > 0;
	return word.n ? parse_positive(word, &out->count) : NULL;
}

/*
 * A negative count requests members with repeats, as in Redis. A small set can return any
 * number of these, so the count is limited.
 */
static const char *args_take_sample(struct slice rest, struct args *out)
{
	enum { REPEATS_MAX = 1000000 };
	struct slice word[2];
	int64_t count;

	if (!split(rest, 1, word) || !num_parse_i64(word[0], &count) || count >= 0)
		return args_take_count(rest, out);
	if (count < -REPEATS_MAX)
		return bad_count;
	out->count = (uint64_t)-count;
	out->counted = out->repeats = true;
	return NULL;
}

static const char *args_take_index(struct slice rest, struct args *out)
{
	struct slice word[2];
	const char *error = split(rest, 1, word) ? parse_index(word[0], &out->first) : bad_form;

	out->last = out->first;
	return error;
}

static const char *args_take_indexes(struct slice rest, struct args *out)
{
	struct slice word[2];
	const char *error = split(rest, 2, word) ? parse_index(word[0], &out->first) : bad_form;

	return error ? error : parse_index(word[1], &out->last);
}

/* A negative count counts from the tail. */
static const char *args_take_count_element(struct slice rest, struct args *out)
{
	struct slice word[2];

	if (!split(rest, 2, word))
		return bad_form;
	return num_parse_i64(word[0], &out->first) ? take_element(word[1], out) : bad_count;
}

static const char *args_take_index_element(struct slice rest, struct args *out)
{
	struct slice word[2];
	const char *error = split(rest, 2, word) ? parse_index(word[0], &out->first) : bad_form;

	return error ? error : take_element(word[1], out);
}

/* --- two keys --- */

/* The other key has its own rule and target. */
static const char *parse_target(struct slice word, struct args *out)
{
	/* Most keys are shorter than any limit. */
	if (word.n > rules_key_max(2) &&
		word.n > rules_key_max(rules_collection(out->rules, word)->copies))
		return args_long_key;
	if (!request_key_valid(word, word.n))
		return "CLIENT_ERROR a key is a word";
	if (command_key_is(&out->rules->commands, word))
		return command_key_refusal(&out->rules->commands, word);
	if (part_key_is_reserved(word))
		return args_part_refusal(word);
	out->target = word;
	return NULL;
}

static const char *parse_list_target(struct slice word, struct args *out)
{
	const char *error = parse_target(word, out);
	const struct collection_rule *rule = rules_collection(out->rules, word);

	return error || args_allow_lists(rule) ? error : args_no_list(rule);
}

/* Parses an end of a list. */
static bool parse_end(struct slice word, int64_t *end)
{
	*end = slice_equal(word, SLICE("right")) ? -1 : 0;
	return *end || slice_equal(word, SLICE("left"));
}

static const char *args_take_list_move(struct slice rest, struct args *out)
{
	struct slice word[3];

	if (!split(rest, 3, word) || !parse_end(word[1], &out->first) ||
		!parse_end(word[2], &out->last))
		return bad_form;
	return parse_list_target(word[0], out);
}

static const char *args_take_list_target(struct slice rest, struct args *out)
{
	struct slice word[3];

	out->first = -1;
	return split(rest, 1, word) ? parse_list_target(word[0], out) : bad_form;
}

static const char *args_take_set_move(struct slice rest, struct args *out)
{
	struct slice word[3];
	const struct collection_rule *rule;
	const char *error;

	if (!split(rest, 2, word))
		return bad_form;
	error = parse_target(word[0], out);
	if (error)
		return error;
	rule = rules_collection(out->rules, word[0]);
	error = encoding_takes_any(rule) ? NULL : encoding_check_member(rule, word[1]);
	return error ? error : args_take_members(word[1], out);
}

/* --- elements and their positions --- */

static const char *args_take_insert(struct slice rest, struct args *out)
{
	struct slice word[3];

	if (!split(rest, 3, word))
		return bad_form;
	out->first = slice_equal(word[0], SLICE("after"));
	if (!out->first && !slice_equal(word[0], SLICE("before")))
		return bad_form;
	out->pivot = word[1];
	return word_fits(word[1], ELEMENT_MAX) ? take_element(word[2], out) : args_long_item;
}

static const char *parse_option(struct slice name, struct slice word, struct list_find *find)
{
	if (slice_equal(name, SLICE("rank")))
		return num_parse_i64(word, &find->rank) && find->rank ? NULL
								      : "CLIENT_ERROR invalid rank";
	if (slice_equal(name, SLICE("maxlen")))
		return num_parse_u64(word, &find->most) ? NULL : "CLIENT_ERROR invalid maxlen";
	if (!slice_equal(name, SLICE("count")))
		return bad_form;
	find->many = true;
	return num_parse_u64(word, &find->count) ? NULL : bad_count;
}

static const char *args_take_position(struct slice rest, struct args *out)
{
	struct slice element = slice_token(&rest), name, word;
	const char *error = element.n ? take_element(element, out) : bad_form;

	out->find = (struct list_find){ .rank = 1, .count = 1 };
	while (!error && (name = slice_token(&rest)).n) {
		word = slice_token(&rest);
		error = word.n ? parse_option(name, word, &out->find) : bad_form;
	}
	return error;
}

/* --- leases --- */

/* Returns the error line if sets and lists of the rule have no leases, else NULL. */
static const char *refuse_lease(const struct args *args)
{
	return args->rule->encoding == ENCODING_OPLOG
		? NULL
		: "CLIENT_ERROR the encoding of this key has no leases";
}

/* If the number is missing, it is 0, and an option sets the duration. */
static const char *args_take_lease(struct slice rest, struct args *out)
{
	const char *error = refuse_lease(out);
	struct slice word = slice_token(&rest);
	bool good = word.n == 0 ||
		(num_parse_u64(word, &out->count) && out->count && out->count <= LEASE_SECONDS_MAX);

	if (error || slice_token(&rest).n)
		return error ? error : bad_form;
	out->count = word.n ? out->count : 0;
	return good ? NULL : bad_seconds;
}

static const char *args_take_load(struct slice rest, struct args *out)
{
	const char *error = refuse_lease(out);

	out->token = slice_token(&rest);
	if (error || out->token.n == 0)
		return error ? error : bad_form;
	return args_take_any_words(rest, out);
}

/* --- members that expire --- */

static const char *args_take_timed(struct slice rest, struct args *out)
{
	enum { SECONDS_MAX = 10 * 365 * 24 * 60 * 60 };
	struct slice word = slice_token(&rest);

	if (out->rule->encoding != ENCODING_OPLOG)
		return "CLIENT_ERROR the encoding of this key has no members that expire";
	if (out->rule->type == COLLECTION_LIST)
		return "CLIENT_ERROR elements of a list do not expire";
	if (word.n == 0)
		return bad_form;
	if (!num_parse_u64(word, &out->seconds) || out->seconds > SECONDS_MAX)
		return bad_seconds;
	out->timed = true;
	return args_take_words(rest, out);
}

/* --- held elements --- */

/* Returns the error line if lists of the rule have no held elements, else NULL. */
static const char *refuse_hold(const struct args *args)
{
	return args->rule->encoding == ENCODING_OPLOG
		? NULL
		: "CLIENT_ERROR the encoding of this key has no held elements";
}

static const char *args_take_hold(struct slice rest, struct args *out)
{
	const char *error = refuse_hold(out);
	struct slice seconds = slice_token(&rest), end = slice_token(&rest);

	if (error)
		return error;
	if (seconds.n == 0 || slice_token(&rest).n || (end.n && !parse_end(end, &out->first)))
		return bad_form;
	return num_parse_u64(seconds, &out->count) && out->count && out->count <= HELD_SECONDS_MAX
		? NULL
		: bad_seconds;
}

static const char *args_take_ticket(struct slice rest, struct args *out)
{
	struct slice word[2];
	const char *error = refuse_hold(out);

	if (error)
		return error;
	if (!split(rest, 1, word))
		return bad_form;
	out->token = word[0];
	return NULL;
}

/* --- all --- */

typedef const char *take(struct slice rest, struct args *out);

static take *const takes[] = {
#define ARGS_GRAMMAR(id, subject, unparsed, arguments) [GRAMMAR_##id] = args_take_##arguments,
#include "protocol/grammars.def"
};

const char *args_parse(const struct rules *rules, const struct request *request, struct args *out)
{
	const struct command *command = request->command;
	const char *error;

	*out = (struct args){
		.rules = rules,
		.rule = rules_collection(rules, request->key),
		.count = 1,
	};
	if (command_traits(command)->subject == SUBJECT_LIST && !args_allow_lists(out->rule))
		return args_no_list(out->rule);
	if (command->id == COMMAND_SCLAIM && out->rule->encoding != ENCODING_OPLOG)
		return "CLIENT_ERROR the encoding of this key has no claims";
	error = takes[command->grammar](request->rest, out);
	return error == bad_form ? command_usage(command->id) : error;
}
