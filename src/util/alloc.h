/* Allocation that cannot fail: without memory the process aborts, since all state is in memcached and a restart is cheap. */
#ifndef UTIL_ALLOC_H
#define UTIL_ALLOC_H

#include <stddef.h>

/* As malloc, calloc, realloc and strdup; the caller owns the result and frees it with free(). */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
/* A copy of a string. */
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

/*
 * What these do when there is no memory: ends the process. util/log.c has one that first says so; where that is not linked, as in
 * the pure library by itself, the process ends without a word.
 */
void alloc_failed(size_t size) __attribute__((noreturn));

#endif
