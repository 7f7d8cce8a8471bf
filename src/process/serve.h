/* The main thread: opens the listeners, starts the workers, and handles signals and reloads. */
#ifndef PROCESS_SERVE_H
#define PROCESS_SERVE_H

#include "config/settings.h"

/*
 * Serves until a signal ends the process. Takes over the caller's reference to `settings`. A
 * reload reads `options` again and looks up names in `names`; both are borrowed. Returns the
 * exit status of the process.
 */
int serve(const struct options *options, struct settings *settings, struct names *names);

#endif
