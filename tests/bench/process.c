/* CPU time and memory of other processes, from /proc. */
#include "process.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool read_whole(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
	return length > 0;
}

bool process_sample(pid_t pid, struct process_sample *sample)
{
	char text[4096];
	unsigned long user, system;
	unsigned long long rss_kb = 0;
	const char *open, *close, *line;

	if (!read_whole(pid, "stat", text, sizeof(text)))
		return false;
	/* The name stands in parentheses and may itself hold some: the last one ends it. */
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (open == NULL || close == NULL || close < open)
		return false;
	snprintf(sample->name, sizeof(sample->name), "%.*s", (int)(close - open - 1), open + 1);
	if (sscanf(close + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return false;
	sample->cpu_us = (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);

	if (!read_whole(pid, "status", text, sizeof(text)))
		return false;
	line = strstr(text, "\nVmRSS:");
	if (line != NULL && sscanf(line, "\nVmRSS: %llu", &rss_kb) != 1)
		return false;
	sample->rss_kb = rss_kb;
	return true;
}

double process_own_cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
