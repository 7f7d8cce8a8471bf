#include "measure/sums.h"

#include "util/num.h"

static const struct slice names[SUMS] = {
#define SUM(name) [SUM_##name] = { #name, sizeof(#name) - 1 },
#include "measure/facts.def"
};

void sums_add(struct sums *sums, struct slice stats)
{
	while (stats.n) {
		struct slice line = slice_cut(&stats, '\n'), word = slice_token(&line), name = slice_token(&line);
		struct slice number = slice_cut(&line, '\r');
		uint64_t value;

		(void)word;
		for (enum sum i = 0; i < SUMS; i++) {
			if (slice_equal(name, names[i]) && num_parse_u64(slice_token(&number), &value))
				sums->values[i] += value;
		}
	}
}
