/* A log in two pieces, against the model. */
#include "collection/text/fold.h"
#include "input.h"
#include "model.h"

static void same_members(const struct fold *f, const struct model *m)
{
	struct buf got = BUF_EMPTY, expected = BUF_EMPTY;

	fold_join(f, &got);
	model_join(m, &expected);
	MUST(slice_equal(buf_slice(&got), buf_slice(&expected)));
	MUST(f->live == m->live && fold_joined_size(f) == buf_size(&got));
	for (size_t i = 0; i < m->count; i++)
		MUST(fold_contains(f, m->members[i].name) == m->members[i].in);
	buf_free(&got);
	buf_free(&expected);
}

static void folds_to_the_same(const struct fold *f, const struct model *m)
{
	struct fold again = { .seed = f->seed + 1 };
	struct buf log = BUF_EMPTY;

	fold_encode(f, false, &log);
	MUST(buf_size(&log) == fold_log_size(f, false));
	MUST(fold_log(&again, buf_slice(&log)));
	same_members(&again, m);
	MUST(fold_log_size(f, false) <= fold_log_size(f, true) && fold_log_size(f, true) <= f->bytes);
	MUST(again.bytes == fold_log_size(&again, false) && again.bytes == fold_log_size(&again, true));
	fold_free(&again);
	buf_free(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model model;
	struct slice in = slice_of((const char *)data, size < 2048 ? size : 2048);
	struct fold f = { .seed = input_byte(&in) };
	size_t cut = input_byte(&in) * in.n / 256;
	char *first = input_copy(slice_of(in.p, cut)), *second = input_copy(slice_skip(in, cut));

	model = (struct model){ .count = 0 };
	bool good = model_log(&model, slice_of(first, cut));
	MUST(fold_log(&f, slice_of(first, cut)) == good);
	if (good) {
		good = model_log(&model, slice_of(second, in.n - cut));
		MUST(fold_log(&f, slice_of(second, in.n - cut)) == good);
	}
	if (good) {
		same_members(&f, &model);
		folds_to_the_same(&f, &model);
	}
	fold_reset(&f);
	MUST(f.live == 0 && fold_joined_size(&f) == 0);
	fold_free(&f);
	free(first);
	free(second);
	return 0;
}
