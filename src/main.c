/* setlistd: reads the options and the configuration, and serves. */
#include <event2/event.h>
#include <stdio.h>

#include "net/tls.h"
#include "process/serve.h"
#include "util/alloc.h"
#include "util/log.h"

int main(int argc, char **argv)
{
	struct options options = options_parse(argc, argv);
	struct settings *settings;

	event_set_mem_functions(xmalloc, xrealloc, free);
	tls_init();
	settings = settings_read(&options, false);
	if (!settings)
		return 1;
	if (options.test) {
		puts("configuration ok");
		settings_release(settings);
		return 0;
	}
	log_set_level(LOG_LEVEL_WARN + (int)settings->config.verbose);
	log_open(settings->config.log == LOG_TO_SYSLOG);
	return serve(&options, settings);
}
