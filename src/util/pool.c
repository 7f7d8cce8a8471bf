#include "util/pool.h"

#include <stdlib.h>

#include "util/alloc.h"

/* The size class of a size, POOL_CLASSES when it is too large for any. */
static unsigned level_of(size_t size)
{
	unsigned level;

	if (size <= POOL_SMALLEST)
		return 0;
	level = 64 - (unsigned)__builtin_clzll((unsigned long long)(size - 1) / POOL_SMALLEST);
	return level < POOL_CLASSES ? level : POOL_CLASSES;
}

void *pool_get(struct pool *pool, size_t size)
{
	unsigned level = level_of(size);
	struct pool_free *p;

	if (level == POOL_CLASSES)
		return xmalloc(size);
	p = pool->free[level];
	if (!p)
		return xmalloc((size_t)POOL_SMALLEST << level);
	pool->free[level] = p->next;
	pool->kept[level]--;
	return p;
}

void pool_put(struct pool *pool, void *memory, size_t size)
{
	unsigned level = level_of(size);
	struct pool_free *p = memory;

	if (level == POOL_CLASSES || pool->kept[level] >= (unsigned)POOL_KEEP >> level) {
		free(memory);
		return;
	}
	p->next = pool->free[level];
	pool->free[level] = p;
	pool->kept[level]++;
}

void pool_free(struct pool *pool)
{
	for (unsigned level = 0; level < POOL_CLASSES; level++) {
		while (pool->free[level]) {
			struct pool_free *p = pool->free[level];
			pool->free[level] = p->next;
			free(p);
		}
		pool->kept[level] = 0;
	}
}
