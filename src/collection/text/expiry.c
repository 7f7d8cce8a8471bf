#include "collection/text/expiry.h"

#include "protocol/element.h"
#include "util/num.h"

enum { DIGITS = EXPIRY_SIZE - 1 };

const char *expiry_word_end(const char *word, const char *end, size_t *size)
{
	const char *mark = slice_find(word, end, EXPIRY_MARK);
	struct slice member = slice_of(word, (size_t)(mark - word));
	uint32_t date;

	if (end - mark <= EXPIRY_SIZE || mark[EXPIRY_SIZE] != ' ' || !element_is_word(member) ||
		!num_parse_u32(slice_of(mark + 1, DIGITS), &date) || date == EXPIRY_NONE)
		return NULL;
	*size = member.n;
	return mark + EXPIRY_SIZE;
}

uint32_t expiry_read(const char *mark)
{
	uint32_t date = 0;

	(void)num_parse_u32(slice_of(mark + 1, DIGITS), &date);
	return date;
}

char *expiry_write(char *at, uint32_t date)
{
	*at = EXPIRY_MARK;
	for (int i = DIGITS; i > 0; i--, date /= 10)
		at[i] = (char)('0' + date % 10);
	return at + EXPIRY_SIZE;
}

void expiry_add(struct buf *out, uint32_t date)
{
	if (date == EXPIRY_NONE)
		return;
	expiry_write(buf_reserve(out, EXPIRY_SIZE), date);
	buf_commit(out, EXPIRY_SIZE);
}

struct slice expiry_drop(struct slice log, struct buf *out)
{
	const char *from = log.p, *end = log.p + log.n, *mark;

	if (!log.n || !memchr(log.p, EXPIRY_MARK, log.n))
		return log;
	while ((mark = slice_find(from, end, EXPIRY_MARK)) < end) {
		buf_add(out, from, (size_t)(mark - from));
		from = mark + num_least_size((size_t)(end - mark), EXPIRY_SIZE);
	}
	buf_add(out, from, (size_t)(end - from));
	return buf_slice(out);
}
