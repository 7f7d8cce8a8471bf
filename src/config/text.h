/*
 * The text of a configuration file, before libconfuse reads it. libconfuse counts a comment as three lines, takes none inside of
 * a list, and does not notice a section or comment that the end of the file cuts off.
 */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include "util/slice.h"

struct config_text {
	unsigned line; /* of the error, or else the last one */
	long open;     /* braces that are not closed */
};

/*
 * Overwrites the comments of the `n` bytes with spaces, and keeps their line ends. A zero byte must follow them. Gives NULL, or the
 * error: a constant text. `found` is set in any case.
 */
const char *config_text_clean(char *text, size_t n, struct config_text *found);

/*
 * Overwrites the statement of an option or section that begins with this name on that line of a clean text, which a zero byte ends.
 * Gives false if there is none.
 */
bool config_text_drop(char *text, unsigned line, const char *name) __attribute__((warn_unused_result));

#endif
