#include "collection/chain_store.h"

/* Segments of which no more than these are read at once are kept: those at the ends of a list, and where one looks around. */
enum { SHELVED_MAX = 2, SHELF_PART = 8 };

static struct host *host_of(const struct chain_store *store)
{
	return lane_host(store->lane);
}

void chain_store_fini(struct chain_store *store)
{
	segments_destroy(store->segments);
	store->segments = NULL;
	if (store->writes)
		segment_writer_fini(&store->writer);
	store->writes = false;
	chain_free(&store->chain);
}

/* --- loading --- */

static void take_from_shelf(struct chain_store *store)
{
	struct lanes *lanes = store->lane->lanes;
	struct buf key = BUF_EMPTY;

	for (size_t i = 0; i < store->chain.part_count; i++) {
		struct chain_part *part = &store->chain.parts[i];
		struct pack *pack;
		if (!part->wanted)
			continue;
		buf_consume(&key, buf_size(&key));
		buf_add_slice(&key, store->lane->waiter.key);
		BUF_ADD(&key, ".");
		buf_add_slice(&key, part->id);
		pack = shelf_find(&lanes->shelf, buf_slice(&key), host_of(store)->now);
		if (pack && chain_load(part, pack))
			part->wanted = false;
	}
	buf_free(&key);
}

static bool load(struct chain_store *store, struct chain_part *part, struct segment *segment)
{
	struct pack *pack = pack_create(buf_slice(&segment->data), &segment->data);
	struct host *host = host_of(store);
	bool good = pack && chain_load(part, pack);

	part->wanted = false;
	if (good && store->segments->count <= SHELVED_MAX)
		shelf_put(&store->lane->lanes->shelf, segment->waiter.key, pack, host->now,
			host->options->cache / SHELF_PART);
	pack_release(pack);
	return good;
}

static void loaded(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct chain_store *store = lane->work;
	struct segment *segment = segments->list;
	bool good = true;

	if (segments->failed || segments->missing) {
		store->done(lane, segments->failed ? OUTCOME_FAILED : OUTCOME_MISSING, &segments->failure);
		return;
	}
	for (size_t i = 0; i < store->chain.part_count && good; i++) {
		if (store->chain.parts[i].wanted)
			good = load(store, &store->chain.parts[i], segment++);
	}
	store->done(lane, good ? OUTCOME_DONE : OUTCOME_CORRUPT, NULL);
}

void chain_store_load(struct chain_store *store, lane_after *done)
{
	struct buf ids = BUF_EMPTY;

	take_from_shelf(store);
	for (size_t i = 0; i < store->chain.part_count; i++) {
		const struct chain_part *part = &store->chain.parts[i];
		if (!part->wanted)
			continue;
		buf_add_slice(&ids, part->id);
		BUF_ADD(&ids, " ");
	}
	store->done = done;
	if (buf_size(&ids) == 0) {
		done(store->lane, OUTCOME_DONE, NULL);
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
	struct chain_store *store = lane->work;

	if (writer->pending)
		return;
	if (writer->failed)
		segments_forget_all(lane->lanes, lane->waiter.key, buf_slice(&writer->refs));
	store->done(lane, writer->failed ? OUTCOME_FAILED : OUTCOME_DONE, &writer->failure);
}

static void write_part(struct chain_store *store, struct chain_part *part)
{
	struct buf log = BUF_EMPTY;

	part->refs_from = buf_size(&store->writer.refs);
	chain_part_log(part, &log);
	segment_writer_add(&store->writer, buf_slice(&log));
	part->refs_to = buf_size(&store->writer.refs);
	buf_free(&log);
}

void chain_store_write(struct chain_store *store, int64_t exptime, lane_after *done)
{
	struct lane *lane = store->lane;

	store->done = done;
	for (size_t i = 0; i < store->chain.part_count; i++) {
		struct chain_part *part = &store->chain.parts[i];
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

void chain_store_encode(const struct chain_store *store, struct buf *out)
{
	chain_encode(&store->chain, store->writes ? buf_slice(&store->writer.refs) : slice_of("", 0), out);
}

void chain_store_committed(struct chain_store *store, int64_t ttl)
{
	struct buf refs = BUF_EMPTY;

	if (store->writes)
		segment_writer_follow(&store->writer, ttl);
	chain_dropped(&store->chain, &refs);
	segments_forget_all(store->lane->lanes, store->lane->waiter.key, buf_slice(&refs));
	buf_free(&refs);
}

void chain_store_undo(struct chain_store *store)
{
	if (store->writes)
		segments_forget_all(store->lane->lanes, store->lane->waiter.key, buf_slice(&store->writer.refs));
}
