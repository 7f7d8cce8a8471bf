#include "config/text.h"

#include <string.h>

/* Bytes at which libconfuse ends an unquoted word. */
static const char breaks[] = " #\"'\t\n\r={}()+,*";

/*
 * Returns the end of "${...}", or NULL if it is not on the same line. libconfuse would continue
 * over any number of lines.
 */
static char *skip_variable(char *at)
{
	at += strcspn(at, "}\n");
	return *at == '}' ? at + 1 : NULL;
}

/*
 * Returns the end of the string that begins at `at`, or NULL. A backslash continues it on the
 * next line.
 */
static char *skip_string(char *at, struct config_text *found)
{
	const char quote = *at++;

	while (at && *at && *at != quote && *at != '\n') {
		if (at[0] == '\\' && at[1]) {
			found->line += at[1] == '\n';
			at += 2;
		} else if (quote == '"' && at[0] == '$' && at[1] == '{') {
			at = skip_variable(at);
		} else {
			at++;
		}
	}
	return at && *at == quote ? at + 1 : NULL;
}

static char *blank_lines(char *at, struct config_text *found)
{
	char *end = strstr(at + 2, "*/");

	if (!end)
		return NULL;
	for (end += 2; at < end; at++) {
		if (*at == '\n')
			found->line++;
		else
			*at = ' ';
	}
	return at;
}

/* Returns the end of an unquoted word, or NULL if it ends in a semicolon at the end of the line. */
static char *skip_word(const char *start, char *at)
{
	char *end = at + strcspn(at, breaks);
	size_t blanks = strspn(end, " \t\r");
	bool is_last = end[blanks] == '\n' || end[blanks] == '\0' || end[blanks] == '#';
	/* A single ";" after "=" is a value, such as a delimiter. */
	bool is_value = end - at == 1 && (at == start || !strchr("\"'}", at[-1]));

	return end[-1] == ';' && is_last && !is_value ? NULL : end;
}

/*
 * Returns false if a line is too long, and sets the line. libconfuse scans a word again from its
 * beginning for each 8 KB that it reads, and a row of blanks too, so the time for a line grows
 * with its square.
 */
static bool check_lines(const char *text, size_t n, struct config_text *found)
{
	struct slice rest = slice_of(text, n);
	unsigned line = 1;

	for (; rest.n; line++) {
		if (slice_cut(&rest, '\n').n > CONFIG_LINE_MAX) {
			found->line = line;
			return false;
		}
	}
	return true;
}

const char *config_text_clean(char *text, size_t n, struct config_text *found)
{
	const char *const start = text, *const end = text + n;
	const char *error = NULL;

	*found = (struct config_text){ .line = 1 };
	if (!check_lines(text, n, found))
		return "a line of more than 65536 bytes";
	while (text && *text) {
		if (text[0] == '"' || text[0] == '\'') {
			text = skip_string(text, found);
			error = "a string is not closed on its line";
		} else if (text[0] == '#' || (text[0] == '/' && text[1] == '/')) {
			while (*text && *text != '\n')
				*text++ = ' ';
		} else if (text[0] == '/' && text[1] == '*') {
			text = blank_lines(text, found);
			error = "a comment is not closed";
		} else if (text[0] == '$' && text[1] == '{') {
			text = skip_variable(text);
			error = "a variable is not closed on its line";
		} else if (text[0] == '[' && strchr("\"']", text[1 + strspn(text + 1, " \t")])) {
			text = NULL;
			error = "a list is written in { }, not in [ ]";
		} else if (strchr(breaks, *text)) {
			/* No line begins after the last newline. */
			found->line += *text == '\n' && text + 1 < end;
			found->open += (*text == '{') - (*text == '}');
			text++;
		} else {
			text = skip_word(start, text);
			error = "an option ends at the end of its line, without a ;";
		}
	}
	if (!text)
		return error;
	return text < end ? "a zero byte" : NULL;
}

/* --- dropping a statement --- */

static char *skip_blanks(char *at)
{
	return at + strspn(at, " \t\r\n");
}

/*
 * Returns the end of a text, quoted or not, or of a block in braces; NULL if it is not
 * terminated.
 */
static char *skip_value(char *at)
{
	struct config_text unused = { 0 };
	long open = 0;

	if (*at == '"' || *at == '\'')
		return skip_string(at, &unused);
	if (*at != '{')
		return at + strcspn(at, breaks);
	do {
		if (!*at)
			return NULL;
		open += (*at == '{') - (*at == '}');
		at = *at == '"' || *at == '\'' ? skip_string(at, &unused) : at + 1;
	} while (at && open > 0);
	return at;
}

/*
 * Returns the end of "name = value", "name += value", "name { ... }" or "name title { ... }";
 * NULL for anything else.
 */
static char *skip_statement(char *at)
{
	bool assigns;

	at = skip_blanks(at);
	at += *at == '+';
	assigns = *at == '=';
	if (assigns)
		return skip_value(skip_blanks(at + 1));
	if (*at != '{') {
		at = skip_value(at);
		at = at ? skip_blanks(at) : NULL;
	}
	return at && *at == '{' ? skip_value(at) : NULL;
}

static char *find_word(char *at, unsigned line, const char *word)
{
	size_t n;

	for (; line > 1; line--) {
		at = strchr(at, '\n');
		if (!at)
			return NULL;
		at++;
	}
	for (; *at && *at != '\n'; at += n ? n : 1) {
		n = strcspn(at, breaks);
		if (n == strlen(word) && strncmp(at, word, n) == 0)
			return at;
	}
	return NULL;
}

bool config_text_drop(char *text, unsigned line, const char *name)
{
	char *at = find_word(text, line, name),
	     *end = at ? skip_statement(at + strlen(name)) : NULL;

	for (; at && at < end; at++) {
		if (*at != '\n')
			*at = ' ';
	}
	return end;
}
