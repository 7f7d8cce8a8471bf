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
	/* In addition to clients, listeners and workers; eight are for c-ares. */
	OTHERS = 32 + DAEMON_REPLACING,
	ADMIN = 36, /* The HTTP port and its connections. */
	EACH_WORKER = 10,
	EACH_SERVER = 2 /* Per worker: a former and a new connection. */
};

bool start_fit_descriptors(struct config *config, int servers, struct buf *errors)
{
	rlim_t own = OTHERS + (*config->admin ? ADMIN : 0) + config->listen.count +
		config->threads * (EACH_WORKER + EACH_SERVER * (rlim_t)servers);
	rlim_t want = own + config->max_connections;
	struct rlimit limit, raised;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
		limit.rlim_cur >= want)
		return true;
	raised = limit;
	raised.rlim_cur = limit.rlim_max >= want ? want : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		limit = raised;
	if (limit.rlim_cur >= want)
		return true;
	if (limit.rlim_cur <= own)
		return config_fault(config, 0, errors,
			"the limit of file descriptors is %llu, but even without clients %llu are "
			"needed",
			(unsigned long long)limit.rlim_cur, (unsigned long long)own);
	log_warn("max_connections is only %llu, not %llu: the limit of file descriptors is %llu, "
		 "and %llu would be "
		 "needed",
		(unsigned long long)(limit.rlim_cur - own),
		(unsigned long long)config->max_connections, (unsigned long long)limit.rlim_cur,
		(unsigned long long)want);
	config->max_connections = limit.rlim_cur - own;
	return true;
}

/* --- the user --- */

static bool refuse_user(const struct config *config, const char *why, struct buf *errors)
{
	return config_fault(
		config, config_line(config, "user"), errors, "user %s: %s", config->user, why);
}

/* Returns the user, or NULL with an error if there is none of that name. */
static const struct passwd *find_user(const struct config *config, struct buf *errors)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(config->user);
	if (!pw)
		(void)refuse_user(config, errno ? strerror(errno) : "unknown", errors);
	return pw;
}

bool start_switch_user(const struct config *config, struct buf *errors)
{
	const struct passwd *pw;

	if (!*config->user && geteuid() == 0)
		log_warn("running as root; to run as another user, set `user` in the "
			 "configuration, or use -u");
	if (!*config->user)
		return true;
	pw = find_user(config, errors);
	if (!pw)
		return false;
	if (setgroups(1, &pw->pw_gid) == 0 && setgid(pw->pw_gid) == 0 && setuid(pw->pw_uid) == 0)
		return true;
	return refuse_user(config, strerror(errno), errors);
}

static bool check_user(const struct config *config, struct buf *errors)
{
	if (!*config->user)
		return true;
	if (!find_user(config, errors))
		return false;
	return geteuid() == 0 ||
		refuse_user(config, "only root can switch to another user", errors);
}

/* --- sockets --- */

static bool check_place(const struct config *config, const char *option, unsigned line,
	struct address *a, struct buf *errors)
{
	struct listener_place place = { .host = a->host, .port = a->port };
	char why[256];

	return listener_check(&place, why) ||
		config_fault(config, line, errors, "%s: %s", option, why);
}

static bool check_places(struct config *config, struct buf *errors)
{
	struct address a;
	bool good = true;

	for (size_t i = 0; i < config->listen.count; i++) {
		struct address *one = &config->listen.at[i];
		good &= check_place(config, "cannot listen", one->line, one, errors);
	}
	if (*config->admin) {
		(void)config_admin_address(config->admin, &a);
		good &= check_place(config, "admin", config_line(config, "admin"), &a, errors);
	}
	if (*config->control) {
		a = (struct address){ .port = 0 };
		strncpy(a.host, config->control, sizeof(a.host) - 1);
		good &= check_place(config, "control", config_line(config, "control"), &a, errors);
	}
	return good;
}

/* --- all checks --- */

bool start_check(struct settings *settings, struct buf *errors)
{
	struct config *config = &settings->config;

	bool good = start_fit_descriptors(config, settings_servers(settings), errors);

	good &= check_places(config, errors);
	return check_user(config, errors) && good;
}
