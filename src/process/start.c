#include "process/start.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "net/listener.h"
#include "util/log.h"
#include "worker/daemon.h"

/* --- file descriptors --- */

enum {
	OTHERS = 24 + DAEMON_REPLACING, /* beside clients, listeners and workers */
	ADMIN = 36,                     /* the HTTP port and its connections */
	EACH_WORKER = 8,
	EACH_SERVER = 2 /* of each worker: one that goes and one that comes */
};

bool start_fit_descriptors(struct config *config, int servers, char error[CONFIG_ERROR])
{
	rlim_t own = OTHERS + (*config->admin ? ADMIN : 0) + config->listen.count +
		config->threads * (EACH_WORKER + EACH_SERVER * (rlim_t)servers);
	rlim_t want = own + config->max_connections;
	struct rlimit limit, raised;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= want)
		return true;
	raised = limit;
	raised.rlim_cur = limit.rlim_max >= want ? want : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		limit = raised;
	if (limit.rlim_cur >= want)
		return true;
	if (limit.rlim_cur <= own)
		return config_fault(config, 0, error,
			"%llu file descriptors are allowed, and without any client %llu are needed",
			(unsigned long long)limit.rlim_cur, (unsigned long long)own);
	log_warn("max_connections is %llu, not %llu: %llu file descriptors are allowed, and %llu would be needed",
		(unsigned long long)(limit.rlim_cur - own), (unsigned long long)config->max_connections,
		(unsigned long long)limit.rlim_cur, (unsigned long long)want);
	config->max_connections = limit.rlim_cur - own;
	return true;
}

/* --- the user --- */

static bool refuse_user(const struct config *config, const char *why, char error[CONFIG_ERROR])
{
	return config_fault(config, config_line(config, "user"), error, "user %s: %s", config->user, why);
}

/* Gives NULL, with an error, if there is no such user. */
static const struct passwd *find_user(const struct config *config, char error[CONFIG_ERROR])
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(config->user);
	if (!pw)
		(void)refuse_user(config, errno ? strerror(errno) : "unknown", error);
	return pw;
}

bool start_switch_user(const struct config *config, char error[CONFIG_ERROR])
{
	const struct passwd *pw;

	if (!*config->user && geteuid() == 0)
		log_warn("it runs as root: `user` in the configuration, or -u, names another user");
	if (!*config->user)
		return true;
	pw = find_user(config, error);
	if (!pw)
		return false;
	if (setgroups(1, &pw->pw_gid) == 0 && setgid(pw->pw_gid) == 0 && setuid(pw->pw_uid) == 0)
		return true;
	return refuse_user(config, strerror(errno), error);
}

static bool check_user(const struct config *config, char error[CONFIG_ERROR])
{
	if (!*config->user)
		return true;
	if (!find_user(config, error))
		return false;
	return geteuid() == 0 || refuse_user(config, "only root can become another user", error);
}

/* --- sockets --- */

static bool check_place(
	const struct config *config, const char *option, unsigned line, struct address *a, char error[CONFIG_ERROR])
{
	struct listener_place place = { .host = a->host, .port = a->port };
	char why[256];

	return listener_check(&place, why) || config_fault(config, line, error, "%s: %s", option, why);
}

static bool check_places(struct config *config, char error[CONFIG_ERROR])
{
	struct address a;

	for (size_t i = 0; i < config->listen.count; i++) {
		struct address *one = &config->listen.at[i];
		if (!check_place(config, "cannot listen", one->line, one, error))
			return false;
	}
	if (*config->admin) {
		(void)config_admin_address(config->admin, &a);
		if (!check_place(config, "admin", config_line(config, "admin"), &a, error))
			return false;
	}
	if (!*config->control)
		return true;
	a = (struct address){ .port = 0 };
	strncpy(a.host, config->control, sizeof(a.host) - 1);
	return check_place(config, "control", config_line(config, "control"), &a, error);
}

/* --- all --- */

bool start_check(struct settings *settings, char error[CONFIG_ERROR])
{
	struct config *config = &settings->config;

	return start_fit_descriptors(config, ring_count(settings->ring), error) && check_places(config, error) &&
		check_user(config, error);
}
