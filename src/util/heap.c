#include "util/heap.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
	KEPT = 1 << 20,       /* Bytes at the end of each thread's heap. */
	GIVE_BACK = 96 << 10, /* Bytes. */
};

void heap_init(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, HEAP_LARGE);
	mallopt(M_TRIM_THRESHOLD, KEPT);
#endif
}

/*
 * malloc_trim() does not return the end of a thread's heap, which is returned when the thread
 * frees a block of at least 64 KB.
 */
void heap_give_back(void)
{
#ifdef __GLIBC__
	void *volatile piece = malloc(GIVE_BACK);

	free(piece);
	malloc_trim(0);
#endif
}
