/*
 * Packed tables. By the first byte: the input is opened as a stored table; or its members are
 * packed and unpacked, and then some bytes of the packed table are changed.
 */
#include "collection/text/packed.h"
#include "input.h"
#include "table_model.h"

/* Entries of a table that is read in all ways, and members of one: more take long. */
enum { WALKED_MAX = 40, MEMBERS_MAX = 64 };

static struct table_model model;

/* A table that opens is one in every respect, and can be packed again. */
static void any_stored(struct slice bytes)
{
	char *copy = input_copy(bytes);
	struct buf text = BUF_EMPTY, again = BUF_EMPTY, packed = BUF_EMPTY;
	struct table t, checked;

	if (packed_open(&t, slice_of(copy, bytes.n), &text)) {
		MUST(table_open(&checked, buf_slice(&text)) && checked.count == t.count);
		if (t.count <= WALKED_MAX)
			MUST(table_model_walks(&t, slice_of("5", 1)));
		if (t.count && packed_write(&packed, &t)) {
			MUST(packed_open(&checked, buf_slice(&packed), &again));
			MUST(slice_equal(buf_slice(&again), buf_slice(&text)));
		}
	}
	buf_free(&text);
	buf_free(&again);
	buf_free(&packed);
	free(copy);
}

/* Returns the date of the entry that was added last; the largest one depends on `how`. */
static uint32_t date_of(uint8_t how, uint8_t byte)
{
	enum { SIZES = 25 };

	return byte && !model.list[model.count - 1].removed
		? 1 + ((uint32_t)byte << how / 2 % SIZES)
		: EXPIRY_NONE;
}

/* Members of letters and sizes that the input chooses, or that follow each other. */
static void make_model(struct slice *in)
{
	unsigned letters = 1 + input_byte(in) % 130, first = '!' + input_byte(in) % 96u,
		 shortest = 1 + input_byte(in) % 130, more = input_byte(in) % 4;
	bool counts = input_byte(in) % 2, removals, dated;
	uint8_t how = input_byte(in);
	char name[MEMBER_WORD_MAX];
	uint64_t number = 0;

	removals = how % 2;
	dated = how >= 128;
	model.count = 0;
	memset(name, (int)first, sizeof(name));
	while (in->n > 1 && model.count < MEMBERS_MAX) {
		size_t size = shortest + (more ? input_byte(in) % (more * 16) : 0);
		number += 1 + input_byte(in) % 4;
		for (size_t i = 0; i < size; i++) {
			uint64_t digit = counts && size - i < 9 ? number >> 2 * (size - i - 1) & 3
				: counts                        ? 0
								: input_byte(in);
			name[i] = (char)(first + digit % letters % (256 - first));
		}
		table_model_add(&model, slice_of(name, size), removals && input_byte(in) % 3 == 0);
		if (dated)
			model.list[model.count - 1].date = date_of(how, input_byte(in));
	}
	table_model_sort(&model);
}

static void members(struct slice *in)
{
	struct buf written = BUF_EMPTY, packed = BUF_EMPTY, text = BUF_EMPTY;
	struct table_writer w = { .count = 0 };
	struct table t, opened;

	make_model(in);
	table_model_write(&model, 0, model.count, &w);
	table_writer_finish(&w, &written);
	MUST(table_open(&t, buf_slice(&written)));
	if (model.count && packed_write(&packed, &t)) {
		MUST(packed_open(&opened, buf_slice(&packed), &text));
		MUST(slice_equal(buf_slice(&text), buf_slice(&written)));
		for (int i = 0; i < 4; i++) {
			char *byte = packed.data + input_number(in) % buf_size(&packed),
			     good = *byte;
			*byte ^= (char)(1u << input_byte(in) % 8);
			any_stored(buf_slice(&packed));
			*byte = good;
		}
		any_stored(slice_of(packed.data, input_number(in) % buf_size(&packed)));
	}
	table_writer_free(&w);
	buf_free(&written);
	buf_free(&packed);
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);

	if (input_byte(&in) % 2 == 0)
		any_stored(in);
	else
		members(&in);
	return 0;
}
