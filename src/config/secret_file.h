/* Files with passwords: read only if nobody else can read them. */
#ifndef CONFIG_SECRET_FILE_H
#define CONFIG_SECRET_FILE_H

#include <stdbool.h>

#include "util/buf.h"

/*
 * Appends the content of a regular file of up to `most` bytes, on which neither its group nor others have any right. On an error
 * gives false, with the reason, and the mode if that is the reason, in `error`. secret_file_forget frees the text.
 */
bool secret_file_read(const char *path, size_t most, struct buf *text, char error[256])
	__attribute__((warn_unused_result));

/* Overwrites and frees the text. */
void secret_file_forget(struct buf *text);

#endif
