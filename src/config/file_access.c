#include "config/file_access.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "config/users.h"
#include "util/alloc.h"
#include "util/num.h"

/* A user by name or by number. The system need not know a number. */
static bool find_user(const char *text, uid_t *uid)
{
	const struct passwd *pw = getpwnam(text);
	uint32_t number;

	if (pw)
		*uid = pw->pw_uid;
	else if (num_parse_u32(slice_of(text, strlen(text)), &number))
		*uid = number;
	else
		return false;
	return *uid != (uid_t)-1;
}

static int check_socket_user(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *text = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);
	uid_t uid;

	if (find_user(text, &uid))
		return 0;
	cfg_error(cfg, "socket_users: \"%s\" is no user of this system", text);
	return -1;
}

static const struct command *find_command(const char *name)
{
	return command_lookup(slice_of(name, strlen(name)));
}

static int check_deny(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *name = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

	if (find_command(name))
		return 0;
	cfg_error(cfg, "deny: \"%s\" is no command", name);
	return -1;
}

static int check_server_user(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *name = cfg_opt_getnstr(opt, 0), *what = NULL;

	if (*name)
		what = users_check_word(slice_of(name, strlen(name)));
	if (what)
		cfg_error(cfg, "server_user: %s", what);
	return what ? -1 : 0;
}

void file_access_set_checks(cfg_t *cfg)
{
	cfg_set_validate_func(cfg, "socket_users", check_socket_user);
	cfg_set_validate_func(cfg, "deny", check_deny);
	cfg_set_validate_func(cfg, "server_user", check_server_user);
}

static void replace(char **text, const char *with)
{
	free(*text);
	*text = xstrdup(with);
}

void file_access_read(cfg_t *cfg, struct config *config)
{
	unsigned users = cfg_size(cfg, "socket_users");

	replace(&config->server_user, cfg_getstr(cfg, "server_user"));
#define PATH(name) replace(&config->name, cfg_getstr(cfg, #name));
#include "config/paths.def"
#undef PATH
	config->server_tls = cfg_getbool(cfg, "server_tls");
	config->server_tls_verify = cfg_getbool(cfg, "server_tls_verify");
	config->insecure = cfg_getbool(cfg, "insecure");
	for (unsigned i = 0; i < cfg_size(cfg, "deny"); i++)
		command_set_add(&config->denied, find_command(cfg_getnstr(cfg, "deny", i))->id);
	config->socket_users = xcalloc(users, sizeof(uid_t));
	config->socket_user_count = 0;
	for (unsigned i = 0; i < users; i++) {
		/* A user who has gone since the check is nobody. */
		if (find_user(cfg_getnstr(cfg, "socket_users", i), &config->socket_users[config->socket_user_count]))
			config->socket_user_count++;
	}
}
