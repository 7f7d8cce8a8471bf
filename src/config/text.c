#include "config/text.h"

/* libconfuse ends a word without quotes at one of these. */
static const char breaks[] = " #\"'\t\n\r={}()+,*";

/* The end of "${...}", or NULL. libconfuse would go on for any number of lines. */
static char *skip_variable(char *at)
{
	at += strcspn(at, "}\n");
	return *at == '}' ? at + 1 : NULL;
}

/* The end of the string that begins at `at`, or NULL. A backslash continues it on the next line. */
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

const char *config_text_clean(char *text, size_t n, struct config_text *found)
{
	const char *const end = text + n, *error = NULL;

	*found = (struct config_text){ .line = 1 };
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
		} else if (strchr(breaks, *text)) {
			/* No line begins behind the last newline. */
			found->line += *text == '\n' && text + 1 < end;
			found->open += (*text == '{') - (*text == '}');
			text++;
		} else {
			text += strcspn(text, breaks);
		}
	}
	if (!text)
		return error;
	return text < end ? "a zero byte" : NULL;
}
