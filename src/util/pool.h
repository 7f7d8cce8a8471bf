/*
 * A pool of short-lived objects: freed memory is reused. There is a free list for each multiple
 * of POOL_STEP bytes up to POOL_FINE, since rounding up to a power of two would waste up to
 * half of the cache, and one for each power of two above.
 */
#ifndef UTIL_POOL_H
#define UTIL_POOL_H

#include <stddef.h>

/* With AddressSanitizer the pool keeps nothing, so that use after pool_put() is detected. */
#if defined(__has_feature)
#define POOL_HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define POOL_HAS_ASAN 1
#else
#define POOL_HAS_ASAN 0
#endif

enum {
	POOL_STEP = 64, /* Bytes; a cache line. */
	POOL_FINE = 1024,
	POOL_CLASSES = POOL_FINE / POOL_STEP + 2,  /* The largest has 4 * POOL_FINE bytes. */
	POOL_KEEP = POOL_HAS_ASAN ? 0 : 512 * 1024 /* Maximum bytes in each list. */
};

struct pool {
	struct pool_free {
		struct pool_free *next;
	} * free[POOL_CLASSES];
	size_t kept[POOL_CLASSES]; /* Bytes in each list. */
};

/*
 * Returns `size` bytes, at least 1, not cleared. Freed with pool_put() and the same size. A
 * pool of all zeroes is empty.
 */
void *pool_get(struct pool *pool, size_t size) __attribute__((returns_nonnull));
void pool_put(struct pool *pool, void *p, size_t size);

/* Frees the memory in the lists. */
void pool_free(struct pool *pool);

#endif
