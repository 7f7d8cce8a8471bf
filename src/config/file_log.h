/* The options of the configuration file about the log: a part of file.c, which reads the file. */
#ifndef CONFIG_FILE_LOG_H
#define CONFIG_FILE_LOG_H

#include <confuse.h>

#include "config/config.h"

/* For the table of libconfuse. */
#define FILE_LOG_OPTIONS CFG_STR("log", "stderr", CFGF_NONE)

/* Has libconfuse check their values while it knows the line. */
void file_log_set_checks(cfg_t *cfg);

/* Copies their values, which were checked. */
void file_log_read(cfg_t *cfg, struct config *config);

#endif
