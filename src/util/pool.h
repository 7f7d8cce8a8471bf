/* Short-lived objects of many sizes: what was given back is used again before more is allocated. */
#ifndef UTIL_POOL_H
#define UTIL_POOL_H

#include <stddef.h>

/* Under AddressSanitizer nothing is kept, so that it sees what is used after it was given back. */
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
	unsigned kept[POOL_CLASSES]; /* how many lie in each list, POOL_KEEP at most */
};

/* All zeroes is an empty pool. Gives memory for `size` bytes, not cleared; the same size gives it back. */
void *pool_get(struct pool *pool, size_t size) __attribute__((returns_nonnull));
void pool_put(struct pool *pool, void *p, size_t size);

/* Frees what lies in the lists. */
void pool_free(struct pool *pool);

#endif
