/* What a start needs of the system, and whether it is there. All of this is for the main thread. */
#ifndef PROCESS_START_H
#define PROCESS_START_H

#include "config/settings.h"

/*
 * Raises the limit of file descriptors as far as needed and allowed. Servers, listeners and workers come first. Clients share what is
 * left: max_connections is lowered to that. If nothing is left, gives false, with the numbers in `error`.
 */
bool start_fit_descriptors(struct config *config, int servers, struct buf *errors) __attribute__((warn_unused_result));

/* Becomes the configured user, if there is one. On failure gives false, with the reason in `error`. */
bool start_switch_user(const struct config *config, struct buf *errors) __attribute__((warn_unused_result));

/*
 * Looks for all that a start looks for, and opens nothing that others see: a setlistd may be running. On failure gives false, with
 * the reason in `error`.
 */
bool start_check(struct settings *settings, struct buf *errors) __attribute__((warn_unused_result));

#endif
