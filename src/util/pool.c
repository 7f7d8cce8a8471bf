#include "util/pool.h"

#include <stdlib.h>

#include "util/alloc.h"

/*
 * Returns the size class; POOL_CLASSES or more if the size is too large for any. `size` is
 * rounded up to that of the class.
 */
static unsigned class_of(size_t *size)
{
	unsigned class = (unsigned)((*size - 1) / POOL_STEP), doublings;

	if (*size <= POOL_FINE) {
		*size = (size_t)(class + 1) * POOL_STEP;
		return class;
	}
	doublings = 64 - (unsigned)__builtin_clzll((unsigned long long)(*size - 1) / POOL_FINE);
	class = POOL_FINE / POOL_STEP - 1 + doublings;
	if (class < POOL_CLASSES)
		*size = (size_t)POOL_FINE << doublings;
	return class;
}

void *pool_get(struct pool *pool, size_t size)
{
	unsigned class = class_of(&size);
	struct pool_free *p;

	if (class >= POOL_CLASSES || !pool->free[class])
		return xmalloc(size);
	p = pool->free[class];
	pool->free[class] = p->next;
	pool->kept[class] -= size;
	return p;
}

void pool_put(struct pool *pool, void *memory, size_t size)
{
	unsigned class = class_of(&size);
	struct pool_free *p = memory;

	if (class >= POOL_CLASSES || pool->kept[class] + size > POOL_KEEP) {
		free(memory);
		return;
	}
	p->next = pool->free[class];
	pool->free[class] = p;
	pool->kept[class] += size;
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
