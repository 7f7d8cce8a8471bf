/*
 * Commands on a few keys, and any possible replies of servers to their calls, in any order that
 * connections permit, while time passes: everything comes to an end, and every command has exactly
 * one reply (checked by the fake).
 */
#include <stdio.h>

#include "cupboard.h"
#include "fake.h"
#include "input.h"

/* More than any machine may make, whatever the replies. */
enum { REQUESTS_MAX = 64, ANSWERS_MAX = 30000 };

static const char *const requests[] = {
	"sadd k a b\r\n",
	"sadd k c noreply\r\n",
	"saddx k d\r\n",
	"srem k a\r\n",
	"sset k x y\r\n",
	"sset k\r\n",
	"scard k\r\n",
	"smismember k a b c\r\n",
	"scount k b d\r\n",
	"srange k b e 3\r\n",
	"sscan k 2 b\r\n",
	"sismember k a\r\n",
	"smembers k l k\r\n",
	"sinfo k\r\n",
	"sadd l a\r\n",
	"get k l\r\n",
	"set k 0 0 3\r\n+z \r\n",
	"delete k\r\n",
	"mg k q v\r\n",
	"evincr E 5\r\n",
	"evincr E\r\n",
	"evadd E 0 0 1\r\nx\r\n",
	"evcount E\r\n",
	"evrange E now\r\n",
	"evrange E now -3\r\n",
	"evlast E 2\r\n",
	"flush_all\r\n",
	"touch k 30\r\n",
	"srandmember k 2\r\n",
	"spop k 2\r\n",
	"sclaim k b\r\n",
	"evlimit E 3 7200\r\n",
	"evtop E 3 2\r\n",
	"evlast E 3 now F\r\n",
	"sscan k 3 match *a?[^b]*\r\n",
	"slease k\r\n",
	"sload k aaaaaaaa b\r\n",
	"sfill k aaaaaaaa c d\r\n",
	"lfill k aaaaaaaa c d\r\n",
	"sunion k l\r\n",
	"sinter k l\r\n",
	"sintercard 2 k l limit 2\r\n",
	"sunionstore m k l\r\n",
	"sdiff k l k\r\n",
	"scompact k\r\n",
	"rpush k a b\r\n",
	"lpush k a b\r\n",
	"rpushx k c\r\n",
	"lpushx k c noreply\r\n",
	"lrange k 0 -1\r\n",
	"llen k\r\n",
	"lindex k -1\r\n",
	"lpos k b\r\n",
	"lpop k 2\r\n",
	"rpop k\r\n",
	"lrem k -1 a\r\n",
	"lset k 1 z\r\n",
	"ltrim k 1 -2\r\n",
	"lpos k b rank -1 count 0\r\n",
	"linsert k before b y\r\n",
	"lmove k l left right\r\n",
	"rpoplpush k k\r\n",
	"lmpop 2 right l k\r\n",
	"smove k l b\r\n",
	"sadd k \"\" \"a b\"\r\n",
	"srem k {3}\r\na\nb\r\n",
	"sload k aaaaaaaa \"b c\" \"\\x00\"\r\n",
	"srange k \"\" \"~ \" 9\r\n",
	"rpush k \"x y\" '' \"\\x00\"\r\n",
	"lset k 0 \" \"\r\n",
	"lrem k 0 \"x y\"\r\n",
};

/* Bases that refer to runs which there are are added to these; see make_sets. */
static struct slice values[26] = {
	{ "", 0 },
	{ "+a ", 3 },
	{ "+a +b -a ", 9 },
	{ "no collection", 13 },
	{ "17", 2 },
	{ "+a +a +a -b +c +d +e -c -d -e ", 30 },
	{ "@c00000000000.0.1 ", 18 },
	{ "@c00000000000.0.1 @c00000000000.1.1 @d00000000000.0.1 +a -b ", 60 },
	{ "@set.1 +a -b ", 13 },
	{ "@set.4 @a ", 10 },
	{ "+x @set.1 @t00000000000.1.3.0.30.0123456789abcdef -x ", 53 },
	{ "+x +y +z ", 9 },
	{ "@list ", 6 },
	{ "+b +a @list +x +x ", 18 },
	{ "+b @list @l00000000000.3.1.0123456789abcdef:1:2 @l00000000001.3.1 +a ", 69 },
	{ "+b @l00000000000.3.1 -x ", 24 },
	{ "+b -c @c00000000000.0.1 -x ", 27 },
	{ "@set.2 @fill.aaaaaaaa.1.1 +x -b ", 32 },
	{ "@list.2 @fill.aaaaaaaa.1.1 +x +b ", 33 },
};

enum { VALUES_FIXED = 19, RUNS = 3 };

static struct cupboard cupboard;
static size_t value_count;

static void add_set(const char *head, const struct oplog_run *runs, size_t count, const char *log)
{
	static struct buf bases[sizeof(values) / sizeof(values[0])];
	struct buf *base = &bases[value_count];

	cupboard_base(base, head, runs, count, log);
	values[value_count++] = buf_slice(base);
}

static void make_sets(void)
{
	struct oplog_run runs[RUNS];

	if (value_count)
		return;
	value_count = VALUES_FIXED;
	runs[0] = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
	runs[1] = cupboard_log_run(&cupboard, "-a +x ", 2);
	runs[2] = cupboard_log_run(&cupboard, "+a -b -c +y +z ", 3);
	add_set("", runs, 1, "+x -b ");
	add_set("", runs, 2, "");
	add_set("", runs, RUNS, "+a +x -c ");
	add_set("+q -a ", runs + 1, 2, "+x ");
	add_set("", runs + 1, 2, "-y -z ");
	MUST(value_count < sizeof(values) / sizeof(values[0]));
}

static const enum result_status failures[] = { RESULT_REFUSED, RESULT_TOO_LARGE, RESULT_BUSY,
	RESULT_UNAVAILABLE, RESULT_TIMED_OUT, RESULT_LOST };

static enum result_status status_for(enum call_verb verb, uint8_t choice)
{
	bool first = choice % 2;

	switch (verb) {
	case CALL_GET:
	case CALL_GAT:
		return first ? RESULT_HIT : RESULT_MISS;
	case CALL_INCR:
	case CALL_DECR:
		return first ? RESULT_NUMBER : RESULT_MISS;
	case CALL_CAS:
		return choice % 3 == 0    ? RESULT_DONE
			: choice % 3 == 1 ? RESULT_EXISTS
					  : RESULT_MISS;
	case CALL_DELETE:
	case CALL_TOUCH:
		return first ? RESULT_DONE : RESULT_MISS;
	case CALL_META:
		return RESULT_TEXT;
	case CALL_FLUSH_ALL:
		return RESULT_DONE;
	default:
		return first ? RESULT_DONE : RESULT_NOT_STORED;
	}
}

/* Replies to calls on one key arrive in the order of the calls: they share a connection. */
static size_t first_of_its_key(const struct fake *f, size_t i)
{
	for (size_t j = f->first; j < i; j++) {
		if (!f->calls[j].answered &&
			slice_equal(f->calls[j].call.key, f->calls[i].call.key))
			return j;
	}
	return i;
}

/* The content of an item of a run, unless the input chooses otherwise. */
static struct slice value_of(const struct call *call, uint8_t choice)
{
	const char *dot = memrchr(call->key.p, '.', call->key.n);
	const struct cupboard_item *item = NULL;

	if (dot && choice % 16 != 15)
		item = cupboard_find(
			&cupboard, slice_skip(call->key, (size_t)(dot - call->key.p) + 1));
	return item ? buf_slice(&item->data) : values[choice / 2 % value_count];
}

static void answer(struct fake *f, uint8_t which, uint8_t choice)
{
	size_t i = fake_oldest(f), skip = which % 4;

	for (size_t j = i; j < f->count && skip; j++) {
		if (!f->calls[j].answered) {
			i = j;
			skip--;
		}
	}
	i = first_of_its_key(f, i);
	struct result r = { .status = status_for(f->calls[i].call.verb, choice),
		.cas = choice,
		.number = choice,
		.ttl = TTL_NEVER };
	if (choice >= 224)
		r.status = failures[choice % 6];
	if (r.status == RESULT_HIT)
		r.value = value_of(&f->calls[i].call, choice);
	if (f->calls[i].call.want & (WANT_SIZE | WANT_VALUE))
		r.size = r.value.n;
	r.line = r.status == RESULT_TEXT ? SLICE("EN") : SLICE("SERVER_ERROR x");
	f->connection = 1 + (choice > 200);
	fake_result(f, i, &r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct collection_options small = { .base_size = 40,
		.segment_size = 64,
		.log_size = 40,
		.table_size = 64,
		.cache = 4000,
		.merges = 2 };
	static struct fake f;
	struct slice in = slice_of((const char *)data, size);
	size_t asked = 0, answers = 0, compacts = 0;
	uint8_t last = 0;

	make_sets();
	fake_init(&f);
	if (input_byte(&in) % 2)
		fake_take(&f, &small);
	if (input_byte(&in) % 2)
		fake_has_time(&f);
	while (in.n) {
		uint8_t what = input_byte(&in);
		if (what % 2 && asked < REQUESTS_MAX) {
			const char *request =
				requests[what / 2 % (sizeof(requests) / sizeof(requests[0]))];
			/*
			 * A command that loses every race needs thousands of replies: the number of
			 * attempts times the number of calls of each.
			 */
			if (strncmp(request, "scompact", 8) == 0 && compacts++)
				continue;
			MUST(!fake_ask(&f, request));
			asked++;
		} else if (what >= 240) {
			(void)fake_pass(&f, what == 254 ? 60000 : what % 8);
		} else if (fake_waiting(&f)) {
			last = input_byte(&in);
			answer(&f, what, last);
			answers++;
		}
	}
	/*
	 * The remaining calls are all answered in the same way: even then they end, except
	 * background merges of a set that is reported as changed but never is. Those end when it is
	 * missing.
	 */
	while (fake_waiting(&f) || f.turn_count) {
		(void)fake_pass(&f, 1);
		if (fake_waiting(&f))
			answer(&f, 0, answers < ANSWERS_MAX / 2 ? last : 0);
		MUST(answers != ANSWERS_MAX / 2 || STAILQ_EMPTY(&f.tasks));
		MUST(++answers < ANSWERS_MAX);
	}
	fake_fini(&f);
	return 0;
}
