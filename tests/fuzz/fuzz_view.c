/*
 * Views of sets. The first byte selects the kind: the base and the items are arbitrary input; or
 * the items match the references of the base by check and counts, but their members are in the
 * wrong places; or it is a valid set that changes, and the answers are compared with the sorted
 * array.
 */
#include "collection/set/answer.h"
#include "collection/set/moment.h"
#include "collection/text/fences.h"
#include "input.h"
#include "set_model.h"
#include "util/check.h"

enum { RUNS_MAX = 5, TABLES_MAX = 6, MEMBERS_MAX = 40, CHANGES_MAX = 12, ROUNDS_MAX = 100 };

static struct set_store store;
static struct set_view view;
static struct cupboard cupboard;

static void begin(uint64_t seed)
{
	TAILQ_INIT(&store.used);
	set_view_init(&view, seed, &store);
}

static void end(void)
{
	set_view_free(&view);
	MUST(TAILQ_EMPTY(&store.used) && store.memory == 0);
}

static enum oplog_form update(struct slice base)
{
	char *copy = input_copy(base);
	enum oplog_form form = set_model_update(&view, slice_of(copy, base.n));

	free(copy);
	return form;
}

/* --- arbitrary input --- */

static struct slice member_of(struct slice *in)
{
	static const char letters[] = "abcdefgh~\x80\xff+-@.";
	static char names[256][2];
	uint8_t byte = input_byte(in);

	names[byte][0] = letters[byte % (sizeof(letters) - 1)];
	names[byte][1] = letters[byte / 16 % (sizeof(letters) - 1)];
	return slice_of(names[byte], 1 + byte % 2);
}

/* Dates around the moments of ask_some; of one in four members. */
static uint32_t date_of(uint8_t byte)
{
	return byte % 4 == 0 && byte ? 1000 + byte / 4u : EXPIRY_NONE;
}

static void random_request(struct set_request *r, struct slice *in)
{
	*r = (struct set_request){ .verb = (enum set_verb)(input_byte(in) % (SET_INFO + 1)),
		.random = input_byte(in) };
	r->count = input_byte(in) % 20;
	r->members = r->verb == SET_HAS || r->verb == SET_TTL ? member_of(in)
							      : SLICE("a b ab ~ \xff+ c");
	if (input_byte(in) % 2)
		r->range = (struct set_range){
			.from = member_of(in), .to = member_of(in), .after = true
		};
	r->range.has_to = r->range.to.n && input_byte(in) % 2;
	r->bytes = input_byte(in) % 4 ? 0 : input_byte(in);
	r->sign = input_byte(in) % 2 ? "-" : NULL;
}

/*
 * Loads an item from the cupboard, or from the input if there is none. Returns false if it is
 * rejected.
 */
static bool load(struct slice *in)
{
	bool good = view.want_count > 0;

	for (size_t i = 0; i < view.want_count && good; i++) {
		const struct cupboard_item *item =
			cupboard_find(&cupboard, set_view_want_id(&view, &view.wants[i]));
		struct slice data = item ? buf_slice(&item->data) : input_bytes(in, input_byte(in));
		char *copy = input_copy(data);
		good = set_view_load(&view, &view.wants[i], slice_of(copy, data.n));
		free(copy);
	}
	set_view_end_wants(&view);
	return good;
}

static void ask(struct slice *in)
{
	struct set_request r;
	int rounds = 0;

	random_request(&r, in);
	while (!set_answer(&view, &r)) {
		/* A missing item is wanted again. */
		MUST(view.want_count > 0 && ++rounds < ROUNDS_MAX);
		if (!load(in))
			break;
	}
	set_view_end_wants(&view);
	set_request_free(&r);
}

static void ask_some(struct slice *in)
{
	for (int n = 0; n < 10 && view.known; n++) {
		if (n % 3 == 2)
			set_view_advance(&view, 1000 + n * 6);
		ask(in);
	}
}

static void any_bytes(struct slice *in)
{
	struct slice base = input_bytes(in, input_byte(in) * 2u), more;
	struct buf longer = BUF_EMPTY;

	if (update(base) == OPLOG_GOOD)
		ask_some(in);
	/* It becomes longer, as a rule. */
	if (input_byte(in) % 4)
		buf_add_slice(&longer, base);
	more = input_bytes(in, input_byte(in));
	buf_add_slice(&longer, more);
	if (update(buf_slice(&longer)) == OPLOG_GOOD)
		ask_some(in);
	if (update(more) != OPLOG_GOOD)
		MUST(!view.known);
	ask_some(in);
	buf_free(&longer);
}

/* --- items that match their references, but are inconsistent --- */

static int by_name(const void *a, const void *b)
{
	return member_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void add_entry(struct table_writer *w, struct slice member, uint8_t how)
{
	table_writer_add(w, member, how % 3 == 0);
	table_writer_date(w, how % 3 ? date_of(how) : EXPIRY_NONE);
}

/* The index has other numbers than the table. */
static void alter_fence(struct fence *fence, uint8_t how)
{
	if (how < 128 || fence->removals == fence->entries) {
		fence->entries += how % 128u;
	} else if (fence->dated && how % 2) {
		fence->dated = fence->first_date = fence->mean_date = 0;
	} else {
		fence->dated = 1 + how % (fence->entries - fence->removals);
		fence->first_date = how % 16 < 8 ? 0 : 2000;
		fence->mean_date = 1 + fence->first_date;
	}
}

/* A table of members from the input, which is valid by itself, or arbitrary bytes. */
static struct slice put_table(struct slice *in, struct fence *fence)
{
	struct slice members[MEMBERS_MAX], id;
	struct table_writer w = { .count = 0 };
	size_t count = 1 + input_byte(in) % MEMBERS_MAX;
	struct buf data = BUF_EMPTY;

	for (size_t i = 0; i < count; i++)
		members[i] = member_of(in);
	qsort(members, count, sizeof(members[0]), by_name);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || member_compare(members[i - 1], members[i]) < 0)
			add_entry(&w, members[i], input_byte(in));
	}
	*fence = (struct fence){ .entries = w.count, .removals = w.removals, .dated = w.dated };
	if (w.dated) {
		fence->first_date = w.first_date;
		fence->mean_date = (uint32_t)(w.date_sum / w.dated);
	}
	if (input_byte(in) % 8 == 0)
		alter_fence(fence, input_byte(in));
	table_writer_finish(&w, &data);
	if (input_byte(in) % 8 == 0)
		buf_add_slice(&data, input_bytes(in, input_byte(in) % 8));
	fence->bytes = (uint32_t)buf_size(&data);
	fence->check = check_of(buf_slice(&data));
	id = cupboard_put(&cupboard, OPLOG_TABLE, buf_slice(&data));
	memcpy(fence->id, id.p, OPLOG_ID);
	table_writer_free(&w);
	buf_free(&data);
	return id;
}

/* Fences in order, as an index must have them, but nothing that the tables have to do with. */
static struct oplog_run put_run(struct slice *in)
{
	struct oplog_run run = { .tables = 1 + input_byte(in) % TABLES_MAX };
	struct fences_writer index = { .count = 0 };
	uint64_t dates = 0;
	char first[2] = { 0 };

	for (size_t i = 0; i < run.tables; i++) {
		struct fence fence;
		run.id = put_table(in, &fence);
		run.check = fence.check;
		fence.first = slice_of(first, i > 0);
		first[0] = (char)('a' + i);
		run.entries += fence.entries;
		run.removals += fence.removals;
		run.bytes += fence.bytes;
		run.dated += fence.dated;
		dates += (uint64_t)fence.dated * fence.mean_date;
		fences_add(&index, &fence);
	}
	run.mean = run.dated ? dates / run.dated : 0;
	run.indexed = run.tables > 1;
	if (run.indexed) {
		struct slice text = fences_text(&index);
		run.check = check_of(text);
		run.id = cupboard_put(&cupboard, OPLOG_INDEX, text);
	}
	fences_writer_free(&index);
	return run;
}

static void add_words(struct buf *base, struct slice *in, size_t most)
{
	for (size_t n = input_byte(in) % most; n > 0; n--) {
		uint8_t how = input_byte(in);
		buf_add(base, how % 3 ? "+" : "-", 1);
		buf_add_slice(base, member_of(in));
		if (how % 3)
			expiry_add(base, date_of(how));
		BUF_ADD(base, " ");
	}
}

/* Changes a reference to the same item, so that it contradicts the item. */
static void alter(struct oplog_run *run, unsigned how)
{
	uint64_t many = how & 4 ? UINT32_MAX : run->entries + 1;

	if (how & 1)
		run->entries = many;
	else if (run->indexed)
		run->tables = how & 4 ? UINT32_MAX : run->tables + 1;
	if (how & 2)
		run->removals = run->entries - run->removals;
	run->bytes += how & 8;
	if (how & 16 || run->removals + run->dated > run->entries) {
		run->dated = run->removals < run->entries && !run->dated;
		run->mean = run->dated * 1000;
	}
}

/* Refers to some runs. Returns whether one of them twice, which makes a base corrupt. */
static bool add_runs(struct buf *base, struct slice *in, const struct oplog_run *runs, size_t count)
{
	enum { ALTERED = 128 };
	unsigned used = 0, byte, bit;
	bool repeats = false;

	for (size_t i = input_byte(in) % 8; i > 0; i--) {
		byte = input_byte(in);
		bit = byte % count;
		struct oplog_run run = runs[bit];
		if (byte >= ALTERED)
			alter(&run, byte / RUNS_MAX);
		oplog_add_run(base, &run);
		repeats |= used >> bit & 1;
		used |= 1u << bit;
	}
	return repeats;
}

static void no_sense(struct slice *in)
{
	struct oplog_run runs[RUNS_MAX];
	size_t count = 1 + input_byte(in) % RUNS_MAX;

	for (size_t i = 0; i < count; i++)
		runs[i] = put_run(in);
	for (int n = 0; n < 4 && in->n; n++) {
		struct buf base = BUF_EMPTY;
		add_words(&base, in, 4);
		BUF_ADD(&base, OPLOG_SET_MARK);
		bool repeats = add_runs(&base, in, runs, count);
		add_words(&base, in, 20);
		MUST(update(buf_slice(&base)) == (repeats ? OPLOG_CORRUPT : OPLOG_GOOD));
		ask_some(in);
		while (!TAILQ_EMPTY(&store.used) && input_byte(in) % 4 == 0)
			set_part_drop(TAILQ_FIRST(&store.used));
		buf_free(&base);
	}
}

/* --- a set as it should be --- */

static void as_the_model(struct slice *in)
{
	static struct set_model model;
	struct buf members = BUF_EMPTY;
	struct set_request r;
	uint64_t seed = input_number(in);
	uint8_t runs = input_byte(in);

	set_model_init(&model, seed, runs % 7, runs >= 128);
	for (int n = 0; n < CHANGES_MAX && in->n; n++) {
		uint8_t what = input_byte(in);
		if (what % 2)
			set_model_append(&model, what / 16);
		else
			set_model_change(&model);
		MUST(update(buf_slice(&model.base)) == OPLOG_GOOD);
		for (what = input_byte(in) % 8; what > 0; what--) {
			set_model_request(&model, &r, &members);
			MUST(set_model_ask(&model, &view, &r) && set_model_agrees(&model, &r));
			set_request_free(&r);
			if (model.dated && what % 2)
				set_model_wait(&model, 1 + what);
		}
		while (!TAILQ_EMPTY(&store.used) && input_byte(in) % 8 == 0)
			set_part_drop(TAILQ_LAST(&store.used, set_parts));
	}
	buf_free(&members);
	set_model_fini(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);
	uint8_t how = input_byte(&in);

	begin(how);
	cupboard.random = how;
	if (how % 4 == 0)
		any_bytes(&in);
	else if (how % 4 == 1)
		no_sense(&in);
	else
		as_the_model(&in);
	end();
	cupboard_free(&cupboard);
	return 0;
}
