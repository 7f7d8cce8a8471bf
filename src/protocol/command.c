#include "protocol/command.h"
#include "protocol/commands.h"

#define KEY_MAX_OF(subject) \
	((subject) == SUBJECT_SET || (subject) == SUBJECT_LIST ? COLLECTION_KEY_MAX : KEY_MAX)

const struct grammar_traits grammars[] = {
#define GRAMMAR(id, keys, before, subject, data, ...) \
	{ KEYS_##keys, before, SUBJECT_##subject, KEY_MAX_OF(SUBJECT_##subject), data, false, 0 },
#define ARGS_GRAMMAR(id, subject, unparsed, ...) \
	{ KEYS_ONE, 0, SUBJECT_##subject, KEY_MAX_OF(SUBJECT_##subject), false, true, unparsed },
#include "protocol/grammars.def"
};

#define READS_VALUES(id, grammar) \
	((grammar) == GRAMMAR_KEYS || (grammar) == GRAMMAR_TOUCH_KEYS || (id) == COMMAND_MG)

static const struct command commands[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, order, counter, reply, noreply, usage, summary) \
	{ COMMAND_##id, GRAMMAR_##grammar, ORDER_##order, COMMAND_REPLY_##reply, noreply, \
		READS_VALUES(COMMAND_##id, GRAMMAR_##grammar), { name, sizeof(name) - 1 }, usage, \
		summary },
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
};

enum { HEADS = 128 };

/*
 * The names again, padded with zeroes, for a search that touches few cache lines. Their first
 * eight bytes differ.
 */
static const char heads[HEADS][16] = {
#define COMMAND(id, name, ...) name,
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
};

/* Returns whether a head is at most the rank. The empty ones at the end are above all: 0 - 1. */
static inline bool is_at_most(const char *head, uint64_t rank)
{
	return word_rank(head, sizeof(heads[0])) - 1 < rank;
}

/* Binary search by the first eight bytes, which are the whole name in most cases. */
const struct command *command_lookup(struct slice name)
{
	uint64_t rank = word_rank(name.p, name.n);
	size_t at = 0;

	_Static_assert(COMMAND_COUNT <= 128, "the heads, and the bits of a command_set");

	for (size_t step = HEADS / 2; step > 0; step /= 2)
		at += is_at_most(heads[at + step], rank) ? step : 0;
	if (commands[at].name.n != name.n || word_rank(heads[at], sizeof(heads[0])) != rank)
		return NULL;
	return name.n <= WORD_BYTES || slice_equal(name, commands[at].name) ? &commands[at] : NULL;
}

const struct command *command_get(command_id id)
{
	return &commands[id];
}

/* Error lines. */
static const struct {
	const char *denied, *usage;
} errors[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, order, counter, reply, noreply, usage, ...) \
	{ "CLIENT_ERROR " name " is denied here", "CLIENT_ERROR usage: " usage },
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
};

const char *command_denied(command_id id)
{
	return errors[id].denied;
}

const char *command_usage(command_id id)
{
	return errors[id].usage;
}
