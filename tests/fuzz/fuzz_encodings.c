/*
 * The adopted encodings. The input changes bytes of a stored set, which is then read or rejected.
 * If it is read, a compaction that stops after any step must not change the set, and a change and
 * a replacement must have their effect.
 */
#include "box.h"
#include "input.h"

enum { WORLD = 8 };

static struct slice name_of(unsigned member)
{
	return slice_of(&"abcdefgh"[member % WORLD], 1);
}

static void random_fold(struct fold *f, struct slice *in, bool adds, bool removes)
{
	for (unsigned n = input_byte(in) % 6; n > 0; n--) {
		unsigned byte = input_byte(in);
		bool add = adds && (!removes || byte & 128);
		(add ? fold_add : fold_remove)(f, name_of(byte));
	}
}

/* Writes a digit for each member: 1 if it is in the set. False when the set is refused. */
static bool text_of(struct box *box, struct buf *text)
{
	struct fold f = { 0 };
	struct snapshot s;
	bool good = box_fold(box, &s, &f) == ADOPTED_OK;

	buf_consume(text, buf_size(text));
	for (unsigned m = 0; m < WORLD && good; m++)
		buf_add(text, fold_contains(&f, name_of(m)) ? "1" : "0", 1);
	fold_free(&f);
	snapshot_free(&s);
	return good;
}

/* An item that is there or was; NULL if there never was one. */
static struct memcached_item *some_item(struct box *box, struct slice *in)
{
	struct memcached_item *items[UINT8_MAX];
	size_t count = 0;

	for (size_t i = 0; i < MEMCACHED_ITEMS && count < UINT8_MAX; i++) {
		if (buf_size(&box->memcached.items[i].key))
			items[count++] = &box->memcached.items[i];
	}
	return count ? items[input_byte(in) % count] : NULL;
}

static void spoil(struct box *box, struct slice *in)
{
	static const char bytes[] = "+-,|^ abcdefgh0123s.\n\x7f";

	for (unsigned n = input_byte(in) % 4; n > 0; n--) {
		struct memcached_item *item = some_item(box, in);
		if (!item)
			return;
		size_t size = buf_size(&item->value), at = input_byte(in);
		char *p = size ? item->value.data + item->value.start : NULL;
		unsigned how = input_byte(in);
		if (how % 8 == 7)
			item->used = !item->used;
		else if (size && how % 8 == 6)
			item->value.end -= at % size;
		else if (size)
			p[at % size] = bytes[how % (sizeof(bytes) - 1)];
	}
}

/* Changed bytes may make members with other names, which do not count here. */
static void lives_on(struct box *box, struct slice *in, struct buf *text)
{
	struct fold change = { .seed = 5 }, members = { .seed = 6 };
	struct buf after = BUF_EMPTY;
	enum adopted_status status;

	for (unsigned n = 0; n < 30 && box_compact(box, 1 + input_byte(in) % 3, &status); n++) {
		MUST(text_of(box, &after));
		MUST(slice_equal(buf_slice(&after), buf_slice(text)));
	}
	random_fold(&change, in, true, true);
	status = change.member_count ? box_change(box, &change, true) : ADOPTED_OK;
	MUST(status == ADOPTED_OK && text_of(box, &after));
	for (unsigned m = 0; m < WORLD; m++) {
		bool live = text->data[text->start + m] == '1';
		(void)fold_mentions(&change, name_of(m), &live);
		MUST((after.data[after.start + m] == '1') == live);
	}
	random_fold(&members, in, true, false);
	if (members.member_count) {
		MUST(box_replace(box, &members) == ADOPTED_OK && text_of(box, &after));
		for (unsigned m = 0; m < WORLD; m++)
			MUST((after.data[after.start + m] == '1') ==
				fold_contains(&members, name_of(m)));
	}
	fold_free(&change);
	fold_free(&members);
	buf_free(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size < 512 ? size : 512);
	struct buf text = BUF_EMPTY;
	struct box box;
	enum adopted_status status;

	box_init(&box, input_byte(&in) % BOX_FORMS);
	for (unsigned n = 1 + input_byte(&in) % 12; n > 0; n--) {
		struct fold change = { .seed = 5 };
		random_fold(&change, &in, true, true);
		if (change.member_count)
			MUST(box_change(&box, &change, true) == ADOPTED_OK);
		fold_free(&change);
		if (input_byte(&in) % 4 == 0)
			(void)box_compact(&box, 1 + input_byte(&in) % 3, &status);
	}
	spoil(&box, &in);
	if (text_of(&box, &text))
		lives_on(&box, &in, &text);
	buf_free(&text);
	box_free(&box);
	return 0;
}
