#include "process/descriptors.h"

#include <stdio.h>
#include <sys/resource.h>

#include "util/log.h"

enum {
	OTHERS = 24 + DESCRIPTORS_REPLACING, /* beside clients, listeners and workers */
	ADMIN = 36,                          /* the HTTP port and its connections */
	EACH_WORKER = 8,
	EACH_SERVER = 2 /* of each worker: one that goes and one that comes */
};

bool descriptors_fit(struct config *config, int servers, char error[256])
{
	rlim_t own = OTHERS + (*config->admin ? ADMIN : 0) + config->listen.count +
		config->threads * (EACH_WORKER + EACH_SERVER * (rlim_t)servers);
	rlim_t want = own + config->max_connections;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= want)
		return true;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t before = limit.rlim_cur;
		limit.rlim_cur = limit.rlim_max >= want ? want : limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			limit.rlim_cur = before;
	}
	if (limit.rlim_cur >= want)
		return true;
	if (limit.rlim_cur <= own) {
		snprintf(error, 256, "%llu file descriptors are allowed, and without any client %llu are needed",
			(unsigned long long)limit.rlim_cur, (unsigned long long)own);
		return false;
	}
	log_warn("max_connections is %llu, not %llu: %llu file descriptors are allowed, and %llu would be needed",
		(unsigned long long)(limit.rlim_cur - own), (unsigned long long)config->max_connections,
		(unsigned long long)limit.rlim_cur, (unsigned long long)want);
	config->max_connections = limit.rlim_cur - own;
	return true;
}
