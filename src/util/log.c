#include "util/log.h"

#include <paths.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/num.h"

enum { TEXT = 1024 };

static const struct {
	const char *name;
	int syslog; /* Level for syslog and journald. */
} levels[] = { { "error", LOG_ERR }, { "warning", LOG_WARNING }, { "notice", LOG_NOTICE },
	{ "info", LOG_INFO }, { "debug", LOG_DEBUG } };

static atomic_int current = LOG_LEVEL_WARN;
static atomic_bool to_journal, to_system;
static atomic_int system_socket = -1; /* Never closed once it is open. */
static atomic_uint_fast64_t dropped;  /* Number of dropped lines. */
static atomic_bool is_dropping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_kind *left_out; /* Kinds with suppressed lines. */

void log_set_level(int level)
{
	atomic_store(&current, level);
}

void log_set_verbose(uint64_t verbose)
{
	log_set_level(verbose < 2 ? LOG_LEVEL_NOTICE + (int)verbose : LOG_LEVEL_DEBUG);
}

int log_level(void)
{
	return atomic_load(&current);
}

/*
 * Returns whether standard error is the stream whose device and inode are in the environment;
 * see sd-daemon(3).
 */
static bool journald_reads(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_open(bool to_syslog)
{
	atomic_store(&to_journal, journald_reads());
	if (to_syslog && atomic_load(&system_socket) < 0)
		atomic_store(&system_socket, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	atomic_store(&to_system, to_syslog);
}

static size_t write_time(char *line, size_t size)
{
	struct timespec ts;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &tm);
	return n + (size_t)snprintf(line + n, size - n, ".%03ldZ ", ts.tv_nsec / 1000000);
}

/*
 * Writes a line with a single call, so that lines of several threads are not mixed. A pipe or
 * socket that polls writable has room for a line: POLLOUT means at least PIPE_BUF bytes.
 * Returns false if the line was dropped.
 */
static bool write_to_stderr(const char *line, size_t n)
{
	static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd at = { .fd = STDERR_FILENO, .events = POLLOUT };
	bool taken;

	pthread_mutex_lock(&writing);
	taken = poll(&at, 1, 0) > 0 && at.revents & POLLOUT && write(STDERR_FILENO, line, n) >= 0;
	pthread_mutex_unlock(&writing);
	return taken;
}

/* As syslog(3), which would block if the syslog daemon does not read. */
static bool send_to_syslog(enum log_level level, const char *text)
{
	static const struct sockaddr_un daemon = { .sun_family = AF_UNIX, .sun_path = _PATH_LOG };
	char line[TEXT + 96];
	time_t now = time(NULL);
	struct tm tm;
	size_t n = (size_t)snprintf(line, sizeof(line), "<%d>", LOG_DAEMON | levels[level].syslog);

	localtime_r(&now, &tm);
	n += strftime(line + n, sizeof(line) - n, "%b %e %H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, " setlistd[%d]: %s", (int)getpid(), text);
	return sendto(atomic_load(&system_socket), line, n, MSG_DONTWAIT | MSG_NOSIGNAL,
		       (const struct sockaddr *)&daemon, sizeof(daemon)) >= 0;
}

static bool send_to_stderr(enum log_level level, const char *text)
{
	char line[TEXT + 64];
	size_t n;

	if (atomic_load(&to_journal)) {
		n = (size_t)snprintf(line, sizeof(line), "<%d>%s\n", levels[level].syslog, text);
	} else {
		n = write_time(line, sizeof(line));
		n += (size_t)snprintf(
			line + n, sizeof(line) - n, "%s: %s\n", levels[level].name, text);
	}
	return write_to_stderr(line, n);
}

static bool send_line(enum log_level level, const char *text)
{
	return atomic_load(&to_system) ? send_to_syslog(level, text) : send_to_stderr(level, text);
}

uint64_t log_dropped(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed);
}

/* The first line that is written after lines were dropped is followed by a warning. */
static void emit(enum log_level level, const char *text)
{
	if (!send_line(level, text)) {
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
		atomic_store(&is_dropping, true);
	} else if (atomic_exchange(&is_dropping, false) &&
		!send_line(LOG_LEVEL_WARN,
			"log lines were dropped because nothing was reading the log")) {
		atomic_store(&is_dropping, true);
	}
}

/* Returns whether the period in which lines of the kind are counted is over. */
static bool is_period_over(const struct log_kind *kind, uint64_t now)
{
	return now - kind->since >= (kind->rare ? LOG_RARE_SECONDS : LOG_SECONDS);
}

static uint64_t seconds(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000000;
}

/*
 * Removes one kind from the list of kinds with suppressed lines, and copies it: any kind, or
 * one whose period is over. Returns false if there is none.
 */
static bool take_left_out(bool any, uint64_t now, struct log_kind *copy)
{
	struct log_kind **at, *kind;

	pthread_mutex_lock(&lock);
	for (at = &left_out; *at && !any && !is_period_over(*at, now); at = &(*at)->next)
		;
	kind = *at;
	if (kind) {
		*at = kind->next;
		*copy = *kind;
		kind->left_out = 0;
	}
	pthread_mutex_unlock(&lock);
	return kind;
}

void log_summarize(bool all)
{
	uint64_t now = seconds();
	struct log_kind kind;
	char text[TEXT];

	while (take_left_out(all, now, &kind)) {
		snprintf(text, sizeof(text), "%u more suppressed like: %s", kind.left_out,
			kind.last);
		emit(kind.level, text);
	}
}

/* Returns whether one more line of the kind is logged. Otherwise counts it. */
static bool admit(struct log_kind *kind, enum log_level level, uint64_t now)
{
	bool admitted;

	pthread_mutex_lock(&lock);
	kind->level = level;
	if (is_period_over(kind, now) && !kind->left_out) {
		kind->since = now;
		kind->lines = 0;
	}
	admitted = kind->lines < (kind->rare ? 1 : LOG_LINES);
	kind->lines += admitted;
	if (!admitted && kind->left_out++ == 0) {
		kind->next = left_out;
		left_out = kind;
	}
	pthread_mutex_unlock(&lock);
	return admitted;
}

void log_write(struct log_kind *kind, enum log_level level, const char *format, ...)
{
	char text[TEXT];
	va_list ap;

	if ((int)level > log_level())
		return;
	log_summarize(false);
	if (level != LOG_LEVEL_DEBUG && !admit(kind, level, seconds()))
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	pthread_mutex_lock(&lock);
	snprintf(kind->last, sizeof(kind->last), "%.*s", LOG_SAMPLE - 1, text);
	pthread_mutex_unlock(&lock);
	emit(level, text);
}

/* Writes no time, since that needs the C library's time zones, which may allocate. */
void alloc_failed(size_t size)
{
	static const char before[] = "error: out of memory: an allocation of ",
			  after[] = " bytes failed; aborting\n";
	char line[sizeof(before) + NUM_U64_MAX + sizeof(after)], *at = line;

	at = slice_write(at, SLICE(before));
	at += num_format_u64(at, size);
	at = slice_write(at, SLICE(after));
	(void)write_to_stderr(line, (size_t)(at - line));
	abort();
}
