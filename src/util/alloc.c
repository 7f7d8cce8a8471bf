#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

__attribute__((weak)) void alloc_failed(size_t size)
{
	(void)size;
	abort();
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		alloc_failed(size);
	return p;
}

void *xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);

	if (!p)
		alloc_failed(size && count > (size_t)-1 / size ? (size_t)-1 : count * size);
	return p;
}

void *xrealloc(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	if (!p)
		alloc_failed(size);
	return p;
}

char *xstrdup(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(xmalloc(size), text, size);
}
