/* What the configuration says about TLS, for clients and for servers. */
#ifndef CONFIG_TLS_H
#define CONFIG_TLS_H

struct config;
struct tls_context;

/*
 * Reads all files that the options for TLS name, whether they are used or not. Gives a context, which the caller holds, also for a
 * configuration without TLS. On failure gives NULL, with the option, the file and the reason in `error`.
 */
struct tls_context *config_tls(const struct config *config, char error[256]);

#endif
