#include "config/file.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/file_access.h"
#include "config/file_admin.h"
#include "config/file_commands.h"
#include "config/file_log.h"
#include "config/file_rules.h"
#include "config/file_values.h"
#include "config/text.h"
#include "util/alloc.h"
#include "util/num.h"

enum { READ_MORE = 16384 };

static const struct file_word distributions[] = { { "ketama", RING_KETAMA }, { "consistent", RING_CONSISTENT },
	{ "modula", RING_MODULA }, { NULL, 0 } };

/* --- checks: libconfuse calls them while it knows the line --- */

static int check_distribution(cfg_t *cfg, cfg_opt_t *opt)
{
	return file_check_word(cfg, opt, distributions);
}

static int check_address(cfg_t *cfg, cfg_opt_t *opt, bool weighted)
{
	struct address address;
	const char *text = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);
	const char *error = address_parse(text, 11211, weighted, &address);

	if (error)
		cfg_error(cfg, "%s: \"%s\": %s", cfg_opt_name(opt), text, error);
	return error ? -1 : 0;
}

/* Whether a place before the last one is the same. Both were checked. */
static int check_once(cfg_t *cfg, cfg_opt_t *opt, bool weighted)
{
	unsigned last = cfg_opt_size(opt) - 1;
	struct address address, other;

	(void)address_parse(cfg_opt_getnstr(opt, last), 11211, weighted, &address);
	for (unsigned i = 0; i < last; i++) {
		if (address_parse(cfg_opt_getnstr(opt, i), 11211, weighted, &other) || !address_same(&address, &other))
			continue;
		cfg_error(cfg, "%s: \"%s\" is named twice", cfg_opt_name(opt), cfg_opt_getnstr(opt, last));
		return -1;
	}
	return 0;
}

/* Of a port that is named with TLS and without it, only one could be true. */
static int check_listen(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_address(cfg, opt, false) ? -1 : check_once(cfg, opt, false);
}

static bool is_ring_string(const char *text)
{
	return strncmp(text, "--", 2) == 0;
}

/* What joins the servers puts commas between them. */
static const char *server_form(cfg_opt_t *opt, const char *text)
{
	if (cfg_opt_size(opt) > 1 && (is_ring_string(text) || is_ring_string(cfg_opt_getnstr(opt, 0))))
		return "a configuration string of libmemcached stands alone";
	if (!is_ring_string(text) && strchr(text, ','))
		return "each server is a string of its own";
	return NULL;
}

/* With a server that is named twice its share of the keys would be double, which is what a weight is for. */
static int check_server(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1), *error = server_form(opt, text);

	if (error) {
		cfg_error(cfg, "servers: \"%s\": %s", text, error);
		return -1;
	}
	if (is_ring_string(text))
		return 0;
	return check_address(cfg, opt, true) ? -1 : check_once(cfg, opt, true);
}

static bool parse_mode(const char *text, mode_t *mode)
{
	unsigned long value = strtoul(text, NULL, 8);

	*mode = (mode_t)value;
	return *text && !text[strspn(text, "01234567")] && value <= 0777;
}

static int check_mode(cfg_t *cfg, cfg_opt_t *opt)
{
	mode_t mode;

	if (parse_mode(cfg_opt_getnstr(opt, 0), &mode))
		return 0;
	cfg_error(cfg, "socket_mode = \"%s\" is no octal mode such as \"0700\"", cfg_opt_getnstr(opt, 0));
	return -1;
}

/* --- from libconfuse's tree to struct config --- */

static const char *read_servers(cfg_t *cfg, struct config *config)
{
	struct buf all = BUF_EMPTY;
	const char *error = NULL;

	for (unsigned i = 0; i < cfg_size(cfg, "servers"); i++)
		buf_printf(&all, "%s%s", i ? "," : "", cfg_getnstr(cfg, "servers", i));
	if (buf_size(&all)) {
		BUF_ADD(&all, "\0");
		error = config_set_servers(config, buf_slice(&all).p);
	}
	buf_free(&all);
	return error;
}

static bool read_options(cfg_t *cfg, struct config *config)
{
	const char *error = NULL;

#define NUMBER(name, initial, least, most, unit, about) config->name = (uint64_t)cfg_getint(cfg, #name);
#include "config/options.def"
#undef NUMBER
	for (unsigned i = 0; i < cfg_size(cfg, "listen") && !error; i++)
		error = config_add_listen(config, cfg_getnstr(cfg, "listen", i), 0);
	if (!error)
		error = read_servers(cfg, config);
	(void)parse_mode(cfg_getstr(cfg, "socket_mode"), &config->socket_mode);
	config->distribution = (enum ring_distribution)file_word(distributions, cfg_getstr(cfg, "distribution"))->value;
	free(config->user);
	config->user = xstrdup(cfg_getstr(cfg, "user"));
	config->reuseport = cfg_getbool(cfg, "reuseport");
	config->sandbox = cfg_getbool(cfg, "sandbox");
	file_admin_read(cfg, config);
	file_access_read(cfg, config);
	file_log_read(cfg, config);
	file_rules_read(cfg, &config->rules);
	file_commands_read(cfg, &config->rules.commands);
	if (error)
		cfg_error(cfg, "%s", error);
	return !error;
}

static void set_checks(cfg_t *cfg)
{
	cfg_set_validate_func(cfg, "listen", check_listen);
	cfg_set_validate_func(cfg, "servers", check_server);
	cfg_set_validate_func(cfg, "distribution", check_distribution);
	cfg_set_validate_func(cfg, "socket_mode", check_mode);
	file_admin_set_checks(cfg);
	file_access_set_checks(cfg);
	file_commands_set_checks(cfg);
	file_log_set_checks(cfg);
	file_rules_set_checks(cfg);
}

/* A tree that knows all options and checks their values. */
static cfg_t *new_tree(void)
{
	cfg_opt_t options[] = {
#define NUMBER(name, initial, least, most, unit, about) CFG_INT_CB(#name, initial, CFGF_NONE, file_number),
#include "config/options.def"
#undef NUMBER
		CFG_STR_LIST("listen", NULL, CFGF_NONE),
		CFG_STR_LIST("servers", NULL, CFGF_NONE),
		CFG_STR("distribution", "ketama", CFGF_NONE),
		CFG_STR("socket_mode", "0700", CFGF_NONE),
		CFG_STR("user", "", CFGF_NONE),
		CFG_BOOL("reuseport", cfg_false, CFGF_NONE),
		CFG_BOOL("sandbox", cfg_true, CFGF_NONE),
		FILE_ADMIN_OPTIONS,
		FILE_ACCESS_OPTIONS,
		FILE_COMMANDS_OPTIONS,
		FILE_LOG_OPTIONS,
#define PATH(name) CFG_STR(#name, "", CFGF_NONE),
#include "config/paths.def"
#undef PATH
		FILE_RULES_OPTIONS,
		CFG_END(),
	};
	cfg_t *cfg = cfg_init(options, CFGF_NONE);

	set_checks(cfg);
	return cfg;
}

static bool read_text(const char *path, struct buf *text, char error[CONFIG_ERROR])
{
	FILE *file = fopen(path, "r");
	char *at;
	size_t n;
	bool good;

	while (file && (at = buf_reserve(text, READ_MORE), n = fread(at, 1, READ_MORE, file)) > 0)
		buf_commit(text, n);
	good = file && !ferror(file);
	if (!good)
		snprintf(error, CONFIG_ERROR, "%s: %s", path, strerror(errno));
	if (file)
		fclose(file);
	return good;
}

/* Where the error of a file goes while it is read. "" as long as there is none: libconfuse refuses an empty name without a word. */
static char *said;

/* Control bytes of the file would make two lines of one. What follows the first error may be no more than its consequence. */
static __attribute__((format(printf, 2, 0))) void say(cfg_t *cfg, const char *format, va_list arguments)
{
	char text[1024];

	if (*said)
		return;
	vsnprintf(text, sizeof(text), format, arguments);
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	snprintf(said, CONFIG_ERROR, "%s:%d: %s", cfg->filename, cfg->line, text);
}

static bool say_at(cfg_t *cfg, unsigned line, const char *error)
{
	cfg->line = (int)line;
	cfg_error(cfg, "%s", error);
	return false;
}

static bool parse(cfg_t *cfg, struct buf *text)
{
	size_t n = buf_size(text);
	struct config_text found;
	const char *error;
	FILE *file;
	int rc = CFG_SUCCESS;

	BUF_ADD(text, "\0");
	error = config_text_clean(text->data + text->start, n, &found);
	if (error)
		return say_at(cfg, found.line, error);
	if (n) {
		file = fmemopen(text->data + text->start, n, "r");
		if (!file)
			abort();
		rc = cfg_parse_fp(cfg, file);
		fclose(file);
	}
	if (rc != CFG_SUCCESS)
		return *said ? false : say_at(cfg, (unsigned)cfg->line, "syntax error");
	/* libconfuse takes the end of the file for the end of a section. */
	if (found.open > 0)
		return say_at(cfg, found.line, "the file ends in a section that is not closed");
	return file_rules_check(cfg);
}

bool config_file_read(struct config *config, const char *path, char error[CONFIG_ERROR])
{
	cfg_t *cfg = new_tree();
	struct buf text = BUF_EMPTY;
	bool good;

	cfg_set_error_function(cfg, say);
	cfg->filename = xstrdup(path);
	said = error;
	*said = '\0';
	good = read_text(path, &text, error) && parse(cfg, &text) && read_options(cfg, config);
	buf_free(&text);
	cfg_free(cfg);
	return good;
}
