#include "config/file_commands.h"

#include <ctype.h>
#include <string.h>

#include "util/alloc.h"

/* Leaves room for a command in a key. */
enum { PREFIX_MAX = 32 };

static bool is_plain(const char *text)
{
	size_t n = strlen(text);

	return n == 0 || request_key_valid(slice_of(text, n), n);
}

/* A separator that names or numbers are made of would cut them. */
static int check_commands(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0), *error = NULL;
	size_t n = strlen(text);
	unsigned char last = n ? (unsigned char)text[n - 1] : '|';

	if (n > PREFIX_MAX || !is_plain(text))
		error = "no space or control character, and 32 bytes at most";
	else if (isalnum(last) || last == '_' || last == '-' || last >= 0x80)
		error = "the last byte separates words, and must be no letter, digit, '_' or '-'";
	if (error)
		cfg_error(cfg, "commands = \"%s\": %s", text, error);
	return error ? -1 : 0;
}

static int check_delimiter(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0);

	if (strcmp(text, " ") == 0 || (strlen(text) == 1 && is_plain(text)))
		return 0;
	cfg_error(cfg, "commands_delimiter = \"%s\": one byte is allowed, no control character", text);
	return -1;
}

void file_commands_set_checks(cfg_t *cfg)
{
	cfg_set_validate_func(cfg, "commands", check_commands);
	cfg_set_validate_func(cfg, "commands_delimiter", check_delimiter);
}

void file_commands_read(cfg_t *cfg, struct command_keys *keys)
{
	const char *prefix = cfg_getstr(cfg, "commands");

	keys->prefix = slice_of(xstrdup(prefix), strlen(prefix));
	keys->delimiter = cfg_getstr(cfg, "commands_delimiter")[0];
}
