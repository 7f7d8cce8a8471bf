/* Checks and preparations at the start of the process. For the main thread. */
#ifndef PROCESS_START_H
#define PROCESS_START_H

#include "config/settings.h"

/*
 * Raises the limit of file descriptors as far as needed and permitted. Descriptors for
 * `servers` servers, listeners and workers are reserved first; max_connections is lowered to
 * the number that is left. Returns false if none is left, with the numbers in `errors`.
 */
bool start_fit_descriptors(struct config *config, int servers, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Switches to the configured user, if there is one. Returns false on failure, with the reason
 * in `errors`.
 */
bool start_switch_user(const struct config *config, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Does all checks of a start without opening anything that is visible to others, since a
 * setlistd may be running. Returns false on failure, with the reason in `errors`.
 */
bool start_check(struct settings *settings, struct buf *errors) __attribute__((warn_unused_result));

#endif
