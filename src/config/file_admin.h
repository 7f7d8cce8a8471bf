/* The options of the configuration file about ports for operators, the socket and the HTTP port: a part of file.c, which reads the file. */
#ifndef CONFIG_FILE_ADMIN_H
#define CONFIG_FILE_ADMIN_H

#include <confuse.h>

#include "config/config.h"

/* For the table of libconfuse. */
#define FILE_ADMIN_OPTIONS \
	CFG_STR("control", "", CFGF_NONE), CFG_STR("admin", "", CFGF_NONE), CFG_STR_LIST("admin_hosts", NULL, CFGF_NONE)

/* Has libconfuse check their values while it knows the line. */
void file_admin_set_checks(cfg_t *cfg);

/* Copies their values, which were checked. */
void file_admin_read(cfg_t *cfg, struct config *config);

#endif
