#include "config/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "protocol/commands.h"
#include "protocol/reply.h"
#include "protocol/request.h"
#include "upstream/ring_string.h"
#include "util/alloc.h"
#include "util/near.h"
#include "util/num.h"

static const uint16_t default_port = 11311, default_server_port = 11211, default_admin_port = 11312;
static const char named_twice[] = "is listed twice";

static struct slice slice_of_text(const char *text)
{
	return slice_of(text, strlen(text));
}

/* --- checks of texts --- */

static const char *config_check_control(const char *path)
{
	if (!*path ||
		(*path == '/' && strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path)))
		return NULL;
	return "must be the absolute path of a socket, of at most 107 bytes";
}

const char *config_admin_address(const char *text, struct address *address)
{
	const char *error = address_parse(text, default_admin_port, false, address);

	if (!error && (address->port == 0 || address->tls))
		error = "must be a TCP address without TLS";
	return error;
}

static const char *config_check_admin(const char *text)
{
	struct address address;

	return *text ? config_admin_address(text, &address) : NULL;
}

/*
 * Checks a host name without a port: browsers send the port of `admin`, or that of a proxy in
 * front of it.
 */
static const char *config_check_host(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

	return *name && !name[strspn(name, allowed)] ? NULL : "is not a host name";
}

static const char *config_check_login(const char *name)
{
	return *name ? users_check_word(slice_of_text(name)) : NULL;
}

/* A longer prefix would leave no room for a command in a key. */
enum { PREFIX_MAX = 32 };

static bool is_plain(struct slice text)
{
	return text.n == 0 || request_key_valid(text, text.n);
}

/* A separator that can be part of a name or number would split it. */
static const char *config_check_commands(const char *text)
{
	struct slice prefix = slice_of_text(text);
	unsigned char last = prefix.n ? (unsigned char)text[prefix.n - 1] : '|';

	if (prefix.n > PREFIX_MAX || !is_plain(prefix))
		return "must have at most 32 bytes, and no space or control character";
	if (isalnum(last) || last == '_' || last == '-' || last >= 0x80)
		return "the last byte separates words, and must not be a letter, digit, '_' or '-'";
	return NULL;
}

static const char *config_check_delimiter(const char *text)
{
	if (strcmp(text, " ") == 0 || strcmp(text, "\n") == 0 ||
		(strlen(text) == 1 && is_plain(slice_of_text(text))))
		return NULL;
	return "must be one byte, and no control character but the newline";
}

static const char *config_check_time(const char *text)
{
	int64_t at;

	return *text ? config_time(text, &at) : NULL;
}

/* --- the table --- */

static const char *const logs[] = { [LOG_TO_STDERR] = "stderr", [LOG_TO_SYSLOG] = "syslog", NULL };
static const char *const distributions[] = {
	[RING_KETAMA] = "ketama",
	[RING_CONSISTENT] = "consistent",
	[RING_MODULA] = "modula",
	NULL,
};
static const char *const former_distributions[] = {
	[0] = "same",
	[1 + RING_KETAMA] = "ketama",
	[1 + RING_CONSISTENT] = "consistent",
	[1 + RING_MODULA] = "modula",
	NULL,
};

/* The permitted values in a row of options.def. */
#define RANGE(from, to) .least = (from), .most = (to)
#define WORDS(list) .words = (list)
#define CHECK(function) .check = (function)
#define ANY .check = NULL

const struct config_option config_options[] = {
#define OPTION(type, member, text, allowed, printed, reloaded, about) \
	{ \
		.name = #member, \
		.kind = KIND_##type, \
		.offset = offsetof(struct config, member), \
		.size = sizeof(((struct config *)NULL)->member), \
		.initial = (text), \
		allowed, \
		.shown = OPTION_##printed, \
		.reload = RELOAD_##reloaded, \
		.what = (about), \
	},
#include "config/options.def"
#undef OPTION
	{ .name = NULL },
};

const struct config_option *config_option(const char *name)
{
	const struct config_option *o = config_options;

	while (strcmp(o->name, name) != 0)
		o++;
	return o;
}

bool config_is_list(const struct config_option *o)
{
	switch (o->kind) {
	case KIND_TEXTS:
	case KIND_ADDRESSES:
	case KIND_SERVERS:
	case KIND_USERS:
	case KIND_COMMANDS:
		return true;
	default:
		return false;
	}
}

/* --- setting an option, by its kind --- */

void config_clear(struct config *config, const struct config_option *o)
{
	void *value = (char *)config + o->offset;
	struct text_list *texts = value;
	struct address_list *addresses = value;

	switch (o->kind) {
	case KIND_TEXT:
	case KIND_LOGIN:
		free(*(char **)value);
		break;
	case KIND_TEXTS:
		for (size_t i = 0; i < texts->count; i++)
			free(texts->at[i]);
		free(texts->at);
		break;
	case KIND_ADDRESSES:
	case KIND_SERVERS:
		for (size_t i = 0; i < addresses->count; i++)
			free(addresses->at[i].name);
		free(addresses->at);
		free(addresses->string);
		break;
	case KIND_USERS:
		free(((struct user_list *)value)->at);
		break;
	default:
		break;
	}
	memset(value, 0, o->size);
	config->lines[o - config_options] = 0;
}

const char *config_number(
	const char *text, int64_t least, int64_t most, int64_t *value, char why[CONFIG_WHY])
{
	if (num_parse_i64(slice_of_text(text), value) && *value >= least && *value <= most)
		return NULL;
	snprintf(why, CONFIG_WHY, "must be a decimal number from %" PRId64 " to %" PRId64, least,
		most);
	return why;
}

/* The units in which a value may be written, by the default unit of the option. */
static const struct unit {
	const char *plain, *name;
	int64_t factor;
} units[] = {
	{ "ms", "ms", 1 },
	{ "ms", "s", 1000 },
	{ "ms", "min", 60 * 1000 },
	{ "ms", "h", 60 * 60 * 1000 },
	{ "ms", "d", 24 * 60 * 60 * 1000 },
	{ "seconds", "s", 1 },
	{ "seconds", "min", 60 },
	{ "seconds", "h", 60 * 60 },
	{ "seconds", "d", 24 * 60 * 60 },
	{ "bytes", "K", 1 << 10 },
	{ "bytes", "KB", 1 << 10 },
	{ "bytes", "M", 1 << 20 },
	{ "bytes", "MB", 1 << 20 },
	{ "bytes", "G", 1 << 30 },
	{ "bytes", "GB", 1 << 30 },
};
enum { UNITS = sizeof(units) / sizeof(units[0]) };

const char *config_quantity(const char *text, const char *about, int64_t least, int64_t most,
	int64_t *value, char why[CONFIG_WHY])
{
	const struct slice plain = slice_of(about, strcspn(about, " "));
	const size_t digits = strspn(text, "0123456789");
	int n;

	for (size_t i = 0; i < UNITS && digits && text[digits]; i++) {
		if (!slice_equal(plain, slice_of_text(units[i].plain)) ||
			!near_same(slice_of_text(text + digits), slice_of_text(units[i].name)))
			continue;
		if (!num_parse_i64(slice_of(text, digits), value) ||
			*value > most / units[i].factor)
			break;
		*value *= units[i].factor;
		if (*value >= least)
			return NULL;
	}
	if (!config_number(text, least, most, value, why))
		return NULL;
	n = (int)strlen(why);
	for (size_t i = 0, shown = 0; i < UNITS; i++) {
		if (slice_equal(plain, slice_of_text(units[i].plain)) && units[i].name[1] != 'B')
			n += snprintf(why + n, CONFIG_WHY - (size_t)n, "%s %s",
				shown++ ? "," : ", optionally with a unit:", units[i].name);
	}
	return why;
}

const char *config_word(
	const char *text, const char *const *words, int *value, char why[CONFIG_WHY])
{
	int n = snprintf(why, CONFIG_WHY, "is not one of:");

	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*value = i;
			return NULL;
		}
		n += snprintf(why + n, CONFIG_WHY - (size_t)n, "%s %s", i ? "," : "", words[i]);
	}
	return why;
}

const char *config_flag(const char *text, bool *value)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (near_same(slice_of_text(text), slice_of_text(words[i]))) {
			*value = i % 2;
			return NULL;
		}
	}
	return "must be true or false";
}

/* Returns the days from 1970-01-01 to the first of a month. */
static int64_t days_to(int year, int month)
{
	static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
	bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	int64_t past = year - 1;

	return 365 * (past - 1969) + past / 4 - past / 100 + past / 400 -
		(1969 / 4 - 1969 / 100 + 1969 / 400) + before[month - 1] + (leaps && month > 2);
}

const char *config_time(const char *text, int64_t *at)
{
	static const char error[] = "must be a time in UTC, such as \"2026-12-01T06:00:00Z\"",
			  form[] = "dddd-dd-ddTdd:dd:ddZ";
	int part[6] = { 0 };
	size_t n = 0;

	if (strlen(text) != strlen(form))
		return error;
	for (size_t i = 0; form[i]; i++) {
		if (form[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
			return error;
		if (form[i] == 'd')
			part[n] = part[n] * 10 + text[i] - '0';
		else if (n < 5)
			n++;
	}
	if (part[0] < 1970 || part[1] < 1 || part[1] > 12 || part[2] < 1 || part[3] > 23 ||
		part[4] > 59 || part[5] > 59)
		return error;
	*at = days_to(part[0], part[1]) + part[2] - 1;
	if (*at >= (part[1] == 12 ? days_to(part[0] + 1, 1) : days_to(part[0], part[1] + 1)))
		return error;
	*at = ((*at * 24 + part[3]) * 60 + part[4]) * 60 + part[5];
	return NULL;
}

static const char *set_mode(const char *text, mode_t *value)
{
	unsigned long mode = strtoul(text, NULL, 8);

	if (!*text || text[strspn(text, "01234567")] || mode > 0777)
		return "is not an octal mode such as \"0700\"";
	*value = (mode_t)mode;
	return NULL;
}

static const char *add_text(const char *text, struct text_list *list)
{
	list->at = xrealloc(list->at, (list->count + 1) * sizeof(*list->at));
	list->at[list->count++] = xstrdup(text);
	return NULL;
}

/*
 * Appends an address, which must not be in the list yet: a port cannot both have and not have
 * TLS, and a server that is named twice would get a double share of the keys, for which there
 * are weights.
 */
static const char *add_address(
	const char *text, uint16_t port, bool weighted, struct address_list *list)
{
	struct address address;
	const char *error = address_parse(text, port, weighted, &address);

	for (size_t i = 0; i < list->count && !error; i++) {
		if (address_same(&list->at[i], &address))
			error = named_twice;
	}
	if (error)
		return error;
	list->at = xrealloc(list->at, (list->count + 1) * sizeof(*list->at));
	list->at[list->count++] = address;
	return NULL;
}

static bool is_ring_string(const char *text)
{
	return strncmp(text, "--", 2) == 0;
}

static const char *add_server(const char *text, struct address_list *list)
{
	if (list->string || (list->count && is_ring_string(text)))
		return "a configuration string of libmemcached must be the only entry";
	if (!is_ring_string(text))
		return strchr(text, ',') ? "write each server as a string of its own"
					 : add_address(text, default_server_port, true, list);
	list->string = xstrdup(text);
	return NULL;
}

/* Appends a user, by name or by number. A number need not exist on the system. */
static const char *add_user(const char *text, struct user_list *list)
{
	const struct passwd *pw = getpwnam(text);
	uint32_t uid = pw ? pw->pw_uid : (uid_t)-1;

	if ((!pw && !num_parse_u32(slice_of_text(text), &uid)) || uid == (uid_t)-1)
		return "is not a user of this system";
	list->at = xrealloc(list->at, (list->count + 1) * sizeof(*list->at));
	list->at[list->count++] = uid;
	return NULL;
}

static const char *add_command(const char *text, struct command_set *set, char why[CONFIG_WHY])
{
	struct near near = { .word = slice_of_text(text) };
	const struct command *command = command_lookup(near.word);
	char hint[NEAR_HINT];

	if (command) {
		command_set_add(set, command->id);
		return NULL;
	}
	for (int id = 0; id < COMMAND_COUNT; id++)
		near_offer(&near, command_get((command_id)id)->name);
	near_hint(&near, hint);
	snprintf(why, CONFIG_WHY, "is not a command%s", hint);
	return why;
}

static const char *set_value(
	const struct config_option *o, const char *text, void *value, char why[CONFIG_WHY])
{
	const char *error = o->check ? o->check(text) : NULL;

	if (error)
		return error;
	switch (o->kind) {
	case KIND_NUMBER:
		return config_quantity(text, o->what, o->least, o->most, value, why);
	case KIND_FLAG:
		return config_flag(text, value);
	case KIND_WORD:
		return config_word(text, o->words, value, why);
	case KIND_MODE:
		return set_mode(text, value);
	case KIND_TEXT:
	case KIND_LOGIN:
		*(char **)value = xstrdup(text);
		return NULL;
	case KIND_TEXTS:
		return add_text(text, value);
	case KIND_ADDRESSES:
		return add_address(text, default_port, false, value);
	case KIND_SERVERS:
		return add_server(text, value);
	case KIND_USERS:
		return add_user(text, value);
	case KIND_COMMANDS:
		return add_command(text, value, why);
	}
	abort();
}

bool config_set(struct config *config, const struct config_option *o, const char *text,
	char error[CONFIG_VALUE_ERROR])
{
	const char *quote = o->kind == KIND_NUMBER ? "" : "\"", *joint, *why;
	char room[CONFIG_WHY], spare[CONFIG_WHY];

	if (!config_is_list(o))
		config_clear(config, o);
	why = set_value(o, text, (char *)config + o->offset, room);
	if (!why)
		return true;
	if (!config_is_list(o))
		(void)set_value(o, o->initial, (char *)config + o->offset, spare);
	joint = strncmp(why, "is ", 3) == 0 ? " " : ": ";
	if (o->kind == KIND_LOGIN)
		snprintf(error, CONFIG_VALUE_ERROR, "%s: %s", o->name, why);
	else
		snprintf(error, CONFIG_VALUE_ERROR, "%s%s%s%s%s%s%s", o->name,
			config_is_list(o) ? ": " : " = ", quote, text, quote, joint, why);
	return false;
}

/* --- where an option is set --- */

void config_mark(struct config *config, const struct config_option *o, unsigned line)
{
	struct address_list *list = (void *)((char *)config + o->offset);

	config->lines[o - config_options] = line;
	if ((o->kind == KIND_ADDRESSES || o->kind == KIND_SERVERS) && list->count)
		list->at[list->count - 1].line = line;
}

unsigned config_line(const struct config *config, const char *name)
{
	return config->lines[config_option(name) - config_options];
}

bool config_fault(
	const struct config *config, unsigned line, struct buf *errors, const char *format, ...)
{
	char text[2 * CONFIG_VALUE_ERROR];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* A control byte in a value could end the line of the error. */
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	if (line)
		buf_printf(errors, "%s:%u: ", config->file, line);
	buf_printf(errors, "%s\n", text);
	return false;
}

/* --- an option as texts --- */

/* Appends a text with its zero byte. */
static void put(struct buf *out, const char *text)
{
	buf_add(out, text, strlen(text) + 1);
}

static void put_addresses(const struct address_list *list, bool weighted, struct buf *out)
{
	if (list->string)
		put(out, list->string);
	for (size_t i = 0; i < list->count; i++) {
		const struct address *a = &list->at[i];
		if (a->port)
			buf_printf(out, "%s%s:%u",
				a->tls           ? "tls:"
					: a->dns ? "dns:"
						 : "",
				a->host, a->port);
		else
			buf_printf(out, "unix:%s", a->host);
		if (weighted)
			buf_printf(out, " weight=%u", a->weight);
		put(out, "");
	}
}

static void put_commands(const struct command_set *set, struct buf *out)
{
	for (int id = 0; id < COMMAND_COUNT; id++) {
		if (command_set_has(set, (command_id)id))
			put(out, command_get((command_id)id)->name.p);
	}
}

static const void *value_of(const struct config *config, const struct config_option *o)
{
	return (const char *)config + o->offset;
}

void config_texts(const struct config *config, const struct config_option *o, struct buf *out)
{
	const void *value = value_of(config, o);
	const struct text_list *texts = value;
	const struct user_list *users = value;

	switch (o->kind) {
	case KIND_NUMBER:
		buf_printf(out, "%" PRIu64 "%c", *(const uint64_t *)value, 0);
		break;
	case KIND_FLAG:
		put(out, *(const bool *)value ? "true" : "false");
		break;
	case KIND_WORD:
		put(out, o->words[*(const int *)value]);
		break;
	case KIND_MODE:
		buf_printf(out, "%04o%c", (unsigned)*(const mode_t *)value, 0);
		break;
	case KIND_TEXT:
	case KIND_LOGIN:
		put(out, *(char *const *)value);
		break;
	case KIND_TEXTS:
		for (size_t i = 0; i < texts->count; i++)
			put(out, texts->at[i]);
		break;
	case KIND_ADDRESSES:
	case KIND_SERVERS:
		put_addresses(value, o->kind == KIND_SERVERS, out);
		break;
	case KIND_USERS:
		for (size_t i = 0; i < users->count; i++)
			buf_printf(out, "%u%c", (unsigned)users->at[i], 0);
		break;
	case KIND_COMMANDS:
		put_commands(value, out);
		break;
	}
}

bool config_same(const struct config *a, const struct config *b, const struct config_option *o)
{
	struct buf one = BUF_EMPTY, other = BUF_EMPTY;
	bool same;

	config_texts(a, o, &one);
	config_texts(b, o, &other);
	same = slice_equal(buf_slice(&one), buf_slice(&other));
	buf_free(&one);
	buf_free(&other);
	return same;
}

void config_print(const struct config *config, struct buf *out)
{
	for (const struct config_option *o = config_options; o->name; o++) {
		struct buf texts = BUF_EMPTY;
		if (o->shown == OPTION_AS_DIGIT)
			reply_add_stat(out, o->name, *(const bool *)value_of(config, o));
		else if (o->shown == OPTION_OF_RING && config->servers.string)
			reply_add_stat_text(out, o->name, "libmemcached string");
		else if (o->shown != OPTION_HIDDEN)
			config_texts(config, o, &texts);
		for (struct slice rest = buf_slice(&texts); rest.n;
			rest = slice_skip(rest, strlen(rest.p) + 1))
			reply_add_stat_text(out, o->name, rest.p);
		buf_free(&texts);
	}
}

/* --- the configuration --- */

void config_init(struct config *config)
{
	char error[CONFIG_VALUE_ERROR];

	*config = (struct config){ .users = NULL };
	for (const struct config_option *o = config_options; o->name; o++) {
		if (o->initial && !config_set(config, o, o->initial, error))
			abort();
	}
}

void config_fini(struct config *config)
{
	for (const struct config_option *o = config_options; o->name; o++)
		config_clear(config, o);
	rules_free(&config->rules);
	users_destroy(config->users);
}

/* --- listeners and servers --- */

const char *config_add_listen(struct config *config, const char *text, uint16_t port)
{
	const char *error = add_address(text, port ? port : default_port, false, &config->listen);

	return error == named_twice ? "an address to listen on is listed twice" : error;
}

const char *config_set_servers(struct config *config, const char *text)
{
	const char *error = NULL;
	char *copy = xstrdup(text), *rest = copy, *one;

	config_clear(config, config_option("servers"));
	if (is_ring_string(text)) {
		config->servers.string = copy;
		return NULL;
	}
	while (!error && (one = strsep(&rest, ",")))
		error = add_address(one, default_server_port, true, &config->servers);
	free(copy);
	return error == named_twice ? "a server is listed twice" : error;
}

void config_complete(struct config *config)
{
	if (config->listen.count == 0)
		(void)config_add_listen(config, "127.0.0.1", default_port);
	config->rules.commands.prefix = slice_of_text(config->commands);
	config->rules.commands.delimiter = config->commands_delimiter[0];
}

struct ring *config_ring(const struct address_list *list, int distribution, char error[256])
{
	struct ring_server *servers;
	struct ring *ring;

	if (list->string)
		return ring_from_string(list->string, error);
	if (list->count == 0) {
		snprintf(error, 256, "no servers: use -S, or `servers` in the configuration file");
		return NULL;
	}
	if (list->count > RING_SERVERS_MAX) {
		snprintf(error, 256, "%zu servers: at most %d are allowed", list->count,
			RING_SERVERS_MAX);
		return NULL;
	}
	servers = xcalloc(list->count, sizeof(*servers));
	for (size_t i = 0; i < list->count; i++)
		servers[i] = (struct ring_server){ list->at[i].host, list->at[i].port,
			list->at[i].weight, list->at[i].name };
	ring = ring_create(servers, (int)list->count, (enum ring_distribution)distribution);
	free(servers);
	return ring;
}
