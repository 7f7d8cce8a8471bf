#include "process/page.h"

/* The assembler reads the file, wherever `make` runs: its path is that of the top folder. */
__asm__(".section .rodata\n"
	".global page_begin\n"
	".global page_end\n"
	"page_begin:\n"
	".incbin \"src/process/page.html\"\n"
	"page_end:\n"
	".previous\n");

extern const char page_begin[], page_end[];

void page_print(const char *nonce, struct buf *out)
{
	static const char mark[] = "nonce=\"\"";
	enum { BEFORE = sizeof("nonce=\"") - 1 };
	const char *at = page_begin, *found;

	while ((found = memmem(at, (size_t)(page_end - at), mark, sizeof(mark) - 1))) {
		buf_add(out, at, (size_t)(found - at) + BEFORE);
		buf_add(out, nonce, strlen(nonce));
		at = found + BEFORE;
	}
	buf_add(out, at, (size_t)(page_end - at));
}
