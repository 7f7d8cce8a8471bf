#include "wording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain = true;
static const char *empty[2], *keys[2];
static unsigned long long sets, lists, leases;

void wording_begin(bool plain, const char *empty_member, const char *set_keys,
	const char *empty_element, const char *list_keys)
{
	is_plain = plain;
	empty[0] = empty_member;
	empty[1] = empty_element;
	keys[0] = set_keys;
	keys[1] = list_keys;
}

bool wording_is_plain(void)
{
	return is_plain;
}

/* --- names --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the size of the name at the front of a text; 0 if there is none. */
static size_t name_size(struct slice s)
{
	static const struct {
		const char *start;
		size_t least; /* Digits. */
	} kinds[] = { { "i", 1 }, { "e", 1 }, { "member", 2 }, { "m", 2 }, { "k", 3 } };

	if (s.n >= 4 && s.p[0] == '^' && is_digit(s.p[1]) && s.p[2] == 'm' && is_digit(s.p[3]))
		return 4;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t n = strlen(kinds[i].start), digits = 0;
		if (s.n < n || memcmp(s.p, kinds[i].start, n) != 0)
			continue;
		while (n + digits < s.n && is_digit(s.p[n + digits]))
			digits++;
		if (digits >= kinds[i].least)
			return n + digits;
	}
	return 0;
}

static bool is_empty_name(struct slice name)
{
	return slice_equal(name, slice_of(empty[0], strlen(empty[0]))) ||
		slice_equal(name, slice_of(empty[1], strlen(empty[1])));
}

static size_t fill(char *at, char byte, size_t n)
{
	memset(at, byte, n);
	return n;
}

/* Writes the element of a name. No end begins with a digit. */
static size_t write_element(struct slice name, char out[WORDING_MAX])
{
	static const struct slice ends[] = { { " x", 2 }, { "\0", 1 }, { "\n\t\x7f", 3 },
		{ " \"'\\{3}", 7 }, { "\xff\x01", 2 }, { "\x7f", 1 }, { "\x01!", 2 } };
	enum { PLAIN = 6, ENDS = sizeof(ends) / sizeof(*ends) };
	unsigned hash = 7;
	char *at = out + name.n;

	if (is_empty_name(name))
		return 0;
	for (size_t i = 0; i < name.n; i++)
		hash = hash * 31 + (unsigned char)name.p[i];
	memcpy(out, name.p, name.n);
	hash = hash / 3 % (PLAIN + ENDS + 4);
	if (hash < PLAIN)
		return name.n;
	hash -= PLAIN;
	if (hash < ENDS) {
		memcpy(at, ends[hash].p, ends[hash].n);
		return name.n + ends[hash].n;
	}
	if (hash == ENDS)
		return name.n + fill(at, 'L', 300);
	if (hash == ENDS + 1)
		return name.n + fill(at, '\x01', 126);
	if (hash == ENDS + 2)
		return name.n + fill(at, 'M', 1000 - name.n);
	(void)fill(at, 'n', 500);
	return name.n + fill(at, ' ', 400);
}

static size_t write_word(struct slice element, char out[WORDING_MAX])
{
	size_t n = 0;

	if (element.n == 0) {
		out[n++] = 1;
		out[n++] = 0x21;
	}
	for (size_t i = 0; i < element.n; i++) {
		unsigned char c = (unsigned char)element.p[i];
		if (c <= 0x20)
			out[n++] = 1;
		out[n++] = (char)(c <= 0x20 ? c + 0x22 : c);
	}
	return n;
}

struct slice wording_word(const char *name, char word[WORDING_MAX])
{
	char element[WORDING_MAX];
	struct slice s = slice_of(name, strlen(name));

	if (is_plain) {
		memcpy(word, name, s.n);
		return slice_of(word, s.n);
	}
	return slice_of(word, write_word(slice_of(element, write_element(s, element)), word));
}

struct slice wording_name(struct slice word, bool of_list)
{
	char element[WORDING_MAX], expected[WORDING_MAX];
	struct slice name = slice_of(word.p, name_size(word));

	if (is_plain)
		return word;
	if (word.n == 2 && memcmp(word.p, "\x01\x21", 2) == 0)
		return slice_of(empty[of_list], strlen(empty[of_list]));
	if (name.n == 0 ||
		!slice_equal(word,
			slice_of(expected,
				write_word(slice_of(element, write_element(name, element)),
					expected))))
		return slice_of(word.p, 0);
	return name;
}

bool wording_is_narrow(struct slice word)
{
	for (size_t i = 0; i < word.n; i++) {
		if ((unsigned char)word.p[i] <= 0x20 || word.p[i] == 0x7f)
			return false;
	}
	return word.n <= 250;
}

/* --- requests --- */

static void add_argument(struct slice element, struct buf *out)
{
	bool single = element.n && !memchr(element.p, '\'', element.n) &&
		!memchr(element.p, '\\', element.n) && !memchr(element.p, '\n', element.n);

	/* Each size has its way. */
	if (element.n % 3 == 0) {
		buf_printf(out, "{%zu}\r\n", element.n);
		buf_add_slice(out, element);
		return;
	}
	if (element.n % 3 == 1 && single) {
		BUF_ADD(out, "'");
		buf_add_slice(out, element);
		BUF_ADD(out, "'");
		return;
	}
	BUF_ADD(out, "\"");
	for (size_t i = 0; i < element.n; i++)
		buf_printf(out, "\\x%02x", (unsigned char)element.p[i]);
	BUF_ADD(out, "\"");
}

/* Returns the number of words before the elements of a request: a token, and seconds, may look like a name. */
static size_t words_before(struct slice line)
{
	static const char *const loads[] = { "sload ", "sfill ", "lload ", "lfill ", "saddex ",
		"sexpire " };
	size_t n = 2;

	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		n += slice_starts(line, slice_of(loads[i], strlen(loads[i])));
	return n;
}

void wording_request(struct slice line, struct buf *out)
{
	struct slice rest = line;
	size_t words = 0, before = words_before(line);

	/* A request with a data block has no elements. */
	if (is_plain || memchr(line.p, '\n', line.n - 1)) {
		buf_add_slice(out, line);
		return;
	}
	rest.n -= 2;
	for (struct slice word; (word = slice_token(&rest)).n; words++) {
		char element[WORDING_MAX];
		size_t n;
		if (words)
			BUF_ADD(out, " ");
		n = words >= before && name_size(word) == word.n ? write_element(word, element)
								 : SIZE_MAX;
		if (n == SIZE_MAX || (n == word.n && memcmp(element, word.p, n) == 0))
			buf_add_slice(out, word);
		else
			add_argument(slice_of(element, n), out);
	}
	BUF_ADD(out, "\r\n");
}

/* --- replies --- */

static int hex(char c)
{
	return is_digit(c) ? c - '0' : c - 'a' + 10;
}

/* Takes a quoted element from the front. */
static struct slice take_quoted(struct slice *rest, struct buf *room)
{
	size_t i = 1;

	buf_consume(room, buf_size(room));
	for (; i < rest->n && rest->p[i] != '"'; i++) {
		const char *letter, *letters = "nrtba";
		char c = rest->p[i];
		if (c == '\\') {
			c = rest->p[++i];
			letter = strchr(letters, c);
			if (c == 'x') {
				c = (char)(hex(rest->p[i + 1]) << 4 | hex(rest->p[i + 2]));
				i += 2;
			} else if (letter) {
				c = "\n\r\t\b\a"[letter - letters];
			}
		}
		buf_add(room, &c, 1);
	}
	*rest = slice_skip(*rest, i < rest->n ? i + 1 : rest->n);
	return buf_slice(room);
}

static struct slice name_of_element(struct slice element, bool of_list, struct buf *room)
{
	char *word = malloc(2 * element.n + 2);
	struct slice name = { "", 0 };

	if (element.n <= WORDING_MAX / 2)
		name = wording_name(slice_of(word, write_word(element, word)), of_list);
	buf_consume(room, buf_size(room));
	buf_add_slice(room, name);
	free(word);
	return buf_slice(room);
}

/* An element that has no name, but begins like one, is one that was changed. */
static void add_name(struct slice element, struct slice name, struct buf *out)
{
	if (name.n)
		buf_add_slice(out, name);
	else if (name_size(element))
		BUF_ADD(out, "?");
	else
		buf_add_slice(out, element);
}

/* The data are an element, or several ones, each plain or in quotes, or something else. */
static void add_data(struct slice data, bool of_list, struct buf *out)
{
	struct buf element = BUF_EMPTY, room = BUF_EMPTY;
	struct slice name = name_of_element(data, of_list, &room);

	if (name.n) {
		buf_add_slice(out, name);
		data.n = 0;
	}
	while (data.n) {
		struct slice one;
		if (data.p[0] == ' ') {
			BUF_ADD(out, " ");
			data = slice_skip(data, 1);
			continue;
		}
		one = data.p[0] == '"' ? take_quoted(&data, &element) : slice_token(&data);
		add_name(one, name_of_element(one, of_list, &room), out);
	}
	buf_free(&element);
	buf_free(&room);
}

void wording_reply(struct buf *reply, bool is_member)
{
	struct slice rest = buf_slice(reply);
	struct buf out = BUF_EMPTY;

	while (!is_plain && slice_starts(rest, SLICE("VALUE "))) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct slice line = slice_of(rest.p, (size_t)(end - rest.p) - 1), key, flags, size;
		struct buf data = BUF_EMPTY;
		bool of_list;
		size_t n;
		(void)slice_token(&line);
		key = slice_token(&line);
		flags = slice_token(&line);
		size = slice_token(&line);
		n = strtoul(size.p, NULL, 10);
		rest = slice_skip(rest, (size_t)(end + 1 - rest.p));
		of_list = strchr(keys[1], key.p[0]);
		if ((of_list || strchr(keys[0], key.p[0])) && (n || of_list || is_member))
			add_data(slice_of(rest.p, n), of_list, &data);
		else
			buf_add(&data, rest.p, n);
		buf_printf(&out, "VALUE %.*s %.*s %zu%.*s\r\n", (int)key.n, key.p, (int)flags.n,
			flags.p, buf_size(&data), (int)line.n, line.p);
		buf_add_slice(&out, buf_slice(&data));
		buf_free(&data);
		rest = slice_skip(rest, n);
		if (slice_starts(rest, SLICE("\r\n"))) {
			BUF_ADD(&out, "\r\n");
			rest = slice_skip(rest, 2);
		}
	}
	buf_add_slice(&out, rest);
	buf_free(reply);
	*reply = out;
}

/* --- form 3 --- */

void wording_count(struct slice value)
{
	const char *fill = value.n ? memmem(value.p, value.n, "@fill.", 6) : NULL;
	const char *end = fill ? memchr(fill, ' ', value.n - (size_t)(fill - value.p)) : NULL;
	size_t dots = 0;

	sets += value.n && memmem(value.p, value.n, "@set.3 ", 7);
	lists += value.n && memmem(value.p, value.n, "@list.3 ", 8);
	for (; fill && end && fill < end; fill++)
		dots += *fill == '.';
	leases += dots == 4;
}

void wording_print_counts(void)
{
	printf("form 3: %llu bases of sets, %llu of lists, %llu leases\n", sets, lists, leases);
	sets = lists = leases = 0;
}
