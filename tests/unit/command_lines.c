#include "command_lines.h"

#include "protocol/binary.h"
#include "protocol/command_key.h"
#include "protocol/commands.h"

/* The arguments of a grammar. */
struct row {
	const char *few;
	/* Of a request with many words: those that precede and follow them. */
	const char *before, *after;
	const char *
		each; /* Format of each of many different words; NULL: `few` is as many as it takes. */
	const char *
		equal; /* The word that is repeated; NULL: equal words differ in no way from others. */
};

/* A pattern that takes long to compile, and to compare with members, and that few match. */
#define CLASSES "*[^!]*[^!]*[^!]*[^!]*[^!]*[^!]*[^!]"
#define PATTERN CLASSES CLASSES CLASSES CLASSES CLASSES "*"

static const struct row rows[] = {
	[GRAMMAR_STORAGE] = { "v 0 0", NULL, NULL, NULL, NULL },
	[GRAMMAR_KEYS] = { "v sk", "v", "", " n%u", " b" },
	[GRAMMAR_TOUCH_KEYS] = { "100 v sk", "100 v", "", " n%u", " sk" },
	[GRAMMAR_ARITHMETIC] = { "c 1", NULL, NULL, NULL, NULL },
	[GRAMMAR_DELETE] = { "sk", NULL, NULL, NULL, NULL },
	[GRAMMAR_TOUCH] = { "sk 100", NULL, NULL, NULL, NULL },
	[GRAMMAR_FLUSH] = { "", NULL, NULL, NULL, NULL },
	[GRAMMAR_META] = { "v v", NULL, NULL, NULL, NULL },
	[GRAMMAR_META_DATA] = { "v", NULL, NULL, NULL, NULL },
	[GRAMMAR_ARGS] = { "", NULL, NULL, NULL, NULL },
	[GRAMMAR_BARE] = { "", NULL, NULL, NULL, NULL },
	[GRAMMAR_KEY_ARGS] = { "e", NULL, NULL, NULL, NULL },
	[GRAMMAR_EVENT_DATA] = { "e 0 0", NULL, NULL, NULL, NULL },
	[GRAMMAR_COLLECTION_KEYS] = { "sn sk", "sk", "", " sn%u", " sk" },
	[GRAMMAR_COUNTED_KEYS] = { "2 sk sn", "301 sk", "", " sn%u", " sk" },
	[GRAMMAR_WAIT_KEYS] = { "1 sk", "1 sn", "", " sn%u", " sn" },
	[GRAMMAR_WAIT_MOVE] = { "1 sk sn left right", NULL, NULL, NULL, NULL },
	[GRAMMAR_WAIT_HOLD] = { "1 sk 60 left", NULL, NULL, NULL, NULL },
	[GRAMMAR_POP_KEYS] = { "3 left sn sk", "100000 left sn", " sk", " sn%u", " sn" },
	[GRAMMAR_WAIT_POP_KEYS] = { "1 3 left sk", "1 100000 left sn", "", " sn%u", " sn" },
	[GRAMMAR_SET] = { "sk", NULL, NULL, NULL, NULL },
	[GRAMMAR_SET_MEMBERS] = { "sk m000001 m000002 x", "sk", "", " m%06u", " m000001" },
	[GRAMMAR_SET_TESTED] = { "sk m000001 m000002 x", "sk", "", " m%06u", " m000001" },
	[GRAMMAR_SET_ANY_MEMBERS] = { "sk m000001 x", "sk", "", " m%06u", " m000001" },
	[GRAMMAR_SET_MEMBER] = { "sk m000001", NULL, NULL, NULL, NULL },
	[GRAMMAR_SET_COUNT] = { "sk 3", "sk 100000", "", "", NULL },
	[GRAMMAR_SET_SAMPLE] = { "sk 3", "sk 100000", "", "", "" },
	[GRAMMAR_SET_RANGE] = { "sk m0 n", NULL, NULL, NULL, NULL },
	[GRAMMAR_SET_RANGE_COUNT] = { "sk m0 n 100000", NULL, NULL, NULL, NULL },
	[GRAMMAR_SET_SCAN] = { "sk 10", "sk 100000 match " PATTERN, "", "", NULL },
	[GRAMMAR_SET_LEASE] = { "sk", NULL, NULL, NULL, NULL },
	[GRAMMAR_SET_LOAD] = { "sk token x", "sk token", "", " m%06u", " m000001" },
	[GRAMMAR_SET_TIMED] = { "sk 60 m000001 m000002 x", "sk 60", "", " m%06u", " m000001" },
	[GRAMMAR_SET_MOVE] = { "sk sn m000001", NULL, NULL, NULL, NULL },
	[GRAMMAR_LIST] = { "sk", NULL, NULL, NULL, NULL },
	[GRAMMAR_LIST_COUNT] = { "sk 3", "sk 100000", "", "", NULL },
	[GRAMMAR_LIST_INDEX] = { "sk 5", "sk 2000", "", "", NULL },
	[GRAMMAR_LIST_INDEXES] = { "sk 5 -5", NULL, NULL, NULL, NULL },
	[GRAMMAR_LIST_ELEMENTS] = { "sk x", "sk", "", " m%06u", NULL },
	[GRAMMAR_LIST_POSITION] = { "sk none", "sk m000001 count 0", "", "", NULL },
	[GRAMMAR_LIST_INSERT] = { "sk after m000001 x", "sk before none x", "", "", NULL },
	[GRAMMAR_LIST_MOVE] = { "sk sn left right", "sk sk left right", "", "", NULL },
	[GRAMMAR_LIST_TARGET] = { "sk sn", "sk sk", "", "", NULL },
	[GRAMMAR_LIST_HOLD] = { "sk 60 left", NULL, NULL, NULL, NULL },
	[GRAMMAR_LIST_TICKET] = { "sk 0123456789ab", NULL, NULL, NULL, NULL },
	[GRAMMAR_LIST_COUNT_ELEMENT] = { "sk 0 m000001", "sk 0 none", "", "", NULL },
	[GRAMMAR_LIST_INDEX_ELEMENT] = { "sk 5 x", "sk 2000 x", "", "", NULL },
	[GRAMMAR_LIST_LEASE] = { "sk", NULL, NULL, NULL, NULL },
	[GRAMMAR_LIST_LOAD] = { "sk token x", "sk token", "", " m%06u", NULL },
};

/* Commands whose arguments the grammar does not define. The buckets are hours. */
static const struct {
	command_id id;
	struct row row;
} special[] = {
	{ COMMAND_EVCOUNT, { "e", "e -150 now", "", " e%u", " e" } },
	{ COMMAND_EVINCR, { "e 1", NULL, NULL, NULL, NULL } },
	{ COMMAND_EVLAST, { "e 10", "e 1000 now", "", " e%u", " e" } },
	{ COMMAND_EVLIMIT, { "e 10 3600", "e 1000000 1000000", "", "", NULL } },
	{ COMMAND_EVRANGE, { "e 2015022016", NULL, NULL, NULL, NULL } },
	{ COMMAND_EVTOP, { "e 10", "e 1000 100", "", "", NULL } },
	{ COMMAND_MA, { "c", NULL, NULL, NULL, NULL } },
	{ COMMAND_MD, { "v", NULL, NULL, NULL, NULL } },
	{ COMMAND_ME, { "v", NULL, NULL, NULL, NULL } },
	{ COMMAND_SUNIONSTORE, { "st sk sn", "st sk", "", " sn%u", " sk" } },
	{ COMMAND_SINTERSTORE, { "st sk sk", "st sk", "", " sn%u", " sk" } },
	{ COMMAND_SDIFFSTORE, { "st sk sn", "st sk", "", " sn%u", " sk" } },
};

static const struct row *row_of(const struct command *command)
{
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (special[i].id == command->id)
			return &special[i].row;
	}
	return command->grammar < sizeof(rows) / sizeof(rows[0]) && rows[command->grammar].few
		? &rows[command->grammar]
		: NULL;
}

const char *command_line_small(const struct command *command)
{
	const struct row *row = row_of(command);

	return row ? row->few : NULL;
}

static void add_words(struct buf *out, const struct row *row, enum line_size size, unsigned count)
{
	const char *each = size == LINE_EQUAL ? row->equal : row->each;

	BUF_ADD(out, "");
	buf_printf(out, "%s", row->before);
	for (unsigned i = 0; *each && i < count; i++) {
		if (size == LINE_EQUAL)
			buf_printf(out, "%s", each);
		else if (each[1] == 'm')
			buf_printf(out, " m%06u", i);
		else
			buf_printf(out, " %.*s%u", each[2] == 'n' ? 2 : 1, each + 1, i);
	}
	buf_printf(out, "%s", row->after);
}

static bool add_arguments(
	struct buf *out, const struct command *command, enum line_size size, unsigned count)
{
	const struct row *row = row_of(command);

	if (!row || (size == LINE_MANY && !row->each) || (size == LINE_EQUAL && !row->equal))
		return false;
	if (size == LINE_SMALL)
		buf_printf(out, "%s", row->few);
	else
		add_words(out, row, size, count);
	return true;
}

static bool has_data(const struct command *command)
{
	return command_traits(command)->has_data;
}

/* Data that is a valid list of words, since some keys are of sets. */
static void add_block(struct buf *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8)
		buf_printf(out, "m%06u ", (unsigned)i);
}

static bool add_text(struct buf *out, const struct command *command, enum line_size size)
{
	struct buf words = BUF_EMPTY;
	size_t bytes = size == LINE_SMALL ? 8 : LINE_DATA;
	bool fits = add_arguments(&words, command, has_data(command) ? LINE_SMALL : size,
		command->grammar == GRAMMAR_WAIT_KEYS || command->grammar == GRAMMAR_WAIT_POP_KEYS
			? LINE_WORDS_WAIT
			: LINE_WORDS);

	fits &= !has_data(command) || size != LINE_EQUAL;
	if (fits) {
		buf_printf(out, "%.*s %.*s", (int)command->name.n, command->name.p,
			(int)buf_size(&words), buf_slice(&words).p);
		if (has_data(command))
			buf_printf(out, " %zu", bytes);
		if (command->id == COMMAND_CAS)
			BUF_ADD(out, " 5");
		BUF_ADD(out, "\r\n");
		if (has_data(command)) {
			add_block(out, bytes);
			BUF_ADD(out, "\r\n");
		}
	}
	buf_free(&words);
	return fits;
}

/* --- commands as keys --- */

/* The words that fit into a key. */
enum { KEY_WORDS = 30, KEYS_EQUAL = 24 };

/*
 * Appends the command as a key. With `data`, the words that follow the first one are appended there.
 * Returns whether there is such a key.
 */
static bool add_key(
	struct buf *key, struct buf *data, const struct command *command, enum line_size size)
{
	struct buf words = BUF_EMPTY;
	bool fits = add_arguments(&words, command, size, data ? LINE_WORDS : KEY_WORDS);
	struct slice rest = buf_slice(&words), word;

	buf_printf(key, LINE_PREFIX "%.*s", (int)command->name.n, command->name.p);
	for (unsigned i = 0; fits && (word = slice_token(&rest)).n; i++) {
		if (data && i > 0)
			buf_printf(data, "%s%.*s", i > 1 ? " " : "", (int)word.n, word.p);
		else
			buf_printf(key, "|%.*s", (int)word.n, word.p);
	}
	buf_free(&words);
	return fits && buf_size(key) <= KEY_MAX;
}

static void add_bytes(struct buf *out, uint64_t n, size_t bytes)
{
	while (bytes-- > 0)
		buf_add(out, &(char){ (char)(bytes < sizeof(n) ? n >> 8 * bytes : 0) }, 1);
}

static void add_packet(
	struct buf *out, enum binary_opcode opcode, struct slice key, const struct slice *value)
{
	size_t extras = value ? 8 : 0;

	add_bytes(out, BINARY_REQUEST, 1);
	add_bytes(out, opcode, 1);
	add_bytes(out, key.n, 2);
	add_bytes(out, extras, 1);
	add_bytes(out, 0, 3);
	add_bytes(out, extras + key.n + (value ? value->n : 0), 4);
	add_bytes(out, 0, 12 + extras);
	buf_add_slice(out, key);
	if (value)
		buf_add_slice(out, *value);
}

static void add_set(struct buf *out, enum line_form form, struct slice key, struct slice data)
{
	if (form == LINE_BINARY) {
		add_packet(out, BINARY_SET, key, &data);
		return;
	}
	buf_printf(out, form == LINE_META ? "ms %.*s %zu\r\n" : "set %.*s 0 0 %zu\r\n", (int)key.n,
		key.p, data.n);
	buf_add_slice(out, data);
	BUF_ADD(out, "\r\n");
}

/* With `again`, a get of many such keys. */
static void add_get(struct buf *out, enum line_form form, struct slice key, bool again)
{
	if (form == LINE_BINARY) {
		add_packet(out, BINARY_GETK, key, NULL);
	} else if (form == LINE_META) {
		buf_printf(out, "mg %.*s v\r\n", (int)key.n, key.p);
	} else {
		BUF_ADD(out, "get");
		for (int i = 0; i < (again ? KEYS_EQUAL : 1); i++)
			buf_printf(out, " %.*s", (int)key.n, key.p);
		BUF_ADD(out, "\r\n");
	}
}

static bool add_as_key(
	struct buf *out, const struct command *command, enum line_form form, enum line_size size)
{
	unsigned reach = command_key_reach(command);
	bool sets = reach & COMMAND_KEY_SET && !(reach & COMMAND_KEY_GET),
	     again = form == LINE_KEY && size == LINE_EQUAL && !sets;
	struct buf key = BUF_EMPTY, data = BUF_EMPTY;
	bool words = sets && !has_data(command),
	     fits = reach &&
		add_key(&key, words ? &data : NULL, command, again ? LINE_SMALL : size);

	if (fits && has_data(command))
		add_block(&data, size == LINE_SMALL ? 8 : LINE_DATA);
	if (fits && sets)
		add_set(out, form, buf_slice(&key), buf_slice(&data));
	else if (fits)
		add_get(out, form, buf_slice(&key), again);
	buf_free(&key);
	buf_free(&data);
	return fits;
}

bool command_line(
	const struct command *command, enum line_form form, enum line_size size, struct buf *out)
{
	return form == LINE_TEXT ? add_text(out, command, size)
				 : add_as_key(out, command, form, size);
}
