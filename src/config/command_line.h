/* The command line, and the configuration that it makes together with the file. */
#ifndef CONFIG_COMMAND_LINE_H
#define CONFIG_COMMAND_LINE_H

#include "config/config.h"

enum { OPTIONS_LISTEN = 16 };

/* Its texts are those of the command line. */
struct options {
	const char *file, *socket, *servers, *user, *admin, *commands;
	const char *listen[OPTIONS_LISTEN];
	int listen_count, verbose;
	int64_t port, threads; /* -1 for none */
	bool test;
};

/* Parses the command line. Prints help or a version, or an error, and exits, where that is all there is to do. */
struct options options_parse(int argc, char **argv);

/* Completes an initialized `config`, into which the file was read if there is one: the command line overrides it. Appends each error. */
void options_configure(const struct options *options, struct config *config, struct buf *errors);

#endif
