/* The configuration file, in libconfuse's syntax. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config/config.h"

/* Reads the file to `config`. On an error gives false, with "file:line: what" in `error`. For one thread. */
bool config_file_read(struct config *config, const char *path, char error[CONFIG_ERROR])
	__attribute__((warn_unused_result));

#endif
