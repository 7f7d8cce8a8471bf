#include "measure/process_facts.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "measure/metrics.h"
#include "util/alloc.h"

struct process_facts {
	DIR *descriptors; /* or NULL */
};

struct process_facts *process_facts_create(void)
{
	struct process_facts *f = xcalloc(1, sizeof(*f));

	f->descriptors = opendir("/proc/self/fd");
	return f;
}

void process_facts_destroy(struct process_facts *f)
{
	if (f->descriptors)
		closedir(f->descriptors);
	free(f);
}

/* The pages of the process, and those of them that are in memory. */
static void read_pages(uint64_t *all, uint64_t *resident)
{
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, all, resident) != 2)
		*all = *resident = 0;
	if (file)
		fclose(file);
}

uint64_t process_facts_memory(void)
{
	uint64_t all, resident;

	read_pages(&all, &resident);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_descriptors(DIR *list)
{
	const struct dirent *entry;
	uint64_t count = 0;

	rewinddir(list);
	while ((entry = readdir(list)))
		count += entry->d_name[0] != '.';
	return count;
}

static void print(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
	metrics_head(out, name, type, help);
	buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static double seconds_of(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

void process_facts_print(struct process_facts *f, int64_t started, struct buf *out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all, resident;
	struct rusage usage;
	struct rlimit limit;

	if (getrusage(RUSAGE_SELF, &usage) == 0) {
		metrics_head(out, "process_cpu_seconds_total", "counter", "User and system CPU time.");
		buf_printf(out, "process_cpu_seconds_total %.6f\n",
			seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
	}
	read_pages(&all, &resident);
	print(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.", all * page);
	print(out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident * page);
	if (f->descriptors)
		print(out, "process_open_fds", "gauge", "Open file descriptors.", count_descriptors(f->descriptors));
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		print(out, "process_max_fds", "gauge", "File descriptors that are allowed.", limit.rlim_cur);
	print(out, "process_start_time_seconds", "gauge", "Start of the process, in seconds of Unix time.",
		(uint64_t)started);
}
