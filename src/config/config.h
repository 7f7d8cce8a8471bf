/* The configuration. The file overrides the defaults, and the command line overrides the file. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collection/rules.h"
#include "config/address.h"
#include "protocol/command.h"
#include "upstream/ring.h"
#include "util/buf.h"

struct users;

struct config {
	struct address *listen;
	size_t listen_count;
	struct ring_server *servers;
	size_t server_count;
	char *ring_string; /* a libmemcached configuration string instead of the servers; or NULL */
	enum ring_distribution distribution;
	mode_t socket_mode;
	char *user;         /* "" for none */
	char *control;      /* path of the operators' socket; "" for none */
	char *admin;        /* "host:port" of the HTTP port for operators; "" for none */
	char **admin_hosts; /* by which it may be called, beside addresses and localhost */
	size_t admin_host_count;
	bool reuseport;
	bool sandbox;
	bool syslog; /* the log goes there, else to standard error */
	bool server_tls, server_tls_verify;
#define PATH(name) char *name; /* "" for none */
#include "config/paths.def"
#undef PATH
	struct rules rules;
	char *server_user; /* "" for none */
	struct command_set denied;
	uid_t *socket_users; /* who may connect to Unix sockets, beside root and the daemon's own user; none for everybody */
	size_t socket_user_count;
	bool insecure;       /* anybody may listen everywhere */
	struct users *users; /* of auth_file, made by settings_read; NULL if nobody must authenticate */
	char *server_login;  /* "user password" for servers, made by settings_read; "" for none */
#define NUMBER(name, initial, least, most, unit, about) uint64_t name;
#include "config/options.def"
#undef NUMBER
};

/* Sets the defaults. config_fini frees all that the configuration owns, including its rules. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* Adds a listener, whose default port is `port`, or 11211 if that is 0. Gives NULL, or the error: a constant text. */
const char *config_add_listen(struct config *config, const char *text, uint16_t port);
/* The address of the HTTP port for operators. Gives NULL, or the error: a constant text. */
const char *config_admin_address(const char *text, struct address *address);
/* Replaces the servers by those of "host:port,host:port" or "--SERVER=...". Gives NULL, or the error: a constant text. */
const char *config_set_servers(struct config *config, const char *text);

/* Adds the default listener, if there is none. */
void config_complete(struct config *config);

/* Removes all listeners. */
void config_clear_listen(struct config *config);

/* Appends the settings as STAT lines. */
void config_print(const struct config *config, struct buf *out);

/* Builds the ring of the configured servers, which the caller owns. On failure gives NULL, with the reason in `error`. */
struct ring *config_ring(const struct config *config, char error[256]);

#endif
