#include "config/access.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "config/secret_file.h"
#include "config/users.h"
#include "util/alloc.h"

/* --- listeners --- */

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->sa_family == AF_INET6 &&
		IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/*
 * Whether every address of the name is on loopback. A name without an address, such as "*", is not; but "localhost" is, since RFC 6761
 * promises it, also where a bare system has no /etc/hosts that says so.
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

/* Whether those who connect to this address prove who they are, or the operator wants everybody. */
static bool is_guarded(const struct config *config, const struct address *address)
{
	return config->insecure || config->users || (address->tls && *config->tls_client_ca);
}

static bool check_listeners(const struct config *config, char error[256])
{
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct address *a = &config->listen[i];

		if (a->port == 0 || is_guarded(config, a) || is_local(a->host))
			continue;
		snprintf(error, 256,
			"listen \"%.100s:%u\": whoever reaches it could read and flush everything: set auth_file, or "
			"use a "
			"tls: address with tls_client_ca, or set insecure = true",
			a->host, a->port);
		return false;
	}
	return true;
}

/* Nobody has to authenticate there, whatever clients must do. */
static bool check_admin(const struct config *config, char error[256])
{
	struct address a;
	const char *what = *config->admin ? config_admin_address(config->admin, &a) : NULL;

	if (what)
		snprintf(error, 256, "admin \"%.100s\": %s", config->admin, what);
	else if (*config->admin && !config->insecure && !is_local(a.host))
		snprintf(error, 256,
			"admin \"%.100s\": whoever reaches it could read keys and statistics: set insecure = true",
			config->admin);
	else
		return true;
	return false;
}

/* --- files with passwords --- */

static bool read_users(struct config *config, char error[256])
{
	enum { MOST = USERS_MAX * (USERS_LINE_MAX + 1) };
	struct buf text = BUF_EMPTY;

	if (!*config->auth_file)
		return true;
	if (secret_file_read(config->auth_file, MOST, &text, error))
		config->users = users_create(buf_slice(&text), config->auth_file, error);
	secret_file_forget(&text);
	return config->users;
}

/* The file has one line, which may have an end. */
static struct slice first_line(struct slice text)
{
	if (text.n && text.p[text.n - 1] == '\n')
		text.n--;
	return text;
}

static bool read_server_password(struct config *config, char error[256])
{
	struct slice user = slice_of(config->server_user, strlen(config->server_user)), password;
	const char *path = config->server_password_file, *what;
	struct buf text = BUF_EMPTY;
	bool good = false;

	if (!secret_file_read(path, USERS_LINE_MAX + 1, &text, error))
		goto forget;
	password = first_line(buf_slice(&text));
	what = users_check_word(password);
	if (what) {
		snprintf(error, 256, "%s:1: the password: %s", path, what);
		goto forget;
	}
	free(config->server_login);
	config->server_login = xcalloc(1, user.n + 1 + password.n + 1);
	slice_write(slice_write(slice_write(config->server_login, user), SLICE(" ")), password);
	good = true;
forget:
	secret_file_forget(&text);
	return good;
}

static bool read_server_login(struct config *config, char error[256])
{
	if (!*config->server_user && !*config->server_password_file)
		return true;
	if (*config->server_user && *config->server_password_file)
		return read_server_password(config, error);
	snprintf(error, 256, "server_user and server_password_file need each other");
	return false;
}

bool config_access(struct config *config, char error[256])
{
	return read_users(config, error) && read_server_login(config, error) && check_listeners(config, error) &&
		check_admin(config, error);
}
