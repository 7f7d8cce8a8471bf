#include "config/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_private(int fd, const char *path, size_t most, char error[256])
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		snprintf(error, 256, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(error, 256, "%s: not a regular file", path);
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		snprintf(error, 256, "%s: its mode is %04o, which lets its group or others in: make it 0600", path,
			(unsigned)st.st_mode & 07777);
	else if ((size_t)st.st_size > most)
		snprintf(error, 256, "%s: more than %zu bytes", path, most);
	else
		return true;
	return false;
}

bool secret_file_read(const char *path, size_t most, struct buf *text, char error[256])
{
	/* Opening a pipe must not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool good = false;
	ssize_t n;

	if (fd < 0) {
		snprintf(error, 256, "%s: %s", path, strerror(errno));
		return false;
	}
	if (is_private(fd, path, most, error)) {
		/* Room for all of it at once: no copy is left behind by a buffer that grows. */
		while ((n = read(fd, buf_reserve(text, most + 1 - buf_size(text)), most + 1 - buf_size(text))) > 0) {
			buf_commit(text, (size_t)n);
			if (buf_size(text) > most)
				break;
		}
		good = n == 0;
		if (!good)
			snprintf(error, 256, "%s: %s", path, n < 0 ? strerror(errno) : "it grows");
	}
	close(fd);
	return good;
}

void secret_file_forget(struct buf *text)
{
	if (text->data)
		OPENSSL_cleanse(text->data, text->cap);
	buf_free(text);
}
