/* The configuration. The file overrides the defaults, and the command line overrides the file. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collection/rules.h"
#include "config/kinds.h"
#include "config/users.h"
#include "upstream/ring.h"
#include "util/buf.h"

enum {
	CONFIG_OPTIONS = 0
#define OPTION(...) +1
#include "config/options.def"
#undef OPTION
};

struct config {
#define OPTION(kind, name, ...) TYPE_##kind name;
#include "config/options.def"
#undef OPTION
	const char *file;               /* that was read, borrowed; NULL for none */
	unsigned lines[CONFIG_OPTIONS]; /* where the file sets each option last; 0 if another place does */
	struct rules rules;
	struct users *users; /* of auth_file, made by settings_read; NULL if nobody must authenticate */
	/* "user password" for servers, made by settings_read; "" for none */
	char server_login[2 * USERS_LINE_MAX + 2];
};

/* The effect of a reload on an option that has another value. */
enum config_reload {
	RELOAD_TAKES_EFFECT,   /* the new value counts from then on */
	RELOAD_NEW_GENERATION, /* servers and lanes were made with the value, so the workers make new ones */
	RELOAD_NEW_RING,       /* a new generation, unless the ring is the same */
	RELOAD_NEEDS_RESTART,  /* the old value stays, and a warning says so */
	RELOAD_STAYS_TRUE      /* of a flag: true takes effect, false needs a restart */
};

/* The words of the option `log`. */
enum { LOG_TO_STDERR, LOG_TO_SYSLOG };

/* How `stats settings` shows an option. */
enum config_shown {
	OPTION_HIDDEN,
	OPTION_SHOWN,    /* as the file has it; a list has a line for each element */
	OPTION_AS_DIGIT, /* a flag as 1 or 0 */
	OPTION_OF_RING   /* as OPTION_SHOWN, unless a configuration string of libmemcached says it */
};

/* A row of options.def. */
struct config_option {
	const char *name;
	enum config_kind kind;
	enum config_shown shown;
	enum config_reload reload;
	size_t offset, size;                    /* of the value in struct config */
	const char *initial;                    /* as the file has it; NULL for an empty list */
	int64_t least, most;                    /* of a number */
	const char *const *words;               /* of a word; NULL ends them */
	const char *(*check)(const char *text); /* of a text: gives NULL, or what is wrong with it, a constant text */
	const char *what; /* begins with the unit of a number that has one: "ms", "seconds" or "bytes" */
};

/* Room for what is wrong with a value, and for that with the name and the value before it. */
enum { CONFIG_WHY = 256, CONFIG_VALUE_ERROR = 1024 };

/* The table. A row without a name ends it. */
extern const struct config_option config_options[];

/* The option of that name, which must exist. */
const struct config_option *config_option(const char *name);
bool config_is_list(const struct config_option *option);

/* Sets an option, or adds an element to a list. On an error sets the default, gives false, and writes "name = value: why" to `error`. */
bool config_set(struct config *config, const struct config_option *option, const char *text,
	char error[CONFIG_VALUE_ERROR]) __attribute__((warn_unused_result));
/* Says on which line the file has the value that was set last. */
void config_mark(struct config *config, const struct config_option *option, unsigned line);
/* The line of an option in the file, or 0. */
unsigned config_line(const struct config *config, const char *name);
/* Appends an error as a line, behind "file:line: " if the line is not 0. Gives false. */
bool config_fault(const struct config *config, unsigned line, struct buf *errors, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Removes all elements of a list. A text is NULL until it is set again. */
void config_clear(struct config *config, const struct config_option *option);

/* Appends the value of an option as the file has it, with a zero byte behind; of a list, each element so. */
void config_texts(const struct config *config, const struct config_option *option, struct buf *out);
/* True if an option has the same value in both. */
bool config_same(const struct config *a, const struct config *b, const struct config_option *option);

/* Appends the settings as STAT lines. */
void config_print(const struct config *config, struct buf *out);

/* Sets the defaults. config_fini frees all that the configuration owns, including its rules. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* Adds a listener, whose default port is `port`, or 11311 if that is 0. Gives NULL, or the error: a constant text. */
const char *config_add_listen(struct config *config, const char *text, uint16_t port);
/* The address of the HTTP port for operators. Gives NULL, or the error: a constant text. */
const char *config_admin_address(const char *text, struct address *address);
/* Replaces the servers by those of "host:port,host:port" or "--SERVER=...". Gives NULL, or the error: a constant text. */
const char *config_set_servers(struct config *config, const char *text);

/* Call after the last option is set: adds the default listener if there is none, and makes the rule of commands as keys. */
void config_complete(struct config *config);

/*
 * Builds the ring of servers, which the caller owns. A configuration string of libmemcached has a distribution of its own. On failure
 * gives NULL, with the reason in `error`.
 */
struct ring *config_ring(const struct address_list *list, int distribution, char error[256]);

/* For options and rules: reads a decimal number within a range. Gives NULL, or what is wrong, written to `why`. */
const char *config_number(const char *text, int64_t least, int64_t most, int64_t *value, char why[CONFIG_WHY]);
/*
 * The same for a number that may be followed by a unit. `about` begins with the unit of a number without one: "ms", "seconds" or
 * "bytes".
 */
const char *config_quantity(
	const char *text, const char *about, int64_t least, int64_t most, int64_t *value, char why[CONFIG_WHY]);
/* The same for a flag. The error is a constant text. */
const char *config_flag(const char *text, bool *value);
/* The same for a time as "2026-12-01T06:00:00Z": the seconds since 1970. The error is a constant text. */
const char *config_time(const char *text, int64_t *at);
/* The same for a word: its value is its index in `words`, which NULL ends. */
const char *config_word(const char *text, const char *const *words, int *value, char why[CONFIG_WHY]);

#endif
