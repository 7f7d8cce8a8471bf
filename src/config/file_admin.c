#include "config/file_admin.h"

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

static int check_admin(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, 0);
	struct address address;
	const char *error = *text ? config_admin_address(text, &address) : NULL;

	if (error)
		cfg_error(cfg, "admin = \"%s\": %s", text, error);
	return error ? -1 : 0;
}

/* A name alone: the port is that of `admin`, or of what stands in front of it. */
static int check_host(cfg_t *cfg, cfg_opt_t *opt)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	const char *name = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

	if (*name && !name[strspn(name, allowed)])
		return 0;
	cfg_error(cfg, "admin_hosts: \"%s\" is no name of a host", name);
	return -1;
}

void file_admin_set_checks(cfg_t *cfg)
{
	cfg_set_validate_func(cfg, "control", check_control);
	cfg_set_validate_func(cfg, "admin", check_admin);
	cfg_set_validate_func(cfg, "admin_hosts", check_host);
}

void file_admin_read(cfg_t *cfg, struct config *config)
{
	unsigned hosts = cfg_size(cfg, "admin_hosts");

	free(config->control);
	config->control = xstrdup(cfg_getstr(cfg, "control"));
	free(config->admin);
	config->admin = xstrdup(cfg_getstr(cfg, "admin"));
	config->admin_hosts = xcalloc(hosts, sizeof(char *));
	config->admin_host_count = hosts;
	for (unsigned i = 0; i < hosts; i++)
		config->admin_hosts[i] = xstrdup(cfg_getnstr(cfg, "admin_hosts", i));
}
