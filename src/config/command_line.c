#include "config/command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
	"usage: setlistd [-a ADDR] [-c PREFIX] [-f FILE] [-l ADDR] [-p PORT] [-s SOCKET] [-S SERVERS] [-t THREADS] "
	"[-u USER] [-v] [-T] [-V] [-h]\n"
	"Sets, lists and event counters on any memcached: a proxy that speaks the memcached text protocol.\n"
	"\n"
	"  -a ADDR      HTTP port for operators: its page, metrics and health\n"
	"  -c PREFIX    keys that begin with it are commands, such as q| for `get q|scard|topic-1`\n"
	"  -f FILE      configuration file; the other options override it\n"
	"  -l ADDR      listen on this address (127.0.0.1); may be repeated\n"
	"  -p PORT      listen on this TCP port (11211), 0 for none\n"
	"  -s SOCKET    listen on this Unix socket\n"
	"  -S SERVERS   the memcached servers: host:port,host:port or a libmemcached string (--SERVER=...)\n"
	"  -t THREADS   worker threads (1)\n"
	"  -u USER      become this user after the sockets are open\n"
	"  -v           log more; twice for debugging\n"
	"  -T           check the configuration and exit\n"
	"  -V           print the version and exit\n"
	"  -h           print this and exit\n"
	"\n"
	"When it runs, connect with telnet and type: help\n";

static void refuse(const char *option, const char *value)
{
	fprintf(stderr, "setlistd: %s %s: not allowed here; see setlistd -h\n", option, value);
	exit(2);
}

struct options options_parse(int argc, char **argv)
{
	const struct config_option *threads = config_option("threads");
	struct options o = { .port = -1, .threads = -1 };
	const char **const texts[] = { ['a'] = &o.admin,
		['c'] = &o.commands,
		['f'] = &o.file,
		['s'] = &o.socket,
		['S'] = &o.servers,
		['u'] = &o.user };
	char why[CONFIG_WHY];
	int c;

	while ((c = getopt(argc, argv, "a:c:f:l:p:s:S:t:u:vTVh")) != -1) {
		switch (c) {
		case 'a':
		case 'c':
		case 'f':
		case 's':
		case 'S':
		case 'u':
			*texts[c] = optarg;
			break;
		case 'l':
			if (o.listen_count == OPTIONS_LISTEN)
				refuse("-l", optarg);
			o.listen[o.listen_count++] = optarg;
			break;
		case 'p':
			if (config_number(optarg, 0, 65535, &o.port, why))
				refuse("-p", optarg);
			break;
		case 't':
			if (config_number(optarg, threads->least, threads->most, &o.threads, why))
				refuse("-t", optarg);
			break;
		case 'v':
			o.verbose++;
			break;
		case 'T':
			o.test = true;
			break;
		case 'V':
			puts("setlistd " SETLISTD_VERSION);
			exit(0);
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs("see setlistd -h\n", stderr);
			exit(2);
		}
	}
	if (optind < argc)
		refuse("argument", argv[optind]);
	return o;
}

/* -l, -p and -s override the file's listeners. */
static const char *apply_listen(struct config *config, const struct options *o)
{
	const char *error = NULL;
	char path[300];

	if (o->listen_count || o->port >= 0)
		config_clear(config, config_option("listen"));
	for (int i = 0; i < o->listen_count && o->port != 0 && !error; i++)
		error = config_add_listen(config, o->listen[i], o->port > 0 ? (uint16_t)o->port : 0);
	if (o->listen_count == 0 && o->port > 0)
		error = config_add_listen(config, "127.0.0.1", (uint16_t)o->port);
	if (!error && o->socket) {
		snprintf(path, sizeof(path), "unix:%s", o->socket);
		error = config_add_listen(config, path, 0);
	}
	return error;
}

/* Sets an option, if the command line has one. */
static bool set(struct config *config, const char *name, const char *text, char error[CONFIG_VALUE_ERROR])
{
	return !text || config_set(config, config_option(name), text, error);
}

bool options_configure(const struct options *o, struct config *config, char error[CONFIG_VALUE_ERROR])
{
	const char *what;

	if (!set(config, "commands", o->commands, error))
		return false;
	config_complete(config);
	what = apply_listen(config, o);
	if (!what && o->servers)
		what = config_set_servers(config, o->servers);
	if (what) {
		snprintf(error, CONFIG_VALUE_ERROR, "%s", what);
		return false;
	}
	if (o->threads > 0)
		config->threads = (uint64_t)o->threads;
	if (o->verbose)
		config->verbose = (uint64_t)o->verbose;
	return set(config, "user", o->user, error) && set(config, "admin", o->admin, error);
}
