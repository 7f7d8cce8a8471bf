#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/users.h"
#include "protocol/reply.h"
#include "util/alloc.h"

static const uint16_t default_port = 11211, default_admin_port = 11312;

void config_init(struct config *config)
{
	*config = (struct config){
		.socket_mode = 0700,
		.distribution = RING_KETAMA,
		.sandbox = true,
		.server_tls_verify = true,
#define NUMBER(name, initial, least, most, unit, about) .name = (initial),
#include "config/options.def"
#undef NUMBER
	};
	config->user = xstrdup("");
	config->control = xstrdup("");
	config->admin = xstrdup("");
	config->server_user = xstrdup("");
	config->server_login = xstrdup("");
#define PATH(name) config->name = xstrdup("");
#include "config/paths.def"
#undef PATH
}

void config_complete(struct config *config)
{
	if (config->listen_count == 0)
		(void)config_add_listen(config, "127.0.0.1", default_port);
}

void config_clear_listen(struct config *config)
{
	free(config->listen);
	config->listen = NULL;
	config->listen_count = 0;
}

static void clear_servers(struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++)
		free(config->servers[i].host);
	free(config->servers);
	free(config->ring_string);
	config->servers = NULL;
	config->ring_string = NULL;
	config->server_count = 0;
}

static void free_rules(struct rules *rules)
{
	for (size_t i = 0; i < rules->collection_count; i++) {
		free((char *)rules->collections[i].prefix.p);
		free((char *)rules->collections[i].removed.p);
	}
	for (size_t i = 0; i < rules->event_count; i++) {
		free((char *)rules->events[i].prefix.p);
		free((char *)rules->events[i].separator.p);
	}
	free((void *)rules->collections);
	free((void *)rules->events);
	free((char *)rules->commands.prefix.p);
	*rules = (struct rules){ 0 };
}

void config_fini(struct config *config)
{
	config_clear_listen(config);
	clear_servers(config);
	free_rules(&config->rules);
	free(config->user);
	free(config->control);
	free(config->admin);
	for (size_t i = 0; i < config->admin_host_count; i++)
		free(config->admin_hosts[i]);
	free(config->admin_hosts);
	free(config->server_user);
	free(config->server_login);
	free(config->socket_users);
	users_destroy(config->users);
#define PATH(name) free(config->name);
#include "config/paths.def"
#undef PATH
	*config = (struct config){ 0 };
}

const char *config_add_listen(struct config *config, const char *text, uint16_t port)
{
	struct address address;
	const char *error = address_parse(text, port ? port : default_port, false, &address);

	if (error)
		return error;
	for (size_t i = 0; i < config->listen_count; i++) {
		if (address_same(&config->listen[i], &address))
			return "an address to listen on is named twice";
	}
	config->listen = xrealloc(config->listen, (config->listen_count + 1) * sizeof(address));
	config->listen[config->listen_count++] = address;
	return NULL;
}

const char *config_admin_address(const char *text, struct address *address)
{
	const char *error = address_parse(text, default_admin_port, false, address);

	if (!error && (address->port == 0 || address->tls))
		error = "a TCP address without TLS is allowed";
	return error;
}

static const char *add_server(struct config *config, const char *text)
{
	struct address address;
	const char *error = address_parse(text, default_port, true, &address);
	struct ring_server *server;

	if (error)
		return error;
	for (size_t i = 0; i < config->server_count; i++) {
		if (config->servers[i].port == address.port && strcmp(config->servers[i].host, address.host) == 0)
			return "a server is named twice";
	}
	config->servers = xrealloc(config->servers, (config->server_count + 1) * sizeof(*config->servers));
	server = &config->servers[config->server_count++];
	*server = (struct ring_server){ xstrdup(address.host), address.port, address.weight };
	return NULL;
}

const char *config_set_servers(struct config *config, const char *text)
{
	const char *error = NULL;
	char *copy = xstrdup(text), *rest = copy, *one;

	clear_servers(config);
	if (strncmp(text, "--", 2) == 0) {
		config->ring_string = copy;
		return NULL;
	}
	while (!error && (one = strsep(&rest, ",")))
		error = add_server(config, one);
	free(copy);
	return error;
}

struct ring *config_ring(const struct config *config, char error[256])
{
	if (config->ring_string)
		return ring_create_from_string(config->ring_string, error);
	if (config->server_count == 0) {
		snprintf(error, 256, "no server is named: use -S or `servers` in the configuration file");
		return NULL;
	}
	return ring_create(config->servers, (int)config->server_count, config->distribution, error);
}

void config_print(const struct config *config, struct buf *out)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct address *a = &config->listen[i];
		if (a->port)
			buf_printf(out, "STAT listen %s%s:%u\r\n", a->tls ? "tls:" : "", a->host, a->port);
		else
			buf_printf(out, "STAT listen unix:%s\r\n", a->host);
	}
	reply_stat_text(out, "distribution",
		config->ring_string ? "libmemcached string" : ring_distribution_name(config->distribution));
#define NUMBER(name, initial, least, most, unit, about) reply_stat(out, #name, config->name);
#include "config/options.def"
#undef NUMBER
	reply_stat_text(out, "commands", config->rules.commands.prefix.n ? config->rules.commands.prefix.p : "");
	reply_stat(out, "sandbox", config->sandbox);
	reply_stat_text(out, "log", config->syslog ? "syslog" : "stderr");
	reply_stat(out, "server_tls", config->server_tls);
	reply_stat(out, "server_tls_verify", config->server_tls_verify);
	buf_printf(out, "STAT socket_mode %04o\r\n", (unsigned)config->socket_mode);
	reply_stat(out, "reuseport", config->reuseport);
	reply_stat_text(out, "admin", config->admin);
	reply_stat_text(out, "auth_file", config->auth_file);
	reply_stat_text(out, "insecure", config->insecure ? "true" : "false");
	for (int id = 0; id < COMMAND_COUNT; id++) {
		if (command_set_has(&config->denied, (enum command_id)id))
			reply_stat_text(out, "deny", command_get((enum command_id)id)->name.p);
	}
}
