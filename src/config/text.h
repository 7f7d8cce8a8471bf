/*
 * Prepares the text of a configuration file for libconfuse, which counts a comment as three
 * lines, accepts none inside a list, and does not notice a section or comment that is cut off
 * by the end of the file.
 */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include "util/slice.h"

/* Maximum bytes of a line. */
enum { CONFIG_LINE_MAX = 65536 };

struct config_text {
	unsigned line; /* Line of the error; without an error, the last line. */
	long open;     /* Number of unclosed braces. */
};

/*
 * Overwrites the comments in the `n` bytes with spaces, keeping their line ends. A zero byte
 * must follow. Returns NULL, or the error: a constant text. `found` is set in either case.
 */
const char *config_text_clean(char *text, size_t n, struct config_text *found);

/*
 * Overwrites the statement of the option or section that begins with this name on that line.
 * `text` is clean and zero-terminated. Returns false if there is none.
 */
bool config_text_drop(char *text, unsigned line, const char *name)
	__attribute__((warn_unused_result));

#endif
