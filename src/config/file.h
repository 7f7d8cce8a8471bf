/* The configuration file, in libconfuse's syntax. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config/config.h"

/* Reads the file into `config`; false when it is wrong, and then "file:line: what" was printed to standard error. */
bool config_file_read(struct config *config, const char *path) __attribute__((warn_unused_result));

#endif
