#include "counting.h"

#include <malloc.h>
#include <stdlib.h>

struct counting counting;

/* The linker replaces calls of malloc by calls of __wrap_malloc; see check_unit in tests.mk. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
void __sanitizer_cov_trace_pc(void);

static void *count_more(void *p)
{
	if (counting.on)
		counting.bytes += malloc_usable_size(p);
	return p;
}

static void count_less(void *p)
{
	if (counting.on)
		counting.bytes -= malloc_usable_size(p);
}

void *__wrap_malloc(size_t size)
{
	return count_more(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return count_more(__real_calloc(count, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	count_less(p);
	return count_more(__real_realloc(p, size));
}

void __wrap_free(void *p)
{
	count_less(p);
	__real_free(p);
}

/* Called by each basic block. */
void __sanitizer_cov_trace_pc(void)
{
	counting.blocks += counting.on;
}
