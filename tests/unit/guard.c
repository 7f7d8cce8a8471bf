#include "guard.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

struct slice guard_place(struct slice s)
{
	static char *end;

	assert(s.n <= GUARD_MAX);
	if (!end) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		char *start = mmap(NULL, GUARD_MAX + page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert(start != MAP_FAILED);
		end = start + GUARD_MAX;
		int failed = mprotect(end, page, PROT_NONE);
		assert(!failed);
		(void)failed;
	}
	if (s.n)
		memmove(end - s.n, s.p, s.n);
	return slice_of(end - s.n, s.n);
}

struct slice guard_text(const char *text)
{
	return guard_place(slice_of(text, strlen(text)));
}
