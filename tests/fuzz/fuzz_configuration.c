/*
 * The configuration. An input that begins with S is the text of -S, one that begins with A is an
 * address, and any other is a file. A valid file is read again after one with an extra brace.
 * After an invalid one, a valid one is read. No read may depend on earlier ones.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/address.h"
#include "config/config.h"
#include "config/file.h"
#include "input.h"
#include "reply_form.h"

/*
 * For a string, libmemcached computes a ring again for each server: one of fifty takes a tenth of
 * a second.
 */
enum { RING_MAX = 8 };

/* In a valid file this follows all numbers, which have their minimum values. */
static const char good[] =
	"listen = {\"[::1]:1\", 'unix:/a'}\n"
	"servers = {\"10.0.0.1\", \"/b weight=3\"}\n"
	"distribution = \"modula\" socket_mode = \"0711\" user = \"nobody\" control = \"/c\" "
	"reuseport = true sandbox "
	"= false\n"
	"collection \"c-\" { encoding = \"paired\" removed = \"r-\" delimiter = \";\" ttl = 3 "
	"compact_waste = 0.25 }\n"
	"collection \"l-\" { type = \"list\" plain_verbs = true pointer = false spread = 2 }\n"
	"collection \"s-\" { copies = 2 only = true }\n"
	"events \"e\" { bucket = \"day\" ttl = 4 separator = \"/\" lookback = 5 }\n";

static struct slice text_of(const char *text)
{
	return slice_of(text, strlen(text));
}

/* --- a valid configuration --- */

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

static bool visible(struct slice s, size_t least, size_t most)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
			return false;
	}
	return within(s.n, least, most);
}

static void check_rules(const struct rules *rules)
{
	for (size_t i = 0; i < rules->collection_count; i++) {
		const struct collection_rule *c = &rules->collections[i];
		bool list = c->type == COLLECTION_LIST, paired = c->encoding == ENCODING_PAIRED;
		MUST(within((uint64_t)c->ttl, 0, 2592000) && c->compact_waste > 0 &&
			c->compact_waste <= 1);
		MUST(visible(slice_of(&c->delimiter, 1), 1, 1) &&
			visible(c->removed, paired, paired ? 30 : 0));
		MUST(c->spread == 1 || (within(c->spread, 1, 10) && c->encoding == ENCODING_OPLOG));
		MUST(c->copies == 1 ||
			(c->copies == 2 && c->encoding == ENCODING_OPLOG && !list && c->only &&
				!c->plain_verbs && rules->copies));
		MUST(!list || c->encoding == ENCODING_OPLOG || c->encoding == ENCODING_CSV);
		MUST(!paired || !slice_equal(c->removed, c->prefix));
		MUST(c->encoding != ENCODING_TOMBSTONE || c->delimiter != '|');
		for (size_t k = 0; k < i; k++)
			MUST(!slice_equal(c->prefix, rules->collections[k].prefix));
	}
	for (size_t i = 0; i < rules->event_count; i++) {
		const struct event_rule *e = &rules->events[i];
		MUST(within((uint64_t)e->ttl, 0, 2592000) && within(e->lookback, 1, 10000));
		MUST(visible(e->separator, 1, 16) && e->bucket <= GRANULARITY_MINUTE);
		MUST(e->copies == 1 || (e->copies == 2 && !e->plain_verbs && rules->copies));
		for (size_t k = 0; k < i; k++)
			MUST(!slice_equal(e->prefix, rules->events[k].prefix));
	}
}

static void check_server(const struct config *config, size_t i)
{
	const struct address *s = &config->servers.at[i];

	MUST(visible(text_of(s->host), 1, 255) && within(s->weight, 1, 99999));
	for (size_t k = 0; k < i; k++)
		MUST(!address_same(s, &config->servers.at[k]));
}

static uint64_t number_of(const struct config *config, const struct config_option *o)
{
	uint64_t number;

	memcpy(&number, (const char *)config + o->offset, sizeof(number));
	return number;
}

static void check_config(const struct config *config)
{
	for (const struct config_option *o = config_options; o->name; o++) {
		if (o->kind == KIND_NUMBER)
			MUST(within(number_of(config, o), (uint64_t)o->least, (uint64_t)o->most));
	}
	MUST(config->listen.count > 0 && config->socket_mode <= 0777);
	for (size_t i = 0; i < config->listen.count; i++)
		MUST(visible(text_of(config->listen.at[i].host), 1, 255));
	for (size_t i = 0; i < config->servers.count; i++)
		check_server(config, i);
	MUST(!config->servers.string || config->servers.count == 0);
	MUST(!config->control[0] || (config->control[0] == '/' && strlen(config->control) < 108));
	check_rules(&config->rules);
}

/*
 * Appends the output of the configuration: a line for each listener and each denied command, and
 * always the same number of others.
 */
static void print(const struct config *config, struct buf *out)
{
	static size_t others;
	struct slice rest;
	size_t lines = 0;

	config_print(config, out);
	rest = buf_slice(out);
	while (rest.n) {
		MUST(slice_starts(rest, SLICE("STAT ")));
		lines += !slice_starts(rest, SLICE("STAT deny "));
		(void)form_line(&rest);
	}
	if (!others)
		others = lines - config->listen.count;
	MUST(lines == config->listen.count + others);
}

static void describe_text(struct slice text, struct buf *out)
{
	buf_printf(out, "%.*s ", (int)text.n, text.p);
}

#define DESCRIBE_WORD(value) buf_printf(out, "%d ", (int)(value))
#define DESCRIBE_NUMBER(value) buf_printf(out, "%lld ", (long long)(value))
#define DESCRIBE_FLAG(value) buf_printf(out, "%d ", value)
#define DESCRIBE_SHARE(value) buf_printf(out, "%g ", value)
#define DESCRIBE_BYTE(value) buf_printf(out, "%c ", value)
#define DESCRIBE_TEXT(value) describe_text(value, out)

/* Appends all values of the configuration. */
static void describe(const struct config *config, struct buf *out)
{
	print(config, out);
	for (const struct config_option *o = config_options; o->name; o++)
		config_texts(config, o, out);
	for (size_t i = 0; i < config->rules.collection_count; i++) {
		const struct collection_rule *c = &config->rules.collections[i];
		describe_text(c->prefix, out);
#define COLLECTION_RULE(type, kind, name, ...) DESCRIBE_##kind(c->name);
#include "collection/rules.def"
	}
	for (size_t i = 0; i < config->rules.event_count; i++) {
		const struct event_rule *e = &config->rules.events[i];
		describe_text(e->prefix, out);
#define EVENT_RULE(type, kind, name, ...) DESCRIBE_##kind(e->name);
#include "collection/rules.def"
	}
}

/*
 * Returns whether the ring is small, and the text harmless: INCLUDE and --CONFIGURE-FILE read
 * other files, DEBUG prints the steps of libmemcached's parser.
 */
static bool is_for_ring(const struct config *config)
{
	static const char *const absurd[] = { "INCLUDE", "FILE", "DEBUG" };
	const char *text = config->servers.string;
	size_t servers = config->servers.count;

	for (size_t i = 0; text && i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		if (strcasestr(text, absurd[i]))
			return false;
	}
	for (; text && (text = strcasestr(text, "--S")); text++)
		servers++;
	return servers <= RING_MAX;
}

static void try_ring(const struct config *config)
{
	char error[256] = "";
	struct ring *ring;
	int count;

	if (!is_for_ring(config))
		return;
	ring = config_ring(&config->servers, config->distribution, error);
	MUST((error[0] != '\0') == (ring == NULL));
	MUST(config->servers.string || (ring != NULL) == (config->servers.count > 0));
	if (!ring)
		return;
	count = ring_count(ring);
	MUST(count > 0 && (config->servers.string || count == (int)config->servers.count));
	for (int i = 0; i < count; i++)
		MUST(ring_server(ring, i)->host[0]);
	for (char key = 'a'; key < 'k'; key++)
		MUST(within(
			(uint64_t)ring_lookup(ring, slice_of(&key, 1)), 0, (uint64_t)count - 1));
	ring_destroy(ring);
}

/* --- files --- */

/*
 * One line, "path:line: error", and the file has this line. If there are many errors, the last
 * line has no number.
 */
static void check_error(struct slice said, const char *path, struct slice file, bool is_last)
{
	uint32_t line = 0, lines = 1;
	size_t i = strlen(path) + 1, digit = i;

	if (is_last && said.n > i &&
		slice_starts(slice_skip(said, i), SLICE(" more errors may follow")))
		return;

	for (size_t k = 0; k < file.n; k++)
		lines += file.p[k] == '\n';
	MUST(said.n > i && said.p[i - 1] == ':' && memcmp(said.p, path, i - 1) == 0);
	for (; i < said.n && said.p[i] >= '0' && said.p[i] <= '9'; i++)
		line = line * 10 + (uint32_t)(said.p[i] - '0');
	MUST(i > digit && i + 2 < said.n && said.p[i] == ':' && said.p[i + 1] == ' ' &&
		within(line, 1, lines));
	for (; i < said.n; i++)
		MUST((unsigned char)said.p[i] >= ' ' && said.p[i] != 0x7f);
}

/*
 * Reads a file with these bytes. Appends the configuration, or the errors. Returns true if it is
 * valid.
 */
static bool read_file(struct slice file, struct buf *out, bool ring)
{
	struct buf errors = BUF_EMPTY;
	char path[40];
	int fd = memfd_create("configuration", MFD_CLOEXEC);
	struct config config;
	bool taken;

	MUST(fd >= 0 && write(fd, file.p, file.n) == (ssize_t)file.n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config_init(&config);
	taken = config_file_read(&config, path, &errors);
	MUST(taken || buf_size(&errors));
	taken = buf_size(&errors) == 0;
	if (taken) {
		config_complete(&config);
		check_config(&config);
		describe(&config, out);
		if (ring)
			try_ring(&config);
	} else {
		for (struct slice rest = buf_slice(&errors); rest.n;) {
			struct slice said = slice_cut(&rest, '\n');
			check_error(said, path, file, rest.n == 0);
		}
		buf_add_slice(out, buf_slice(&errors));
	}
	buf_free(&errors);
	config_fini(&config);
	close(fd);
	return taken;
}

static void write_good(struct buf *out)
{
	for (const struct config_option *o = config_options; o->name; o++) {
		if (o->kind == KIND_NUMBER)
			buf_printf(out, "%s = %lld\n", o->name, (long long)o->least);
	}
	buf_add(out, good, sizeof(good) - 1);
}

static void try_file(struct slice file)
{
	static struct buf whole, reference;
	struct buf first = BUF_EMPTY, again = BUF_EMPTY, more = BUF_EMPTY;

	if (buf_size(&whole) == 0) {
		write_good(&whole);
		MUST(read_file(buf_slice(&whole), &reference, true));
	}
	if (read_file(file, &first, true)) {
		/* If a section were open, this would close it. */
		buf_add_slice(&more, file);
		BUF_ADD(&more, "\n}");
		MUST(!read_file(buf_slice(&more), &again, false));
		buf_free(&more);
		buf_free(&again);
		MUST(read_file(file, &again, false));
		MUST(slice_equal(buf_slice(&again), buf_slice(&first)));
	} else {
		MUST(read_file(buf_slice(&whole), &again, false));
		MUST(slice_equal(buf_slice(&again), buf_slice(&reference)));
	}
	buf_free(&first);
	buf_free(&again);
}

/* --- -S and addresses --- */

static char *string_of(struct slice in)
{
	char *copy = malloc(in.n + 1);

	MUST(copy);
	if (in.n)
		memcpy(copy, in.p, in.n);
	copy[in.n] = '\0';
	return copy;
}

static void try_servers(struct slice in)
{
	char *text = string_of(in);
	struct config config;
	const char *error;

	config_init(&config);
	error = config_set_servers(&config, text);
	MUST(!error || error[0]);
	if (!error) {
		config_complete(&config);
		check_config(&config);
		try_ring(&config);
	}
	/* The previous result is freed, whether it was valid or not. */
	MUST(!config_set_servers(&config, "a:1,b:2 weight=5"));
	MUST(config.servers.count == 2 && !config.servers.string &&
		config.servers.at[1].weight == 5);
	config_fini(&config);
	free(text);
}

/* A valid address is parsed as the same one when it is written in full. */
static void check_address(const struct address *a, const char *text)
{
	const char *where = text + strspn(text, " "), *colon = strrchr(where, ':');
	bool local = *where == '/' || strncmp(where, "unix:", 5) == 0;
	struct address again;
	char full[320];

	MUST(visible(text_of(a->host), 1, sizeof(a->host) - 1) && within(a->weight, 1, 99999));
	MUST((a->port == 0) == local);
	MUST(local || a->port == 11211 || (colon && strtoul(colon + 1, NULL, 10) == a->port));
	if (local)
		snprintf(full, sizeof(full), "unix:%s weight=%u", a->host, a->weight);
	else
		snprintf(full, sizeof(full), "[%s]:%u weight=%u", a->host, a->port, a->weight);
	MUST(!address_parse(full, 1, true, &again));
	MUST(address_same(a, &again) && a->weight == again.weight);
}

static void try_address(struct slice in)
{
	bool weighted = input_byte(&in) % 2;
	char *text = string_of(in);
	struct address a;
	const char *error = address_parse(text, 11211, weighted, &a);

	if (error) {
		MUST(error[0] && !strpbrk(error, "\r\n"));
	} else {
		MUST(weighted || a.weight == 1);
		check_address(&a, text);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size), rest = in;
	uint8_t kind = input_byte(&rest);

	if (kind == 'S')
		try_servers(rest);
	else if (kind == 'A')
		try_address(rest);
	else
		try_file(in);
	return 0;
}
