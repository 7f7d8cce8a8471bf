#include "stored.h"

#include <stdio.h>

#include "collection/text/expiry.h"
#include "collection/text/fences.h"
#include "collection/text/packed.h"
#include "must.h"
#include "util/check.h"

static const char letters[] = { [CALL_GET] = 'G',
	[CALL_GAT] = 'H',
	[CALL_SET] = 'S',
	[CALL_ADD] = 'A',
	[CALL_REPLACE] = 'R',
	[CALL_APPEND] = 'P',
	[CALL_PREPEND] = 'Q',
	[CALL_CAS] = 'C',
	[CALL_DELETE] = 'D',
	[CALL_TOUCH] = 'T' };

static struct slice key_of(struct slice id, char key[64])
{
	return slice_of(key, (size_t)snprintf(key, 64, "k.%.*s", (int)id.n, id.p));
}

void stored_put(struct server *s, struct cupboard *c, const char *head,
	const struct oplog_run *runs, size_t count, const char *log)
{
	struct buf base = BUF_EMPTY;
	char key[64];

	if (count)
		cupboard_base(&base, head, runs, count, log);
	else
		buf_printf(&base, "%s%s", head, log);
	server_put(s, SLICE("k"), buf_slice(&base));
	for (size_t i = 0; i < c->count; i++)
		server_put(s, key_of(slice_of(c->items[i].id, OPLOG_ID), key),
			buf_slice(&c->items[i].data));
	buf_free(&base);
}

struct memcached_item *stored_item(struct server *s, struct slice id)
{
	char key[64];

	return server_find(s, key_of(id, key));
}

static struct slice item(struct server *s, struct slice id, uint64_t check)
{
	struct memcached_item *found = stored_item(s, id);

	MUST(found && check_of(buf_slice(&found->value)) == check);
	return buf_slice(&found->value);
}

/* Of one table; and how many packed ones, and members that expire, were shown. */
static struct buf unpacked;
static size_t packed_tables, dated_members;

/* Dates are shown as seconds from SERVER_NOW. */
static void show_date(uint32_t date, struct buf *out)
{
	if (date)
		buf_printf(out, "^%d", (int)((int64_t)date - SERVER_NOW));
}

static void show_log(struct slice log, struct buf *out)
{
	for (const char *p = log.p, *end = p + log.n; p < end;) {
		if (*p != EXPIRY_MARK) {
			buf_add(out, p++, 1);
			continue;
		}
		show_date(expiry_read(p), out);
		p += EXPIRY_SIZE;
	}
}

/* Shows a table, which must match its reference, and have no member outside of its fences. */
static void show_table(
	struct slice data, const struct fence *said, const struct fence *next, struct buf *out)
{
	uint64_t removals = 0, dated = 0, sum = 0;
	uint32_t first = UINT32_MAX;
	struct table_cursor c;
	struct table t;

	MUST(packed_open(&t, data, &unpacked) && t.count == said->entries && t.count);
	MUST(buf_size(&unpacked) == said->bytes);
	packed_tables += slice_starts(data, SLICE("T2"));
	for (bool more = table_first(&c, &t); more; more = table_next(&c)) {
		struct slice member = table_member(&c);
		MUST(table_model_order(said->first, member) <= 0);
		MUST(!next || table_model_order(next->first, member) > 0);
		buf_add(out, " ", c.at > 0);
		buf_add(out, c.removed ? "-" : "+", 1);
		buf_add_slice(out, member);
		removals += c.removed;
		uint32_t date = table_date(&t, c.at);
		MUST(!date || !c.removed);
		show_date(date, out);
		dated += date > 0;
		sum += date;
		first = date && date < first ? date : first;
	}
	MUST(removals == said->removals && dated == said->dated);
	MUST(!dated || (said->first_date <= first && said->mean_date == sum / dated));
	dated_members += dated;
}

static void show_run(struct server *s, const struct oplog_run *run, struct buf *out)
{
	struct slice data = item(s, run->id, run->check);
	struct fences fences;

	if (!run->indexed) {
		struct fence said = { .entries = (uint32_t)run->entries,
			.removals = (uint32_t)run->removals,
			.bytes = (uint32_t)run->bytes,
			.dated = (uint32_t)run->dated,
			.mean_date = (uint32_t)run->mean,
			.first = slice_of("", 0) };
		show_table(data, &said, NULL, out);
		return;
	}
	MUST(fences_read(&fences, data) && fences.count == run->tables &&
		fences.entries == run->entries);
	MUST(fences.removals == run->removals && fences.bytes == run->bytes);
	MUST(fences.dated == run->dated);
	for (size_t i = 0; i < fences.count; i++) {
		const struct fence *fence = &fences.list[i];
		buf_add(out, "|", i > 0);
		show_table(item(s, slice_of(fence->id, OPLOG_ID), fence->check), fence,
			i + 1 < fences.count ? fence + 1 : NULL, out);
	}
	fences_free(&fences);
}

const char *stored_show(struct server *s)
{
	static char text[1 << 20];
	struct memcached_item *found = server_find(s, SLICE("k"));
	struct buf out = BUF_EMPTY;
	struct oplog_base parts;
	struct oplog_run run;

	if (!found)
		return NULL;
	packed_tables = dated_members = 0;
	MUST(oplog_split(buf_slice(&found->value), &parts));
	show_log(parts.head, &out);
	while (oplog_next_run(&parts.refs, &run)) {
		BUF_ADD(&out, "@[");
		show_run(s, &run, &out);
		BUF_ADD(&out, "] ");
	}
	MUST(packed_tables + dated_members == 0 || parts.wide);
	show_log(parts.log, &out);
	MUST(buf_size(&out) < sizeof(text));
	snprintf(text, sizeof(text), "%.*s", (int)buf_size(&out), buf_slice(&out).p);
	buf_free(&out);
	return text;
}

size_t stored_packed(void)
{
	return packed_tables;
}

const char *stored_calls(struct fake *f, size_t *seen)
{
	static char text[1024];
	size_t n = 0;

	for (; *seen < f->count; ++*seen) {
		const struct call *call = &f->calls[*seen].call;
		bool looks = call->verb == CALL_GET && !(call->want & WANT_VALUE);
		MUST(n < sizeof(text) - 1 && call->verb < sizeof(letters) && letters[call->verb]);
		text[n++] = (char)((looks ? 'L' : letters[call->verb]) |
			(memchr(call->key.p, '.', call->key.n) ? 0x20 : 0));
	}
	text[n] = 0;
	return text;
}
