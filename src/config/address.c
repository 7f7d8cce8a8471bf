#include "config/address.h"

#include <string.h>

#include "util/num.h"

static const struct slice local_prefix = { "unix:", 5 };

/* Returns whether this is the path of a Unix socket, which may contain anything, even "://". */
static bool is_path(struct slice where)
{
	return slice_starts(where, local_prefix) || (where.n && where.p[0] == '/');
}

static const char *take_host(struct slice host, struct address *out)
{
	if (host.n == 0)
		return "missing host";
	if (host.n >= sizeof(out->host))
		return "too long";
	memcpy(out->host, host.p, host.n);
	out->host[host.n] = '\0';
	return NULL;
}

static const char *parse_tcp(struct slice text, struct address *out)
{
	const char *colon = memrchr(text.p, ':', text.n), *close = memrchr(text.p, ']', text.n),
		   *error;
	struct slice host = text;
	uint32_t port;

	if (text.p[0] == '[') {
		if (!close)
			return "missing ]";
		host = slice_of(text.p + 1, (size_t)(close - text.p) - 1);
		if (colon < close)
			colon = NULL;
		if (colon ? colon != close + 1 : close + 1 != text.p + text.n)
			return "unexpected text between ] and the port";
	} else if (colon) {
		host.n = (size_t)(colon - text.p);
		if (memchr(host.p, ':', host.n))
			return "an IPv6 address must be in [ ]";
	}
	/* inet_aton() would accept it as an address of 32 bits. */
	if (!colon && text.n <= 5 && num_parse_u32(text, &port))
		return "a port without a host";
	error = take_host(host, out);
	if (error || !colon)
		return error;
	text = slice_skip(text, (size_t)(colon + 1 - text.p));
	if (!num_parse_u32(text, &port) || port == 0 || port > 65535)
		return "bad port (1 to 65535)";
	out->port = (uint16_t)port;
	return NULL;
}

const char *address_parse(const char *text, uint16_t port, bool weighted, struct address *out)
{
	static const struct slice tls = { "tls:", 4 }, dns = { "dns:", 4 },
				  weight_word = { "weight=", 7 };
	const char *end = text + strlen(text);
	struct slice rest = slice_of(text, strlen(text)), where, weight;

	*out = (struct address){ .port = port, .weight = 1 };
	where = slice_token(&rest);
	weight = slice_token(&rest);
	if (where.n == 0)
		return "empty";
	if (word_find_below(text, end, ' ') != end)
		return "a control byte";
	if (!is_path(where) && memmem(where.p, where.n, "://", 3))
		return "a scheme such as memcached:// is not allowed; use host:port";
	if (memchr(where.p, ';', where.n))
		return "addresses are separated by commas, not by ;";
	if (weight.n && weighted && !slice_starts(weight, weight_word))
		return "only weight=N may follow a server; servers are separated by commas";
	if (slice_token(&rest).n || (weight.n && !weighted))
		return "unexpected text after the address";
	if (weight.n &&
		(!num_parse_u32(slice_skip(weight, weight_word.n), &out->weight) ||
			out->weight == 0 || out->weight > 99999))
		return "bad weight (weight=1 to weight=99999)";
	out->tls = !weighted && slice_starts(where, tls);
	out->dns = weighted && slice_starts(where, dns);
	if (out->tls || out->dns)
		where = slice_skip(where, tls.n);
	if (is_path(where)) {
		if (out->tls)
			return "TLS is not supported on a Unix socket";
		if (out->dns)
			return "a Unix socket has no name to look up";
		out->port = 0;
		where = slice_starts(where, local_prefix) ? slice_skip(where, local_prefix.n)
							  : where;
		/* The size of sockaddr_un.sun_path. */
		return where.n >= 108 ? "path too long" : take_host(where, out);
	}
	return where.n ? parse_tcp(where, out) : "missing host";
}

bool address_same(const struct address *a, const struct address *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0;
}
