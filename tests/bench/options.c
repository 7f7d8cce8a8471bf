/* The command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] = "usage: loadgen [option ...]\n"
				 "  --proto memcache|resp  protocol to speak (memcache)\n"
				 "  --host HOST            server (127.0.0.1)\n"
				 "  --port PORT[,...]      its port (11211); of several the connections take turns\n"
				 "  --socket PATH          a Unix socket, in place of host and port\n"
				 "  --op OP                what to ask for (get); see below\n"
				 "  --conns N              connections (50)\n"
				 "  --depth N              requests in flight on each connection (1)\n"
				 "  --batch N              send again once N of them are answered (1)\n"
				 "  --seconds S            length of the measurement (2)\n"
				 "  --warmup S             time before it that does not count (0.2)\n"
				 "  --requests N           send N requests in all, instead of --seconds\n"
				 "  --rate R               requests per second, open loop; latency then counts from\n"
				 "                         the moment a request was due (as fast as possible)\n"
				 "  --keys N               different keys (10000)\n"
				 "  --value-size N         bytes of a value (100)\n"
				 "  --members N            different members (1000)\n"
				 "  --member-size N        bytes of a member (12)\n"
				 "  --prefill              first store what the op is to find\n"
				 "  --pids A,B,...         report CPU and memory of these processes\n"
				 "  --tls                  speak TLS; certificates are not checked\n"
				 "  --reconnect            a new connection for each request; latency counts from\n"
				 "                         before it; one request in flight\n"
				 "  --json                 report as one JSON object\n"
				 "  --help                 this text\n";

static void show_help(void)
{
	printf("%sops:", usage_text);
	for (size_t i = 0; workload_op_name(i) != NULL; i++)
		printf(" %s", workload_op_name(i));
	printf("\nExit status: 0 all replies were right, 1 some were errors or the run failed, "
	       "2 usage.\n");
}

_Noreturn static void refuse(const char *name, const char *text)
{
	fprintf(stderr, "loadgen: --%s: bad argument '%s' (see --help)\n", name, text);
	exit(2);
}

static uint64_t whole_number(const char *name, const char *text, uint64_t low, uint64_t high)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end != '\0' || text[0] == '-' || value < low || value > high)
		refuse(name, text);
	return value;
}

static double real_number(const char *name, const char *text, double high)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= 0 && value <= high))
		refuse(name, text);
	return value;
}

/* Takes the next number of a list, and the comma behind it, from *${rest}; ${text} is the whole list. */
static long take_number(const char **rest, long high, const char *name, const char *text)
{
	char *end;
	long value = strtol(*rest, &end, 10);

	if (end == *rest || (*end != ',' && *end != '\0') || value <= 0 || value > high)
		refuse(name, text);
	*rest = *end == ',' ? end + 1 : end;
	return value;
}

static void parse_pids(struct options *options, const char *name, const char *text)
{
	const char *rest = text;

	for (options->pid_count = 0; *rest != '\0'; options->pid_count++) {
		if (options->pid_count == MAX_PIDS)
			refuse(name, text);
		options->pids[options->pid_count] = (pid_t)take_number(&rest, INT_MAX, name, text);
	}
}

static void parse_ports(struct options *options, const char *name, const char *text)
{
	const char *rest = text;

	options->port_count = 0;
	do {
		if (options->port_count == MAX_PORTS)
			refuse(name, text);
		options->ports[options->port_count++] = (uint16_t)take_number(&rest, UINT16_MAX, name, text);
	} while (*rest != '\0');
}

enum {
	PROTO,
	HOST,
	PORT,
	SOCKET,
	OP,
	CONNS,
	DEPTH,
	BATCH,
	SECONDS,
	WARMUP,
	REQUESTS,
	RATE,
	KEYS,
	VALUE_SIZE,
	MEMBERS,
	MEMBER_SIZE,
	PREFILL,
	TLS,
	RECONNECT,
	PIDS,
	JSON,
	HELP
};

static const struct option long_options[] = {
	{ "proto", required_argument, NULL, PROTO },
	{ "host", required_argument, NULL, HOST },
	{ "port", required_argument, NULL, PORT },
	{ "socket", required_argument, NULL, SOCKET },
	{ "op", required_argument, NULL, OP },
	{ "conns", required_argument, NULL, CONNS },
	{ "depth", required_argument, NULL, DEPTH },
	{ "batch", required_argument, NULL, BATCH },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "warmup", required_argument, NULL, WARMUP },
	{ "requests", required_argument, NULL, REQUESTS },
	{ "rate", required_argument, NULL, RATE },
	{ "keys", required_argument, NULL, KEYS },
	{ "value-size", required_argument, NULL, VALUE_SIZE },
	{ "members", required_argument, NULL, MEMBERS },
	{ "member-size", required_argument, NULL, MEMBER_SIZE },
	{ "prefill", no_argument, NULL, PREFILL },
	{ "tls", no_argument, NULL, TLS },
	{ "reconnect", no_argument, NULL, RECONNECT },
	{ "pids", required_argument, NULL, PIDS },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static void apply_workload(struct workload *work, int option, const char *name, const char *text)
{
	switch (option) {
	case PROTO:
		work->resp = strcmp(text, "resp") == 0;
		if (!work->resp && strcmp(text, "memcache") != 0)
			refuse(name, text);
		break;
	case OP:
		work->op = text;
		break;
	case KEYS:
		work->keys = whole_number(name, text, 1, WORKLOAD_MAX_KEYS);
		break;
	case VALUE_SIZE:
		work->value_size = whole_number(name, text, 1, 64 << 20);
		break;
	case MEMBERS:
		work->members = whole_number(name, text, 1, WORKLOAD_MAX_MEMBERS);
		break;
	case MEMBER_SIZE:
		work->member_size = whole_number(name, text, WORKLOAD_MIN_MEMBER, WORKLOAD_MAX_MEMBER);
		break;
	default:
		abort();
	}
}

static void apply(struct options *options, int option, const char *name, const char *text)
{
	switch (option) {
	case HOST:
		options->host = text;
		break;
	case PORT:
		parse_ports(options, name, text);
		break;
	case SOCKET:
		options->socket = text;
		break;
	case CONNS:
		options->conns = whole_number(name, text, 1, 100000);
		break;
	case DEPTH:
		options->depth = whole_number(name, text, 1, 65536);
		break;
	case BATCH:
		options->batch = whole_number(name, text, 1, 65536);
		break;
	case SECONDS:
		options->seconds = real_number(name, text, 86400);
		break;
	case WARMUP:
		options->warmup = real_number(name, text, 3600);
		break;
	case REQUESTS:
		options->requests = whole_number(name, text, 1, UINT64_C(1) << 40);
		break;
	case RATE:
		options->rate = real_number(name, text, 1e8);
		break;
	case PREFILL:
		options->prefill = true;
		break;
	case TLS:
		options->tls = true;
		break;
	case RECONNECT:
		options->reconnect = true;
		break;
	case PIDS:
		parse_pids(options, name, text);
		break;
	case JSON:
		options->json = true;
		break;
	case HELP:
		show_help();
		exit(0);
	default:
		apply_workload(&options->workload, option, name, text);
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	int index = 0, option;

	*options = (struct options){
		.host = "127.0.0.1",
		.ports = { 11211 },
		.port_count = 1,
		.workload = {
			.op = "get",
			.keys = 10000,
			.value_size = 100,
			.members = 1000,
			.member_size = 12,
		},
		.conns = 50,
		.depth = 1,
		.batch = 1,
		.seconds = 2,
		.warmup = 0.2,
	};
	while ((option = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (option == '?')
			exit(2);
		apply(options, option, long_options[index].name, optarg);
	}
	if (optind < argc) {
		fprintf(stderr, "loadgen: unexpected argument '%s' (see --help)\n", argv[optind]);
		exit(2);
	}
	if (options->reconnect && (options->depth > 1 || options->rate > 0 || options->tls)) {
		fprintf(stderr, "loadgen: --reconnect goes without --depth, --rate and --tls (see --help)\n");
		exit(2);
	}
	if (options->batch > options->depth)
		options->batch = options->depth;
}
