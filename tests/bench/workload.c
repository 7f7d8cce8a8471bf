/*
 * Renders requests before the run. All random draws use one fixed seed, so that every peer
 * receives the same keys and members in the same order.
 */
#include "workload.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A request as text, with
 *   %k a key        %v a value    %n the bytes of a value
 *   %m a member     %M a run of up to OPS_RUN members    %l the bytes of "+<member> "
 * In memcache it goes out as it stands, with CRLF behind it. For RESP the words become an array. "%b" alone is a get of the
 * binary protocol, with nothing behind it.
 */
struct form {
	const char *text; /* NULL: the protocol has no such request */
	enum reply_kind kind;
};

#define OPS_RUN 100

/* The data that an op needs on the server. */
enum load {
	LOAD_NOTHING,
	LOAD_VALUE,   /* each key holds a value */
	LOAD_COUNTER, /* each key holds a number */
	LOAD_LOG,     /* each key holds a short log */
	LOAD_MEMBER,  /* each key holds a set of one member */
	LOAD_MEMBERS, /* each key holds a set of all members */
	LOAD_ITEM,    /* each key holds a list of one item */
	LOAD_ITEMS,   /* each key holds a list of all members */
	LOAD_APART,   /* other code has stored what makes for replies of all members */
	LOADS,
};

/* The forms of one op, by protocol. */
struct op {
	const char *name;
	enum load load;
	struct form major[2]; /* memcache, RESP */
	struct form minor[2];
	/* this many of a hundred requests, chosen at random, are ${minor} */
	unsigned minor_percent;
	bool alternating; /* instead, every second one is ${minor} */
	bool new_members; /* members are not among the loaded ones */
	bool keyed;       /* the key is a command: its value is any number */
	unsigned keys;    /* number of keys in one request; 0: others than the workload's */
	unsigned items;   /* members in a reply, if not all */
};

#define TEN_KEYS "%k %k %k %k %k %k %k %k %k %k"

#define FIFTY_KEYS TEN_KEYS " " TEN_KEYS " " TEN_KEYS " " TEN_KEYS " " TEN_KEYS
#define HUNDRED_KEYS FIFTY_KEYS " " FIFTY_KEYS

/* clang-format off */
#define SADD { { "sadd %k %m", REPLY_STORED }, { "SADD %k %m", REPLY_RESP_NUMBER } }
#define SREM { { "srem %k %m", REPLY_DELETED }, { "SREM %k %m", REPLY_RESP_NUMBER } }
#define RPUSH { { "rpush %k %m", REPLY_STORED }, { "RPUSH %k %m", REPLY_RESP_NUMBER } }
#define SISMEMBER { { "sismember %k %m", REPLY_NUMBER }, { "SISMEMBER %k %m", REPLY_RESP_NUMBER } }

/* The ops of the generator, ended by one without a name: a new op is an entry here. */
static const struct op ops[] = {
	{ "get", LOAD_VALUE,
	  { { "get %k", REPLY_VALUES }, { "GET %k", REPLY_RESP_BULK } }, .keys = 1 },
	{ "mget", LOAD_VALUE,
	  { { "get " TEN_KEYS, REPLY_VALUES }, { "MGET " TEN_KEYS, REPLY_RESP_ARRAY } },
	  .keys = 10 },
	{ "mget100", LOAD_VALUE,
	  { { "get " HUNDRED_KEYS, REPLY_VALUES }, { "MGET " HUNDRED_KEYS, REPLY_RESP_ARRAY } },
	  .keys = 100 },
	{ "mg", LOAD_VALUE,
	  { { "mg %k k f v", REPLY_META_VALUE } }, .keys = 1 },
	{ "get-binary", LOAD_VALUE,
	  { { "%b", REPLY_BINARY_VALUE } }, .keys = 1 },
	{ "set", LOAD_NOTHING,
	  { { "set %k 0 0 %n\r\n%v", REPLY_STORED }, { "SET %k %v", REPLY_RESP_OK } },
	  .keys = 1 },
	{ "ms", LOAD_NOTHING,
	  { { "ms %k %n\r\n%v", REPLY_META_STORED } }, .keys = 1 },
	{ "append", LOAD_LOG,
	  { { "append %k 0 0 %l\r\n+%m ", REPLY_STORED }, { "APPEND %k %m", REPLY_RESP_NUMBER } },
	  .keys = 1 },
	{ "incr", LOAD_COUNTER,
	  { { "incr %k 1", REPLY_NUMBER }, { "INCR %k", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ "evincr", LOAD_NOTHING,
	  { { "evincr %k", REPLY_NUMBER }, { "INCR %k", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ "sadd", LOAD_MEMBER, SADD, .keys = 1 },
	{ "srem", LOAD_MEMBER, SREM, .keys = 1 },
	{ "hot", LOAD_MEMBER, SADD, SREM, .minor_percent = 20, .keys = 1 },
	{ "churn", LOAD_MEMBER, SADD, SREM, .minor_percent = 50, .keys = 1 },
	{ "rw", LOAD_MEMBERS, SISMEMBER, SADD, .minor_percent = 50, .keys = 1 },
	{ "rw10", LOAD_MEMBERS, SISMEMBER, SADD, .minor_percent = 10, .keys = 1 },
	{ "pop", LOAD_MEMBERS,
	  SADD,
	  { { "spop %k", REPLY_VALUES }, { "SPOP %k", REPLY_RESP_BULK } },
	  .alternating = true, .new_members = true, .keys = 1, .items = 1 },
	{ "srand", LOAD_MEMBERS,
	  SADD,
	  { { "srandmember %k", REPLY_VALUES }, { "SRANDMEMBER %k", REPLY_RESP_BULK } },
	  .alternating = true, .new_members = true, .keys = 1, .items = 1 },
	{ "sinter", LOAD_APART,
	  { { "sinter left right", REPLY_VALUES }, { "SINTER left right", REPLY_RESP_ARRAY } },
	  .keys = 0 },
	{ "smembers", LOAD_MEMBERS,
	  { { "smembers %k", REPLY_VALUES }, { "SMEMBERS %k", REPLY_RESP_ARRAY } }, .keys = 1 },
	{ "scard", LOAD_MEMBERS,
	  { { "scard %k", REPLY_NUMBER }, { "SCARD %k", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ "scard-key", LOAD_MEMBERS,
	  { { "get q|scard|%k", REPLY_VALUES } }, .keyed = true, .keys = 1 },
	{ "sismember", LOAD_MEMBERS, SISMEMBER, .keys = 1 },
	{ "sadd-onto", LOAD_MEMBERS, SADD, .keys = 1 },
	{ "evadd", LOAD_NOTHING,
	  { { "evadd %k 0 0 %n\r\n%v", REPLY_EVENT } }, .keys = 1 },
	{ "lrange", LOAD_ITEMS,
	  { { "lrange %k 0 99", REPLY_VALUES }, { "LRANGE %k 0 99", REPLY_RESP_ARRAY } },
	  .keys = 1, .items = 100 },
	{ "rpush", LOAD_ITEM, RPUSH, .keys = 1 },
	{ .name = NULL },
};

/* How to store each load, by protocol. */
static const struct form loads[LOADS][2] = {
	[LOAD_VALUE] = { { "set %k 0 0 %n\r\n%v", REPLY_STORED }, { "SET %k %v", REPLY_RESP_OK } },
	[LOAD_COUNTER] = { { "set %k 0 0 1\r\n0", REPLY_STORED }, { "SET %k 0", REPLY_RESP_OK } },
	[LOAD_LOG] = { { "set %k 0 0 %l\r\n+%m ", REPLY_STORED }, { "SET %k %m", REPLY_RESP_OK } },
	[LOAD_MEMBER] = SADD,
	[LOAD_MEMBERS] = { { "sadd %k %M", REPLY_STORED }, { "SADD %k %M", REPLY_RESP_NUMBER } },
	[LOAD_ITEM] = RPUSH,
	[LOAD_ITEMS] = { { "rpush %k %M", REPLY_STORED }, { "RPUSH %k %M", REPLY_RESP_NUMBER } },
};
/* clang-format on */

/* Enough to reach most keys often, small enough to stay in the processor's caches. */
#define POOL_REQUESTS 65536
#define POOL_BYTES ((size_t)32 << 20)
#define MAX_KEYS_NAMED 100
/* for each request at least, so that all ops with few keys have the same ones */
#define KEYS_DRAWN 10
#define REQUEST_OVERHEAD 64

/* A text that grows. */
struct text {
	FILE *stream;
	char *bytes; /* these two have the flushed text */
	size_t length;
};

struct renderer {
	const struct workload *work;
	struct pool *pool;
	struct text out;
	struct text scratch;
};

/* The arguments of one request. */
struct draw {
	size_t keys[MAX_KEYS_NAMED];
	size_t member; /* the first of several */
	size_t run;
};

void *must(void *memory)
{
	if (memory == NULL)
		errx(1, "out of memory");
	return memory;
}

static void text_open(struct text *text)
{
	text->stream = must(open_memstream(&text->bytes, &text->length));
}

static void add_key(FILE *out, size_t key)
{
	fprintf(out, "k%07zu", key);
}

static void add_binary_get(FILE *out, size_t key)
{
	static const char header[24] = { (char)0x80, 0, 0, REPLY_KEY_SIZE, [11] = REPLY_KEY_SIZE };

	fwrite(header, sizeof(header), 1, out);
	add_key(out, key);
}

static void add_filler(FILE *out, size_t length)
{
	for (; length; length--)
		putc_unlocked('x', out);
}

static void add_member(FILE *out, const struct workload *work, size_t member)
{
	fprintf(out, "m%07zu", member);
	add_filler(out, work->member_size - WORKLOAD_MIN_MEMBER);
}

/* A value begins with its key, so that a reply to another request is detected. */
static void add_value(FILE *out, const struct workload *work, size_t key)
{
	char name[REPLY_KEY_SIZE + 1];
	size_t part = work->value_size < REPLY_KEY_SIZE ? work->value_size : REPLY_KEY_SIZE;

	snprintf(name, sizeof(name), "k%07u", (unsigned)key);
	fwrite(name, part, 1, out);
	add_filler(out, work->value_size - part);
}

static void expand(
	FILE *out, const struct workload *work, const char *form, const struct draw *draw)
{
	size_t keys = 0;

	for (const char *at = form; *at != '\0'; at++) {
		if (*at != '%') {
			putc_unlocked(*at, out);
			continue;
		}
		switch (*++at) {
		case 'k':
			add_key(out, draw->keys[keys++]);
			break;
		case 'b':
			add_binary_get(out, draw->keys[keys++]);
			break;
		case 'v':
			add_value(out, work, draw->keys[0]);
			break;
		case 'n':
			fprintf(out, "%zu", work->value_size);
			break;
		case 'l':
			fprintf(out, "%zu", work->member_size + 2);
			break;
		case 'm':
			add_member(out, work, draw->member);
			break;
		case 'M':
			for (size_t i = 0; i < draw->run; i++) {
				if (i)
					putc_unlocked(' ', out);
				add_member(out, work, draw->member + i);
			}
			break;
		default:
			abort();
		}
	}
}

/* No expansion of a form contains a space, so the words are the arguments. */
static void add_resp(FILE *out, const struct text *words)
{
	const char *at = words->bytes, *end = words->bytes + words->length;
	size_t count = 1;

	for (const char *p = at; p < end; p++)
		count += *p == ' ';
	fprintf(out, "*%zu\r\n", count);
	for (; count; count--) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		size_t length = (size_t)((space ? space : end) - at);

		fprintf(out, "$%zu\r\n", length);
		fwrite(at, length, 1, out);
		fputs("\r\n", out);
		at += length + 1;
	}
}

/*
 * Finds the first name of ${number} in the request that begins at ${start}. Returns 0 if there is
 * none.
 */
static uint16_t place_of(const struct text *out, size_t start, char letter, size_t number)
{
	const char *from = out->bytes + start, *found;
	char name[REPLY_KEY_SIZE + 1];

	snprintf(name, sizeof(name), "%c%07u", letter, (unsigned)number);
	found = memmem(from, out->length - start, name, REPLY_KEY_SIZE);
	if (found == NULL)
		return 0;
	if (found - from > UINT16_MAX)
		abort();
	return (uint16_t)(found - from);
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t next_member(struct pool *pool)
{
	return pool->first_member + (size_t)(next_random(&pool->random) % pool->members);
}

static bool has_members(enum load load)
{
	return load == LOAD_MEMBERS || load == LOAD_ITEMS || load == LOAD_APART;
}

static struct reply_want wanted(
	const struct workload *work, const struct op *op, enum reply_kind kind)
{
	struct reply_want want = {
		.kind = kind, .items = op->keys ? op->keys : 1, .body = REPLY_ANY_SIZE
	};
	size_t members = op->items && op->items < work->members ? op->items : work->members;
	enum load load = op->load;

	if (op->keyed)
		return want;
	want.key_named = op->keys == 1;
	if (load == LOAD_VALUE) {
		want.body = work->value_size;
		want.key_first = op->keys == 1;
	}
	if (has_members(load) && kind == REPLY_VALUES)
		want.body = members * (work->member_size + 1) - 1;
	if (has_members(load) && kind == REPLY_RESP_ARRAY)
		want.items = members;
	if (has_members(load) && (kind == REPLY_RESP_ARRAY || kind == REPLY_RESP_BULK))
		want.body = work->member_size;
	return want;
}

static const struct op *find_op(const struct workload *work)
{
	for (const struct op *op = ops; op->name != NULL; op++) {
		if (strcmp(op->name, work->op) != 0)
			continue;
		if (op->major[work->resp].text == NULL)
			errx(2, "op %s does not exist in this protocol", work->op);
		return op;
	}
	errx(2, "unknown op %s (see --help)", work->op);
}

/* Returns whether request number ${index} is of the minor form. */
static bool is_minor(const struct op *op, bool resp, size_t index, uint64_t *random)
{
	if (op->minor[resp].text == NULL)
		return false;
	return op->alternating ? index % 2 == 1 : next_random(random) % 100 < op->minor_percent;
}

const char *workload_op_name(size_t index)
{
	return ops[index].name;
}

/* Begins to render at most ${most} requests. */
static void begin(
	struct renderer *renderer, const struct workload *work, struct pool *pool, size_t most)
{
	*renderer = (struct renderer){ .work = work, .pool = pool };
	text_open(&renderer->out);
	text_open(&renderer->scratch);
	pool->requests = must(calloc(most + 1, sizeof(*pool->requests)));
}

static struct request *add(struct renderer *renderer, const char *form, const struct draw *draw)
{
	const struct workload *work = renderer->work;
	struct text *out = &renderer->out, *scratch = &renderer->scratch;
	struct request *request = &renderer->pool->requests[renderer->pool->count++];

	request->offset = out->length;
	if (work->resp) {
		rewind(scratch->stream);
		expand(scratch->stream, work, form, draw);
		fflush(scratch->stream);
		add_resp(out->stream, scratch);
	} else {
		expand(out->stream, work, form, draw);
		if (strcmp(form, "%b") != 0)
			fputs("\r\n", out->stream);
	}
	if (fflush(out->stream) != 0)
		must(NULL);
	request->key = place_of(out, request->offset, 'k', draw->keys[0]);
	request->member = place_of(out, request->offset, 'm', draw->member);
	return request;
}
static void finish(struct renderer *renderer)
{
	struct pool *pool = renderer->pool;

	fclose(renderer->out.stream);
	fclose(renderer->scratch.stream);
	free(renderer->scratch.bytes);
	pool->requests[pool->count].offset = renderer->out.length;
	pool->bytes = renderer->out.bytes;
}

void workload_render(const struct workload *work, struct pool *pool)
{
	const struct op *op = find_op(work);
	struct renderer renderer;
	size_t count = POOL_REQUESTS, fitting, keys;

	keys = op->keys > KEYS_DRAWN ? op->keys : KEYS_DRAWN;
	fitting = POOL_BYTES /
			(work->value_size + work->member_size +
				REQUEST_OVERHEAD * (keys / KEYS_DRAWN)) +
		1;
	count = count < fitting ? count : fitting;
	/* the last is followed by the first again, and alternating ones still alternate */
	count += count % 2;
	*pool = (struct pool){ .members = work->members, .random = 1 };
	if (op->new_members) {
		pool->first_member = work->members;
		pool->members = WORKLOAD_MEMBER_NAMES - work->members;
	}
	begin(&renderer, work, pool, count);
	for (size_t i = 0; i < count; i++) {
		struct draw draw;
		bool minor;

		for (size_t k = 0; k < keys; k++)
			draw.keys[k] = next_random(&pool->random) % work->keys;
		draw.member = next_member(pool);
		minor = is_minor(op, work->resp, i, &pool->random);
		add(&renderer, (minor ? op->minor : op->major)[work->resp].text, &draw)->form =
			minor;
	}
	finish(&renderer);
	pool->want[0] = wanted(work, op, op->major[work->resp].kind);
	pool->want[1] = wanted(work, op, op->minor[work->resp].kind);
}

void workload_render_load(const struct workload *work, struct pool *pool)
{
	const struct op *op = find_op(work);
	const struct form *form = &loads[op->load][work->resp];
	size_t runs = has_members(op->load) ? (work->members + OPS_RUN - 1) / OPS_RUN : 1;
	struct renderer renderer;

	*pool = (struct pool){ .count = 0 };
	if (form->text == NULL)
		return;
	begin(&renderer, work, pool, runs * work->keys);
	for (size_t run = 0; run < runs; run++) {
		for (size_t key = 0; key < work->keys; key++) {
			struct draw draw = { .keys = { key }, .member = run * OPS_RUN };

			draw.run = work->members - draw.member;
			draw.run = draw.run < OPS_RUN ? draw.run : OPS_RUN;
			add(&renderer, form->text, &draw);
		}
	}
	finish(&renderer);
	pool->want[0] = (struct reply_want){
		.kind = form->kind, .items = 1, .body = REPLY_ANY_SIZE, .key_named = true
	};
}

void pool_redraw(struct pool *pool, size_t first, size_t last)
{
	for (size_t i = first; pool->members && i < last; i++) {
		const struct request *request = &pool->requests[i];
		char *digits = pool->bytes + request->offset + request->member + 1;
		size_t member;

		if (request->member == 0)
			continue;
		member = next_member(pool);
		for (int place = 6; place >= 0; place--, member /= 10)
			digits[place] = (char)('0' + member % 10);
	}
}

void pool_free(struct pool *pool)
{
	free(pool->bytes);
	free(pool->requests);
	*pool = (struct pool){ .count = 0 };
}
