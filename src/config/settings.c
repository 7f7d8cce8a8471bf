#include "config/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"
#include "config/tls.h"
#include "net/tls_context.h"
#include "util/alloc.h"
#include "util/log.h"

/* On the standard error, an error of the file begins with the file's name, and any other with the program's. */
static void say(const char *error, bool in_file, bool again)
{
	if (again)
		log_error("%s", error);
	else
		fprintf(stderr, "%s%s\n", in_file ? "" : "setlistd: ", error);
}

struct settings *settings_read(const struct options *options, bool again)
{
	struct settings *s = xcalloc(1, sizeof(*s));
	char error[CONFIG_ERROR];
	bool taken;

	s->references = 1;
	config_init(&s->config);
	taken = !options->file || config_file_read(&s->config, options->file, error);
	if (taken && options_configure(options, &s->config, error)) {
		s->ring = config_ring(&s->config, error);
		s->tls = s->ring ? config_tls(&s->config, error) : NULL;
		if (s->tls) {
			s->ring_hash = ring_fingerprint(s->ring);
			return s;
		}
	}
	say(error, !taken, again);
	settings_release(s);
	return NULL;
}

struct settings *settings_share(struct settings *settings)
{
	atomic_fetch_add(&settings->references, 1);
	return settings;
}

void settings_release(struct settings *settings)
{
	if (!settings || atomic_fetch_sub(&settings->references, 1) > 1)
		return;
	tls_context_drop(settings->tls);
	ring_destroy(settings->ring);
	config_fini(&settings->config);
	free(settings);
}

/* --- comparing --- */

static bool same_servers(const struct settings *a, const struct settings *b)
{
	if (ring_count(a->ring) != ring_count(b->ring) || a->ring_hash != b->ring_hash)
		return false;
	for (int i = 0; i < ring_count(a->ring); i++) {
		const struct ring_server *s = ring_server(a->ring, i), *t = ring_server(b->ring, i);
		if (strcmp(s->host, t->host) != 0 || s->port != t->port || s->weight != t->weight)
			return false;
	}
	return a->config.distribution == b->config.distribution && !a->config.ring_string == !b->config.ring_string &&
		(!a->config.ring_string || strcmp(a->config.ring_string, b->config.ring_string) == 0);
}

static bool same_engine(const struct config *a, const struct config *b)
{
	return a->base_size == b->base_size && a->segment_size == b->segment_size && a->log_size == b->log_size &&
		a->table_size == b->table_size && a->cache_memory == b->cache_memory &&
		a->max_result == b->max_result && a->merges == b->merges && a->server_queue == b->server_queue &&
		a->dns_interval == b->dns_interval;
}

bool settings_same_data(const struct settings *a, const struct settings *b)
{
	return same_servers(a, b) && same_engine(&a->config, &b->config) &&
		rules_same(&a->config.rules, &b->config.rules);
}
