#include "protocol/elements.h"

#include "protocol/element.h"

/* --- single words --- */

bool elements_word_is_plain(struct slice word)
{
	uint64_t size;

	return word.n && !element_is_quote(word.p[0]) &&
		word_end(word.p, word.p + word.n) == word.p + word.n &&
		!element_is_literal(word, &size);
}

/* Appends an element in quotes. The byte `hidden`, if it is not a quote, is always escaped. */
static void add_quotes(struct buf *out, struct slice word, char hidden)
{
	static const char letters[] = ELEMENT_LETTERS, bytes[] = ELEMENT_LETTER_BYTES,
			  hex[] = "0123456789abcdef";
	char *at, *raw, *end;

	/* At most four bytes for each, and the quotes. The raw bytes are written after them. */
	at = buf_reserve(out, 5 * word.n + 2);
	raw = at + 4 * word.n + 2;
	end = element_write(raw, word);
	*at++ = '"';
	for (; raw < end; raw++) {
		const char *byte = *raw ? memchr(bytes, *raw, sizeof(bytes) - 1) : NULL;
		bool hides = *raw == hidden && *raw != '"';
		if (!hides && (byte || *raw == '"' || *raw == '\\')) {
			*at++ = '\\';
			*at++ = byte ? letters[byte - bytes] : *raw;
		} else if (hides || (unsigned char)*raw < ' ' || *raw == 0x7f) {
			*at++ = '\\';
			*at++ = 'x';
			*at++ = hex[(unsigned char)*raw >> 4];
			*at++ = hex[*raw & 15];
		} else {
			*at++ = *raw;
		}
	}
	*at++ = '"';
	out->end = (size_t)(at - out->data);
}

void elements_add_quoted(struct buf *out, struct slice word)
{
	if (elements_word_is_plain(word))
		buf_add_slice(out, word);
	else
		add_quotes(out, word, '"');
}

/* --- plain words --- */

enum { LANES = 16 };

/*
 * Sets the top bit of a lane if its byte is a quote, a control byte, or one from the opening brace
 * on. # and & are found together with quotes. Compilers turn the loop into vectors.
 */
static inline void find_harmful(unsigned char found[LANES], const char *p)
{
	for (int i = 0; i < LANES; i++) {
		unsigned char c = (unsigned char)p[i];
		found[i] |= (unsigned char)(c | (c - ' ') | (c + 0x80 - '{') |
			(((c & 0xfa) ^ '"') - 1));
	}
}

/* Returns whether no word can need quotes, with few instructions. */
static bool is_harmless(struct slice text)
{
	unsigned char found[LANES] = { 0 }, all = 0;
	const char *p = text.p, *end = text.p + text.n;
	char copy[LANES];

	if (text.n < LANES) {
		memset(copy, ' ', LANES);
		word_copy(copy, text.p, text.n);
		end = copy + LANES;
		p = end;
	}
	for (; end - p > LANES; p += LANES)
		find_harmful(found, p);
	/* The last lanes may include some of those before `p`. */
	find_harmful(found, end - LANES);
	for (int i = 0; i < LANES; i++)
		all |= found[i];
	return all < 0x80;
}

bool elements_are_plain(struct slice words)
{
	struct slice word;

	if (is_harmless(words))
		return true;
	while ((word = slice_token(&words)).n) {
		if (!elements_word_is_plain(word))
			return false;
	}
	return true;
}

/* Returns the next portion: whole words, with the space after the last one. */
static struct slice next_portion(struct slice words, size_t done)
{
	struct slice rest = slice_skip(words, done);

	return slice_portion(&rest, ELEMENTS_PORTION, ' ');
}

void elements_check_shared(struct shared *words)
{
	bool plain = elements_are_plain(buf_slice(&words->text));

	words->words = plain ? SHARED_PLAIN : SHARED_SPECIAL;
}

/* --- conversion --- */

static bool is_unchanged(const struct elements *e, struct slice portion)
{
	if (portion.n == 0)
		return true;
	if (!e->joins)
		return elements_are_plain(portion);
	return e->delimiter == ' ' && !e->ends && !element_has_escapes(portion);
}

static bool contains(struct slice bytes, char delimiter)
{
	return bytes.n && memchr(bytes.p, delimiter, bytes.n);
}

static void quote(struct elements *e, struct slice portion)
{
	struct slice word;

	while ((word = slice_token(&portion)).n) {
		if (e->in_quotes)
			add_quotes(&e->out, word, e->delimiter);
		else
			elements_add_quoted(&e->out, word);
		buf_add(&e->out, e->in_quotes ? &e->delimiter : " ", 1);
	}
}

/* Begins again. */
static void put_in_quotes(struct elements *e)
{
	e->refused = e->joins = false;
	e->in_quotes = true;
	e->done = 0;
	buf_consume(&e->out, buf_size(&e->out));
}

/* Joins words without escapes. */
static void join_plain(struct elements *e, struct slice portion)
{
	char *at = buf_reserve(&e->out, portion.n + 1);
	size_t n = portion.n, i = 0;

	for (; n - i >= WORD_BYTES; i += WORD_BYTES) {
		/* The top bit of each byte of `other` shows that it is not a space. */
		uint64_t w = word_load(portion.p + i), odd = w ^ WORD_EACH(' '),
			 other = ((odd & WORD_EACH(0x7f)) + WORD_EACH(0x7f)) | odd;
		w ^= ((~other & WORD_EACH(0x80)) >> 7) * (unsigned char)(e->delimiter ^ ' ');
		word_store(at + i, w);
	}
	for (; i < n; i++)
		at[i] = portion.p[i] == ' ' ? e->delimiter : portion.p[i];
	/* The last word of the text has no space after it. */
	if (n && portion.p[n - 1] != ' ')
		at[n++] = e->delimiter;
	buf_commit(&e->out, n);
}

static void join(struct elements *e, struct slice portion)
{
	struct slice word;

	if (!element_has_escapes(portion)) {
		/* Smaller bytes are in words only as escapes. */
		e->refused = (unsigned char)e->delimiter > ' ' && contains(portion, e->delimiter);
		join_plain(e, portion);
		return;
	}
	while (!e->refused && (word = slice_token(&portion)).n) {
		char *at = buf_reserve(&e->out, word.n + 1), *end = element_write(at, word);
		e->refused = contains(slice_of(at, (size_t)(end - at)), e->delimiter);
		*end++ = e->delimiter;
		buf_commit(&e->out, (size_t)(end - at));
	}
}

bool elements_convert(struct elements *e)
{
	struct slice portion = next_portion(e->words, e->done);
	bool last = e->done + portion.n == e->words.n;

	if (e->converted || !is_unchanged(e, portion)) {
		if (!e->converted) {
			(void)buf_reserve(&e->out, e->words.n + 1);
			buf_add(&e->out, e->words.p, e->done);
		}
		e->converted = true;
		if (e->joins)
			join(e, portion);
		else
			quote(e, portion);
	}
	if (e->refused && e->keeps) {
		put_in_quotes(e);
		return false;
	}
	e->done += portion.n;
	/* Each word has a separator after it, also the last one. */
	if (last && e->converted && !e->refused && !e->ends)
		e->out.end--;
	return last || e->refused;
}

struct slice elements_single(struct slice word, struct buf *room)
{
	char *at;

	if (!element_has_escapes(word))
		return word;
	at = buf_reserve(room, word.n);
	buf_commit(room, (size_t)(element_write(at, word) - at));
	return buf_slice(room);
}
