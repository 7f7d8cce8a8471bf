#include "collection/text/date.h"

#include "util/num.h"

/* Parses the token at `p`. Returns its end, or NULL. */
static const char *parse_date(const char *p, const char *end, int64_t *date)
{
	enum { SIGN = 2 /* ~t */ };
	size_t rest = (size_t)(end - p), most = rest < DATE_TOKEN ? rest : DATE_TOKEN;
	const char *space = memchr(p, ' ', most);
	struct slice digits;
	uint32_t number;

	if (!space || space - p <= SIGN || p[0] != '~' || p[1] != 't')
		return NULL;
	digits = slice_of(p + SIGN, (size_t)(space - p) - SIGN);
	if (!num_parse_u32(digits, &number) || (digits.p[0] == '0' && digits.n > 1) ||
		(number && number < DATE_MIN))
		return NULL;
	*date = number;
	return space + 1;
}

const char *date_end(const char *p, const char *end)
{
	int64_t date;

	return parse_date(p, end, &date);
}

/* Returns the first date in a base, from `p` on, and its end; NULL if there is none. */
static const char *find_date(struct slice base, const char *p, const char **after)
{
	const char *end = base.p + base.n;

	for (; p < end && (p = memchr(p, '~', (size_t)(end - p))); p++) {
		if ((p == base.p || p[-1] == ' ') && (*after = date_end(p, end)))
			return p;
	}
	return NULL;
}

size_t date_count(struct slice base)
{
	const char *from = base.p;
	size_t count = 0;

	while (base.n && find_date(base, from, &from))
		count++;
	return count;
}

int64_t date_last(struct slice base)
{
	size_t left = base.n;
	const char *p;
	int64_t date;

	while (left && (p = memrchr(base.p, '~', left))) {
		left = (size_t)(p - base.p);
		if ((!left || p[-1] == ' ') && parse_date(p, base.p + base.n, &date))
			return date;
	}
	return DATE_NONE;
}

void date_add(struct buf *out, int64_t date)
{
	BUF_ADD(out, "~t");
	buf_add_u64(out, date && date < DATE_MIN ? DATE_MIN : (uint64_t)date);
	BUF_ADD(out, " ");
}

struct slice date_undated(struct slice base, struct buf *out)
{
	const char *from = base.p, *at, *after;

	if (date_last(base) == DATE_NONE)
		return base;
	while ((at = find_date(base, from, &after))) {
		buf_add(out, from, (size_t)(at - from));
		from = after;
	}
	buf_add(out, from, (size_t)(base.p + base.n - from));
	return buf_slice(out);
}

void date_set(struct buf *base, int64_t date)
{
	struct buf undated = BUF_EMPTY;

	if (date_undated(buf_slice(base), &undated).p != buf_slice(base).p) {
		buf_free(base);
		*base = undated;
	}
	if (date != DATE_NONE)
		date_add(base, date);
}
