/*
 * A configuration that was read and checked, and what is made of it. It never changes, so threads share it: a thread that holds a
 * reference may read it.
 */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stdatomic.h>

#include "config/command_line.h"
#include "config/config.h"

struct names;
struct settings_name;

struct settings {
	struct config config;
	struct ring *ring;
	struct ring *former; /* from which keys move; NULL if none do */
	bool *lost;          /* for each server of the former ring, whether it is in lost_servers; NULL without one */
	struct tls_context *tls;
	uint64_t ring_hash, former_hash; /* as ring_fingerprint gives them; 0 for none */
	int64_t move_at;                 /* seconds since 1970; 0 if no keys move */
	struct settings_name *names;     /* of servers, by which these are looked up */
	size_t name_count;
	atomic_uint references;
};

/*
 * Reads the configuration file, overridden by the command line, and checks all of it. The caller owns a reference. If there are errors
 * gives NULL, after saying all: on the standard error, or in the log if it is read `again`. Must run as the user that starts the
 * daemon, who may read the files with passwords. Waits some seconds for names of servers; borrows `names` until settings_release.
 */
struct settings *settings_read(const struct options *options, struct names *names, bool again);

/* The ring is used, or is not used any more: from now on changes of its names are reported, or are not. */
void settings_watch(const struct settings *settings, bool used);

/*
 * Says the errors of a configuration, a line for each, and frees them: in the log, or on the standard error, where one begins with the
 * name of the `file` or, if it is not one of the file, with that of the program. `file` is NULL if none was read.
 */
void settings_complain(const char *file, struct buf *errors, bool again);

/* How many servers the rings have, at most. */
int settings_servers(const struct settings *settings);

/* Adds a reference, and gives it. From any thread that has one. */
struct settings *settings_share(struct settings *settings);

/* Drops a reference. The last one frees the settings. NULL does nothing. */
void settings_release(struct settings *settings);

/* True if servers and lanes that were made for the one suit the other: same ring and rules, and no option that needs a new generation. */
bool settings_same_data(const struct settings *a, const struct settings *b);

/*
 * At a reload: gives the options that need a restart the values that they have `now`, and warns of those that differ. No other thread
 * may have `settings` yet.
 */
void settings_keep_fixed(struct settings *settings, const struct settings *now);

#endif
