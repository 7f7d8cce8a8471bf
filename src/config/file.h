/* The configuration file, in libconfuse's syntax. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config/config.h"

/*
 * Reads the file into an initialized `config`. Appends each error as a line, "file:line: what",
 * and continues with the next option. Returns false if it could not continue, so that options
 * may be missing. Not thread-safe.
 */
bool config_file_read(struct config *config, const char *path, struct buf *errors)
	__attribute__((warn_unused_result));

#endif
