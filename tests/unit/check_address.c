
#include "config/address.h"
#include "unit.h"

/* Parses an address with the default port 11211: "host port weight", or the error. */
static const char *reads(const char *text, bool weighted)
{
	static char out[512];
	struct address a;
	/* The text ends at the trap. */
	struct slice copy = guard_place(slice_of(text, strlen(text) + 1));
	const char *error = address_parse(copy.p, 11211, weighted, &a);

	if (error)
		return error;
	snprintf(out, sizeof(out), "%s %d %u", a.host, a.port, a.weight);
	return out;
}

TEST(tcp)
{
	ck_assert_str_eq(reads("127.0.0.1", false), "127.0.0.1 11211 1");
	ck_assert_str_eq(reads("127.0.0.1:1", false), "127.0.0.1 1 1");
	ck_assert_str_eq(reads("host.example:65535", false), "host.example 65535 1");
	ck_assert_str_eq(reads("[::1]", false), "::1 11211 1");
	ck_assert_str_eq(reads("[::1]:7", false), "::1 7 1");
	ck_assert_str_eq(reads("*:7", false), "* 7 1");
	ck_assert_str_eq(reads("  h:7  ", false), "h 7 1");
}

TEST(unix_sockets)
{
	char path[200];

	ck_assert_str_eq(reads("unix:/run/x.sock", false), "/run/x.sock 0 1");
	ck_assert_str_eq(reads("/run/x.sock", false), "/run/x.sock 0 1");
	ck_assert_str_eq(reads("unix:///run/x.sock", false), "///run/x.sock 0 1");
	ck_assert_str_eq(reads("/run/a://b", true), "/run/a://b 0 1");
	ck_assert_str_eq(reads("unix:x:7", false), "x:7 0 1");
	ck_assert_str_eq(reads("unix:", false), "missing host");
	snprintf(path, sizeof(path), "/%0106d", 0);
	ck_assert_str_ne(reads(path, false), "path too long");
	snprintf(path, sizeof(path), "/%0107d", 0);
	ck_assert_str_eq(reads(path, false), "path too long");
}

TEST(with_dns)
{
	struct address a;

	ck_assert_str_eq(reads("dns:memcached:7 weight=3", true), "memcached 7 3");
	ck_assert_str_eq(reads("dns:memcached", true), "memcached 11211 1");
	ck_assert_str_eq(reads("dns:", true), "missing host");
	ck_assert_str_eq(reads("dns:7", true), "a port without a host");
	ck_assert_str_eq(reads("dns:unix:/x", true), "a Unix socket has no name to look up");
	ck_assert_str_eq(reads("dns:/x", true), "a Unix socket has no name to look up");
	ck_assert_str_eq(reads("dns:h:7", false), "an IPv6 address must be in [ ]");
	ck_assert_ptr_null(address_parse("dns:h", 7, true, &a));
	ck_assert(a.dns && !a.tls);
	ck_assert_ptr_null(address_parse("dns", 7, true, &a));
	ck_assert(!a.dns);
}

TEST(with_tls)
{
	struct address a;

	ck_assert_str_eq(reads("tls:127.0.0.1:7", false), "127.0.0.1 7 1");
	ck_assert_str_eq(reads("tls:[::1]", false), "::1 11211 1");
	ck_assert_str_eq(reads("tls:", false), "missing host");
	ck_assert_str_eq(reads("tls::7", false), "missing host");
	ck_assert_str_eq(reads("tls:unix:/x", false), "TLS is not supported on a Unix socket");
	ck_assert_str_eq(reads("tls:/x", false), "TLS is not supported on a Unix socket");
	ck_assert_str_eq(reads("tls:h:7", true), "an IPv6 address must be in [ ]");
	ck_assert_ptr_null(address_parse("tls:h", 7, false, &a));
	ck_assert(a.tls);
	ck_assert_ptr_null(address_parse("h", 7, false, &a));
	ck_assert(!a.tls);
	ck_assert_ptr_null(address_parse("tls", 7, false, &a));
	ck_assert(!a.tls);
}

TEST(weights)
{
	ck_assert_str_eq(reads("h:7 weight=2", true), "h 7 2");
	ck_assert_str_eq(reads("h weight=99999", true), "h 11211 99999");
	ck_assert_str_eq(reads("/s weight=3", true), "/s 0 3");
	static const char *const wrong[] = { "h weight=0", "h weight=100000",
		"h weight=", "h weight=x", "h weight=-1" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_str_eq(reads(wrong[i], true), "bad weight (weight=1 to weight=99999)");
	ck_assert_str_eq(reads("h x", true),
		"only weight=N may follow a server; servers are separated by commas");
	ck_assert_str_eq(reads("a:1;b:2", true), "addresses are separated by commas, not by ;");
	ck_assert_str_eq(reads("memcached://a:1", true),
		"a scheme such as memcached:// is not allowed; use host:port");
	ck_assert_str_eq(reads("h weight=2", false), "unexpected text after the address");
	ck_assert_str_eq(reads("h weight=2 x", true), "unexpected text after the address");
}

TEST(wrong)
{
	char host[300];

	ck_assert_str_eq(reads("", false), "empty");
	ck_assert_str_eq(reads("  ", false), "empty");
	ck_assert_str_eq(reads(":7", false), "missing host");
	ck_assert_str_eq(reads("[]:7", false), "missing host");
	ck_assert_str_eq(reads("11311", false), "a port without a host");
	ck_assert_str_eq(reads("tls:11311", false), "a port without a host");
	ck_assert_str_eq(reads("h:", false), "bad port (1 to 65535)");
	ck_assert_str_eq(reads("h:0", false), "bad port (1 to 65535)");
	ck_assert_str_eq(reads("h:65536", false), "bad port (1 to 65535)");
	ck_assert_str_eq(reads("h:x", false), "bad port (1 to 65535)");
	ck_assert_str_eq(reads("h:-1", false), "bad port (1 to 65535)");
	ck_assert_str_eq(reads("::1", false), "an IPv6 address must be in [ ]");
	ck_assert_str_eq(reads("::1:7", false), "an IPv6 address must be in [ ]");
	ck_assert_str_eq(reads("[::1", false), "missing ]");
	ck_assert_str_eq(reads("[", false), "missing ]");
	ck_assert_str_eq(reads("[::1]x:7", false), "unexpected text between ] and the port");
	ck_assert_str_eq(reads("[::1]7", false), "unexpected text between ] and the port");
	ck_assert_str_eq(reads("[::1]:", false), "bad port (1 to 65535)");
	ck_assert_str_eq(reads("h\n:7", false), "a control byte");
	ck_assert_str_eq(reads("/a\x7f", false), "a control byte");
	ck_assert_str_eq(reads("h weight=1\t", true), "a control byte");
	snprintf(host, sizeof(host), "%0256d", 0);
	ck_assert_str_eq(reads(host, false), "too long");
	snprintf(host, sizeof(host), "%0255d", 0);
	ck_assert_str_ne(reads(host, false), "too long");
}
