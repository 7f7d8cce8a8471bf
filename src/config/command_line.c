#include "config/command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/near.h"
#include "util/version.h"

static const char usage[] =
	"usage: setlistd [OPTION]...\n"
	"A memcached proxy that adds sets, lists and event counters to ordinary memcached "
	"servers.\n"
	"\n"
	"  -a, --admin ADDR        HTTP port for operators: its page, metrics and health\n"
	"  -c, --commands PREFIX   keys that begin with it are commands, such as q| for `get "
	"q|scard|topic-1`\n"
	"  -f, --file FILE         configuration file; the other options override it\n"
	"  -l, --listen ADDR       listen on this address (127.0.0.1); may be repeated\n"
	"  -p, --port PORT         listen on this TCP port (11311), 0 for none\n"
	"  -s, --socket SOCKET     listen on this Unix socket\n"
	"  -S, --servers SERVERS   the memcached servers: host:port,host:port or a libmemcached "
	"string (--SERVER=...)\n"
	"  -t, --threads THREADS   worker threads (1)\n"
	"  -u, --user USER         switch to this user after opening the sockets\n"
	"  -v, --verbose           log more; twice for debugging\n"
	"  -T, --test              check the configuration and exit\n"
	"  -V, --version           print the version and exit\n"
	"  -h, --help              print this help and exit\n"
	"\n"
	"Once it is running, connect with telnet and type: help\n";

static const struct option names[] = {
	{ "admin", required_argument, NULL, 'a' },
	{ "commands", required_argument, NULL, 'c' },
	{ "file", required_argument, NULL, 'f' },
	{ "listen", required_argument, NULL, 'l' },
	{ "port", required_argument, NULL, 'p' },
	{ "socket", required_argument, NULL, 's' },
	{ "servers", required_argument, NULL, 'S' },
	{ "threads", required_argument, NULL, 't' },
	{ "user", required_argument, NULL, 'u' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "test", no_argument, NULL, 'T' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Returns the option with this letter, or the row without a name if there is none. */
static const struct option *name_of(int letter)
{
	const struct option *o = names;

	while (o->name && o->val != letter)
		o++;
	return o;
}

static _Noreturn void refuse(const char *option, const char *value)
{
	fprintf(stderr, "setlistd: %s %s: not allowed here; see setlistd --help\n", option, value);
	exit(2);
}

static _Noreturn void refuse_name(const char *argument)
{
	struct near near = { .word = slice_of(argument + 2, strcspn(argument + 2, "=")) };
	char hint[NEAR_HINT];

	for (const struct option *o = names; o->name; o++)
		near_offer(&near, slice_of(o->name, strlen(o->name)));
	near_hint(&near, hint);
	fprintf(stderr, "setlistd: unknown option %s%s%s setlistd --help\n", argument, hint,
		*hint ? " See" : "; see");
	exit(2);
}

/* Reports an option for which getopt_long() returned `c`, ':' or '?', and exits. */
static _Noreturn void refuse_option(int c, const char *argument)
{
	const struct option *o = name_of(optopt);

	if (optopt == 0)
		refuse_name(argument);
	if (o->name)
		fprintf(stderr, "setlistd: -%c, --%s: %s value; see setlistd --help\n", optopt,
			o->name, c == ':' ? "needs a" : "takes no");
	else
		fprintf(stderr, "setlistd: unknown option -%c; see setlistd --help\n", optopt);
	exit(2);
}

static void take_number(const char *option, int64_t least, int64_t most, int64_t *value)
{
	char why[CONFIG_WHY];

	if (!config_number(optarg, least, most, value, why))
		return;
	fprintf(stderr, "setlistd: %s %s: %s; see setlistd --help\n", option, optarg, why);
	exit(2);
}

/* -v without other options is more likely meant to print the version. */
static void check_purpose(int argc, const struct options *o)
{
	if (argc != 2 || !o->verbose)
		return;
	fputs("setlistd: -v logs more, and -V prints the version; see setlistd --help\n", stderr);
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
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":a:c:f:l:p:s:S:t:u:vTVh", names, NULL)) != -1) {
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
			take_number("-p", 0, 65535, &o.port);
			break;
		case 't':
			take_number("-t", threads->least, threads->most, &o.threads);
			break;
		case 'v':
			o.verbose++;
			break;
		case 'T':
			o.test = true;
			break;
		case 'V':
			printf("setlistd %s\n", setlistd_version);
			exit(0);
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			refuse_option(c, argv[optind - 1]);
		}
	}
	if (optind < argc)
		refuse("argument", argv[optind]);
	check_purpose(argc, &o);
	return o;
}

/* Appends an error about the value of an option. Does nothing if `error` is NULL. */
static void check(struct config *config, const char *option, const char *value, const char *error,
	struct buf *errors)
{
	if (error)
		config_fault(config, 0, errors, "%s %s: %s", option, value, error);
}

/* -l, -p and -s override the listeners of the file. */
static void apply_listen(struct config *config, const struct options *o, struct buf *errors)
{
	char path[300];

	if (o->listen_count || o->port >= 0)
		config_clear(config, config_option("listen"));
	for (int i = 0; i < o->listen_count && o->port != 0; i++)
		check(config, "-l", o->listen[i],
			config_add_listen(
				config, o->listen[i], o->port > 0 ? (uint16_t)o->port : 0),
			errors);
	if (o->listen_count == 0 && o->port > 0)
		(void)config_add_listen(config, "127.0.0.1", (uint16_t)o->port);
	if (o->socket) {
		snprintf(path, sizeof(path), "unix:%s", o->socket);
		check(config, "-s", o->socket, config_add_listen(config, path, 0), errors);
	}
}

/* Sets an option, if it is on the command line. */
static void set(struct config *config, const char *name, const char *text, struct buf *errors)
{
	char error[CONFIG_VALUE_ERROR];

	if (text && !config_set(config, config_option(name), text, error))
		config_fault(config, 0, errors, "%s", error);
}

void options_configure(const struct options *o, struct config *config, struct buf *errors)
{
	set(config, "commands", o->commands, errors);
	config_complete(config);
	apply_listen(config, o, errors);
	if (o->servers)
		check(config, "-S", o->servers, config_set_servers(config, o->servers), errors);
	if (o->threads > 0)
		config->threads = (uint64_t)o->threads;
	if (o->verbose)
		config->verbose = (uint64_t)o->verbose;
	set(config, "user", o->user, errors);
	set(config, "admin", o->admin, errors);
}
