/* A log in two pieces, against the model; and then members expire. */
#include "collection/text/fold.h"
#include "input.h"
#include "model.h"

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
	MUST(!good || model_agrees(&model, &f));
	for (int64_t now = (int64_t)f.seed; good && now <= UINT32_MAX; now += UINT32_MAX / 2) {
		size_t live = f.live;
		bool any = fold_expire(&f, now);
		model_expire(&model, now);
		MUST(model_agrees(&model, &f) && (any || f.live == live));
	}
	fold_reset(&f);
	MUST(f.live == 0 && fold_joined_size(&f) == 0);
	fold_free(&f);
	free(first);
	free(second);
	return 0;
}
