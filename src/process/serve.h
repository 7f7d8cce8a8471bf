/* The main thread: it opens the listeners, starts the workers, and follows signals and the configuration. */
#ifndef PROCESS_SERVE_H
#define PROCESS_SERVE_H

#include "config/settings.h"

/*
 * Serves until a signal stops it. Takes over the caller's reference to the settings; a reload reads `options` again, and looks up `names`. Gives the exit
 * status of the process.
 */
int serve(const struct options *options, struct settings *settings, struct names *names);

#endif
