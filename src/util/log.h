/*
 * Writes log lines to standard error or syslog. All functions may be called from any thread. A
 * line for which the pipe or socket has no room is dropped and counted, so that no thread
 * blocks on a slow reader. (Another process that fills the same pipe at that moment can still
 * make a thread block.) For syslog, /dev/log must be a datagram socket.
 *
 * Each line is one event. Control bytes in it are replaced by question marks. At most LOG_LINES
 * lines of each kind are logged in LOG_SECONDS seconds; further ones are counted, and a later
 * line reports their number. For a rare kind, the limit is one line a minute. Debug lines are
 * not limited.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* LOG_LEVEL_NOTICE is for events that concern the whole process. */
enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

enum { LOG_LINES = 100, LOG_SECONDS = 10, LOG_RARE_SECONDS = 60, LOG_SAMPLE = 120 };

/*
 * The lines that are logged by one place in the source. Initially all zeroes except `rare`.
 * Protected by a lock in log.c.
 */
struct log_kind {
	bool rare;
	struct log_kind *next; /* Next in the list of kinds with suppressed lines. */
	uint64_t since;        /* Seconds of the monotonic clock at the start of the count. */
	unsigned lines, left_out;
	enum log_level level;
	char last[LOG_SAMPLE]; /* The last line that was logged, truncated. */
};

/*
 * Sets where lines are written. On standard error, a line begins with its time and level, or
 * with the level in journald's form if JOURNAL_STREAM shows that journald reads standard error.
 * The socket for syslog is opened at once.
 */
void log_open(bool to_syslog);

/*
 * Set and return the highest level that is logged, initially LOG_LEVEL_WARN. log_set_verbose()
 * takes the value of the option `verbose`.
 */
void log_set_level(int level);
void log_set_verbose(uint64_t verbose);
int log_level(void);

/*
 * Logs how many lines were suppressed: for the kinds whose period is over, or for all if `all`.
 * To be called every LOG_SECONDS seconds.
 */
void log_summarize(bool all);

/* Returns how many lines were dropped since the start. */
uint64_t log_dropped(void);

/* Logs one line in the format of printf, truncated to 1 KB. */
void log_write(struct log_kind *kind, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define LOG_WRITE(level, ...) LOG_WRITE_KIND(false, level, __VA_ARGS__)
#define LOG_WRITE_KIND(is_rare, level, ...) \
	do { \
		static struct log_kind kind_ = { .rare = (is_rare) }; \
		log_write(&kind_, (level), __VA_ARGS__); \
	} while (0)

#define log_error(...) LOG_WRITE(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) LOG_WRITE(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) LOG_WRITE(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_rare(...) LOG_WRITE_KIND(true, LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) LOG_WRITE(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) LOG_WRITE(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
