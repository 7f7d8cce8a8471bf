#include "config/file_log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "util/alloc.h"

static int check_control(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *path = cfg_opt_getnstr(opt, 0);

	if (!*path || (*path == '/' && strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path)))
		return 0;
	cfg_error(cfg, "control = \"%s\": an absolute path of a socket is allowed, of at most %zu bytes", path,
		sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	return -1;
}

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
	cfg_set_validate_func(cfg, "control", check_control);
	cfg_set_validate_func(cfg, "log", check_log);
}

void file_log_read(cfg_t *cfg, struct config *config)
{
	free(config->control);
	config->control = xstrdup(cfg_getstr(cfg, "control"));
	config->syslog = strcmp(cfg_getstr(cfg, "log"), "syslog") == 0;
}
