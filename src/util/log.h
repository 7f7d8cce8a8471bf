/* Log lines on standard error. All functions may be called from any thread. */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* The highest level that is logged; LOG_LEVEL_WARN at first. */
void log_set_level(int level);
int log_level(void);

/* Logs one line in the format of printf; what does not fit 1 KB is cut off. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
