#include "config/file.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/file_access.h"
#include "config/file_admin.h"
#include "config/file_commands.h"
#include "config/file_log.h"
#include "config/text.h"
#include "util/alloc.h"
#include "util/num.h"

/* A time to live is at most 30 days: memcached reads a larger time as a date. */
enum { TTL_MAX = 2592000, SEPARATOR_MAX = 16, LOOKBACK_MAX = 10000, REMOVED_MAX = 30, READ_MORE = 16384 };

static const struct word {
	const char *word;
	int value;
} distributions[] = { { "ketama", RING_KETAMA }, { "consistent", RING_CONSISTENT }, { "modula", RING_MODULA },
	{ NULL, 0 } },
  buckets[] = { { "day", GRANULARITY_DAY }, { "hour", GRANULARITY_HOUR }, { "minute", GRANULARITY_MINUTE },
	  { NULL, 0 } },
  types[] = { { "set", COLLECTION_SET }, { "list", COLLECTION_LIST }, { NULL, 0 } },
  encodings[] = { { "oplog", ENCODING_OPLOG },
#define ENCODING(id, name) { #name, ENCODING_##id },
#include "collection/encodings.def"
#undef ENCODING
	  { NULL, 0 } };

static const struct range {
	const char *name;
	long least, most;
} ranges[] = {
#define NUMBER(name, initial, least, most, unit, about) { #name, least, most },
#include "config/options.def"
#undef NUMBER
	{ "ttl", 0, TTL_MAX },
	{ "lookback", 1, LOOKBACK_MAX },
};

static const struct word *find_word(const struct word *words, const char *text)
{
	while (words->word && strcmp(words->word, text) != 0)
		words++;
	return words->word ? words : NULL;
}

/* --- checks: libconfuse calls them while it knows the line --- */

/* libconfuse's own numbers are octal behind a 0, and 0 if the text is empty. */
static int take_number(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	const struct range *r = ranges;
	int64_t value;

	while (strcmp(r->name, cfg_opt_name(opt)) != 0)
		r++;
	if (!num_parse_i64(slice_of(text, strlen(text)), &value) || value < r->least || value > r->most) {
		cfg_error(
			cfg, "%s = %s: a decimal number from %ld to %ld is allowed", r->name, text, r->least, r->most);
		return -1;
	}
	*(long *)result = (long)value;
	return 0;
}

static int check_word(cfg_t *cfg, cfg_opt_t *opt, const struct word *words)
{
	const char *text = cfg_opt_getnstr(opt, 0);
	char known[128] = "";

	if (find_word(words, text))
		return 0;
	for (; words->word; words++) {
		strncat(known, known[0] ? ", " : "", sizeof(known) - strlen(known) - 1);
		strncat(known, words->word, sizeof(known) - strlen(known) - 1);
	}
	cfg_error(cfg, "%s = \"%s\" is not known, only: %s", cfg_opt_name(opt), text, known);
	return -1;
}

static int check_distribution(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, distributions);
}

static int check_bucket(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, buckets);
}

static int check_type(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, types);
}

static int check_encoding(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, encodings);
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

static int check_listen(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_address(cfg, opt, false);
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
	unsigned last = cfg_opt_size(opt) - 1;
	const char *text = cfg_opt_getnstr(opt, last), *error = server_form(opt, text);
	struct address address, other;

	if (error) {
		cfg_error(cfg, "servers: \"%s\": %s", text, error);
		return -1;
	}
	if (is_ring_string(text))
		return 0;
	if (check_address(cfg, opt, true) || address_parse(text, 11211, true, &address))
		return -1;
	for (unsigned i = 0; i < last; i++) {
		if (address_parse(cfg_opt_getnstr(opt, i), 11211, true, &other) || !address_same(&address, &other))
			continue;
		cfg_error(cfg, "servers: \"%s\" is named twice", text);
		return -1;
	}
	return 0;
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

static int check_separator(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0);
	size_t n = strlen(text);
	bool good = n > 0 && n <= SEPARATOR_MAX;

	for (size_t i = 0; i < n; i++)
		good = good && (unsigned char)text[i] > ' ' && text[i] != 0x7f;
	if (!good)
		cfg_error(
			cfg, "separator = \"%s\": 1 to %d bytes, no space, no control character", text, SEPARATOR_MAX);
	return good ? 0 : -1;
}

static int check_waste(cfg_t *cfg, cfg_opt_t *opt)
{
	double value = cfg_opt_getnfloat(opt, 0);

	if (value > 0 && value <= 1)
		return 0;
	cfg_error(cfg, "compact_waste = %g: above 0 and up to 1 is allowed", value);
	return -1;
}

static int check_delimiter(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0);

	if (strlen(text) == 1 && (unsigned char)text[0] > ' ' && text[0] != 0x7f)
		return 0;
	cfg_error(cfg, "delimiter = \"%s\": one byte is allowed, no space, no control character", text);
	return -1;
}

static int check_removed(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0);
	bool good = strlen(text) <= REMOVED_MAX;

	for (const char *c = text; *c; c++)
		good = good && (unsigned char)*c > ' ' && *c != 0x7f;
	if (!good)
		cfg_error(cfg, "removed = \"%s\": up to %d bytes, no space, no control character", text, REMOVED_MAX);
	return good ? 0 : -1;
}

/* Checks a whole rule. Gives NULL, or the error. */
static const char *rule_error(cfg_t *section)
{
	int encoding = find_word(encodings, cfg_getstr(section, "encoding"))->value;
	bool list = find_word(types, cfg_getstr(section, "type"))->value == COLLECTION_LIST;
	const char *removed = cfg_getstr(section, "removed"), *prefix = cfg_title(section);

	if (list && encoding != ENCODING_OPLOG && encoding != ENCODING_CSV)
		return "a list has the encoding oplog or csv";
	if (encoding == ENCODING_PAIRED && (!*removed || strcmp(removed, prefix) == 0))
		return "the encoding paired needs another prefix in `removed`";
	if (encoding != ENCODING_PAIRED && *removed)
		return "`removed` is for the encoding paired alone";
	if (encoding == ENCODING_TOMBSTONE && cfg_getstr(section, "delimiter")[0] == '|')
		return "the delimiter of the encoding tombstone is not its bar";
	return NULL;
}

/* At the end of the file: a name such as collection|encoding changes a section that was complete. */
static bool check_rules(cfg_t *cfg)
{
	const char *error = NULL;

	for (unsigned i = 0; i < cfg_size(cfg, "collection") && !error; i++) {
		cfg_t *section = cfg_getnsec(cfg, "collection", i);
		error = rule_error(section);
		if (error)
			cfg_error(section, "collection \"%s\": %s", cfg_title(section), error);
	}
	return !error;
}

/* --- from libconfuse's tree to struct config --- */

static struct slice copy_string(const char *text)
{
	return slice_of(xstrdup(text), strlen(text));
}

static void read_rules(cfg_t *cfg, struct rules *rules)
{
	size_t collections = cfg_size(cfg, "collection"), events = cfg_size(cfg, "events");
	struct collection_rule *c = xcalloc(collections, sizeof(*c));
	struct event_rule *e = xcalloc(events, sizeof(*e));

	for (size_t i = 0; i < collections; i++) {
		cfg_t *section = cfg_getnsec(cfg, "collection", (unsigned)i);
		c[i].prefix = copy_string(cfg_title(section));
		c[i].type = (enum collection_type)find_word(types, cfg_getstr(section, "type"))->value;
		c[i].encoding = (enum encoding_id)find_word(encodings, cfg_getstr(section, "encoding"))->value;
		c[i].delimiter = cfg_getstr(section, "delimiter")[0];
		c[i].removed = copy_string(cfg_getstr(section, "removed"));
		c[i].pointer = cfg_getbool(section, "pointer");
		c[i].plain_verbs = cfg_getbool(section, "plain_verbs");
		c[i].ttl = cfg_getint(section, "ttl");
		c[i].compact_waste = cfg_getfloat(section, "compact_waste");
	}
	for (size_t i = 0; i < events; i++) {
		cfg_t *section = cfg_getnsec(cfg, "events", (unsigned)i);
		e[i].prefix = copy_string(cfg_title(section));
		e[i].bucket = (enum granularity)find_word(buckets, cfg_getstr(section, "bucket"))->value;
		e[i].ttl = cfg_getint(section, "ttl");
		e[i].separator = copy_string(cfg_getstr(section, "separator"));
		e[i].lookback = (unsigned)cfg_getint(section, "lookback");
		e[i].plain_verbs = cfg_getbool(section, "plain_verbs");
		rules->plain_events |= e[i].plain_verbs;
	}
	rules->collections = c;
	rules->collection_count = collections;
	rules->events = e;
	rules->event_count = events;
}

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
	config->distribution = (enum ring_distribution)find_word(distributions, cfg_getstr(cfg, "distribution"))->value;
	free(config->user);
	config->user = xstrdup(cfg_getstr(cfg, "user"));
	config->reuseport = cfg_getbool(cfg, "reuseport");
	config->sandbox = cfg_getbool(cfg, "sandbox");
	file_admin_read(cfg, config);
	file_access_read(cfg, config);
	file_log_read(cfg, config);
	read_rules(cfg, &config->rules);
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
	file_log_set_checks(cfg);
	file_commands_set_checks(cfg);
	cfg_set_validate_func(cfg, "collection|type", check_type);
	cfg_set_validate_func(cfg, "collection|encoding", check_encoding);
	cfg_set_validate_func(cfg, "collection|compact_waste", check_waste);
	cfg_set_validate_func(cfg, "collection|delimiter", check_delimiter);
	cfg_set_validate_func(cfg, "collection|removed", check_removed);
	cfg_set_validate_func(cfg, "events|bucket", check_bucket);
	cfg_set_validate_func(cfg, "events|separator", check_separator);
}

/* A tree that knows all options and checks their values. */
static cfg_t *new_tree(void)
{
	cfg_opt_t collection[] = {
		CFG_STR("type", "set", CFGF_NONE),
		CFG_STR("encoding", "oplog", CFGF_NONE),
		CFG_INT_CB("ttl", 0, CFGF_NONE, take_number),
		CFG_FLOAT("compact_waste", 0.5, CFGF_NONE),
		CFG_STR("delimiter", ",", CFGF_NONE),
		CFG_STR("removed", "", CFGF_NONE),
		CFG_BOOL("pointer", cfg_true, CFGF_NONE),
		CFG_BOOL("plain_verbs", cfg_false, CFGF_NONE),
		CFG_END(),
	};
	cfg_opt_t events[] = {
		CFG_STR("bucket", "hour", CFGF_NONE),
		CFG_INT_CB("ttl", 0, CFGF_NONE, take_number),
		CFG_STR("separator", "::", CFGF_NONE),
		CFG_INT_CB("lookback", 24, CFGF_NONE, take_number),
		CFG_BOOL("plain_verbs", cfg_false, CFGF_NONE),
		CFG_END(),
	};
	cfg_opt_t options[] = {
#define NUMBER(name, initial, least, most, unit, about) CFG_INT_CB(#name, initial, CFGF_NONE, take_number),
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
		FILE_LOG_OPTIONS,
		FILE_COMMANDS_OPTIONS,
#define PATH(name) CFG_STR(#name, "", CFGF_NONE),
#include "config/paths.def"
#undef PATH
		CFG_SEC("collection", collection, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		CFG_SEC("events", events, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		CFG_END(),
	};
	cfg_t *cfg = cfg_init(options, CFGF_NONE);

	set_checks(cfg);
	return cfg;
}

static bool read_text(const char *path, struct buf *text)
{
	FILE *file = fopen(path, "r");
	char *at;
	size_t n;
	bool good;

	while (file && (at = buf_reserve(text, READ_MORE), n = fread(at, 1, READ_MORE, file)) > 0)
		buf_commit(text, n);
	good = file && !ferror(file);
	if (!good)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	if (file)
		fclose(file);
	return good;
}

/* Whether anything was said: libconfuse refuses an empty name without a word. */
static bool said;

/* Control bytes of the file would make two lines of one. */
static __attribute__((format(printf, 2, 0))) void say(cfg_t *cfg, const char *format, va_list arguments)
{
	char text[1024];

	vsnprintf(text, sizeof(text), format, arguments);
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	fprintf(stderr, "%s:%d: %s\n", cfg->filename, cfg->line, text);
	said = true;
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
		said = false;
		rc = cfg_parse_fp(cfg, file);
		fclose(file);
	}
	if (rc != CFG_SUCCESS)
		return said ? false : say_at(cfg, (unsigned)cfg->line, "syntax error");
	/* libconfuse takes the end of the file for the end of a section. */
	if (found.open > 0)
		return say_at(cfg, found.line, "the file ends in a section that is not closed");
	return check_rules(cfg);
}

bool config_file_read(struct config *config, const char *path)
{
	cfg_t *cfg = new_tree();
	struct buf text = BUF_EMPTY;
	bool good;

	cfg_set_error_function(cfg, say);
	cfg->filename = xstrdup(path);
	good = read_text(path, &text) && parse(cfg, &text) && read_options(cfg, config);
	buf_free(&text);
	cfg_free(cfg);
	return good;
}
