/* The command line. */
#include "options.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The argument of an option, and where it is stored. */
enum kind { FLAG, TEXT, SIZE, COUNT, REAL, PROTO, LIST, HELP };

static const struct row {
	enum kind kind;
	const char *name, *argument, *help;
	size_t at;
	uint64_t low, high; /* of a number; of a list: the maximum length, and the maximum number */
} rows[] = {
#define AT(member) offsetof(struct options, member)
#define GAP "\n                         "
	{ PROTO, "proto", " memcache|resp", "protocol to speak (memcache)", AT(workload.resp), 0,
		0 },
	{ TEXT, "host", " HOST", "server (127.0.0.1)", AT(host), 0, 0 },
	{ LIST, "port", " PORT[,...]", "its port (11211); of several the connections take turns",
		AT(ports), 32, UINT16_MAX },
	{ TEXT, "socket", " PATH", "a Unix socket, in place of host and port", AT(socket), 0, 0 },
	{ TEXT, "op", " OP", "what to ask for (get); see below", AT(workload.op), 0, 0 },
	{ SIZE, "conns", " N", "connections (50)", AT(conns), 1, 100000 },
	{ SIZE, "depth", " N", "requests in flight on each connection (1)", AT(depth), 1, 65536 },
	{ SIZE, "batch", " N", "send again once N of them are answered (1)", AT(batch), 1, 65536 },
	{ REAL, "seconds", " S", "length of the measurement (2)", AT(seconds), 0, 86400 },
	{ REAL, "warmup", " S", "time before it that does not count (0.2)", AT(warmup), 0, 3600 },
	{ COUNT, "requests", " N", "send N requests in all, instead of --seconds", AT(requests), 1,
		UINT64_C(1) << 40 },
	{ REAL, "rate", " R",
		"requests per second, open loop; latency then counts from" GAP
		"the moment a request was due (as fast as possible)",
		AT(rate), 0, 100000000 },
	{ SIZE, "keys", " N", "different keys (10000)", AT(workload.keys), 1, WORKLOAD_MAX_KEYS },
	{ SIZE, "value-size", " N", "bytes of a value (100)", AT(workload.value_size), 1,
		64 << 20 },
	{ SIZE, "members", " N", "different members (1000)", AT(workload.members), 1,
		WORKLOAD_MAX_MEMBERS },
	{ SIZE, "member-size", " N", "bytes of a member (12)", AT(workload.member_size),
		WORKLOAD_MIN_MEMBER, WORKLOAD_MAX_MEMBER },
	{ FLAG, "prefill", "", "first store what the op is to find", AT(prefill), 0, 0 },
	{ LIST, "pids", " A,B,...", "report CPU and memory of these processes", AT(pids),
		MAX_NUMBERS, INT_MAX },
	{ FLAG, "tls", "", "speak TLS; certificates are not checked", AT(tls), 0, 0 },
	{ FLAG, "reconnect", "",
		"a new connection for each request; latency counts from" GAP
		"before it; one request in flight",
		AT(reconnect), 0, 0 },
	{ FLAG, "json", "", "report as one JSON object", AT(json), 0, 0 },
	{ HELP, "help", "", "this text", 0, 0, 0 },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void show_help(void)
{
	char left[64];

	printf("usage: loadgen [option ...]\n");
	for (size_t i = 0; i < ROWS; i++) {
		snprintf(left, sizeof(left), "--%s%s", rows[i].name, rows[i].argument);
		printf("  %-22s %s\n", left, rows[i].help);
	}
	printf("ops:");
	for (size_t i = 0; workload_op_name(i) != NULL; i++)
		printf(" %s", workload_op_name(i));
	printf("\nExit status: 0 all replies were right, 1 some were errors or the run failed, "
	       "2 usage.\n");
}

_Noreturn static void refuse(const char *name, const char *text)
{
	errx(2, "--%s: bad argument '%s' (see --help)", name, text);
}

/*
 * Parses a number that begins at ${at} in ${text} and ends at ${stop} or at the end of the text.
 * Returns its end.
 */
static const char *take_number(const char *name, const char *text, const char *at, char stop,
	uint64_t low, uint64_t high, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(at, &end, 10);
	if (errno || end == at || (*end != stop && *end != '\0') || *at == '-' || *value < low ||
		*value > high)
		refuse(name, text);
	return end;
}

static uint64_t whole_number(const struct row *row, const char *text)
{
	uint64_t value;

	take_number(row->name, text, text, '\0', row->low, row->high, &value);
	return value;
}

static double real_number(const struct row *row, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= 0 && value <= (double)row->high))
		refuse(row->name, text);
	return value;
}

static void parse_list(const struct row *row, const char *text, struct numbers *numbers)
{
	const char *at = text;

	numbers->count = 0;
	do {
		if (numbers->count == row->low)
			refuse(row->name, text);
		at = take_number(
			row->name, text, at, ',', 1, row->high, &numbers->list[numbers->count++]);
	} while (*at != '\0' && *++at != '\0');
}

static void apply(struct options *options, const struct row *row, const char *text)
{
	void *at = (char *)options + row->at;

	switch (row->kind) {
	case FLAG:
		*(bool *)at = true;
		break;
	case TEXT:
		*(const char **)at = text;
		break;
	case SIZE:
		*(size_t *)at = whole_number(row, text);
		break;
	case COUNT:
		*(uint64_t *)at = whole_number(row, text);
		break;
	case REAL:
		*(double *)at = real_number(row, text);
		break;
	case PROTO:
		*(bool *)at = strcmp(text, "resp") == 0;
		if (!*(bool *)at && strcmp(text, "memcache") != 0)
			refuse(row->name, text);
		break;
	case LIST:
		parse_list(row, text, at);
		break;
	case HELP:
		show_help();
		exit(0);
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	struct option long_options[ROWS + 1] = { { .name = NULL } };
	int index = 0;

	for (size_t i = 0; i < ROWS; i++)
		long_options[i] = (struct option){ rows[i].name,
			*rows[i].argument ? required_argument : no_argument, NULL, 0 };
	*options = (struct options){
		.host = "127.0.0.1",
		.ports = { { 11211 }, 1 },
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
	for (int option; (option = getopt_long(argc, argv, "", long_options, &index)) != -1;) {
		if (option == '?')
			exit(2);
		apply(options, &rows[index], optarg);
	}
	if (optind < argc)
		errx(2, "unexpected argument '%s' (see --help)", argv[optind]);
	if (options->reconnect && (options->depth > 1 || options->rate > 0 || options->tls))
		errx(2, "--reconnect goes without --depth, --rate and --tls (see --help)");
	if (options->batch > options->depth)
		options->batch = options->depth;
}
