#include "util/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/num.h"

static atomic_int current = LOG_LEVEL_WARN;

void log_set_level(int level)
{
	atomic_store(&current, level);
}

int log_level(void)
{
	return atomic_load(&current);
}

/* One write per line, so that lines of several threads do not mix. */
void log_write(enum log_level level, const char *format, ...)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char line[1024];
	struct timespec ts;
	struct tm tm;
	size_t n;
	va_list ap;
	int more;

	if ((int)level > log_level())
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ %s: ", ts.tv_nsec / 1000000, names[level]);
	va_start(ap, format);
	more = vsnprintf(line + n, sizeof(line) - n - 1, format, ap);
	va_end(ap);
	if (more < 0)
		return;
	n += (size_t)more < sizeof(line) - n - 2 ? (size_t)more : sizeof(line) - n - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

/* The time would need the C library's tables of time zones, which may allocate. */
void alloc_failed(size_t size)
{
	static const char before[] = "error: no memory: ", after[] = " bytes were asked for; the process ends\n";
	char line[sizeof(before) + NUM_U64_MAX + sizeof(after)], *at = line;

	at = slice_write(at, SLICE(before));
	at += num_format_u64(at, size);
	at = slice_write(at, SLICE(after));
	(void)!write(STDERR_FILENO, line, (size_t)(at - line));
	abort();
}
