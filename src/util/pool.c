#include "util/pool.h"

#include <stdlib.h>

#include "util/alloc.h"

/* The size class; POOL_CLASSES if the size is too large for any. */
static unsigned class_of(size_t size)
{
	unsigned class;

	if (size <= POOL_SMALLEST)
		return 0;
	class = 64 - (unsigned)__builtin_clzll((unsigned long long)(size - 1) / POOL_SMALLEST);
	return class < POOL_CLASSES ? class : POOL_CLASSES;
}

void *pool_get(struct pool *pool, size_t size)
{
	unsigned class = class_of(size);
	struct pool_free *p;

	if (class == POOL_CLASSES)
		return xmalloc(size);
	p = pool->free[class];
	if (!p)
		return xmalloc((size_t)POOL_SMALLEST << class);
	pool->free[class] = p->next;
	pool->kept[class]--;
	return p;
}

void pool_put(struct pool *pool, void *memory, size_t size)
{
	unsigned class = class_of(size);
	struct pool_free *p = memory;

	if (class == POOL_CLASSES || pool->kept[class] >= (unsigned)POOL_KEEP >> class) {
		free(memory);
		return;
	}
	p->next = pool->free[class];
	pool->free[class] = p;
	pool->kept[class]++;
}

void pool_free(struct pool *pool)
{
	for (unsigned class = 0; class < POOL_CLASSES; class ++) {
		while (pool->free[class]) {
			struct pool_free *p = pool->free[class];
			pool->free[class] = p->next;
			free(p);
		}
		pool->kept[class] = 0;
	}
}
