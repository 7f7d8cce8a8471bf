#include "config/file_values.h"

#include <stdint.h>
#include <string.h>

#include "util/num.h"

/* A time to live is at most 30 days: memcached reads a larger time as a date. */
enum { TTL_MAX = 2592000, LOOKBACK_MAX = 10000 };

static const struct range {
	const char *name;
	long least, most;
} ranges[] = {
#define NUMBER(name, initial, least, most, unit, about) { #name, least, most },
#include "config/options.def"
#undef NUMBER
	{ "ttl", 0, TTL_MAX },
	{ "lookback", 1, LOOKBACK_MAX },
};

const struct file_word *file_word(const struct file_word *words, const char *text)
{
	while (words->word && strcmp(words->word, text) != 0)
		words++;
	return words->word ? words : NULL;
}

/* libconfuse's own numbers are octal behind a 0, and 0 if the text is empty. */
int file_number(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	const struct range *r = ranges;
	int64_t value;

	while (strcmp(r->name, cfg_opt_name(opt)) != 0)
		r++;
	if (!num_parse_i64(slice_of(text, strlen(text)), &value) || value < r->least || value > r->most) {
		cfg_error(
			cfg, "%s = %s: a decimal number from %ld to %ld is allowed", r->name, text, r->least, r->most);
		return -1;
	}
	*(long *)result = (long)value;
	return 0;
}

int file_check_word(cfg_t *cfg, cfg_opt_t *opt, const struct file_word *words)
{
	const char *text = cfg_opt_getnstr(opt, 0);
	char known[128] = "";

	if (file_word(words, text))
		return 0;
	for (; words->word; words++) {
		strncat(known, known[0] ? ", " : "", sizeof(known) - strlen(known) - 1);
		strncat(known, words->word, sizeof(known) - strlen(known) - 1);
	}
	cfg_error(cfg, "%s = \"%s\" is not known, only: %s", cfg_opt_name(opt), text, known);
	return -1;
}
