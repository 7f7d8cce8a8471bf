#include "collection/list/store.h"

#include "collection/list/segment_cache.h"

/* The cache gets segments from small reads only: the ends of a list, and repeated reads of one place. */
enum { CACHED_MAX = 2, CACHE_FRACTION = 8 };

static struct env *env_of(const struct list_store *store)
{
	return lane_env(store->lane);
}

void list_store_fini(struct list_store *store)
{
	segments_destroy(store->segments);
	store->segments = NULL;
	if (store->writes)
		segment_writer_fini(&store->writer);
	store->writes = false;
	segmented_list_free(&store->list);
}

/* --- loading --- */

static void take_from_cache(struct list_store *store)
{
	struct lanes *lanes = store->lane->lanes;
	struct buf key = BUF_EMPTY;

	for (size_t i = 0; i < store->list.part_count; i++) {
		struct list_part *part = &store->list.parts[i];
		struct log_index *log_index;
		if (!part->needed)
			continue;
		buf_consume(&key, buf_size(&key));
		buf_add_slice(&key, store->lane->waiter.key);
		BUF_ADD(&key, ".");
		buf_add_slice(&key, part->id);
		log_index = segment_cache_find(lanes->segment_cache, buf_slice(&key), env_of(store)->now);
		if (log_index && segmented_list_load(part, log_index))
			part->needed = false;
	}
	buf_free(&key);
}

/* Somebody else has written over it. */
static bool is_changed(const struct list_store *store)
{
	const struct segment *segment = store->segments->list;

	for (size_t i = 0; i < store->list.part_count; i++) {
		const struct list_part *part = &store->list.parts[i];
		if (part->needed && !oplog_matches(part->check, buf_slice(&segment++->data)))
			return true;
	}
	return false;
}

static bool load(struct list_store *store, struct list_part *part, struct segment *segment)
{
	struct log_index *log_index = log_index_create(buf_slice(&segment->data), &segment->data);
	struct env *env = env_of(store);
	bool good = log_index && segmented_list_load(part, log_index);

	part->needed = false;
	if (good && store->segments->count <= CACHED_MAX)
		segment_cache_put(store->lane->lanes->segment_cache, segment->waiter.key, log_index, env->now,
			env->options->cache / CACHE_FRACTION);
	log_index_release(log_index);
	return good;
}

static void loaded(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct list_store *store = lane->work;
	struct segment *segment = segments->list;
	bool good = true;

	if (segments->failure.happened || segments->missing || is_changed(store)) {
		store->done(
			lane, segments->failure.happened ? OUTCOME_FAILED : OUTCOME_MISSING, &segments->failure.result);
		return;
	}
	for (size_t i = 0; i < store->list.part_count && good; i++) {
		if (store->list.parts[i].needed)
			good = load(store, &store->list.parts[i], segment++);
	}
	store->done(lane, good ? OUTCOME_DONE : OUTCOME_CORRUPT, NULL);
}

void list_store_load(struct list_store *store, lane_after *done)
{
	struct buf ids = BUF_EMPTY;

	take_from_cache(store);
	for (size_t i = 0; i < store->list.part_count; i++) {
		const struct list_part *part = &store->list.parts[i];
		if (!part->needed)
			continue;
		buf_add_slice(&ids, part->id);
		BUF_ADD(&ids, " ");
	}
	store->done = done;
	if (buf_size(&ids) == 0) {
		done(store->lane, OUTCOME_DONE, NULL);
		return;
	}
	if (segmented_list_repeats(&store->list)) {
		buf_free(&ids);
		done(store->lane, OUTCOME_CORRUPT, NULL);
		return;
	}
	segments_destroy(store->segments);
	store->segments = segments_create(store->lane->lanes, store->lane->waiter.key, buf_slice(&ids));
	buf_free(&ids);
	segments_call(store->segments, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, loaded, store->lane);
}

/* --- writing --- */

static void written(struct segment_writer *writer)
{
	struct lane *lane = writer->arg;
	struct list_store *store = lane->work;

	if (writer->pending)
		return;
	if (writer->failure.happened)
		segments_forget_all(lane->lanes, lane->waiter.key, buf_slice(&writer->refs));
	store->done(lane, writer->failure.happened ? OUTCOME_FAILED : OUTCOME_DONE, &writer->failure.result);
}

static void write_part(struct list_store *store, struct list_part *part)
{
	struct buf log = BUF_EMPTY;

	part->refs_from = buf_size(&store->writer.refs);
	list_part_log(part, &log);
	segment_writer_add(&store->writer, buf_slice(&log));
	part->refs_to = buf_size(&store->writer.refs);
	buf_free(&log);
}

void list_store_write(struct list_store *store, int64_t exptime, lane_after *done)
{
	struct lane *lane = store->lane;

	store->done = done;
	for (size_t i = 0; i < store->list.part_count; i++) {
		struct list_part *part = &store->list.parts[i];
		if (!part->rewritten || part->keep == 0)
			continue;
		if (!store->writes)
			segment_writer_init(&store->writer, lane->lanes, lane->waiter.key, exptime, written, lane);
		store->writes = true;
		write_part(store, part);
	}
	if (!store->writes)
		done(lane, OUTCOME_DONE, NULL);
}

void list_store_encode(const struct list_store *store, struct buf *out)
{
	segmented_list_encode(&store->list, store->writes ? buf_slice(&store->writer.refs) : slice_of("", 0), out);
}

void list_store_committed(struct list_store *store, int64_t ttl)
{
	struct buf refs = BUF_EMPTY;

	if (store->writes)
		segment_writer_follow(&store->writer, ttl);
	segmented_list_dropped(&store->list, &refs);
	segments_forget_all(store->lane->lanes, store->lane->waiter.key, buf_slice(&refs));
	buf_free(&refs);
}

void list_store_undo(struct list_store *store)
{
	if (store->writes)
		segments_forget_all(store->lane->lanes, store->lane->waiter.key, buf_slice(&store->writer.refs));
}
