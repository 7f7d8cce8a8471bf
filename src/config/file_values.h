/* Values that several parts of the file have: words of a list, and numbers of a range. */
#ifndef CONFIG_FILE_VALUES_H
#define CONFIG_FILE_VALUES_H

#include <confuse.h>

/* One of the words that an option may be. NULL ends a list. */
struct file_word {
	const char *word;
	int value;
};

/* The entry of a word. NULL if it is not in the list. */
const struct file_word *file_word(const struct file_word *words, const char *text);

/* For a check: 0, or -1 behind an error that names the words that are known. */
int file_check_word(cfg_t *cfg, cfg_opt_t *opt, const struct file_word *words);

/* For CFG_INT_CB: parses a number of options.def or of a rule, and checks its range. */
int file_number(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result);

#endif
