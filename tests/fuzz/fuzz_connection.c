/*
 * Two connections of clients, and two servers: any bytes from both sides, cut anywhere, while
 * connections break, clients disconnect and time passes.
 *
 *     client bytes -> request_parse -> task_start -> lanes -> dialect -> pipeline -> server bytes, and back
 *
 * Each request is answered once, by a reply in the form of its command, with keys of the request and
 * values that a server returned for them. The encoding of a call is only that call. The sanitizer
 * finds memory that is leaked at the end.
 */
#include "command/start.h"
#include "fake.h"
#include "reply_form.h"
#include "upstream/pipeline.h"

enum {
	CLIENTS = 2,
	SERVERS = 2,
	REQUESTS_MAX = 96,
	CALLS_MAX = 30000,
	ROUNDS_MAX = 200000,
	GIVEN = 4096
};
enum { HELD_MAX = 8 << 20 }; /* bytes of pending replies and calls */

/* --- values from servers --- */

static uint64_t given[GIVEN];
static size_t given_count;

static uint64_t hash(struct slice s, uint64_t h)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3;
	return (h ^ s.n) * 0x100000001b3;
}

static void scripted_gave(struct slice key, struct slice value)
{
	if (given_count < GIVEN)
		given[given_count++] = hash(value, hash(key, 0xcbf29ce484222325));
}

static bool was_given(struct slice key, struct slice value)
{
	uint64_t h = hash(value, hash(key, 0xcbf29ce484222325));

	for (size_t i = 0; i < given_count; i++) {
		if (given[i] == h)
			return true;
	}
	return given_count == GIVEN;
}

/* --- a server --- */

enum { SCRIPTED_CALLS = 1 << 16, SCRIPTED_VALUE_MAX = 4096 };

/*
 * The calls to a server, in a pipeline like the daemon's, and the bytes that it returns. It stores
 * no items: the input determines its replies.
 */
struct scripted_server {
	struct fake *fake;
	bool meta;
	bool lies; /* it sent something on this connection that no memcached sends */
	struct pipeline pipeline;
	struct pipeline_peer peer;
	/* unsent bytes; received bytes that have not been decoded yet */
	struct buf out, in;
	size_t calls[SCRIPTED_CALLS]; /* those of this connection, by the fake's count */
	size_t count, replied;        /* of them */
};

/* Passes the result of a call to the fake, and thus to the call's waiter. */
struct scripted_waiter {
	struct waiter waiter;
	struct scripted_server *server;
	size_t call;
};

static void scripted_result(struct waiter *waiter, const struct result *r)
{
	struct scripted_waiter *w = (struct scripted_waiter *)waiter;
	struct scripted_server *s = w->server;
	size_t call = w->call;

	if (r->status == RESULT_HIT)
		scripted_gave(waiter->key, r->value);
	free(w);
	s->fake->connection = s->peer.connection;
	fake_result(s->fake, call, r);
}

/* The encoding of a call is that call and nothing else, whatever bytes the client chose. */
static void scripted_check_encoded(const struct call *call, struct slice bytes)
{
	static const struct request_limits limits = { 1 << 16, 1 << 20, 10 };
	size_t expected = 1 + ((call->want & WANT_FLUSH) != 0) + ((call->want & WANT_FENCE) != 0);

	if (call->verb != CALL_META)
		expected = 1;
	for (; expected; expected--) {
		struct request r;
		struct request_progress progress = { 0 };
		MUST(request_parse(bytes, &limits, &progress, &r) == REQUEST_READY);
		MUST(!r.noreply || call->verb == CALL_META);
		bytes = slice_skip(bytes, r.consumed);
	}
	MUST(bytes.n == 0);
}

static void scripted_push(struct scripted_server *s, size_t i)
{
	const struct fake_call *c = &s->fake->calls[i];
	struct scripted_waiter *w = malloc(sizeof(*w));
	size_t before = buf_size(&s->out);

	MUST(w);
	*w = (struct scripted_waiter){ { scripted_result, c->waiter->key }, s, i };
	if (s->count == SCRIPTED_CALLS ||
		(c->call.verb == CALL_CAS && c->call.connection &&
			c->call.connection != s->peer.connection)) {
		scripted_result(&w->waiter, &(struct result){ .status = RESULT_UNAVAILABLE });
		return;
	}
	if (pipeline_push(&s->pipeline, s->meta ? &dialect_meta : &dialect_classic, &c->call,
		    &w->waiter, &s->out)) {
		s->calls[s->count++] = i;
		scripted_check_encoded(&c->call, slice_skip(buf_slice(&s->out), before));
	} /* Else it shares the reply to an earlier call. */
}

static void scripted_write(struct scripted_server *s, size_t n)
{
	if (n > buf_size(&s->out))
		n = buf_size(&s->out);
	buf_consume(&s->out, n);
	pipeline_written(&s->pipeline, n);
}

/* The connection breaks; the next one is established immediately. */
static void scripted_fail(struct scripted_server *s, enum result_status status)
{
	struct pipeline_peer peer = s->peer;

	buf_consume(&s->out, buf_size(&s->out));
	buf_consume(&s->in, buf_size(&s->in));
	s->count = s->replied = 0;
	s->lies = false;
	s->peer.connection++;
	pipeline_fail(&s->pipeline, status, &peer);
}

/* Some bytes in flight arrive: in a buffer of their own, so that a read beyond it is detected. */
static void scripted_read(struct scripted_server *s, struct slice bytes)
{
	char *copy;
	ssize_t n;

	buf_add_slice(&s->in, bytes);
	copy = input_copy(buf_slice(&s->in));
	n = pipeline_read(&s->pipeline, slice_of(copy, buf_size(&s->in)), &s->peer);
	MUST(n >= -1 && n <= (ssize_t)buf_size(&s->in));
	free(copy);
	/* No client can make a server send bytes that break the connection for all. */
	MUST(n >= 0 || s->lies);
	if (n < 0)
		scripted_fail(s, RESULT_LOST);
	else
		buf_consume(&s->in, (size_t)n);
	/* More bytes than this cannot be pending. */
	MUST(buf_size(&s->in) <= SCRIPTED_VALUE_MAX + 2 * DIALECT_LINE_MAX);
}

/* --- replies --- */

static void scripted_hit(const struct scripted_server *s, const struct call *call,
	struct slice value, uint8_t choice, struct buf *out)
{
	bool meta = s->meta, brings = !meta || call->want & WANT_VALUE;

	if (!meta)
		buf_printf(out, "VALUE %.*s %u %zu", (int)call->key.n, call->key.p, choice % 4u,
			value.n);
	else if (brings)
		buf_printf(out, "VA %zu k%.*s f%u", value.n, (int)call->key.n, call->key.p,
			choice % 4u);
	else
		buf_printf(out, "HD k%.*s f%u", (int)call->key.n, call->key.p, choice % 4u);
	if (call->want & WANT_CAS)
		buf_printf(out, meta ? " c%u" : " %u", choice);
	if (meta && call->want & WANT_TTL)
		buf_printf(out, " t%d", choice % 3 ? -1 : (int)choice);
	if (meta && call->want & WANT_SIZE)
		buf_printf(out, " s%zu", value.n);
	BUF_ADD(out, "\r\n");
	if (brings) {
		buf_add_slice(out, value);
		BUF_ADD(out, "\r\n");
	}
	if (!meta)
		BUF_ADD(out, "END\r\n");
}

/* Some versions of memcached decode a base64 key, and print it without encoding. */
static void scripted_echo(const struct call *call, struct buf *out)
{
	struct slice flags = call->line, flag;

	(void)slice_token(&flags);
	(void)slice_token(&flags);
	while ((flag = slice_token(&flags)).n) {
		if (flag.p[0] == 'k')
			buf_printf(out, " k%.*s", (int)call->key.n, call->key.p);
	}
	BUF_ADD(out, "\r\n");
}

static void scripted_passed(
	const struct call *call, struct slice value, uint8_t choice, struct buf *out)
{
	static const char *const lines[] = { "HD", "EN", "NF", "NS", "EX", "HD O1 f2",
		"ME k exp=-1" };

	if (call->want & WANT_FLUSH)
		BUF_ADD(out, "MN\r\n");
	if (choice >= 250) {
		BUF_ADD(out, "SERVER_ERROR out of memory storing object\r\n");
	} else if (choice % 8 < 7) {
		buf_printf(out, "%s", lines[choice % 8]);
		scripted_echo(call, out);
	} else {
		buf_printf(out, "VA %zu f0", value.n);
		scripted_echo(call, out);
		buf_add_slice(out, value);
		BUF_ADD(out, "\r\n");
	}
	if (call->want & WANT_FENCE)
		BUF_ADD(out, "MN\r\n");
}

static const char *scripted_word(enum call_verb verb, uint8_t choice)
{
	bool first = choice % 2;

	switch (verb) {
	case CALL_CAS:
		return choice % 3 == 0 ? "NOT_FOUND" : choice % 3 == 1 ? "STORED" : "EXISTS";
	case CALL_INCR:
	case CALL_DECR:
		return choice % 3 == 0    ? "NOT_FOUND"
			: choice % 3 == 1 ? "7"
					  : "18446744073709551615";
	case CALL_DELETE:
	case CALL_DISCARD:
		return first ? "DELETED" : "NOT_FOUND";
	case CALL_TOUCH:
		return first ? "TOUCHED" : "NOT_FOUND";
	case CALL_FLUSH_ALL:
		return "OK";
	default:
		return first ? "STORED" : "NOT_STORED";
	}
}

/* Adds the reply to the oldest call that has none; even choices are misses. False when all have one. */
static bool scripted_reply(
	struct scripted_server *s, struct slice value, uint8_t choice, struct buf *out)
{
	const struct call *call;

	if (s->replied == s->count)
		return false;
	call = &s->fake->calls[s->calls[s->replied++]].call;
	if (call->verb == CALL_META)
		scripted_passed(call, value, choice, out);
	else if (choice >= 250)
		BUF_ADD(out, "SERVER_ERROR out of memory storing object\r\n");
	else if (call->verb != CALL_GET && call->verb != CALL_GAT)
		buf_printf(out, "%s\r\n", scripted_word(call->verb, choice));
	else if (choice % 2)
		scripted_hit(s, call, value, choice, out);
	else if (s->meta)
		BUF_ADD(out, "EN\r\n");
	else
		BUF_ADD(out, "END\r\n");
	return true;
}

/* --- requests --- */

struct client;

/* A request under way. */
struct asked {
	STAILQ_ENTRY(asked) link;
	struct client *client;
	struct task *task;
	const struct command *command; /* NULL for a refused request */
	struct buf words;              /* its line */
	struct buf reply;
	bool quiet;
};

/* It is kept after its client has disconnected: tasks may still refer to it. */
struct owner {
	struct account account;
	struct owner *next;
};

static struct owner *owners;

static struct client {
	struct account *account;
	STAILQ_HEAD(, asked) asked;
	struct order order;
	struct buf in;
	struct request_progress progress;
	size_t skip;
	bool closing, stuck; /* stuck: it reads no replies */
} clients[CLIENTS];

static struct fake f;
static struct scripted_server servers[SERVERS];
static size_t sent, requested;

static const char *const requests[] = {
	"get k\r\n",
	"gets k l k\r\n",
	"gat 9 k l\r\n",
	"set k 1 0 2\r\nab\r\n",
	"set k 0 0 2 noreply\r\nab\r\n",
	"set k 0 0 9999\r\n",
	"cas k 0 0 1 7\r\nx\r\n",
	"append k 0 0 3\r\n+z \r\n",
	"incr k 1\r\n",
	"decr k 1 noreply\r\n",
	"delete k\r\n",
	"touch k 30\r\n",
	"flush_all\r\n",
	"mg k q v\r\n",
	"mg k k f t v\r\n",
	"mg cQ0KVkE= b k v\r\n",
	"ma k N0 q T9\r\n",
	"ms k 2 q\r\nab\r\n",
	"ms  5\r\n",
	"me k\r\n",
	"md k q\r\n",
	"sadd k a b\r\n",
	"sadd k c noreply\r\n",
	"srem k a\r\n",
	"sset k x y\r\n",
	"scard k\r\n",
	"smismember k a b\r\n",
	"smembers k l k\r\n",
	"sinter k l\r\n",
	"sintercard 2 k l limit 2\r\n",
	"sunionstore m k l\r\n",
	"sunion k l k\r\n",
	"sdiff k l\r\n",
	"spop k 2\r\n",
	"srandmember k 2\r\n",
	"scompact k\r\n",
	"sinfo k\r\n",
	"rpush l a b\r\n",
	"lpop l 2\r\n",
	"lrange l 0 -1\r\n",
	"lset l 0 z\r\n",
	"lmove l m left right\r\n",
	"lmpop 2 right m l\r\n",
	"smove k m a\r\n",
	"evincr E 5\r\n",
	"evadd E 0 0 1\r\nx\r\n",
	"evcount E 2015010100 2015010300\r\n",
	"evrange E now -3\r\n",
	"evlast E 2\r\n",
	"sadd k.AAAAAAAAAAA.0 x\r\n",
	"incr a\001 1 noreply\r\n",
	"sadd k \"a b\" '' \"\\x00\\xff\"\r\n",
	"srem k {3}\r\na b\r\n",
	"sadd k {2}\r\n\r\n {0}\r\n noreply\r\n",
	"sadd k a\tb {7}\r\nget k\r\n\r\n",
	"srange k \"\" \"~ \" 3\r\n",
	"rpush l \"{\\\"id\\\": 1}\" 'two words'\r\n",
	"rpush l {9}\r\n",
	"lpop l\r\n",
	"lset l 0 \"\"\r\n",
	"smove k m 'a b'\r\n",
	"rpush l \"open\r\n",
	"get q|lrange|l|0|-1 k q|lpop|l q|sismember|%6b|a%20b\r\n",
	"set q|sadd|k 0 9 7\r\na b\n\n\nc\r\n",
	"set q|rpush|l|%00 0 0 2 noreply\r\nx\n\r\n",
	"set q|lpush1|l 0 0 6\r\nget k\n\r\n",
	"set q|smismember|k 0 0 5\r\na b\na\r\n",
	"ms q|sclaim1|k 2 q\r\n\r\n\r\n",
	"saddex k 5 a b\r\nsexpire k 0 a\r\nsttl k a\r\n",
	"nonsense\r\n",
	"get\r\n",
};

static const struct slice values[] = {
	{ "", 0 },
	{ "+a ", 3 },
	{ "+a +b -a ", 9 },
	{ "17", 2 },
	{ "ab\r\nEND\r\nVALUE k 0 1", 21 },
	{ "@c00000000000.0.1 +x ", 21 },
	{ "@set.1 +a -b ", 13 },
	{ "+x @set.1 @t00000000000.1.3.0.30.0123456789abcdef -x ", 53 },
	{ "@list ", 6 },
	{ "+b @list @l00000000000.3.1.0123456789abcdef:1:2 @l00000000001.3.1 +a ", 69 },
	{ "+a\001\102b +\001! -\001\042 ", 14 },
	{ "@set.3 +a +\001! ", 14 },
	{ "+a\0021424450096 ", 14 },
	{ "+\001\053 @list.3 @l00000000001.3.1 +a\001\102 ", 35 },
	{ "-a -b -c +d +e -f +a +b +c +d +e +f +g ", 39 },
};

/* --- the host's side of tasks --- */

static void on_begin(struct task *task)
{
	struct asked *asked = task->owner;

	MUST(!asked->task);
	asked->task = task;
	task->account = asked->client->account;
	order_begin(&asked->client->order, task->order);
}

static struct buf *on_reply(struct task *task)
{
	struct asked *asked = task->owner;

	MUST(!task->done);
	if (asked && !task->quiet)
		return &asked->reply;
	buf_consume(&f.trash, buf_size(&f.trash));
	return &f.trash;
}

static bool on_room(const struct task *task)
{
	const struct asked *asked = task->owner;

	return !asked || !asked->client->stuck;
}

static void forget(struct asked *asked)
{
	STAILQ_REMOVE(&asked->client->asked, asked, asked, link);
	buf_free(&asked->words);
	buf_free(&asked->reply);
	free(asked);
}

static void on_done(struct task *task)
{
	struct asked *asked = task->owner;

	MUST(!task->done);
	task->done = true;
	if (asked) {
		form_check(asked->command, buf_slice(&asked->words), asked->quiet,
			buf_slice(&asked->reply), was_given);
		order_end(&asked->client->order, task->order);
		forget(asked);
	}
	task_free(task);
}

/* --- clients --- */

static struct asked *new_asked(struct client *c, const struct request *request, bool refused)
{
	struct asked *asked = calloc(1, sizeof(*asked));

	MUST(asked);
	asked->client = c;
	asked->quiet = request->noreply;
	asked->command = refused ? NULL : request->command;
	if (!refused) {
		buf_add_slice(&asked->words, request->key);
		BUF_ADD(&asked->words, " ");
		buf_add_slice(&asked->words, request->rest);
	}
	STAILQ_INSERT_TAIL(&c->asked, asked, link);
	return asked;
}

static void refuse(struct client *c, const struct request *request)
{
	requested++;
	task_start_refused(&f.host, request, new_asked(c, request, true));
}

static void carry_out(struct client *c, struct request *request)
{
	struct asked *asked = new_asked(c, request, false);

	requested++;
	if (!task_start(&f.host, request, asked))
		forget(asked);
}

/*
 * Removes one request from the received bytes, like client.c. Returns its size, or 0 if it must
 * wait.
 */
static size_t take_request(struct client *c, struct slice in)
{
	static const struct request_limits limits = {
		.max_line = 2100, .max_value = 300, .max_keys = 50
	};
	struct request request;
	enum request_status status = request_parse(in, &limits, &c->progress, &request);

	switch (status) {
	case REQUEST_MORE:
		return 0;
	case REQUEST_HANGUP:
		c->closing = true;
		break;
	case REQUEST_FATAL:
		request.noreply = false;
		refuse(c, &request);
		c->closing = true;
		break;
	case REQUEST_REFUSED:
		if (request_discards(&request) && order_must_wait(&c->order, &request))
			return 0;
		refuse(c, &request);
		c->skip = request.skip.bytes;
		break;
	case REQUEST_READY:
		if (order_must_wait(&c->order, &request))
			return 0;
		carry_out(c, &request);
	}
	request_progress_end(&c->progress);
	return request.consumed;
}

static void run_client(struct client *c)
{
	struct asked *first = STAILQ_FIRST(&c->asked);
	size_t n = 1;

	if (first && first->task && first->task->resume && !c->stuck)
		first->task->resume(first->task);
	while (n && buf_size(&c->in) && !c->closing && requested < REQUESTS_MAX &&
		f.count < CALLS_MAX) {
		n = c->skip < buf_size(&c->in) ? c->skip : buf_size(&c->in);
		c->skip -= n;
		if (n == 0) {
			/* A task keeps nothing of these bytes. */
			char *bytes = input_copy(buf_slice(&c->in));
			n = take_request(c, slice_of(bytes, buf_size(&c->in)));
			free(bytes);
		}
		buf_consume(&c->in, n);
	}
	if (c->closing && STAILQ_EMPTY(&c->asked)) {
		buf_consume(&c->in, buf_size(&c->in));
		c->closing = false;
		c->skip = 0;
	}
}

static struct account *new_account(void)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	MUST(owner);
	owner->next = owners;
	owners = owner;
	return &owner->account;
}

/* Whatever tasks and lanes have charged, they have given back. */
static void free_accounts(void)
{
	struct owner *owner;

	while ((owner = owners)) {
		MUST(owner->account.used == 0 && owner->account.held == 0);
		owners = owner->next;
		free(owner);
	}
}

static void client_goes(struct client *c)
{
	struct asked *asked;

	account_close(c->account, f.host.env.now);
	c->account = new_account();
	while ((asked = STAILQ_FIRST(&c->asked))) {
		struct task *task = asked->task;
		forget(asked);
		task->owner = NULL;
		if (task->resume)
			task->resume(task);
	}
	buf_consume(&c->in, buf_size(&c->in));
	c->order = (struct order){ 0 };
	request_progress_end(&c->progress);
	c->skip = 0;
	c->closing = c->stuck = false;
}

/* --- servers, and all together --- */

static void send_calls(void)
{
	for (; sent < f.count; sent++) {
		const struct call *call = &f.calls[sent].call;
		size_t at = call->server == CALL_ANY_SERVER ? call->key.n % SERVERS
							    : (size_t)call->server;
		scripted_push(&servers[at], sent);
	}
}

static void settle(void)
{
	size_t held = 0;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct asked *asked;
		run_client(&clients[i]);
		STAILQ_FOREACH(asked, &clients[i].asked, link)
			held += buf_size(&asked->reply);
	}
	send_calls();
	for (size_t i = 0; i < SERVERS; i++)
		held += buf_size(&servers[i].out);
	MUST(held <= HELD_MAX);
}

static bool reply(struct scripted_server *s, uint8_t choice, size_t cut)
{
	struct buf bytes = BUF_EMPTY;
	struct slice value = values[choice / 2 % (sizeof(values) / sizeof(values[0]))];
	bool had = scripted_reply(s, value, choice, &bytes);

	scripted_write(s, SIZE_MAX);
	if (had) {
		struct slice all = buf_slice(&bytes);
		cut = cut < all.n ? cut : all.n;
		scripted_read(s, slice_of(all.p, cut));
		if (cut < all.n && s->pipeline.count)
			scripted_read(s, slice_skip(all, cut));
	}
	buf_free(&bytes);
	return had;
}

static void disturb(uint8_t how, struct slice *in)
{
	struct scripted_server *s = &servers[how / 8 % SERVERS];
	struct client *c = &clients[how / 8 % CLIENTS];

	switch (how % 8) {
	case 0:
		scripted_fail(s, RESULT_LOST);
		break;
	case 1:
		scripted_fail(s, RESULT_TIMED_OUT);
		break;
	case 2:
		/* The server returns with another version. */
		scripted_fail(s, RESULT_LOST);
		s->meta = !s->meta;
		break;
	case 3:
		client_goes(c);
		break;
	case 4:
		c->stuck = !c->stuck;
		break;
	case 5:
		scripted_write(s, input_byte(in));
		break;
	default:
		(void)fake_pass(&f, how);
	}
}

static void step(struct slice *in)
{
	uint8_t what = input_byte(in), n = input_byte(in);
	struct client *c = &clients[what / 8 % CLIENTS];
	struct scripted_server *s = &servers[what / 8 % SERVERS];
	const char *text = requests[n % (sizeof(requests) / sizeof(requests[0]))];

	switch (what % 8) {
	case 0:
	case 1:
		buf_add(&c->in, text, strlen(text));
		break;
	case 2:
		buf_add_slice(&c->in, input_bytes(in, n));
		break;
	case 3:
	case 4:
		(void)reply(s, n, SIZE_MAX);
		break;
	case 5:
		(void)reply(s, n, input_byte(in));
		break;
	case 6:
		scripted_write(s, SIZE_MAX);
		s->lies = true;
		scripted_read(s, input_bytes(in, n));
		break;
	default:
		disturb(n, in);
	}
}

static void start(bool meta, bool small, bool spaces)
{
	static const struct collection_options options = { .base_size = 40,
		.segment_size = 64,
		.log_size = 40,
		.table_size = 64,
		.cache = 4000,
		.merges = 2,
		.result_max = 65536 };

	fake_init(&f);
	if (small)
		fake_take(&f, &options);
	fake_has_time(&f);
	f.rules.commands = (struct command_keys){ SLICE("q|"), spaces ? ' ' : '\n' };
	f.host.begin = on_begin;
	f.host.reply = on_reply;
	f.host.room = on_room;
	f.host.done = on_done;
	f.host.calls_max = 256;
	sent = requested = given_count = 0;
	for (size_t i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .account = new_account() };
		STAILQ_INIT(&clients[i].asked);
	}
	for (size_t i = 0; i < SERVERS; i++) {
		struct scripted_server *s = &servers[i];
		s->fake = &f;
		s->meta = meta;
		s->peer = (struct pipeline_peer){
			.server = "mc:1", .connection = 1, .value_max = SCRIPTED_VALUE_MAX
		};
		s->count = s->replied = 0;
		s->lies = false;
	}
}

/* At the end all calls are answered by misses, and all timers expire: then nothing continues. */
static void finish(void)
{
	size_t rounds = 0;

	for (size_t i = 0; i < SERVERS; i++)
		scripted_fail(&servers[i], RESULT_LOST);
	for (size_t i = 0; i < CLIENTS; i++)
		clients[i].stuck = false;
	for (settle(); fake_waiting(&f) || f.turn_count; settle()) {
		(void)fake_pass(&f, 1);
		for (size_t i = 0; i < SERVERS; i++)
			(void)reply(&servers[i], 0, SIZE_MAX);
		MUST(++rounds < ROUNDS_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);
	uint8_t how = input_byte(&in);

	start(how & 1, how & 2, how & 4);
	while (in.n) {
		step(&in);
		settle();
	}
	finish();
	for (size_t i = 0; i < CLIENTS; i++) {
		MUST(STAILQ_EMPTY(&clients[i].asked) && clients[i].order.tasks == 0);
		buf_free(&clients[i].in);
		request_progress_end(&clients[i].progress);
	}
	for (size_t i = 0; i < SERVERS; i++) {
		pipeline_free(&servers[i].pipeline);
		buf_free(&servers[i].out);
		buf_free(&servers[i].in);
	}
	fake_fini(&f);
	free_accounts();
	return 0;
}
