/* The rules of the file, its sections `collection` and `events`, for file.c. */
#ifndef CONFIG_FILE_RULES_H
#define CONFIG_FILE_RULES_H

#include <confuse.h>
#include <stdbool.h>

#include "collection/rules.h"

extern cfg_opt_t file_rules_collection[], file_rules_events[];

#define FILE_RULES_OPTIONS \
	CFG_SEC("collection", file_rules_collection, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES), \
		CFG_SEC("events", file_rules_events, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES)

/* Sets the checks of their values. */
void file_rules_set_checks(cfg_t *cfg);

/* Checks each rule as a whole, when the file was read. Gives false behind an error. */
bool file_rules_check(cfg_t *cfg);

/* Reads the checked rules. The caller owns them. */
void file_rules_read(cfg_t *cfg, struct rules *rules);

#endif
