/*
 * Writing runs: the entries that were added are written, in tables of a limited size, and an index
 * if there are several.
 */
#include "collection/set/run_writer.h"

#include "collection/text/packed.h"
#include "serving.h"
#include "set_model.h"
#include "util/check.h"
#include "util/random.h"

static struct collection_options options = { .log_size = 250, .table_size = 300, .merges = 1 };
static struct run_writer writer;
static struct table_model model;
static size_t told;

static void setup(void)
{
	serving_setup(&options);
}

static void answered(void *arg)
{
	ck_assert_ptr_eq(arg, &told);
	told++;
}

static void begin(int64_t exptime)
{
	told = 0;
	run_writer_init(&writer, fake.host.lanes, SLICE("k"), exptime, answered, &told);
}

/* --- written runs, read back without the writer's code --- */

/*
 * Checks that a table has the entries of the model from `at` on, and that its fence has their
 * dates. Returns the sum of these.
 */
static uint64_t has_table(const struct fence *fence, size_t at)
{
	static struct buf text;
	struct memcached_item *found = stored_item(&server, slice_of(fence->id, OPLOG_ID));
	uint32_t dated = 0, first = UINT32_MAX;
	uint64_t sum = 0;
	struct table_cursor c;
	struct table t;

	ck_assert(found && packed_open(&t, buf_slice(&found->value), &text));
	ck_assert(t.count == fence->entries && at + t.count <= model.count);
	for (bool more = table_first(&c, &t); more; more = table_next(&c), at++) {
		const struct table_model_entry *entry = &model.list[at];
		ck_assert(slice_equal(table_member(&c), table_model_name(&model, at)));
		ck_assert(c.removed == entry->removed);
		ck_assert_uint_eq(table_date(&t, c.at), entry->date);
		dated += entry->date > 0;
		sum += entry->date;
		first = entry->date && entry->date < first ? entry->date : first;
	}
	ck_assert_uint_eq(fence->dated, dated);
	ck_assert_uint_eq(fence->mean_date, dated ? sum / dated : 0);
	ck_assert_uint_eq(fence->first_date, dated ? first : 0);
	return sum;
}

/* Checks that the tables of a run have the entries of the model. Returns the sum of the dates. */
static uint64_t has_tables(const struct oplog_run *run)
{
	uint64_t sum = 0;
	struct fences fences;
	size_t at = 0;

	if (run->tables && !run->indexed) {
		struct fence fence = { .entries = (uint32_t)run->entries,
			.dated = (uint32_t)run->dated,
			.mean_date = (uint32_t)run->mean };
		/* A reference does not have the first date. */
		for (size_t i = 0; i < model.count; i++) {
			uint32_t date = model.list[i].date;
			if (date && (!fence.first_date || date < fence.first_date))
				fence.first_date = date;
		}
		memcpy(fence.id, run->id.p, OPLOG_ID);
		ck_assert_uint_eq(fence.entries, model.count);
		return has_table(&fence, 0);
	}
	if (!run->indexed)
		return 0;
	ck_assert(fences_read(&fences, buf_slice(&stored_item(&server, run->id)->value)));
	for (size_t i = 0; i < fences.count; at += fences.list[i++].entries)
		sum += has_table(&fences.list[i], at);
	ck_assert(fences.entries == at && at == model.count && fences.dated == run->dated);
	fences_free(&fences);
	return sum;
}

/*
 * Returns the run, whose tables must have the entries of the model. The mean of the dates of tables
 * that are reused is rounded down, and so is that of the run.
 */
static struct oplog_run run_has_all(void)
{
	static struct buf base;
	struct oplog_run run = { .tables = 0 };
	struct slice rest;
	size_t dated = 0;
	uint64_t mean;

	buf_consume(&base, buf_size(&base));
	oplog_add_mark(&base, false, writer.parts.wide);
	run_writer_ref(&writer, &base);
	server_put(&server, SLICE("k"), buf_slice(&base));
	rest = slice_skip(buf_slice(&base), strlen(OPLOG_SET_MARK));
	ck_assert(oplog_next_run(&rest, &run) == (model.count > 0) && rest.n == 0);
	/* The items match their references. */
	ck_assert_ptr_nonnull(stored_show(&server));
	server_find(&server, SLICE("k"))->used = false;
	for (size_t i = 0; i < model.count; i++)
		dated += model.list[i].date > 0;
	mean = has_tables(&run);
	ck_assert_uint_eq(run.dated, dated);
	mean = dated ? mean / dated : 0;
	ck_assert(run.mean == mean || (dated && run.mean + 1 == mean));
	ck_assert(writer.parts.wide || !dated);
	return run;
}

static void add_all(void)
{
	for (size_t i = 0; i < model.count; i++)
		run_writer_add(&writer, table_model_name(&model, i), model.list[i].removed,
			model.list[i].date);
}

/* --- runs --- */

TEST(nothing)
{
	begin(0);
	run_writer_finish(&writer);
	ck_assert(writer.finished && writer.parts.pending == 0 && writer.run.tables == 0);
	(void)run_has_all();
	server_hears_nothing();
	part_writer_forget(&writer.parts);
	part_writer_follow(&writer.parts, 5);
	server_hears_nothing();
	run_writer_fini(&writer);
}

TEST(one_table)
{
	table_model_add(&model, SLICE("a"), false);
	table_model_add(&model, SLICE("b"), true);
	begin(77);
	add_all();
	server_hears_nothing();
	run_writer_finish(&writer);
	ck_assert_uint_eq(writer.parts.pending, 1);
	const struct call *call = &fake.calls[0].call;
	ck_assert(call->verb == CALL_ADD && call->exptime == 87 && call->flags == 0);
	ck_assert(slice_starts(call->key, SLICE("k.t")) && call->key.n == 2 + OPLOG_ID);
	server_answer_all(&server);
	ck_assert(writer.parts.pending == 0 && told == 1 && !writer.parts.failure.happened);
	struct oplog_run run = run_has_all();
	ck_assert(!run.indexed && run.tables == 1);
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->segments_written, 1);
	run_writer_fini(&writer);
}

/*
 * Tables are full, and not larger than permitted; only an entry that is too long is in a table of
 * its own.
 */
static void sizes(const struct oplog_run *run)
{
	struct fences fences;
	size_t at = 0;

	if (!run->indexed) {
		ck_assert(run->bytes <= options.table_size || model.count == 1);
		return;
	}
	ck_assert(fences_read(&fences, buf_slice(&stored_item(&server, run->id)->value)));
	for (size_t i = 0; i < fences.count; i++) {
		const struct fence *fence = &fences.list[i];
		at += fence->entries;
		ck_assert(fence->bytes <= options.table_size || fence->entries == 1);
		/*
		 * The next entry would not have fitted: its name, its numbers, and a restart point;
		 * or the dates of all entries if it is the first that has one.
		 */
		if (i + 1 < fences.count) {
			size_t dates = fence->dated   ? 1
				: model.list[at].date ? fence->entries + 1
						      : 0;
			ck_assert_uint_gt(fence->bytes + model.list[at].size + 8 + 4 * dates,
				options.table_size);
		}
	}
	fences_free(&fences);
}

LOOP_TEST(runs_of_all_kinds, 2)
{
	size_t packed = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;
		table_model_random(&model, &random);
		table_model_random_dates(&model, &random);
		options.table_size = 60 + random_next(&random) % 2000;
		options.pack_size = _i ? 1 + random_next(&random) % 200 : 0;
		begin(0);
		add_all();
		run_writer_finish(&writer);
		server_answer_all(&server);
		ck_assert(writer.finished && writer.parts.pending == 0 &&
			!writer.parts.failure.happened);
		struct oplog_run run = run_has_all();
		ck_assert(run.indexed == (run.tables > 1));
		packed += stored_packed();
		sizes(&run);
		/* All written items are deleted again, and no others. */
		ck_assert_uint_eq(server_items(&server, ""), run.tables + run.indexed);
		part_writer_forget(&writer.parts);
		server_answer_all(&server);
		ck_assert_uint_eq(server_items(&server, ""), 0);
		run_writer_fini(&writer);
		server_free(&server);
	}
	ck_assert(_i ? packed > 100 : packed == 0);
}

/* A table is packed from pack_size on, and kept in the view as it was before. */
TEST(packed)
{
	enum { BYTES_OF_TEN = 2 + 4 + 9 * 3 + 4 + 4 };

	for (int more = 0; more < 2; more++) {
		model.count = 0;
		for (char digit = '0'; digit <= '9'; digit++)
			table_model_add(&model, slice_of((char[]){ 'm', digit }, 2), digit == '3');
		options.table_size = 2000;
		begin(0);
		writer.pack_size = BYTES_OF_TEN + (size_t)more;
		add_all();
		run_writer_finish(&writer);
		server_answer_all(&server);
		struct oplog_run run = run_has_all();
		ck_assert_uint_eq(run.bytes, BYTES_OF_TEN);
		ck_assert_uint_eq(stored_packed(), !more);
		ck_assert(writer.parts.wide == !more);
		run_writer_fini(&writer);
		server_free(&server);
	}
}

static void fill(const struct fold *fold, bool removals)
{
	run_writer_fill(&writer, fold, removals);
	while (!run_writer_fill_step(&writer))
		;
}

TEST(folds)
{
	struct fold fold = { .seed = 1 };

	ck_assert(fold_log(&fold,
		SLICE("+c\x02"
		      "1424450096 -a +b +d\x02"
		      "1424450096 -d ")));
	begin(0);
	fill(&fold, true);
	run_writer_finish(&writer);
	server_answer_all(&server);
	table_model_add(&model, SLICE("a"), true);
	table_model_add(&model, SLICE("b"), false);
	table_model_add(&model, SLICE("c"), false);
	model.list[2].date = 1424450096;
	table_model_add(&model, SLICE("d"), true);
	(void)run_has_all();
	run_writer_fini(&writer);
	begin(0);
	fill(&fold, false);
	run_writer_finish(&writer);
	server_answer_all(&server);
	model.count = 0;
	table_model_add(&model, SLICE("b"), false);
	table_model_add(&model, SLICE("c"), false);
	model.list[1].date = 1424450096;
	(void)run_has_all();
	run_writer_fini(&writer);
	fold_free(&fold);
}

/* --- tables that are reused --- */

/* Puts the model into the cupboard as a run, and its items to the server. */
static struct oplog_run other_run(uint64_t *random)
{
	struct oplog_run run =
		cupboard_run(&cupboard, &model, 1 + random_next(random) % 60, random);

	stored_put(&server, &cupboard, "", &run, 1, "");
	server_find(&server, SLICE("k"))->used = false;
	return run;
}

/* From here on, the model lacks the entries of the first tables. */
static void leave_out(const struct fences *fences, size_t tables)
{
	size_t entries = fences->list[tables].before;

	model.count -= entries;
	memmove(model.list, model.list + entries, model.count * sizeof(model.list[0]));
}

/*
 * Each table from one on is reused, if permitted, or its entries are added. Returns how many were
 * reused.
 */
static size_t take_over(const struct fences *fences, size_t from, uint64_t *random)
{
	size_t at = 0, adopted = 0;

	for (size_t i = from; i < fences->count; i++) {
		const struct fence *fence = &fences->list[i];
		size_t small = options.table_size / 2;
		bool taken = random_next(random) % 3 && run_writer_reuse(&writer, fence);
		ck_assert(!taken || fence->bytes >= small);
		adopted += taken;
		for (size_t k = at; k < at + fence->entries && !taken; k++)
			run_writer_add(&writer, table_model_name(&model, k), model.list[k].removed,
				model.list[k].date);
		at += fence->entries;
	}
	return adopted;
}

TEST(taking_over)
{
	size_t adopted_ever = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;
		struct fences fences;
		table_model_random(&model, &random);
		table_model_random_dates(&model, &random);
		if (model.count == 0)
			continue;
		options.table_size = 60 + random_next(&random) % 600;
		struct oplog_run run = other_run(&random);
		if (!run.indexed)
			continue;
		ck_assert(fences_read(&fences, buf_slice(&cupboard_find(&cupboard, run.id)->data)));
		size_t before = server_items(&server, "");
		size_t from = random_next(&random) % 2 ? random_next(&random) % fences.count : 0;
		leave_out(&fences, from);
		begin(0);
		size_t adopted = take_over(&fences, from, &random);
		run_writer_finish(&writer);
		server_answer_all(&server);
		struct oplog_run written = run_has_all();
		ck_assert_uint_eq(server_items(&server, "") - before,
			written.tables - adopted + (written.indexed && written.tables > 1));
		part_writer_forget(&writer.parts);
		server_answer_all(&server);
		ck_assert_uint_eq(server_items(&server, ""), before);
		run_writer_fini(&writer);
		fences_free(&fences);
		cupboard_free(&cupboard);
		server_free(&server);
		adopted_ever += adopted;
	}
	ck_assert_uint_gt(adopted_ever, 100);
}

/* --- times to live, failures --- */

static void write_some(int64_t exptime)
{
	model.count = 0;
	for (int i = 0; i < 60; i++) {
		char name[16];
		table_model_add(&model,
			slice_of(name, (size_t)snprintf(name, sizeof(name), "m%04d", i)), false);
	}
	options.table_size = 100;
	begin(exptime);
	add_all();
	run_writer_finish(&writer);
}

TEST(times_to_live)
{
	write_some(100);
	server_answer_all(&server);
	fake_calls(&fake);
	/* 30 seconds have passed without a touch. */
	fake.host.env.now += 30000;
	part_writer_follow(&writer.parts, 70);
	server_hears_nothing();
	part_writer_follow(&writer.parts, 71);
	server_hears_nothing();
	part_writer_follow(&writer.parts, 500);
	ck_assert_uint_eq(fake_waiting(&fake), server_items(&server, ""));
	for (size_t i = fake_oldest(&fake); i < fake.count; i++)
		ck_assert(
			fake.calls[i].call.verb == CALL_TOUCH && fake.calls[i].call.exptime == 510);
	server_answer_all(&server);
	part_writer_follow(&writer.parts, TTL_NEVER);
	ck_assert_uint_eq(fake_waiting(&fake), server_items(&server, ""));
	ck_assert_int_eq(fake.calls[fake_oldest(&fake)].call.exptime, 0);
	server_answer_all(&server);
	/* It is unknown, or it has expired. */
	fake_calls(&fake);
	part_writer_follow(&writer.parts, TTL_UNKNOWN);
	part_writer_follow(&writer.parts, 0);
	server_hears_nothing();
	run_writer_fini(&writer);
}

/* The first failure is kept, with its text; an id that is in use is one too. */
TEST(failures)
{
	write_some(0);
	size_t count = fake.count;
	for (size_t i = 0; i < count; i++) {
		char line[] = "SERVER_ERROR 0";
		line[13] = (char)('0' + i % 10);
		struct result r = { .status = i < 2 ? RESULT_DONE : RESULT_REFUSED,
			.line = slice_of(line, 14) };
		fake_result(&fake, i, &r);
		memset(line, '#', sizeof(line));
		ck_assert(writer.parts.failure.happened == (i >= 2) &&
			writer.parts.pending == count - 1 - i && told == i + 1);
	}
	ck_assert_int_eq(writer.parts.failure.result.status, RESULT_REFUSED);
	assert_bytes(writer.parts.failure.result.line, "SERVER_ERROR 2");
	run_writer_fini(&writer);
	write_some(0);
	fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_NOT_STORED });
	ck_assert(
		writer.parts.failure.happened && writer.parts.failure.result.status == RESULT_BUSY);
	server_answer_all(&server);
	run_writer_fini(&writer);
}

FIXTURE(setup, serving_teardown)
