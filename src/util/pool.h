/* A pool of short-lived objects: memory that was given back is reused. A free list for each power of two. */
#ifndef UTIL_POOL_H
#define UTIL_POOL_H

#include <stddef.h>

/* With AddressSanitizer the pool keeps nothing, so that use after pool_put is found. */
#if defined(__has_feature)
#define POOL_HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define POOL_HAS_ASAN 1
#else
#define POOL_HAS_ASAN 0
#endif

enum { POOL_CLASSES = 6, POOL_SMALLEST = 128, POOL_KEEP = POOL_HAS_ASAN ? 0 : 4096 };

struct pool {
	struct pool_free {
		struct pool_free *next;
	} * free[POOL_CLASSES];
	unsigned kept[POOL_CLASSES]; /* the length of each list: at most POOL_KEEP, halved for each larger class */
};

/* Gives `size` bytes, not cleared. pool_put takes them back, with the same size. A pool of all zeroes is empty. */
void *pool_get(struct pool *pool, size_t size) __attribute__((returns_nonnull));
void pool_put(struct pool *pool, void *p, size_t size);

/* Frees the memory in the lists. */
void pool_free(struct pool *pool);

#endif
