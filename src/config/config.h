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
	const char *file;               /* The file that was read; borrowed; NULL for none. */
	unsigned lines[CONFIG_OPTIONS]; /* Line of the file that set each option; 0 for none. */
	struct rules rules;
	struct users *users; /* Users of auth_file; NULL if clients need not authenticate. */
	/* "user password" for servers, set by settings_read(); "" for none. */
	char server_login[2 * USERS_LINE_MAX + 2];
};

/* The effect of a reload on an option whose value has changed. */
enum config_reload {
	RELOAD_TAKES_EFFECT,   /* The new value is used from then on. */
	RELOAD_NEW_GENERATION, /* The workers create new servers and lanes with the value. */
	RELOAD_NEW_RING,       /* A new generation, unless the ring is the same. */
	RELOAD_NEEDS_RESTART,  /* The old value is kept, and a warning is logged. */
	RELOAD_STAYS_TRUE      /* A flag: true takes effect, false needs a restart. */
};

/* The words of the option `log`, by index. */
enum { LOG_TO_STDERR, LOG_TO_SYSLOG };

/* How `stats settings` shows an option. */
enum config_shown {
	OPTION_HIDDEN,
	OPTION_SHOWN,    /* As in the file; one line for each element of a list. */
	OPTION_AS_DIGIT, /* A flag as 1 or 0. */
	OPTION_OF_RING   /* As OPTION_SHOWN, unless a libmemcached string determines it. */
};

/* A row of options.def. */
struct config_option {
	const char *name;
	enum config_kind kind;
	enum config_shown shown;
	enum config_reload reload;
	size_t offset, size;                    /* Place of the value in struct config. */
	const char *initial;                    /* As in the file; NULL for an empty list. */
	int64_t least, most;                    /* Range of a number. */
	const char *const *words;               /* Permitted words of a word, terminated by NULL. */
	const char *(*check)(const char *text); /* Returns NULL, or the error: a constant text. */
	/* Description; begins with the unit of a number: "ms", "seconds" or "bytes", if any. */
	const char *what;
};

/* Sizes of an error about a value, and of one that also has the name and the value. */
enum { CONFIG_WHY = 256, CONFIG_VALUE_ERROR = 1024 };

/* The table, terminated by a row without a name. */
extern const struct config_option config_options[];

/* Returns the option of that name, which must exist. */
const struct config_option *config_option(const char *name);
bool config_is_list(const struct config_option *option);

/*
 * Sets an option, or appends an element to a list. On an error sets the default, writes "name =
 * value: why" to `error` and returns false.
 */
bool config_set(struct config *config, const struct config_option *option, const char *text,
	char error[CONFIG_VALUE_ERROR]) __attribute__((warn_unused_result));
/* Records the line of the file that set the option. */
void config_mark(struct config *config, const struct config_option *option, unsigned line);
/* Returns the line of the file that set the option; 0 if none did. */
unsigned config_line(const struct config *config, const char *name);
/* Appends an error as a line, after "file:line: " unless `line` is 0. Returns false. */
bool config_fault(const struct config *config, unsigned line, struct buf *errors,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Removes all elements of a list. A text becomes NULL until it is set again. */
void config_clear(struct config *config, const struct config_option *option);

/* Appends the value, or each element of a list, as in the file, followed by a zero byte. */
void config_texts(const struct config *config, const struct config_option *option, struct buf *out);
/* Returns whether an option has the same value in both configurations. */
bool config_same(
	const struct config *a, const struct config *b, const struct config_option *option);

/* Appends the settings as STAT lines. */
void config_print(const struct config *config, struct buf *out);

/* Set the defaults, and free everything that the configuration owns, including its rules. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* Adds a listener; `port` is the default port, or 0 for 11311. Returns NULL or a constant error. */
const char *config_add_listen(struct config *config, const char *text, uint16_t port);
/* Parses the address of the HTTP port for operators. Returns NULL or a constant error. */
const char *config_admin_address(const char *text, struct address *address);
/* Replaces the servers by "host:port,host:port" or "--SERVER=...". Returns NULL or an error. */
const char *config_set_servers(struct config *config, const char *text);

/* Adds the default listener if needed, and the rule of commands as keys. Must be called last. */
void config_complete(struct config *config);

/*
 * Creates the ring of servers, which the caller owns. A configuration string of libmemcached
 * has its own distribution. Returns NULL on failure, with the reason in `error`.
 */
struct ring *config_ring(const struct address_list *list, int distribution, char error[256]);

/*
 * Parses the decimal number of an option or rule, within a range. Returns NULL, or `why` with
 * the error.
 */
const char *config_number(
	const char *text, int64_t least, int64_t most, int64_t *value, char why[CONFIG_WHY]);
/*
 * As config_number(), with an optional unit. `about` begins with the default unit: "ms",
 * "seconds" or "bytes".
 */
const char *config_quantity(const char *text, const char *about, int64_t least, int64_t most,
	int64_t *value, char why[CONFIG_WHY]);
/* Parses a flag. Returns NULL, or the error: a constant text. */
const char *config_flag(const char *text, bool *value);
/*
 * Parses a time such as "2026-12-01T06:00:00Z" into seconds since 1970. Returns NULL, or the
 * error: a constant text.
 */
const char *config_time(const char *text, int64_t *at);
/*
 * Parses a word; its value is its index in `words`, which NULL terminates. Returns NULL, or
 * `why` with the error.
 */
const char *config_word(
	const char *text, const char *const *words, int *value, char why[CONFIG_WHY]);

#endif
