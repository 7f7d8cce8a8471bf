/*
 * For a setlistd that runs beneath another program, by LD_PRELOAD: time passes by as much as it is asked for. So no slice of work
 * and no timer ends because the machine is slow, and the same requests take the same path.
 */
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	enum { MILLION = 1000000, START = 1000 };
	static unsigned long asked;
	unsigned long us = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);

	(void)clock;
	*time = (struct timespec){ .tv_sec = (time_t)(START + us / MILLION),
		.tv_nsec = (long)(us % MILLION * 1000) };
	return 0;
}
