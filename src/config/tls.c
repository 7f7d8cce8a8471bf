#include "config/tls.h"

#include <stdio.h>

#include "config/config.h"
#include "net/tls_context.h"

static bool is_any_named(const struct tls_files *files)
{
	return files->certificate.path[0] || files->key.path[0] || files->ca.path[0];
}

static const struct address *tls_listener(const struct config *config)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		if (config->listen[i].tls)
			return &config->listen[i];
	}
	return NULL;
}

struct tls_context *config_tls(const struct config *config, char error[256])
{
	const struct tls_files clients = {
		{ "tls_certificate", config->tls_certificate },
		{ "tls_key", config->tls_key },
		{ "tls_client_ca", config->tls_client_ca },
	};
	const struct tls_files servers = {
		{ "server_tls_certificate", config->server_tls_certificate },
		{ "server_tls_key", config->server_tls_key },
		{ "server_tls_ca", config->server_tls_ca },
	};
	const struct address *listener = tls_listener(config);
	bool to_servers = config->server_tls || is_any_named(&servers);

	if (listener && !config->tls_certificate[0]) {
		snprintf(error, 256, "tls_certificate: needed to listen on tls:%.100s:%u", listener->host,
			listener->port);
		return NULL;
	}
	return tls_context_create(is_any_named(&clients) ? &clients : NULL, to_servers ? &servers : NULL,
		config->server_tls && config->server_tls_verify, error);
}
