/*
 * Commands as keys: any key, data and delimiter. The words of the request that they stand for are
 * those of a model, which splits and decodes byte by byte, and fit into the memory for them.
 */
#include "command/args.h"
#include "command/word_log.h"
#include "input.h"
#include "protocol/command_key.h"
#include "protocol/commands.h"

enum { WORDS_MAX = 10000 };

/* The elements of the request, one after the other, and where each ends. */
static struct buf text;
static size_t count, ends[WORDS_MAX];

static void end_element(void)
{
	MUST(count < WORDS_MAX);
	ends[count++] = buf_size(&text);
}

static int digit(char c)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) % 16 : -1;
}

/* Adds the words after the name of a key. */
static void add_key(struct slice rest, char separator)
{
	while (rest.n) {
		struct slice word = slice_cut(&rest, separator);
		for (size_t i = 0; i < word.n; i++) {
			bool encoded = word.p[i] == '%' && i + 2 < word.n &&
				digit(word.p[i + 1]) >= 0 && digit(word.p[i + 2]) >= 0;
			char c = encoded ? (char)(digit(word.p[i + 1]) * 16 + digit(word.p[i + 2]))
					 : word.p[i];
			buf_add(&text, &c, 1);
			i += encoded ? 2 : 0;
		}
		end_element();
	}
}

static void add_data(struct slice data, char delimiter, bool whole)
{
	size_t start = 0;

	for (size_t i = 0; i < data.n && !whole; i++) {
		if (data.p[i] != delimiter)
			continue;
		buf_add(&text, data.p + start, i - start);
		if (delimiter != ' ' || i > start)
			end_element();
		start = i + 1;
	}
	buf_add(&text, data.p + start, data.n - start);
	if (whole || start < data.n)
		end_element();
}

/* --- what the key stands for --- */

static size_t seen;

/* The next word is that of the next element. */
static void check_word(struct slice word)
{
	size_t start = seen ? ends[seen - 1] : 0, n;
	char *bytes = malloc(word.n + 1);

	MUST(seen < count && element_is_word(word));
	n = (size_t)(element_write(bytes, word) - bytes);
	/* Of a longer key or token, enough is kept to be too long. */
	MUST(n == ends[seen] - start || (n == KEY_MAX + 1 && n < ends[seen] - start));
	MUST(n == 0 || memcmp(bytes, buf_slice(&text).p + start, n) == 0);
	free(bytes);
	seen++;
}

static void check_words(struct slice words)
{
	struct slice word;

	while ((word = slice_token(&words)).n)
		check_word(word);
}

/* However the data are cut, their words are those of the model. */
static void check_log(const struct request *request, struct slice *in)
{
	struct word_log w = word_log_of_args(request, '+', EXPIRY_NONE);
	struct slice token;
	char *room;

	room = malloc(word_log_max(&w));
	w.from = w.at = room;
	while (!word_log_convert(&w, 1 + input_byte(in)))
		;
	if (w.error) {
		MUST(w.error == args_long_member || w.error == command_key_bad_word);
		seen = count;
	}
	for (struct slice log = slice_of(w.from, (size_t)(w.at - w.from)); !w.error && log.n;) {
		token = slice_cut(&log, ' ');
		MUST(token.n > 1 && token.p[0] == '+');
		check_word(slice_skip(token, 1));
	}
	free(room);
}

/* The last element is the first in the log. */
static void check_front(const struct request *request)
{
	struct word_log w = word_log_of_args(request, '+', EXPIRY_NONE);
	size_t size = word_log_max(&w), number;
	char *room = malloc(size);
	struct slice log, token;

	w.front = true;
	w.from = w.at = room + size;
	while (!word_log_convert(&w, 100))
		;
	number = w.number;
	log = slice_of(w.at, (size_t)(w.from - w.at));
	MUST(w.at >= room);
	for (size_t i = 0; !w.error && i < number; i++) {
		token = slice_cut(&log, ' ');
		seen = count - 1 - i;
		check_word(slice_skip(token, 1));
	}
	free(room);
}

static void check_request(struct request *r, struct slice *in)
{
	struct args args = { .rule = &rules_default_collection };

	r->args = &args;
	MUST(r->key.n == 0 || element_is_plain(r->key));
	if (!command_takes_args(r->command)) {
		for (size_t i = 0; i < r->rest.n; i++)
			MUST(r->rest.p[i] != ELEMENT_ESCAPE);
		return;
	}
	seen = 0;
	check_word(r->key);
	check_words(r->rest);
	if (r->data.n) {
		check_log(r, in);
		check_front(r);
	}
	MUST(r->data.n || seen == count);
}

static struct slice key_of(struct slice *in, char *key)
{
	char *at = slice_write(key, SLICE("q|"));
	uint8_t how = input_byte(in);
	struct slice words;

	if (how < 250) {
		at = slice_write(at, command_get(how % COMMAND_COUNT)->name);
		at = slice_write(at, how < COMMAND_COUNT ? SLICE("|") : SLICE("1|"));
	}
	words = input_bytes(in, input_byte(in));
	at = slice_write(
		at, slice_of(words.p, num_least_size(words.n, KEY_MAX - (size_t)(at - key))));
	return slice_of(key, (size_t)(at - key));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char delimiters[] = { '\n', ' ', ',', '|', '\xff', '%' };
	static const command_id verbs[] = { COMMAND_SET, COMMAND_GET, COMMAND_CAS, COMMAND_INCR };
	struct slice in = slice_of((const char *)bytes, size), key, name, rest, data;
	char room_of_key[KEY_MAX], item[KEY_MAX], *room, *copy;
	struct command_keys keys = { SLICE("q|"), delimiters[input_byte(&in) % 6] };
	struct request outer = { .command = command_get(verbs[input_byte(&in) % 4]) }, inner;
	const struct command *command;
	bool set = outer.command->id == COMMAND_SET || outer.command->id == COMMAND_CAS;
	size_t words;

	key = key_of(&in, room_of_key);
	data = set ? in : SLICE("");
	copy = input_copy(data);
	outer.data = slice_of(copy, data.n);
	command = command_key_find(&keys, key, &words);
	rest = slice_skip(key, 2);
	name = slice_cut(&rest, '|');
	(void)command_key_item(&keys, key, item);
	(void)command_key_refusal(&keys, key);
	room = malloc(command_key_room(&keys, &outer, key, command));
	if (command_key_parse(&keys, &outer, key, command, room, &inner)) {
		bool whole = name.n != command->name.n;
		MUST(inner.command == command && (!whole || set));
		add_key(rest, '|');
		if (!command_traits(command)->has_data)
			add_data(data, keys.delimiter, whole);
		if (outer.command->id != COMMAND_INCR)
			check_request(&inner, &in);
	} else {
		MUST(inner.error && !strpbrk(inner.error, "\r\n"));
	}
	free(room);
	free(copy);
	buf_free(&text);
	count = 0;
	return 0;
}
