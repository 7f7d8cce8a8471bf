/*
 * A configuration that was read and checked, and the objects created from it. It is immutable,
 * so any thread that holds a reference may read it.
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
	struct ring *former; /* The ring from which keys move; NULL if none do. */
	/*
	 * For each server of the former ring, whether it is in lost_servers; NULL if there is
	 * no former ring.
	 */
	bool *lost;
	struct tls_context *tls;
	/* Fingerprints of the rings, as ring_fingerprint() returns them; 0 for none. */
	uint64_t ring_hash, former_hash;
	int64_t move_at;             /* Seconds since 1970; 0 if no keys move. */
	struct settings_name *names; /* Names of servers, which keep their lookups running. */
	size_t name_count;
	atomic_uint references;
	atomic_uint generations; /* The generations of all workers that use these settings. */
};

/*
 * Reads the configuration file, overridden by the command line, and checks everything. Returns
 * settings of which the caller owns a reference. On errors returns NULL after reporting all of
 * them: on standard error, or in the log for a reload (`again`). Must run as the user that
 * starts the daemon, who may read the files with passwords. May wait some seconds for names of
 * servers. Borrows `names` until settings_release().
 */
struct settings *settings_read(const struct options *options, struct names *names, bool again);

/*
 * Starts or stops reporting changes of the addresses of names with "dns:", while the ring is in
 * use.
 */
void settings_watch(const struct settings *settings, bool used);

/*
 * Reports the errors of a configuration, one per line, and frees them. With `again` they are
 * logged. Otherwise they are printed on standard error, each prefixed by the name of the
 * program unless it begins with the name of `file`, which is NULL if none was read.
 */
void settings_complain(const char *file, struct buf *errors, bool again);

/* Returns an upper bound of the number of servers of both rings. */
int settings_servers(const struct settings *settings);

/* Adds a reference and returns the settings. May be called from any thread that has a reference. */
struct settings *settings_share(struct settings *settings);

/* Drops a reference. The last one frees the settings. NULL does nothing. */
void settings_release(struct settings *settings);

/*
 * Returns whether servers and lanes created for one of the settings can be used with the other:
 * same ring and rules, and no difference in an option that needs a new generation.
 */
bool settings_same_data(const struct settings *a, const struct settings *b);

/*
 * At a reload: resets the options that need a restart to the values in `now`, and warns of each
 * that differs. `settings` must not be shared with other threads yet.
 */
void settings_keep_fixed(struct settings *settings, const struct settings *now);

#endif
