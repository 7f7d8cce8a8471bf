/* The options of the configuration file about access: a part of file.c, which reads the file. */
#ifndef CONFIG_FILE_ACCESS_H
#define CONFIG_FILE_ACCESS_H

#include <confuse.h>

#include "config/config.h"

/* For the table of libconfuse. */
#define FILE_ACCESS_OPTIONS \
	CFG_STR("server_user", "", CFGF_NONE), CFG_STR_LIST("deny", NULL, CFGF_NONE), \
		CFG_BOOL("insecure", cfg_false, CFGF_NONE), CFG_STR_LIST("socket_users", NULL, CFGF_NONE), \
		CFG_BOOL("server_tls", cfg_false, CFGF_NONE), CFG_BOOL("server_tls_verify", cfg_true, CFGF_NONE)

/* Has libconfuse check their values while it knows the line. */
void file_access_set_checks(cfg_t *cfg);

/* Copies their values, which were checked. */
void file_access_read(cfg_t *cfg, struct config *config);

#endif
