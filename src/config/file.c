#include "config/file.h"

#include <assert.h>
#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/text.h"
#include "util/alloc.h"
#include "util/near.h"

/*
 * State of the file that is being read. It is static because libconfuse's callbacks have no
 * argument for it.
 */
static struct reading {
	struct config *config;
	struct buf said, unknown;  /* Errors; and errors about unknown options. */
	unsigned faults, unknowns; /* The number of errors in each of them. */
	/* The unknown option at which parsing stopped, and its line; otherwise "". */
	char name[CONFIG_WHY];
	unsigned line;
	/* The option that was set last, and the number of its values at that time. */
	const cfg_opt_t *last;
	unsigned count;
	/* The rule that is being read, and a bit set of its options that were set. */
	const cfg_t *section;
	uint64_t set;
} reading;

/*
 * Limits of a file. A reload reads it in the main thread, which serves the operators too: each
 * rule is compared with all others, each unknown option makes another parse necessary, and each
 * error is a line of the log.
 */
enum { FILE_MAX = 1 << 20, LIST_MAX = 1024, RULES_MAX = 1000, FAULTS_MAX = 20 };

/* --- errors --- */

static bool has_many_faults(void)
{
	return reading.faults + reading.unknowns >= FAULTS_MAX;
}

/* Reports an error, unless there are many. Returns false. */
static __attribute__((format(printf, 2, 3))) bool refuse(unsigned line, const char *format, ...)
{
	char text[2 * CONFIG_VALUE_ERROR];
	va_list arguments;

	if (has_many_faults())
		return false;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	reading.faults++;
	return config_fault(reading.config, line, &reading.said, "%s", text);
}

/* The result of a callback of libconfuse, which stops at a result other than 0. */
static int go_on(void)
{
	return has_many_faults() ? -1 : 0;
}

/* --- rules --- */

static const char *const buckets[] = {
	[GRANULARITY_DAY] = "day",
	[GRANULARITY_HOUR] = "hour",
	[GRANULARITY_MINUTE] = "minute",
	NULL,
};
static const char *const types[] = { [COLLECTION_SET] = "set", [COLLECTION_LIST] = "list", NULL };
static const char *const ends[] = { [NEWEST_LAST] = "last", [NEWEST_FIRST] = "first", NULL };
static const char *const encodings[] = {
	"oplog",
#define ENCODING(id, name) #name,
#include "collection/encodings.def"
#undef ENCODING
	NULL,
};

/* The permitted values in a row of rules.def. */
#define RANGE(from, to) .least = (from), .most = (to)
#define BYTES(from, to) .least = (from), .most = (to)
#define WORDS(list) .words = (list)
#define ANY .words = NULL

static const struct rule_option {
	const char *section, *name;
	int64_t least, most; /* Range of a number, or of the length of a text in bytes. */
	const char *const *words;
} rule_options[] = {
#define COLLECTION_RULE(type, kind, member, initial, allowed, ...) \
	{ "collection", #member, allowed },
#define EVENT_RULE(type, kind, member, initial, allowed, ...) { "events", #member, allowed },
#define ITEM_RULE(type, kind, member, initial, allowed, ...) { "item", #member, allowed },
#include "collection/rules.def"
};

/*
 * Returns the row of an option of a rule. libconfuse passes another section for an option
 * outside of its rule, such as collection|ttl.
 */
static const struct rule_option *option_of(cfg_t *section, cfg_opt_t *opt)
{
	const struct rule_option *found = NULL;

	for (size_t i = 0; i < sizeof(rule_options) / sizeof(rule_options[0]); i++) {
		const struct rule_option *o = &rule_options[i];
		if (strcmp(o->name, cfg_opt_name(opt)) == 0 &&
			(!found || strcmp(o->section, cfg_name(section)) == 0))
			found = o;
	}
	return found;
}

/* Reports an option that is set twice in a rule; libconfuse would silently use the last value. */
static void note_option(cfg_t *section, const cfg_opt_t *opt)
{
	unsigned at = 0;

	while (section->opts[at].name && &section->opts[at] != opt)
		at++;
	/* An option such as collection|ttl, outside of its rule, belongs to another section. */
	if (!section->opts[at].name)
		return;
	if (reading.section != section)
		reading.set = 0;
	reading.section = section;
	if (reading.set >> at & 1)
		cfg_error(section, "%s is set twice in this rule", opt->name);
	reading.set |= UINT64_C(1) << at;
}

/*
 * Parses a number. libconfuse itself would read it as octal after a 0, and accept an empty text
 * as 0.
 */
static int parse_number(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	const struct rule_option *o = option_of(cfg, opt);
	char room[CONFIG_WHY];
	int64_t value = 0;
	const char *unit = strcmp(o->name, "ttl") == 0 ? "seconds"
		: strcmp(o->name, "fresh_for") == 0    ? "milliseconds"
						       : "";
	const char *why = config_quantity(text, unit, o->least, o->most, &value, room);

	note_option(cfg, opt);
	if (why)
		cfg_error(cfg, "%s = %s: %s", o->name, text, why);
	*(long *)result = (long)value;
	return go_on();
}

/* Parses a word into its index. */
static int parse_word(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	const struct rule_option *o = option_of(cfg, opt);
	char room[CONFIG_WHY];
	int value = 0;
	const char *why = config_word(text, o->words, &value, room);

	note_option(cfg, opt);
	if (why)
		cfg_error(cfg, "%s = \"%s\" %s", o->name, text, why);
	*(long *)result = value;
	return go_on();
}

static int parse_flag(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	bool value = false;
	const char *why = config_flag(text, &value);

	note_option(cfg, opt);
	if (why)
		cfg_error(cfg, "%s = %s: %s", cfg_opt_name(opt), text, why);
	*(long *)result = value;
	return go_on();
}

static int check_text(cfg_t *cfg, cfg_opt_t *opt)
{
	const struct rule_option *o = option_of(cfg, opt);
	const char *text = cfg_opt_getnstr(opt, 0);
	char size[32];
	size_t n = strlen(text);

	note_option(cfg, opt);
	if (o->most == 1)
		snprintf(size, sizeof(size), "one byte");
	else if (o->least == 0)
		snprintf(size, sizeof(size), "up to %d bytes", (int)o->most);
	else
		snprintf(size, sizeof(size), "%d to %d bytes", (int)o->least, (int)o->most);
	if (n < (size_t)o->least || n > (size_t)o->most || word_end(text, text + n) != text + n)
		cfg_error(cfg, "%s = \"%s\": must be %s, without spaces and control characters",
			o->name, text, size);
	return go_on();
}

static int check_share(cfg_t *cfg, cfg_opt_t *opt)
{
	double value = cfg_opt_getnfloat(opt, 0);

	note_option(cfg, opt);
	if (!(value > 0 && value <= 1))
		cfg_error(cfg, "%s = %g: must be above 0 and at most 1", cfg_opt_name(opt), value);
	return go_on();
}

/* Called by libconfuse after each rule. */
static int file_count_rule(cfg_t *cfg, cfg_opt_t *opt)
{
	if (cfg_opt_size(opt) <= RULES_MAX)
		return go_on();
	refuse((unsigned)cfg->line, "%s: more than %d of these rules", cfg_opt_name(opt),
		RULES_MAX);
	return -1;
}

/* Returns NULL, or why a rule for collections cannot have two copies. */
static const char *copies_error(cfg_t *section)
{
	if (cfg_getint(section, "copies") < 2)
		return NULL;
	if (cfg_getint(section, "type") == COLLECTION_LIST)
		return "`copies` = 2 is not for lists: two servers may receive pushes in different "
		       "orders";
	if (cfg_getint(section, "encoding") != ENCODING_OPLOG)
		return "`copies` = 2 is only for the encoding oplog";
	if (cfg_getint(section, "plain_verbs"))
		return "`copies` = 2 excludes `plain_verbs`: flags and CAS ids are those of one "
		       "item";
	if (!cfg_getint(section, "only"))
		return "`copies` = 2 needs `only` = true: plain writes would reach only one copy";
	return NULL;
}

/* Returns NULL, or the error of a whole rule. */
static const char *rule_error(cfg_t *section)
{
	long encoding = cfg_getint(section, "encoding");
	bool list = cfg_getint(section, "type") == COLLECTION_LIST;
	const char *removed = cfg_getstr(section, "removed"), *prefix = cfg_title(section);

	if (list && encoding != ENCODING_OPLOG && encoding != ENCODING_CSV)
		return "the encoding of a list must be oplog or csv";
	if (cfg_getint(section, "max") && (!list || encoding != ENCODING_OPLOG))
		return "`max` is only for lists with the encoding oplog";
	if (*cfg_getstr(section, "dead") && (!list || encoding != ENCODING_OPLOG))
		return "`dead` is only for lists with the encoding oplog";
	if (cfg_getint(section, "spread") > 1 && encoding != ENCODING_OPLOG)
		return "`spread` is only for the encoding oplog";
	if (cfg_getint(section, "member_ttl") && (list || encoding != ENCODING_OPLOG))
		return "`member_ttl` is only for sets with the encoding oplog";
	if (cfg_getint(section, "fresh_for") && encoding != ENCODING_OPLOG)
		return "`fresh_for` is only for the encoding oplog";
	if (encoding == ENCODING_PAIRED && (!*removed || strcmp(removed, prefix) == 0))
		return "the encoding paired needs a prefix in `removed` that differs from that of "
		       "the rule";
	if (encoding != ENCODING_PAIRED && *removed)
		return "`removed` is only for the encoding paired";
	if (encoding == ENCODING_TOMBSTONE && cfg_getstr(section, "delimiter")[0] == '|')
		return "the delimiter of the encoding tombstone must not be |";
	return copies_error(section);
}

/* Returns the section with the longest prefix with which the key of a set begins, or NULL. */
static cfg_t *collection_of(cfg_t *cfg, struct slice key)
{
	cfg_t *best = NULL;
	size_t longest = 0;

	for (unsigned i = 0; i < cfg_size(cfg, "collection"); i++) {
		cfg_t *section = cfg_getnsec(cfg, "collection", i);
		const char *prefix = cfg_title(section);
		size_t n = strlen(prefix);
		if (n >= longest && slice_starts(key, slice_of(prefix, n))) {
			best = section;
			longest = n;
		}
	}
	return best;
}

/* Returns whether a rule reserves its keys, so that no set or list can have another key. */
static bool any_reserves(cfg_t *cfg)
{
	for (unsigned i = 0; i < cfg_size(cfg, "collection"); i++) {
		if (cfg_getint(cfg_getnsec(cfg, "collection", i), "only"))
			return true;
	}
	return false;
}

/* Returns the error of a rule whose dead elements could not be moved to their list, or NULL. */
static const char *dead_error(cfg_t *cfg, cfg_t *section, bool reserves)
{
	const char *dead = cfg_getstr(section, "dead");
	cfg_t *target = *dead ? collection_of(cfg, slice_of(dead, strlen(dead))) : NULL;

	if (target && cfg_getint(target, "type") != COLLECTION_LIST)
		return "the rule for the key in `dead` is not for lists";
	if (*dead && reserves && !(target && cfg_getint(target, "only")))
		return "the key in `dead` needs a rule with `only`, since others reserve theirs";
	return NULL;
}

/*
 * Checks all rules, including that no two have the same prefix for removals, since one item
 * would then contain the removals of two sets. At most RULES_MAX texts are compared with each
 * other. Must be called at the end of the file: an option such as
 * collection|encoding changes a section that was complete.
 */
static void check_rules(cfg_t *cfg)
{
	const char *removed[RULES_MAX];
	unsigned count = cfg_size(cfg, "collection");
	bool reserves = any_reserves(cfg);

	assert(count <= RULES_MAX);
	for (unsigned i = 0; i < count; i++) {
		cfg_t *section = cfg_getnsec(cfg, "collection", i);
		const char *error = rule_error(section);
		error = error ? error : dead_error(cfg, section, reserves);
		removed[i] = cfg_getstr(section, "removed");
		for (unsigned k = 0; k < i && *removed[i] && !error; k++) {
			if (strcmp(removed[k], removed[i]) == 0)
				error = "another rule has the same `removed`";
		}
		if (error)
			cfg_error(section, "collection \"%s\": %s", cfg_title(section), error);
	}
}

/* Returns the error of a rule that keeps types, or NULL: their sets are ordinary ones. */
static const char *types_error(cfg_t *cfg, cfg_t *section)
{
	enum { KEY = COLLECTION_KEY_MAX + 1 };
	char key[KEY];
	cfg_t *collection;
	int n, most;

	if (!cfg_getint(section, "types"))
		return NULL;
	n = snprintf(key, sizeof(key), "%s%s201502201630%stypes", cfg_title(section),
		cfg_getstr(section, "separator"), cfg_getstr(section, "separator"));
	if (n >= KEY)
		return "the prefix is too long for `types`";
	collection = collection_of(cfg, slice_of(key, (size_t)n));
	most = (int)rules_key_max(collection ? (unsigned)cfg_getint(collection, "copies") : 1);
	if (n > most)
		return "the prefix is too long for `types`";
	if (collection &&
		(cfg_getint(collection, "encoding") != ENCODING_OPLOG ||
			cfg_getint(collection, "type") != COLLECTION_SET))
		return "`types` needs sets in oplog, but a rule for collections has the same "
		       "prefix";
	return NULL;
}

static void check_event_rules(cfg_t *cfg)
{
	for (unsigned i = 0; i < cfg_size(cfg, "events"); i++) {
		cfg_t *section = cfg_getnsec(cfg, "events", i);
		const char *error = types_error(cfg, section);
		if (cfg_getint(section, "copies") > 1 && cfg_getint(section, "plain_verbs"))
			error = "`copies` = 2 excludes `plain_verbs`: flags and CAS ids are those "
				"of "
				"one item";
		if (error)
			cfg_error(section, "events \"%s\": %s", cfg_title(section), error);
	}
}

static struct slice copy_string(const char *text)
{
	return slice_of(xstrdup(text), strlen(text));
}

/* How to get a value from libconfuse, by its kind. */
#define READ_WORD(section, type, name) (type) cfg_getint(section, name)
#define READ_NUMBER READ_WORD
#define READ_FLAG READ_WORD
#define READ_SHARE(section, type, name) cfg_getfloat(section, name)
#define READ_BYTE(section, type, name) cfg_getstr(section, name)[0]
#define READ_TEXT(section, type, name) copy_string(cfg_getstr(section, name))

static void read_collection(cfg_t *section, struct collection_rule *rule)
{
	rule->prefix = copy_string(cfg_title(section));
#define COLLECTION_RULE(type, kind, name, ...) rule->name = READ_##kind(section, type, #name);
#include "collection/rules.def"
}

static void read_event(cfg_t *section, struct event_rule *rule)
{
	rule->prefix = copy_string(cfg_title(section));
#define EVENT_RULE(type, kind, name, ...) rule->name = READ_##kind(section, type, #name);
#include "collection/rules.def"
}

static void read_item(cfg_t *section, struct item_rule *rule)
{
	rule->prefix = copy_string(cfg_title(section));
#define ITEM_RULE(type, kind, name, ...) rule->name = READ_##kind(section, type, #name);
#include "collection/rules.def"
}

static void read_rules(cfg_t *cfg, struct rules *rules)
{
	unsigned collections = cfg_size(cfg, "collection"), events = cfg_size(cfg, "events"),
		 items = cfg_size(cfg, "item");
	struct collection_rule *c = xcalloc(collections, sizeof(*c));
	struct event_rule *e = xcalloc(events, sizeof(*e));
	struct item_rule *item = xcalloc(items, sizeof(*item));

	for (unsigned i = 0; i < collections; i++) {
		read_collection(cfg_getnsec(cfg, "collection", i), &c[i]);
		rules->reserves |= c[i].only;
		rules->fresh |= c[i].fresh_for > 0;
		rules->copies |= c[i].copies > 1;
	}
	for (unsigned i = 0; i < events; i++) {
		read_event(cfg_getnsec(cfg, "events", i), &e[i]);
		rules->plain_events |= e[i].plain_verbs;
		rules->fresh |= e[i].fresh_for > 0;
		rules->copies |= e[i].copies > 1;
	}
	for (unsigned i = 0; i < items; i++) {
		read_item(cfg_getnsec(cfg, "item", i), &item[i]);
		rules->fresh |= item[i].fresh_for > 0;
	}
	rules->collections = c;
	rules->collection_count = collections;
	rules->events = e;
	rules->event_count = events;
	rules->items = item;
	rules->item_count = items;
}

/* --- options --- */

/* Called by libconfuse for each value, when the line is known. */
static int file_take(cfg_t *cfg, cfg_opt_t *opt)
{
	const struct config_option *o = config_option(cfg_opt_name(opt));
	unsigned count = cfg_opt_size(opt), line = config_line(reading.config, o->name);
	char error[CONFIG_VALUE_ERROR];

	/* libconfuse calls this once more at the end of a list. */
	if (config_is_list(o) && opt == reading.last && count == reading.count) {
		reading.last = NULL;
		return 0;
	}
	reading.last = opt;
	reading.count = count;
	if (count > LIST_MAX) {
		cfg_error(cfg, "%s: more than %d elements", o->name, LIST_MAX);
		return -1;
	}
	if (count == 1 && line)
		cfg_error(cfg, "%s is already set on line %u", o->name, line);
	if (count == 1)
		config_clear(reading.config, o);
	if (!config_set(reading.config, o, cfg_opt_getnstr(opt, count - 1), error))
		cfg_error(cfg, "%s", error);
	config_mark(reading.config, o, (unsigned)cfg->line);
	return go_on();
}

static cfg_opt_t tree_option(const struct config_option *o)
{
	cfg_opt_t text = CFG_STR(o->name, "", CFGF_NONE),
		  list = CFG_STR_LIST(o->name, NULL, CFGF_NONE);

	return config_is_list(o) ? list : text;
}

/* How libconfuse parses and checks a value, by its kind. It copies the texts. */
#define TREE_WORD(name, initial) CFG_INT_CB(name, initial, CFGF_NONE, parse_word)
#define TREE_NUMBER(name, initial) CFG_INT_CB(name, initial, CFGF_NONE, parse_number)
#define TREE_FLAG(name, initial) CFG_INT_CB(name, initial, CFGF_NONE, parse_flag)
#define TREE_SHARE(name, initial) CFG_FLOAT(name, initial, CFGF_NONE)
#define TREE_BYTE(name, initial) CFG_STR(name, ((char[]){ initial, 0 }), CFGF_NONE)
#define TREE_TEXT(name, initial) CFG_STR(name, initial, CFGF_NONE)
#define CHECK_WORD(path)
#define CHECK_NUMBER(path)
#define CHECK_FLAG(path)
#define CHECK_SHARE(path) cfg_set_validate_func(cfg, path, check_share);
#define CHECK_BYTE(path) cfg_set_validate_func(cfg, path, check_text);
#define CHECK_TEXT(path) cfg_set_validate_func(cfg, path, check_text);

/* Returns a tree of all options and rules, which checks their values. */
static cfg_t *new_tree(void)
{
	cfg_opt_t collection[] = {
#define COLLECTION_RULE(type, kind, name, initial, ...) TREE_##kind(#name, initial),
#include "collection/rules.def"
		CFG_END(),
	};
	cfg_opt_t events[] = {
#define EVENT_RULE(type, kind, name, initial, ...) TREE_##kind(#name, initial),
#include "collection/rules.def"
		CFG_END(),
	};
	cfg_opt_t item[] = {
#define ITEM_RULE(type, kind, name, initial, ...) TREE_##kind(#name, initial),
#include "collection/rules.def"
		CFG_END(),
	};
	cfg_opt_t options[] = {
#define OPTION(kind, name, ...) tree_option(config_option(#name)),
#include "config/options.def"
#undef OPTION
		CFG_SEC("collection", collection, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		CFG_SEC("events", events, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		CFG_SEC("item", item, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		CFG_END(),
	};
	cfg_t *cfg = cfg_init(options, CFGF_NONE);

	for (const struct config_option *o = config_options; o->name; o++)
		cfg_set_validate_func(cfg, o->name, file_take);
	cfg_set_validate_func(cfg, "collection", file_count_rule);
	cfg_set_validate_func(cfg, "events", file_count_rule);
	cfg_set_validate_func(cfg, "item", file_count_rule);
#define COLLECTION_RULE(type, kind, name, ...) CHECK_##kind("collection|" #name)
#define EVENT_RULE(type, kind, name, ...) CHECK_##kind("events|" #name)
#define ITEM_RULE(type, kind, name, ...) CHECK_##kind("item|" #name)
#include "collection/rules.def"
	return cfg;
}

/* --- the file --- */

enum { READ_MORE = 16384 };

static bool read_text(const char *path, struct buf *text)
{
	FILE *file = fopen(path, "r");
	char *at;
	size_t n;
	bool good;

	/* The size is not asked for: it may be a pipe, or grow. */
	while (file && buf_size(text) <= FILE_MAX &&
		(at = buf_reserve(text, READ_MORE), n = fread(at, 1, READ_MORE, file)) > 0)
		buf_commit(text, n);
	good = file && !ferror(file);
	if (!good)
		refuse(0, "%s: %s", path, strerror(errno));
	else if (buf_size(text) > FILE_MAX)
		good = refuse(0, "%s: more than %d bytes", path, FILE_MAX);
	if (file)
		fclose(file);
	BUF_ADD(text, "\0");
	return good;
}

/*
 * Returns whether the name is a likely guess for a rule by a user who is not aware that rules
 * are sections.
 */
static bool names_rules(struct slice name)
{
	static const char *const words[] = { "rule", "rules", "set", "sets", "list", "lists",
		"prefix", "encoding" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (slice_equal(name, slice_of(words[i], strlen(words[i]))))
			return true;
	}
	return false;
}

/* Reports an unknown option, at which libconfuse has stopped. */
static void say_unknown(const cfg_t *cfg, struct slice name)
{
	struct near near = { .word = name };
	char hint[NEAR_HINT];

	for (const cfg_opt_t *o = cfg->opts; o->name; o++)
		near_offer(&near, slice_of(o->name, strlen(o->name)));
	near_hint(&near, hint);
	if (!cfg_title((cfg_t *)cfg) && names_rules(name))
		snprintf(hint, sizeof(hint),
			"; a rule is a section: collection \"tags-\" { type = \"list\" }");
	reading.line = (unsigned)cfg->line;
	snprintf(reading.name, sizeof(reading.name), "%.*s", (int)name.n, name.p);
	reading.unknowns++;
	config_fault(reading.config, (unsigned)cfg->line, &reading.unknown, "unknown option %.*s%s",
		(int)name.n, name.p, hint);
}

static __attribute__((format(printf, 2, 0))) void say(
	cfg_t *cfg, const char *format, va_list arguments)
{
	static const char before[] = "no such option '";
	char text[CONFIG_VALUE_ERROR + 64];
	struct slice said;

	vsnprintf(text, sizeof(text), format, arguments);
	said = slice_of(text, strlen(text));
	if (slice_starts(said, SLICE("unexpected token")))
		snprintf(text + said.n, sizeof(text) - said.n, "; is a comma missing before it?");
	if (slice_starts(said, SLICE(before)) && said.n > sizeof(before)) {
		said = slice_skip(said, sizeof(before) - 1);
		say_unknown(cfg, slice_of(said.p, said.n - 1));
	} else {
		refuse((unsigned)cfg->line, "%s", text);
	}
}

/*
 * Returns false if parsing stopped before the end. libconfuse rejects an empty name without an
 * error message.
 */
static bool parse(cfg_t *cfg, const char *text, const struct config_text *found)
{
	if (cfg_parse_buf(cfg, text) != CFG_SUCCESS)
		return buf_size(&reading.said) || *reading.name
			? false
			: refuse((unsigned)cfg->line, "syntax error");
	/* libconfuse closes an open section at the end of the file. */
	if (found->open > 0)
		return refuse(found->line, "the file ends in a section that is not closed");
	check_rules(cfg);
	check_event_rules(cfg);
	if (!buf_size(&reading.said))
		read_rules(cfg, &reading.config->rules);
	return true;
}

/* libconfuse stops at an unknown option. The text is then parsed again without it. */
static bool read_all(char *text, const struct config_text *found)
{
	const char *path = reading.config->file;
	bool good;

	do {
		cfg_t *cfg = new_tree();
		cfg_set_error_function(cfg, say);
		config_fini(reading.config);
		config_init(reading.config);
		reading.config->file = path;
		reading.last = NULL;
		reading.section = NULL;
		reading.name[0] = '\0';
		buf_consume(&reading.said, buf_size(&reading.said));
		reading.faults = 0;
		good = parse(cfg, text, found);
		cfg_free(cfg);
	} while (!good && *reading.name && !has_many_faults() &&
		config_text_drop(text, reading.line, reading.name));
	return good;
}

bool config_file_read(struct config *config, const char *path, struct buf *errors)
{
	struct buf text = BUF_EMPTY;
	struct config_text found = { .line = 1 };
	const char *error;
	bool good;

	reading = (struct reading){ .config = config };
	config->file = path;
	good = read_text(path, &text);
	if (good) {
		error = slice_starts(buf_slice(&text), SLICE("\xef\xbb\xbf"))
			? "the file begins with a byte order mark; save it as UTF-8 without one"
			: config_text_clean(text.data + text.start, buf_size(&text) - 1, &found);
		good = error ? refuse(found.line, "%s", error)
			     : read_all(text.data + text.start, &found);
	}
	buf_add_slice(errors, buf_slice(&reading.unknown));
	buf_add_slice(errors, buf_slice(&reading.said));
	if (has_many_faults())
		config_fault(config, 0, errors, "%s: more errors may follow; %d are shown", path,
			FAULTS_MAX);
	buf_free(&reading.unknown);
	buf_free(&reading.said);
	buf_free(&text);
	return good;
}
