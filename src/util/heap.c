#include "util/heap.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
	LARGE = 4 << 20,      /* bytes: who gets so much does not notice the calls to the system */
	KEPT = 1 << 20,       /* bytes at the end of each thread's heap */
	GIVE_BACK = 96 << 10, /* bytes */
};

void heap_init(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, LARGE);
	mallopt(M_TRIM_THRESHOLD, KEPT);
#endif
}

/* malloc_trim leaves the end of what a thread has got, which is returned when the thread frees a piece of at least 64 KB. */
void heap_give_back(void)
{
#ifdef __GLIBC__
	void *volatile piece = malloc(GIVE_BACK);

	free(piece);
	malloc_trim(0);
#endif
}
