/*
 * Lists: the input chooses pushes, requests and compactions, which must change a stored list like an array. Then one byte of the
 * base is changed: it must be refused, or be a list that is written as it was read.
 */
#include <stdio.h>

#include "input.h"
#include "list_model.h"

enum { STEPS_MAX = 150 };

/* Some names are words with escapes; one is the empty element. */
static struct slice name(struct slice *in, char text[16])
{
	static const char *const ends[] = { "", "", "\001\102", "\001\042\001\102" };
	int n = input_byte(in) % 48;

	return n == 47 ? SLICE("\001!")
		       : slice_of(text, (size_t)snprintf(text, 16, "m%d%s", n % 12, ends[n / 12]));
}

static void step(struct list_model *m, struct slice *in)
{
	uint8_t what = input_byte(in);
	struct buf answer = BUF_EMPTY;
	char text[16], pivot[16];

	if (what < 140) {
		list_model_push(m, name(in, text), what % 2);
	} else if (what < 145) {
		list_model_srem(m, name(in, text));
	} else if (what < 165) {
		list_model_compact(m);
	} else {
		struct list_request request = {
			.verb = (enum list_verb)(what % (LIST_ROTATE + 1)),
			.start = (int8_t)input_byte(in),
			.stop = (int8_t)input_byte(in),
			.count = input_byte(in) % 8,
			.item = name(in, text),
			.pivot = name(in, pivot),
		};
		request.find = (struct list_find){ request.start ? request.start : 1, request.count,
			(uint8_t)request.stop, request.count % 2 };
		if (request.verb == LIST_INSERT)
			request.start &= 1;
		if (request.verb == LIST_TAKE || request.verb == LIST_ROTATE) {
			request.start = -(request.start & 1);
			request.stop = -(request.stop & 1);
		}
		list_model_ask(m, &request, &answer);
	}
	buf_free(&answer);
}

/* A list that is read, written and read again must stay the same. The first writing may normalise it. */
static void change_a_byte(const struct list_model *m, struct slice *in)
{
	struct slice base = buf_slice(&m->base);
	char *bytes = input_copy(base);
	struct buf first = BUF_EMPTY, second = BUF_EMPTY;
	struct segmented_list list, again;

	if (base.n)
		bytes[input_number(in) % base.n] = (char)input_byte(in);
	if (segmented_list_read(&list, slice_of(bytes, base.n))) {
		(void)segmented_list_count(&list);
		if (!list.tangled) {
			segmented_list_encode(&list, slice_of("", 0), false, &first);
			MUST(segmented_list_read(&again, buf_slice(&first)));
			MUST(segmented_list_count(&again) == segmented_list_count(&list) &&
				again.is_list == list.is_list &&
				(!list.is_list || again.wide == list.wide));
			segmented_list_encode(&again, slice_of("", 0), false, &second);
			MUST(slice_equal(buf_slice(&first), buf_slice(&second)));
			segmented_list_free(&again);
		}
	}
	segmented_list_free(&list);
	buf_free(&first);
	buf_free(&second);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct list_model m;
	struct slice in = slice_of((const char *)data, size);
	size_t base_size = 16 + input_byte(&in) % 64;

	list_model_init(&m, base_size, 32 + input_byte(&in) % 64);
	m.max = base_size % 4 ? 0 : base_size;
	m.newest_first = base_size % 8;
	for (int i = 0; i < STEPS_MAX && in.n > 8 && m.segment_count < LIST_MODEL_SEGMENTS - 64;
		i++)
		step(&m, &in);
	change_a_byte(&m, &in);
	list_model_fini(&m);
	return 0;
}
