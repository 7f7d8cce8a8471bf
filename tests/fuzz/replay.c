/*
 * Runs a fuzzer once over its corpus, without libFuzzer, so that any compiler can build it:
 *
 *     replay_NAME FOLDER
 *
 * Exit status 0: no input failed, and there was one.
 */
#include <dirent.h>
#include <stdio.h>

#include "input.h"
#include "util/alloc.h"
#include "util/buf.h"

enum { PIECE = 65536 };

static struct buf content_of(const char *folder, const char *name)
{
	struct buf path = BUF_EMPTY, content = BUF_EMPTY;
	char *piece = xmalloc(PIECE);
	size_t size;
	FILE *in;

	buf_printf(&path, "%s/%s%c", folder, name, 0);
	in = fopen(buf_slice(&path).p, "rb");
	MUST(in);
	while ((size = fread(piece, 1, PIECE, in)))
		buf_add(&content, piece, size);
	MUST(!ferror(in));
	fclose(in);
	free(piece);
	buf_free(&path);
	return content;
}

/* The name is printed first: it is the last line of a run that aborts. */
static void replay(const char *folder, const char *name)
{
	struct buf content = content_of(folder, name);
	char *input = input_copy(buf_slice(&content));

	printf("%s/%s\n", folder, name);
	fflush(stdout);
	LLVMFuzzerTestOneInput((const uint8_t *)input, buf_size(&content));
	free(input);
	buf_free(&content);
}

int main(int argc, char **argv)
{
	DIR *corpus = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	size_t count = 0;

	if (!corpus) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(corpus))) {
		if (entry->d_name[0] == '.')
			continue;
		replay(argv[1], entry->d_name);
		count++;
	}
	closedir(corpus);
	return count ? 0 : 1;
}
