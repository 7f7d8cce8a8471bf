#include "protocol/http.h"

#include "util/near.h"
#include "util/num.h"

#define BAD(text) \
	{ \
		"400 Bad Request", text \
	}

const struct http_refusal http_late = { "408 Request Timeout",
	"The request was not complete in time." },
			  http_cut_off = BAD("The request ends before its empty line.");

static const struct http_refusal
	no_request = BAD("This is not an HTTP/1.1 request."),
	other_version = { "505 HTTP Version Not Supported",
		"Only HTTP/1.1 and HTTP/1.0 are allowed." },
	long_line = { "414 URI Too Long",
		"The request line and the header have at most 8192 bytes." },
	long_header = { "431 Request Header Fields Too Large",
		"The request line and the header have at most 8192 bytes." },
	many_fields = { "431 Request Header Fields Too Large", "A header has at most 100 lines." },
	control_byte = BAD("A line has a control character."),
	folded = BAD("A line of the header begins with a space."),
	no_colon = BAD("A line of the header has no colon."),
	bad_name = BAD("The name of a header is empty, or has a character that is not allowed."),
	no_host = BAD("A request of HTTP/1.1 has a Host."), two_hosts = BAD("There are two Hosts."),
	bad_host = BAD("The Host has a space."),
	bad_length = BAD("The Content-Length is no number."),
	two_lengths = BAD("The length of the body is given twice."),
	old_chunks = BAD("HTTP/1.0 has no Transfer-Encoding."),
	body = { "413 Request Entity Too Large", "A request must not have a body." };

/* The state of a header that is being read. */
struct head {
	struct http_request *request;
	bool old; /* HTTP/1.0. */
	bool has_host, has_length, has_body, has_coding;
	unsigned fields;
};

/* Removes a line, which ends in LF or CR LF, from `rest`. Returns false if it has no end. */
static bool cut_line(struct slice *rest, struct slice *line)
{
	const char *end = slice_find(rest->p, rest->p + rest->n, '\n');

	*line = slice_of(rest->p, (size_t)(end - rest->p));
	if (line->n == rest->n)
		return false;
	*rest = slice_skip(*rest, line->n + 1);
	line->n -= line->n && end[-1] == '\r';
	return true;
}

static bool has_control_byte(struct slice line)
{
	for (size_t i = 0; i < line.n; i++) {
		unsigned char c = (unsigned char)line.p[i];
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

/* Returns whether this is a token of RFC 9110: letters, digits and some marks, at least one. */
static bool is_http_token(struct slice text)
{
	static const char allowed[] = "!#$%&'*+-.^_`|~0123456789"
				      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (size_t i = 0; i < text.n; i++) {
		if (!memchr(allowed, text.p[i], sizeof(allowed) - 1))
			return false;
	}
	return text.n;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct slice trim_blanks(struct slice text)
{
	while (text.n && is_blank(*text.p))
		text = slice_skip(text, 1);
	while (text.n && is_blank(text.p[text.n - 1]))
		text.n--;
	return text;
}

/* Parses "GET /path?query HTTP/1.1". A later minor version than 1 is compatible. */
static const struct http_refusal *read_first_line(struct slice line, struct head *head)
{
	static const struct slice protocol = { "HTTP/", 5 };
	struct http_request *r = head->request;
	struct slice target, version;

	if (has_control_byte(line))
		return &control_byte;
	r->method = slice_cut(&line, ' ');
	target = slice_cut(&line, ' ');
	version = line;
	if (!is_http_token(r->method) || target.n == 0 || memchr(target.p, '\t', target.n) ||
		version.n != 8 || !slice_starts(version, protocol) || !num_is_digit(version.p[5]) ||
		version.p[6] != '.' || !num_is_digit(version.p[7]))
		return &no_request;
	if (version.p[5] != '1')
		return &other_version;
	head->old = version.p[7] == '0';
	r->keeps = !head->old;
	r->path = slice_cut(&target, '?');
	return NULL;
}

static void read_connection(struct slice value, struct http_request *r)
{
	while (value.n)
		r->keeps =
			!near_same(trim_blanks(slice_cut(&value, ',')), SLICE("close")) && r->keeps;
}

static const struct http_refusal *read_host(struct slice value, struct head *head)
{
	if (head->has_host)
		return &two_hosts;
	if (memchr(value.p, ' ', value.n) || memchr(value.p, '\t', value.n))
		return &bad_host;
	head->has_host = true;
	head->request->host = value;
	return NULL;
}

static const struct http_refusal *read_length(struct slice value, struct head *head)
{
	if (head->has_length)
		return &two_lengths;
	for (size_t i = 0; i < value.n; i++) {
		if (!num_is_digit(value.p[i]))
			return &bad_length;
		head->has_body = head->has_body || value.p[i] != '0';
	}
	head->has_length = true;
	return value.n ? NULL : &bad_length;
}

static const struct http_refusal *read_field(struct slice line, struct head *head)
{
	struct slice name, value = line;

	if (has_control_byte(line))
		return &control_byte;
	if (is_blank(*line.p))
		return &folded;
	name = slice_cut(&value, ':');
	if (name.n == line.n)
		return &no_colon;
	if (!is_http_token(name))
		return &bad_name;
	value = trim_blanks(value);
	if (++head->fields > HTTP_FIELDS_MAX)
		return &many_fields;
	if (near_same(name, SLICE("Host")))
		return read_host(value, head);
	if (near_same(name, SLICE("Content-Length")))
		return read_length(value, head);
	if (near_same(name, SLICE("Connection")))
		read_connection(value, head->request);
	head->has_coding = head->has_coding || near_same(name, SLICE("Transfer-Encoding"));
	return NULL;
}

/* Checks a complete header. */
static const struct http_refusal *check_head(const struct head *head)
{
	if (!head->has_host && !head->old)
		return &no_host;
	if (head->has_coding && (head->has_length || head->old))
		return head->old ? &old_chunks : &two_lengths;
	return head->has_coding || head->has_body ? &body : NULL;
}

static size_t refuse_http(
	struct slice in, const struct http_refusal *refusal, struct http_request *out)
{
	*out = (struct http_request){ .method = out->method, .refusal = refusal };
	return in.n;
}

size_t http_parse(struct slice in, struct http_request *out)
{
	struct head head = { .request = out };
	struct slice rest = in, line;
	const struct http_refusal *refusal = NULL;
	bool is_first = true, is_whole = in.n < HTTP_HEAD_MAX;

	*out = (struct http_request){ .keeps = false };
	rest.n = is_whole ? in.n : HTTP_HEAD_MAX;
	while (cut_line(&rest, &line)) {
		/* Some clients send an empty line after the body of a former request. */
		if (line.n == 0 && is_first)
			continue;
		if (line.n == 0)
			refusal = check_head(&head);
		else
			refusal = is_first ? read_first_line(line, &head) : read_field(line, &head);
		if (refusal)
			return refuse_http(in, refusal, out);
		if (line.n == 0)
			return (size_t)(rest.p - in.p);
		is_first = false;
	}
	if (is_whole)
		return 0;
	/* The answer depends on whether the method is HEAD. */
	if (is_first)
		out->method = slice_cut(&line, ' ');
	return refuse_http(in, is_first ? &long_line : &long_header, out);
}
