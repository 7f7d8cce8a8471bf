#include "config/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"
#include "config/users.h"
#include "net/tls.h"
#include "upstream/names.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

/* --- files with passwords --- */

static bool is_private(int fd, const char *path, size_t most, char error[256])
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		snprintf(error, 256, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(error, 256, "%s: not a regular file", path);
	else if (st.st_mode & (st.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO))
		snprintf(error, 256,
			"%s: its mode is %04o, which gives its group or others access; make it "
			"0600, or 0640 if root "
			"owns it",
			path, (unsigned)st.st_mode & 07777);
	else if ((size_t)st.st_size > most)
		snprintf(error, 256, "%s: more than %zu bytes", path, most);
	else
		return true;
	return false;
}

/*
 * Appends the content of a regular file of up to `most` bytes that is accessible only to its
 * owner. If root owns it, its group may read it: this is how Kubernetes mounts a Secret for a
 * container that does not run as root, and what PostgreSQL accepts for its keys. Returns false
 * on an error, with the reason in `error`, including the mode if that is the reason. The text
 * must be freed with forget_secret().
 */
static bool read_secret(const char *path, size_t most, struct buf *text, char error[256])
{
	/* With O_NONBLOCK, opening a pipe does not wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool good = false;
	ssize_t n;

	if (is_private(fd, path, most, error)) {
		/*
		 * The buffer is large enough from the start: growing it would leave copies of
		 * passwords in freed memory.
		 */
		while ((n = read(fd, buf_reserve(text, most + 1 - buf_size(text)),
				most + 1 - buf_size(text))) > 0) {
			buf_commit(text, (size_t)n);
			if (buf_size(text) > most)
				break;
		}
		good = n == 0;
		if (!good)
			snprintf(error, 256, "%s: %s", path,
				n < 0 ? strerror(errno) : "it grew while it was being read");
	}
	if (fd >= 0)
		close(fd);
	return good;
}

/* Overwrites and frees the text. */
static void forget_secret(struct buf *text)
{
	if (text->data)
		OPENSSL_cleanse(text->data, text->cap);
	buf_free(text);
}

static void read_users(struct config *config, struct buf *errors)
{
	enum { MOST = USERS_MAX * (USERS_LINE_MAX + 1) };
	struct buf text = BUF_EMPTY;
	char why[256];

	if (!*config->auth_file)
		return;
	if (read_secret(config->auth_file, MOST, &text, why))
		config->users = users_create(buf_slice(&text), config->auth_file, why);
	forget_secret(&text);
	if (!config->users)
		config_fault(
			config, config_line(config, "auth_file"), errors, "auth_file: %s", why);
}

/* The file has one line; a trailing newline is optional. */
static bool take_password(struct config *config, struct slice password, char why[256])
{
	const char *path = config->server_password_file, *what;

	password.n -= password.n && password.p[password.n - 1] == '\n';
	what = users_check_word(password);
	if (what)
		snprintf(why, 256, "%s:1: the password: %s", path, what);
	else
		snprintf(config->server_login, sizeof(config->server_login), "%s %.*s",
			config->server_user, (int)password.n, password.p);
	return !what;
}

static void read_server_login(struct config *config, struct buf *errors)
{
	static const char option[] = "server_password_file";
	struct buf text = BUF_EMPTY;
	char why[256];
	bool good;

	if (!*config->server_user)
		return;
	good = read_secret(config->server_password_file, USERS_LINE_MAX + 1, &text, why) &&
		take_password(config, buf_slice(&text), why);
	forget_secret(&text);
	if (!good)
		config_fault(config, config_line(config, option), errors, "%s: %s", option, why);
}

/* Checks pairs of options that are useless without each other. */
static bool check_pairs(const struct config *config, struct buf *errors)
{
	const struct {
		const char *names[2], *texts[2];
	} pairs[] = {
		{ { "server_user", "server_password_file" },
			{ config->server_user, config->server_password_file } },
		{ { "tls_certificate", "tls_key" }, { config->tls_certificate, config->tls_key } },
		{ { "server_tls_certificate", "server_tls_key" },
			{ config->server_tls_certificate, config->server_tls_key } },
		{ { "former_servers", "move_at" },
			{ config->former_servers.count || config->former_servers.string ? "some"
											: "",
				config->move_at } },
	};

	bool good = true;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		bool first = *pairs[i].texts[0], second = *pairs[i].texts[1];
		const char *there = pairs[i].names[!first], *missing = pairs[i].names[first];
		if (first != second)
			good = config_fault(config, config_line(config, there), errors,
				"%s: needed with %s", missing, there);
	}
	return good;
}

/* --- addresses that the network reaches --- */

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 ==
			IN_LOOPBACKNET;
	return address->sa_family == AF_INET6 &&
		IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/*
 * Returns whether every address of the host is a loopback address. "*" and names without an
 * address are not local. "localhost" is, according to RFC 6761, even if it is missing in
 * /etc/hosts.
 */
static bool is_local(const char *host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	bool local = true;

	if (strcmp(host, "*") == 0)
		return false;
	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return strcmp(host, "localhost") == 0;
	for (const struct addrinfo *one = found; one; one = one->ai_next)
		local = local && is_loopback(one->ai_addr);
	freeaddrinfo(found);
	return local;
}

/*
 * Returns whether clients must authenticate at this address, or the operator has permitted
 * access without authentication.
 */
static bool is_guarded(const struct config *config, const struct address *address)
{
	return config->insecure || *config->auth_file || (address->tls && *config->tls_client_ca);
}

static void check_listeners(const struct config *config, struct buf *errors)
{
	for (size_t i = 0; i < config->listen.count; i++) {
		const struct address *a = &config->listen.at[i];

		if (a->tls && !*config->tls_certificate)
			config_fault(config, a->line, errors,
				"tls_certificate: needed to listen on tls:%s:%u", a->host, a->port);
		else if (a->port && !is_guarded(config, a) && !is_local(a->host))
			config_fault(config, a->line, errors,
				"listen \"%s:%u\": anyone who can connect could read and flush "
				"everything; set "
				"auth_file, use a tls: address with tls_client_ca, or set insecure "
				"= true",
				a->host, a->port);
	}
}

/* The HTTP port has no authentication, so auth_file does not protect it. */
static void check_admin(const struct config *config, struct buf *errors)
{
	struct address a;

	if (!*config->admin || config->insecure)
		return;
	(void)config_admin_address(config->admin, &a);
	if (!is_local(a.host))
		config_fault(config, config_line(config, "admin"), errors,
			"admin \"%s\": anyone who can connect could read keys and statistics; set "
			"insecure = true to "
			"permit that",
			config->admin);
}

/* --- TLS --- */

static bool is_any_named(const struct tls_files *files)
{
	return files->certificate.path[0] || files->key.path[0] || files->ca.path[0];
}

/*
 * Reads all files in the options for TLS, even if they are not used. Returns a context even for
 * a configuration without TLS.
 */
static struct tls_context *read_tls(const struct config *config, struct buf *errors)
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
	bool to_servers = config->server_tls || is_any_named(&servers);
	struct tls_context *context;
	struct slice option;
	char why[256], name[64];
	unsigned line;

	context = tls_context_create(is_any_named(&clients) ? &clients : NULL,
		to_servers ? &servers : NULL, config->server_tls && config->server_tls_verify, why);
	if (context)
		return context;
	/*
	 * The error begins with the option. With server_tls, that may be an option that is not
	 * set.
	 */
	option = slice_of(why, strcspn(why, ":"));
	snprintf(name, sizeof(name), "%.*s", (int)option.n, option.p);
	line = config_line(config, name);
	config_fault(config, line ? line : config_line(config, "server_tls"), errors, "%s", why);
	return NULL;
}

static void read_ring(struct settings *s, struct buf *errors)
{
	const struct config *config = &s->config;
	unsigned line;
	char why[256];

	s->ring = config_ring(&config->servers, config->distribution, why);
	if (s->ring)
		s->ring_hash = ring_fingerprint(s->ring);
	line = config_line(config, "servers");
	if (!s->ring)
		config_fault(config, line, errors, "%s%s", line ? "servers: " : "", why);
}

/* With two servers, neither could be told from the one that is cut off. */
static void check_copies(const struct settings *s, struct buf *errors)
{
	enum { LEAST = 3 };

	if (s->config.rules.copies && s->ring && ring_count(s->ring) < LEAST)
		config_fault(&s->config, config_line(&s->config, "servers"), errors,
			"servers: `copies` = 2 needs at least %d servers", LEAST);
}

/* Returns whether nothing would move, because the servers are named in the same way. */
static bool is_same_pool(const struct config *config, int distribution)
{
	struct buf now = BUF_EMPTY, former = BUF_EMPTY;
	bool same;

	config_texts(config, config_option("servers"), &now);
	config_texts(config, config_option("former_servers"), &former);
	same = slice_equal(buf_slice(&now), buf_slice(&former)) &&
		(config->servers.string || distribution == config->distribution);
	buf_free(&now);
	buf_free(&former);
	return same;
}

/* Returns the index of an address in a ring, or -1. */
static int find_in_ring(const struct ring *ring, const struct address *address)
{
	for (int i = 0; i < ring_count(ring); i++) {
		const struct ring_server *server = ring_server(ring, i);
		if (server->port == address->port && strcmp(server->host, address->host) == 0)
			return i;
	}
	return -1;
}

static void read_lost_servers(struct settings *s, struct buf *errors)
{
	const struct config *config = &s->config;
	const struct address_list *list = &config->lost_servers;
	unsigned line = config_line(config, "lost_servers");

	if (list->string || (list->count && !s->former)) {
		config_fault(config, line, errors,
			list->string ? "lost_servers: list the servers one by one"
				     : "former_servers: needed with lost_servers");
		return;
	}
	if (list->count)
		s->lost = xcalloc((size_t)ring_count(s->former), sizeof(*s->lost));
	for (size_t i = 0; i < list->count; i++) {
		int at = find_in_ring(s->former, &list->at[i]);
		if (at < 0)
			config_fault(config, line, errors,
				"lost_servers: %s:%u is not in former_servers", list->at[i].host,
				list->at[i].port);
		else
			s->lost[at] = true;
	}
}

static void read_former_ring(struct settings *s, struct buf *errors)
{
	const struct config *config = &s->config;
	const struct address_list *list = &config->former_servers;
	int distribution = config->former_distribution ? config->former_distribution - 1
						       : config->distribution;
	unsigned line = config_line(config, "former_servers");
	char why[256];

	if (!*config->move_at || !(list->count || list->string))
		return;
	if (is_same_pool(config, distribution)) {
		config_fault(config, line, errors,
			"former_servers: the same as servers, so no key would move");
		return;
	}
	(void)config_time(config->move_at, &s->move_at);
	s->former = config_ring(list, distribution, why);
	if (s->former)
		s->former_hash = ring_fingerprint(s->former);
	else
		config_fault(config, line, errors, "former_servers: %s", why);
}

/* --- names of servers --- */

/* How long a start or reload waits for name servers. */
enum { LOOKUP_MS = 5000 };

struct settings_name {
	struct name *name;
	char *host;
	bool all;
	char *addresses; /* If `all`: addresses that are servers of the ring; or NULL. */
};

static void drop_name(struct settings_name *one)
{
	name_drop(one->name);
	free(one->host);
	free(one->addresses);
}

/*
 * Returns the name of a host, whose lookups are started if this is its first use; NULL for a
 * numeric address.
 */
static struct settings_name *take_name(
	struct settings *s, struct names *names, const char *host, bool all)
{
	union server_sockaddr numeric;
	struct settings_name *one;

	for (size_t i = 0; i < s->name_count; i++) {
		one = &s->names[i];
		if (one->all == all && strcmp(one->host, host) == 0)
			return one;
	}
	if (names_parse(host, 0, &numeric))
		return NULL;
	s->names = xrealloc(s->names, (s->name_count + 1) * sizeof(*s->names));
	one = &s->names[s->name_count++];
	*one = (struct settings_name){ name_get(names, host, all), xstrdup(host), all, NULL };
	return one;
}

static uint64_t deadline(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000 + LOOKUP_MS;
}

/* Appends a server for each address of a name. Returns NULL, or the error. */
static const char *add_addresses(struct settings_name *one, const struct address *a, uint64_t until,
	struct address_list *list, char why[NAME_WHY])
{
	struct buf text = BUF_EMPTY;
	struct slice rest, word;

	if (!one)
		return "`dns:` needs a name, not an address";
	name_await(one->name, until);
	if (!name_addresses(one->name, &text, why)) {
		buf_free(&text);
		return why;
	}
	rest = buf_slice(&text);
	while ((word = slice_token(&rest)).n) {
		struct address *server;
		list->at = xrealloc(list->at, (list->count + 1) * sizeof(*list->at));
		server = &list->at[list->count++];
		*server = *a;
		server->dns = false;
		server->name = xstrdup(a->host);
		snprintf(server->host, sizeof(server->host), "%.*s", (int)word.n, word.p);
	}
	BUF_ADD(&text, "\0");
	free(one->addresses);
	one->addresses = xstrdup(buf_slice(&text).p);
	buf_free(&text);
	return NULL;
}

static bool is_listed(const struct address_list *list, size_t count, const struct address *a)
{
	size_t i = 0;

	while (i < count && !address_same(&list->at[i], a))
		i++;
	return i < count;
}

/*
 * Replaces each address with `dns:` by all addresses of its name. All lookups must have been
 * started.
 */
static void expand(struct settings *s, struct names *names, const char *option,
	struct address_list *list, uint64_t until, struct buf *errors)
{
	struct address_list all = { .count = 0 };
	char room[NAME_WHY];

	for (size_t i = 0; i < list->count; i++) {
		const struct address *a = &list->at[i];
		size_t before = all.count;
		const char *why = NULL;
		if (a->dns) {
			why = add_addresses(
				take_name(s, names, a->host, true), a, until, &all, room);
		} else {
			all.at = xrealloc(all.at, (all.count + 1) * sizeof(*all.at));
			all.at[all.count++] = *a;
		}
		if (why)
			config_fault(&s->config, a->line, errors, "%s: \"dns:%s:%u\": %s", option,
				a->host, a->port, why);
		for (size_t j = before; j < all.count; j++) {
			if (is_listed(&all, before, &all.at[j]))
				config_fault(&s->config, a->line, errors,
					"%s: \"%s:%u\" is listed twice, once through the name "
					"\"%s\"",
					option, all.at[j].host, all.at[j].port,
					all.at[j].name ? all.at[j].name : "");
		}
	}
	free(list->at);
	list->at = all.at;
	list->count = all.count;
}

/* Starts all lookups before it waits for any, then waits for the names with `dns:`. */
static void look_up(struct settings *s, struct names *names, struct buf *errors)
{
	struct address_list *lists[] = { &s->config.servers, &s->config.former_servers };
	uint64_t until = deadline();

	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < lists[i]->count; j++) {
			if (lists[i]->at[j].port)
				(void)take_name(
					s, names, lists[i]->at[j].host, lists[i]->at[j].dns);
		}
	}
	expand(s, names, "servers", lists[0], until, errors);
	expand(s, names, "former_servers", lists[1], until, errors);
}

/*
 * Returns the line on which a server is set; with a configuration string of libmemcached, the
 * line of the option.
 */
static unsigned line_of(
	const struct address_list *list, const struct ring_server *server, unsigned line)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i].port == server->port && strcmp(list->at[i].host, server->host) == 0)
			return list->at[i].line;
	}
	return line;
}

static void check_ring_names(struct settings *s, struct names *names, const char *option,
	const struct ring *ring, const struct address_list *list, uint64_t until,
	struct buf *errors)
{
	char why[NAME_WHY];

	for (int i = 0; ring && i < ring_count(ring); i++) {
		const struct ring_server *server = ring_server(ring, i);
		struct settings_name *one =
			server->port ? take_name(s, names, server->host, false) : NULL;
		if (!one)
			continue;
		name_await(one->name, until);
		if (name_is_several(one->name, why))
			config_fault(&s->config,
				line_of(list, server, config_line(&s->config, option)), errors,
				"%s: \"%s:%u\": %s", option, server->host, server->port, why);
	}
}

/* Names that are not resolved yet are no error. */
static void check_names(struct settings *s, struct names *names, struct buf *errors)
{
	const struct config *c = &s->config;
	uint64_t until = deadline();

	if (buf_size(errors))
		return;
	check_ring_names(s, names, "servers", s->ring, &c->servers, until, errors);
	check_ring_names(s, names, "former_servers", s->former, &c->former_servers, until, errors);
}

void settings_watch(const struct settings *settings, bool used)
{
	for (size_t i = 0; i < settings->name_count; i++) {
		if (settings->names[i].addresses)
			name_expect(settings->names[i].name,
				used ? settings->names[i].addresses : NULL);
	}
}

/* --- reading --- */

void settings_complain(const char *file, struct buf *errors, bool again)
{
	size_t n = file ? strlen(file) : 0;
	struct slice rest = buf_slice(errors);

	while (rest.n) {
		struct slice line = slice_cut(&rest, '\n');
		bool in_file = n && slice_starts(line, slice_of(file, n)) && line.p[n] == ':';
		if (again)
			log_error("%.*s", (int)line.n, line.p);
		else
			fprintf(stderr, "%s%.*s\n", in_file ? "" : "setlistd: ", (int)line.n,
				line.p);
	}
	buf_free(errors);
}

/*
 * Reads the files in the configuration, and checks whether its options are compatible. Appends
 * each error.
 */
static void complete(struct settings *s, struct names *names, struct buf *errors)
{
	struct config *c = &s->config;

	if (check_pairs(c, errors)) {
		s->tls = read_tls(c, errors);
		read_server_login(c, errors);
	}
	read_users(c, errors);
	check_listeners(c, errors);
	check_admin(c, errors);
	if (!buf_size(errors))
		look_up(s, names, errors);
	/* If no servers are set, the line that sets them may be one of those with an error. */
	if (c->servers.count || c->servers.string || !buf_size(errors))
		read_ring(s, errors);
	check_copies(s, errors);
	read_former_ring(s, errors);
	if (!*c->move_at || s->former)
		read_lost_servers(s, errors);
	check_names(s, names, errors);
}

struct settings *settings_read(const struct options *options, struct names *names, bool again)
{
	struct settings *s = xcalloc(1, sizeof(*s));
	struct buf errors = BUF_EMPTY;

	s->references = 1;
	config_init(&s->config);
	if (!options->file || config_file_read(&s->config, options->file, &errors)) {
		options_configure(options, &s->config, &errors);
		complete(s, names, &errors);
	}
	if (!buf_size(&errors))
		return s;
	settings_complain(options->file, &errors, again);
	settings_release(s);
	return NULL;
}

int settings_servers(const struct settings *settings)
{
	return ring_count(settings->ring) + (settings->former ? ring_count(settings->former) : 0);
}

struct settings *settings_share(struct settings *settings)
{
	atomic_fetch_add(&settings->references, 1);
	return settings;
}

void settings_release(struct settings *settings)
{
	if (!settings || atomic_fetch_sub(&settings->references, 1) > 1)
		return;
	for (size_t i = 0; i < settings->name_count; i++)
		drop_name(&settings->names[i]);
	free(settings->names);
	tls_context_drop(settings->tls);
	ring_destroy(settings->ring);
	ring_destroy(settings->former);
	free(settings->lost);
	config_fini(&settings->config);
	free(settings);
}

/* --- comparing --- */

static bool same_string(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

/*
 * For RELOAD_NEW_RING the rings are compared rather than the options, since the same ring may
 * result from servers in another order or spelling, and a configuration string of libmemcached
 * may name a file that has changed.
 */
static bool same_ring(const struct ring *a, const struct ring *b)
{
	if (!a || !b)
		return a == b;
	if (ring_count(a) != ring_count(b) || ring_fingerprint(a) != ring_fingerprint(b))
		return false;
	for (int i = 0; i < ring_count(a); i++) {
		const struct ring_server *s = ring_server(a, i), *t = ring_server(b, i);
		if (strcmp(s->host, t->host) != 0 || s->port != t->port ||
			!same_string(s->name, t->name))
			return false;
	}
	return true;
}

static bool same_rings(const struct settings *a, const struct settings *b)
{
	const struct config *c = &a->config, *d = &b->config;

	return same_ring(a->ring, b->ring) && same_string(c->servers.string, d->servers.string) &&
		same_ring(a->former, b->former) &&
		same_string(c->former_servers.string, d->former_servers.string);
}

bool settings_same_data(const struct settings *a, const struct settings *b)
{
	for (const struct config_option *o = config_options; o->name; o++) {
		if (o->reload == RELOAD_NEW_GENERATION && !config_same(&a->config, &b->config, o))
			return false;
	}
	return same_rings(a, b) && rules_same(&a->config.rules, &b->config.rules);
}

/* Resets an option to its current value. No list needs a restart. */
static void keep(struct config *config, const struct config *now, const struct config_option *o)
{
	char error[CONFIG_VALUE_ERROR];
	struct buf all = BUF_EMPTY;
	const char *text;

	config_texts(now, o, &all);
	text = buf_slice(&all).p;
	if (o->reload == RELOAD_NEEDS_RESTART || strcmp(text, "true") == 0) {
		log_warn("%s stays %s: it cannot change without a restart", o->name,
			*text ? text : "unset");
		if (!config_set(config, o, text, error))
			abort();
	}
	buf_free(&all);
}

void settings_keep_fixed(struct settings *settings, const struct settings *now)
{
	for (const struct config_option *o = config_options; o->name; o++) {
		bool fixed = o->reload == RELOAD_NEEDS_RESTART || o->reload == RELOAD_STAYS_TRUE;
		if (fixed && !config_same(&settings->config, &now->config, o))
			keep(&settings->config, &now->config, o);
	}
}
