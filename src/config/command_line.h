/* The command line, and how it and the file together make the configuration. */
#ifndef CONFIG_COMMAND_LINE_H
#define CONFIG_COMMAND_LINE_H

#include "config/config.h"

enum { OPTIONS_LISTEN = 16 };

/* The options of the command line, whose texts are borrowed. */
struct options {
	const char *file, *socket, *servers, *user, *admin, *commands;
	const char *listen[OPTIONS_LISTEN];
	int listen_count, verbose;
	int64_t port, threads; /* -1 if not given. */
	bool test;
};

/* Parses the command line. Exits after an error, and after printing help or a version. */
struct options options_parse(int argc, char **argv);

/*
 * Completes an initialized `config`, into which the file, if any, was already read: the command
 * line overrides it. Appends each error to `errors`.
 */
void options_configure(const struct options *options, struct config *config, struct buf *errors);

#endif
