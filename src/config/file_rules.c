#include "config/file_rules.h"

#include <string.h>

#include "config/file_values.h"
#include "util/alloc.h"

enum { SEPARATOR_MAX = 16, REMOVED_MAX = 30 };

static const struct file_word buckets[] = { { "day", GRANULARITY_DAY }, { "hour", GRANULARITY_HOUR },
	{ "minute", GRANULARITY_MINUTE }, { NULL, 0 } };
static const struct file_word types[] = { { "set", COLLECTION_SET }, { "list", COLLECTION_LIST }, { NULL, 0 } };
static const struct file_word encodings[] = { { "oplog", ENCODING_OPLOG },
#define ENCODING(id, name) { #name, ENCODING_##id },
#include "collection/encodings.def"
#undef ENCODING
	{ NULL, 0 } };

cfg_opt_t file_rules_collection[] = {
	CFG_STR("type", "set", CFGF_NONE),
	CFG_STR("encoding", "oplog", CFGF_NONE),
	CFG_INT_CB("ttl", 0, CFGF_NONE, file_number),
	CFG_FLOAT("compact_waste", 0.5, CFGF_NONE),
	CFG_STR("delimiter", ",", CFGF_NONE),
	CFG_STR("removed", "", CFGF_NONE),
	CFG_BOOL("pointer", cfg_true, CFGF_NONE),
	CFG_BOOL("plain_verbs", cfg_false, CFGF_NONE),
	CFG_END(),
};

cfg_opt_t file_rules_events[] = {
	CFG_STR("bucket", "hour", CFGF_NONE),
	CFG_INT_CB("ttl", 0, CFGF_NONE, file_number),
	CFG_STR("separator", "::", CFGF_NONE),
	CFG_INT_CB("lookback", 24, CFGF_NONE, file_number),
	CFG_BOOL("plain_verbs", cfg_false, CFGF_NONE),
	CFG_END(),
};

static int check_bucket(cfg_t *cfg, cfg_opt_t *opt)
{
	return file_check_word(cfg, opt, buckets);
}

static int check_type(cfg_t *cfg, cfg_opt_t *opt)
{
	return file_check_word(cfg, opt, types);
}

static int check_encoding(cfg_t *cfg, cfg_opt_t *opt)
{
	return file_check_word(cfg, opt, encodings);
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
	int encoding = file_word(encodings, cfg_getstr(section, "encoding"))->value;
	bool list = file_word(types, cfg_getstr(section, "type"))->value == COLLECTION_LIST;
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

/* The removals of two sets would be one item. */
static bool shares_removed(cfg_t *cfg, unsigned rule)
{
	const char *removed = cfg_getstr(cfg_getnsec(cfg, "collection", rule), "removed");

	for (unsigned i = 0; i < rule && *removed; i++)
		if (strcmp(cfg_getstr(cfg_getnsec(cfg, "collection", i), "removed"), removed) == 0)
			return true;
	return false;
}

/* At the end of the file: a name such as collection|encoding changes a section that was complete. */
bool file_rules_check(cfg_t *cfg)
{
	const char *error = NULL;

	for (unsigned i = 0; i < cfg_size(cfg, "collection") && !error; i++) {
		cfg_t *section = cfg_getnsec(cfg, "collection", i);
		error = rule_error(section);
		if (!error && shares_removed(cfg, i))
			error = "another rule has the same `removed`";
		if (error)
			cfg_error(section, "collection \"%s\": %s", cfg_title(section), error);
	}
	return !error;
}

void file_rules_set_checks(cfg_t *cfg)
{
	cfg_set_validate_func(cfg, "collection|type", check_type);
	cfg_set_validate_func(cfg, "collection|encoding", check_encoding);
	cfg_set_validate_func(cfg, "collection|compact_waste", check_waste);
	cfg_set_validate_func(cfg, "collection|delimiter", check_delimiter);
	cfg_set_validate_func(cfg, "collection|removed", check_removed);
	cfg_set_validate_func(cfg, "events|bucket", check_bucket);
	cfg_set_validate_func(cfg, "events|separator", check_separator);
}

static struct slice copy_string(const char *text)
{
	return slice_of(xstrdup(text), strlen(text));
}

void file_rules_read(cfg_t *cfg, struct rules *rules)
{
	size_t collections = cfg_size(cfg, "collection"), events = cfg_size(cfg, "events");
	struct collection_rule *c = xcalloc(collections, sizeof(*c));
	struct event_rule *e = xcalloc(events, sizeof(*e));

	for (size_t i = 0; i < collections; i++) {
		cfg_t *section = cfg_getnsec(cfg, "collection", (unsigned)i);
		c[i].prefix = copy_string(cfg_title(section));
		c[i].type = (enum collection_type)file_word(types, cfg_getstr(section, "type"))->value;
		c[i].encoding = (enum encoding_id)file_word(encodings, cfg_getstr(section, "encoding"))->value;
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
		e[i].bucket = (enum granularity)file_word(buckets, cfg_getstr(section, "bucket"))->value;
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
