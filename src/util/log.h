/*
 * Log lines, on standard error or to syslog. All functions may be called from any thread. A line that the pipe or
 * socket has no room for is dropped and counted, so that no thread waits for a reader. (Another process that fills the same pipe at that
 * moment can still make one wait.) For syslog, /dev/log must be a datagram socket.
 *
 * A line is one event. Control bytes in it become question marks. Of each kind LOG_LINES lines are logged in LOG_SECONDS seconds;
 * those beyond are counted, and one line says later how many they were. Of a rare kind it is one line a minute. Lines for debugging have
 * no limit.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* A notice is what an operator wants to know of the whole process. */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum { LOG_LINES = 100, LOG_SECONDS = 10, LOG_RARE_SECONDS = 60, LOG_SAMPLE = 120 };

/* The lines that one place of the source logs. All zeroes at first except `rare`; a lock of log.c protects it. */
struct log_kind {
	bool rare;
	struct log_kind *next; /* among those with lines that were left out */
	uint64_t since;        /* seconds of the monotonic clock when the count of lines began */
	unsigned lines, left_out;
	enum log_level level;
	char last[LOG_SAMPLE]; /* the last line that was logged, cut */
};

/*
 * Says where lines go from now on. On standard error, a line begins with its time and level, or with the level as journald reads it if
 * JOURNAL_STREAM says that journald reads standard error. The socket for syslog is opened at once.
 */
void log_open(bool to_syslog);

/* The highest level that is logged; LOG_LEVEL_WARN at first. log_set_verbose sets it as the option `verbose` says. */
void log_set_level(int level);
void log_set_verbose(uint64_t verbose);
int log_level(void);

/* Logs how many lines were left out: of the kinds whose time is over, or of `all`. To be called every LOG_SECONDS seconds. */
void log_summarize(bool all);

/* Returns how many lines were dropped since the start. */
uint64_t log_dropped(void);

/* Logs one line in the format of printf; what does not fit 1 KB is cut off. */
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
