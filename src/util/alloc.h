/*
 * Allocation that cannot fail: the process aborts when it is out of memory, since all state is
 * in memcached and a restart is cheap.
 */
#ifndef UTIL_ALLOC_H
#define UTIL_ALLOC_H

#include <stddef.h>

/* As malloc, calloc, realloc and strdup. The caller owns the result and frees it with free(). */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
/* Returns a copy of a string, owned by the caller. */
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

/*
 * Ends the process when there is no memory. The version in util/log.c logs that first; programs
 * that are not linked with it end silently.
 */
void alloc_failed(size_t size) __attribute__((noreturn));

#endif
