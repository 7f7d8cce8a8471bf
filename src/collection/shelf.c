#include "collection/shelf.h"

#include "util/hash.h"

static void clear(struct shelf *shelf, struct shelf_place *place)
{
	if (!place->pack)
		return;
	shelf->memory -= pack_memory(place->pack);
	pack_release(place->pack);
	buf_free(&place->key);
	*place = (struct shelf_place){ 0 };
}

void shelf_free(struct shelf *shelf)
{
	for (size_t i = 0; i < SHELF_PLACES; i++)
		clear(shelf, &shelf->places[i]);
}

static struct shelf_place *find(struct shelf *shelf, struct slice key)
{
	uint64_t hash = hash_slice(key, 0);

	for (size_t i = 0; i < SHELF_PLACES; i++) {
		struct shelf_place *place = &shelf->places[i];
		if (place->pack && place->hash == hash && slice_equal(buf_slice(&place->key), key))
			return place;
	}
	return NULL;
}

struct pack *shelf_find(struct shelf *shelf, struct slice key, uint64_t now)
{
	struct shelf_place *place = find(shelf, key);

	if (!place)
		return NULL;
	if (now - place->put >= SHELF_FRESH) {
		clear(shelf, place);
		return NULL;
	}
	place->used = ++shelf->uses;
	return place->pack;
}

/* An empty place, or the one that was used longest ago. */
static struct shelf_place *oldest(struct shelf *shelf, bool in_use)
{
	struct shelf_place *found = NULL;

	for (size_t i = 0; i < SHELF_PLACES; i++) {
		struct shelf_place *place = &shelf->places[i];
		if (in_use && !place->pack)
			continue;
		if (!found || place->used < found->used)
			found = place;
	}
	return found;
}

void shelf_put(struct shelf *shelf, struct slice key, struct pack *pack, uint64_t now, size_t budget)
{
	struct shelf_place *place = find(shelf, key);

	if (pack_memory(pack) > budget)
		return;
	if (!place)
		place = oldest(shelf, false);
	clear(shelf, place);
	*place = (struct shelf_place){ .hash = hash_slice(key, 0), .put = now, .used = ++shelf->uses };
	place->pack = pack_share(pack);
	buf_add_slice(&place->key, key);
	shelf->memory += pack_memory(pack);
	while (shelf->memory > budget)
		clear(shelf, oldest(shelf, true));
}
