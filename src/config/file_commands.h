/* The options of commands as keys, for file.c. */
#ifndef CONFIG_FILE_COMMANDS_H
#define CONFIG_FILE_COMMANDS_H

#include <confuse.h>

#include "protocol/command_key.h"

#define FILE_COMMANDS_OPTIONS CFG_STR("commands", "", CFGF_NONE), CFG_STR("commands_delimiter", " ", CFGF_NONE)

/* Sets the checks of their values. */
void file_commands_set_checks(cfg_t *cfg);

/* Reads the checked values. The caller frees the prefix. */
void file_commands_read(cfg_t *cfg, struct command_keys *keys);

#endif
