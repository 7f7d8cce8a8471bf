/* The live page, which is in the binary. page.html has all of it: text, style and script. */
#ifndef PROCESS_PAGE_H
#define PROCESS_PAGE_H

#include "util/buf.h"

/* Appends the page; its style and its script get the nonce, which the browser compares with the policy in the header. */
void page_print(const char *nonce, struct buf *out);

#endif
