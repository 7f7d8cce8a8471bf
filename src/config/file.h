/* The configuration file, in libconfuse's syntax. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config/config.h"

/*
 * Reads the file to an initialized `config`. Appends each error as a line, "file:line: what", and goes on with the next option. Gives
 * false if it could not go on, so that options may be missing. For one thread.
 */
bool config_file_read(struct config *config, const char *path, struct buf *errors) __attribute__((warn_unused_result));

#endif
