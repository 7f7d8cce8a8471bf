/*
 * Renders requests ahead of the run. All draws come from one fixed seed, so that every peer gets
 * the same keys and members in the same order.
 */
#include "workload.h"
#include "ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough to reach most keys often, small enough to stay near the processor's caches. */
#define POOL_REQUESTS 65536
#define POOL_BYTES ((size_t)32 << 20)
#define MAX_KEYS_NAMED 100
#define KEYS_DRAWN 10 /* for each request at least, so that all ops of few keys have the same ones */
#define REQUEST_OVERHEAD 64

struct text {
	char *bytes;
	size_t length;
	size_t room;
};

/* What one request is made of. */
struct draw {
	size_t keys[MAX_KEYS_NAMED];
	size_t member; /* the first of a run */
	size_t run;
};

static void *must(void *memory)
{
	if (memory == NULL) {
		fprintf(stderr, "loadgen: out of memory\n");
		exit(1);
	}
	return memory;
}

static char *text_reserve(struct text *text, size_t more)
{
	if (text->room - text->length < more) {
		text->room = (text->room + more) * 2;
		text->bytes = must(realloc(text->bytes, text->room));
	}
	return text->bytes + text->length;
}

static void text_add(struct text *text, const char *bytes, size_t length)
{
	memcpy(text_reserve(text, length), bytes, length);
	text->length += length;
}

__attribute__((format(printf, 2, 3))) static void text_print(struct text *text, const char *format, ...)
{
	const size_t longest = 64;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text_reserve(text, longest), longest, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= longest)
		abort();
	text->length += (size_t)length;
}

static void add_key(struct text *text, size_t key)
{
	text_print(text, "k%07zu", key);
}

static void add_binary_get(struct text *text, size_t key)
{
	static const char header[24] = { (char)0x80, 0, 0, REPLY_KEY_SIZE, [11] = REPLY_KEY_SIZE };

	text_add(text, header, sizeof(header));
	add_key(text, key);
}

static void add_filler(struct text *text, size_t length)
{
	memset(text_reserve(text, length), 'x', length);
	text->length += length;
}

static void add_member(struct text *text, const struct workload *work, size_t member)
{
	text_print(text, "m%07zu", member);
	add_filler(text, work->member_size - WORKLOAD_MIN_MEMBER);
}

/* A value begins with its key, so that a reply that went to the wrong request is noticed. */
static void add_value(struct text *text, const struct workload *work, size_t key)
{
	size_t start = text->length;

	add_key(text, key);
	if (work->value_size > REPLY_KEY_SIZE)
		add_filler(text, work->value_size - REPLY_KEY_SIZE);
	text->length = start + work->value_size;
}

static void expand(struct text *text, const struct workload *work, const char *form, const struct draw *draw)
{
	size_t keys = 0;

	for (const char *at = form; *at != '\0'; at++) {
		if (*at != '%') {
			text_add(text, at, 1);
			continue;
		}
		switch (*++at) {
		case 'k':
			add_key(text, draw->keys[keys++]);
			break;
		case 'b':
			add_binary_get(text, draw->keys[keys++]);
			break;
		case 'v':
			add_value(text, work, draw->keys[0]);
			break;
		case 'n':
			text_print(text, "%zu", work->value_size);
			break;
		case 'l':
			text_print(text, "%zu", work->member_size + 2);
			break;
		case 'm':
			add_member(text, work, draw->member);
			break;
		case 'M':
			for (size_t i = 0; i < draw->run; i++) {
				if (i)
					text_add(text, " ", 1);
				add_member(text, work, draw->member + i);
			}
			break;
		default:
			abort();
		}
	}
}

/* Nothing that a form expands to holds a space, so the words are the arguments. */
static void add_resp(struct text *text, const struct text *words)
{
	const char *at = words->bytes, *end = words->bytes + words->length;
	size_t count = 1;

	for (const char *p = at; p < end; p++)
		count += *p == ' ';
	text_print(text, "*%zu\r\n", count);
	for (; count; count--) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		size_t length = (size_t)((space ? space : end) - at);

		text_print(text, "$%zu\r\n", length);
		text_add(text, at, length);
		text_add(text, "\r\n", 2);
		at += length + 1;
	}
}

/* Finds the first ${text} in the request that begins at ${start}; 0 when there is none. */
static uint16_t place_of(const struct text *out, size_t start, const char *text)
{
	const char *from = out->bytes + start;
	const char *found = memmem(from, out->length - start, text, REPLY_KEY_SIZE);

	if (found == NULL)
		return 0;
	if (found - from > UINT16_MAX)
		abort();
	return (uint16_t)(found - from);
}

static void render(struct text *out, struct text *scratch, const struct workload *work, const char *form,
	const struct draw *draw, struct request *request)
{
	char name[REPLY_KEY_SIZE + 1];

	request->offset = out->length;
	if (work->resp) {
		scratch->length = 0;
		expand(scratch, work, form, draw);
		add_resp(out, scratch);
	} else {
		expand(out, work, form, draw);
		if (strcmp(form, "%b") != 0)
			text_add(out, "\r\n", 2);
	}
	snprintf(name, sizeof(name), "k%07u", (unsigned)draw->keys[0]);
	request->key = place_of(out, request->offset, name);
	snprintf(name, sizeof(name), "m%07u", (unsigned)draw->member);
	request->member = place_of(out, request->offset, name);
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

static struct reply_want wanted(const struct workload *work, const struct op *op, enum reply_kind kind)
{
	struct reply_want want = { .kind = kind, .items = op->keys ? op->keys : 1, .body = REPLY_ANY_SIZE };
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
		if (op->major[work->resp].text != NULL)
			return op;
		fprintf(stderr, "loadgen: op %s does not exist in this protocol\n", work->op);
		return NULL;
	}
	fprintf(stderr, "loadgen: unknown op %s (see --help)\n", work->op);
	return NULL;
}

/* Whether request number ${index} is of the minor form. */
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

bool workload_render(const struct workload *work, struct pool *pool)
{
	const struct op *op = find_op(work);
	struct text out = { .bytes = NULL }, scratch = { .bytes = NULL };
	size_t count = POOL_REQUESTS, fitting, keys;

	if (op == NULL)
		return false;
	keys = op->keys > KEYS_DRAWN ? op->keys : KEYS_DRAWN;
	fitting = POOL_BYTES / (work->value_size + work->member_size + REQUEST_OVERHEAD * (keys / KEYS_DRAWN)) + 1;
	count = count < fitting ? count : fitting;
	count += count % 2; /* behind the last comes the first again, and those that alternate still do */
	*pool = (struct pool){ .count = count, .members = work->members, .random = 1 };
	if (op->new_members) {
		pool->first_member = work->members;
		pool->members = WORKLOAD_MEMBER_NAMES - work->members;
	}
	pool->requests = must(calloc(count + 1, sizeof(*pool->requests)));
	for (size_t i = 0; i < count; i++) {
		struct request *request = &pool->requests[i];
		struct draw draw;

		for (size_t k = 0; k < keys; k++)
			draw.keys[k] = next_random(&pool->random) % work->keys;
		draw.member = next_member(pool);
		request->form = is_minor(op, work->resp, i, &pool->random);
		render(&out, &scratch, work, (request->form ? op->minor : op->major)[work->resp].text, &draw, request);
	}
	pool->requests[count].offset = out.length;
	pool->bytes = out.bytes;
	pool->want[0] = wanted(work, op, op->major[work->resp].kind);
	pool->want[1] = wanted(work, op, op->minor[work->resp].kind);
	free(scratch.bytes);
	return true;
}

bool workload_render_load(const struct workload *work, struct pool *pool)
{
	const struct op *op = find_op(work);
	struct text out = { .bytes = NULL }, scratch = { .bytes = NULL };
	const struct form *form;
	size_t runs, i = 0;

	if (op == NULL)
		return false;
	*pool = (struct pool){ .count = 0 };
	form = &loads[op->load].major[work->resp];
	if (form->text == NULL)
		return true;
	runs = has_members(op->load) ? (work->members + OPS_RUN - 1) / OPS_RUN : 1;
	pool->count = runs * work->keys;
	pool->requests = must(calloc(pool->count + 1, sizeof(*pool->requests)));
	for (size_t run = 0; run < runs; run++) {
		for (size_t key = 0; key < work->keys; key++) {
			struct draw draw = { .keys = { key }, .member = run * OPS_RUN };

			draw.run = work->members - draw.member;
			draw.run = draw.run < OPS_RUN ? draw.run : OPS_RUN;
			render(&out, &scratch, work, form->text, &draw, &pool->requests[i++]);
		}
	}
	pool->requests[i].offset = out.length;
	pool->bytes = out.bytes;
	pool->want[0] =
		(struct reply_want){ .kind = form->kind, .items = 1, .body = REPLY_ANY_SIZE, .key_named = true };
	free(scratch.bytes);
	return true;
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
