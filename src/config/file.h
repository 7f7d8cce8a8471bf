/* The configuration file, in libconfuse's syntax. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config/config.h"

/* Reads the file into `config`; false when it is wrong, and then "file:line: what" was printed to standard error. */
bool config_file_read(struct config *config, const char *path) __attribute__((warn_unused_result));

/* Frees the rules that a file made. */
void config_file_free_rules(struct rules *rules);

/* A distribution's word. */
const char *config_file_distribution(enum ring_distribution distribution);

#endif
