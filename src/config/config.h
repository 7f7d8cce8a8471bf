/* The configuration: defaults, which the file overrides, which the command line overrides. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collection/rules.h"
#include "config/address.h"
#include "upstream/ring.h"
#include "util/buf.h"

struct config {
	struct address *listen;
	size_t listen_count;
	struct ring_server *servers;
	size_t server_count;
	char *ring_string; /* a libmemcached configuration string, in place of the servers; or NULL */
	enum ring_distribution distribution;
	mode_t socket_mode;
	char *user; /* "" for none */
	struct rules rules;
#define NUMBER(name, initial, least, most, unit, about) uint64_t name;
#include "config/options.def"
#undef NUMBER
};

/* Fills in the defaults. config_fini frees what is in it, the strings of its rules among it. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* Adds one listener, or all servers of a "host:port,host:port" or "--SERVER=..." text. NULL, or what is wrong. */
const char *config_add_listen(struct config *config, const char *text, uint16_t port);
const char *config_set_servers(struct config *config, const char *text);

/* Adds the default listener when there is none. */
void config_complete(struct config *config);

/* Drops the listeners there are. */
void config_clear_listen(struct config *config);

/* The settings as STAT lines. */
void config_print(const struct config *config, struct buf *out);

/* The ring that the configuration asks for, or NULL with the reason in `error`. */
struct ring *config_ring(const struct config *config, char error[256]);

#endif
