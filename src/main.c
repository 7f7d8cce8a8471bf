/* setlistd: reads the options and the configuration, and serves. */
#include <event2/event.h>
#include <stdio.h>

#include "net/tls.h"
#include "process/serve.h"
#include "process/start.h"
#include "upstream/names.h"
#include "util/alloc.h"
#include "util/heap.h"
#include "util/log.h"

/* Checks a configuration for -T and releases it. Returns the exit status of the process. */
static int check_configuration(const struct options *options, struct settings *settings)
{
	struct buf errors = BUF_EMPTY;
	bool good;

	log_set_level(LOG_LEVEL_ERROR);
	good = start_check(settings, &errors);
	if (good)
		puts("configuration ok");
	settings_complain(options->file, &errors, false);
	settings_release(settings);
	return !good;
}

int main(int argc, char **argv)
{
	struct options options = options_parse(argc, argv);
	struct settings *settings;
	struct names *names;
	int status = 1;

	heap_init();
	event_set_mem_functions(xmalloc, xrealloc, free);
	tls_init();
	names = names_create();
	settings = settings_read(&options, names, false);
	if (settings && options.test) {
		status = check_configuration(&options, settings);
	} else if (settings) {
		log_set_verbose(settings->config.verbose);
		log_open(settings->config.log == LOG_TO_SYSLOG);
		status = serve(&options, settings, names);
	}
	names_destroy(names);
	return status;
}
