#include "config/file_log.h"

#include <string.h>

static int check_log(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0);

	if (strcmp(text, "stderr") == 0 || strcmp(text, "syslog") == 0)
		return 0;
	cfg_error(cfg, "log = \"%s\" is not known, only: stderr, syslog", text);
	return -1;
}

void file_log_set_checks(cfg_t *cfg)
{
	cfg_set_validate_func(cfg, "log", check_log);
}

void file_log_read(cfg_t *cfg, struct config *config)
{
	config->syslog = strcmp(cfg_getstr(cfg, "log"), "syslog") == 0;
}
