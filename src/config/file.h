/* The configuration file, in libconfuse's syntax. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <limits.h>

#include "config/config.h"

/* Room for an error that names a file. */
enum { CONFIG_ERROR = PATH_MAX + 1024 };

/* Reads the file to `config`. On an error gives false, with "file:line: what" in `error`. For one thread. */
bool config_file_read(struct config *config, const char *path, char error[CONFIG_ERROR])
	__attribute__((warn_unused_result));

#endif
