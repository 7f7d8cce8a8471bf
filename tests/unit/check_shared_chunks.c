/* Shared texts among the bytes that a stream is to write, written in pieces of every size. */
#include "unit.h"
#include "util/shared.h"

enum { ROOM = 16 };

static struct shared_chunks chunks;
static struct buf out;
static size_t again; /* bytes of texts that several of the chunks hold */

static struct shared *text_of(const char *s)
{
	struct buf text = BUF_EMPTY;

	buf_add(&text, s, strlen(s));
	return shared_create(&text);
}

static void join(const struct iovec *vectors, int count, struct buf *joined)
{
	for (int i = 0; i < count; i++)
		buf_add(joined, vectors[i].iov_base, vectors[i].iov_len);
}

static void assert_next(const char *expected)
{
	struct iovec vectors[ROOM];
	struct buf joined = BUF_EMPTY;

	join(vectors, shared_chunks_vectors(&chunks, &out, vectors, ROOM), &joined);
	assert_bytes(buf_slice(&joined), expected);
	buf_free(&joined);
}

TEST(without_texts)
{
	shared_chunks_init(&chunks, &again);
	assert_next("");
	BUF_ADD(&out, "hello");
	assert_next("hello");
	shared_chunks_written(&chunks, &out, 2);
	assert_next("llo");
	shared_chunks_written(&chunks, &out, 3);
	ck_assert_uint_eq(buf_size(&out), 0);
	shared_chunks_free(&chunks);
}

#define WHOLE "a header TEXT middle SECOND THIRD end"

static void fill(struct shared *const texts[3])
{
	shared_chunks_init(&chunks, &again);
	BUF_ADD(&out, "a header ");
	shared_chunks_add(&chunks, &out, texts[0]);
	BUF_ADD(&out, " middle ");
	shared_chunks_add(&chunks, &out, texts[1]);
	shared_chunks_add(&chunks, &out, texts[2]);
	BUF_ADD(&out, " end");
}

TEST(in_pieces_of_every_size)
{
	struct shared *texts[] = { text_of("TEXT"), text_of("SECOND"), text_of(" THIRD") };
	size_t total = strlen(WHOLE),
	       shared = strlen("TEXT"
			       "SECOND"
			       " THIRD");

	for (size_t size = 1; size <= total; size++) {
		fill(texts);
		ck_assert_uint_eq(chunks.waiting, shared);
		for (size_t at = 0; at < total; at += size) {
			assert_next(&WHOLE[at]);
			ck_assert_uint_eq(buf_size(&out) + chunks.waiting, total - at);
			shared_chunks_written(&chunks, &out, size < total - at ? size : total - at);
		}
		ck_assert_uint_eq(buf_size(&out) + chunks.waiting + chunks.covered, 0);
		ck_assert(STAILQ_EMPTY(&chunks.list));
		shared_chunks_free(&chunks);
		buf_free(&out);
	}
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(texts[i]->refs, 1);
		shared_drop(texts[i]);
	}
}

/* A text that is added later follows all pending bytes. */
TEST(added_later)
{
	struct shared *text = text_of("TEXT");

	shared_chunks_init(&chunks, &again);
	BUF_ADD(&out, "one ");
	shared_chunks_add(&chunks, &out, text);
	shared_chunks_written(&chunks, &out, 6);
	BUF_ADD(&out, " two ");
	shared_chunks_add(&chunks, &out, text);
	ck_assert_uint_eq(text->refs, 3);
	assert_next("XT two TEXT");
	shared_chunks_written(&chunks, &out, 2);
	ck_assert_uint_eq(text->refs, 2);
	assert_next(" two TEXT");
	/* A connection that is closed drops the rest. */
	shared_chunks_free(&chunks);
	ck_assert_uint_eq(text->refs, 1);
	ck_assert_uint_eq(chunks.waiting + chunks.covered, 0);
	shared_drop(text);
}

/* With fewer vectors than pieces, the vectors hold the first bytes without a gap. */
TEST(few_vectors)
{
	static const char whole[] = "0 TEXT1 TEXT2 TEXT3 TEXT4";
	struct shared *text = text_of("TEXT");
	struct iovec vectors[ROOM];

	shared_chunks_init(&chunks, &again);
	for (int i = 0; i < 4; i++) {
		buf_printf(&out, "%d ", i);
		shared_chunks_add(&chunks, &out, text);
	}
	BUF_ADD(&out, "4");
	for (int max = 3; max < ROOM; max++) {
		struct buf joined = BUF_EMPTY;
		int count = shared_chunks_vectors(&chunks, &out, vectors, max);
		ck_assert_int_gt(count, 0);
		ck_assert_int_le(count, max);
		join(vectors, count, &joined);
		ck_assert(slice_starts(SLICE(whole), buf_slice(&joined)));
		ck_assert(count < 9 || buf_size(&joined) == strlen(whole));
		buf_free(&joined);
	}
	shared_chunks_free(&chunks);
	shared_drop(text);
}

/*
 * The bytes of two streams, without the shared ones, are the size of the texts, whichever drops
 * them first.
 */
TEST(counted_once)
{
	struct shared *text = text_of("TEXT"), *other = text_of("OTHER");
	struct shared_chunks first, second;

	again = 0;
	shared_chunks_init(&first, &again);
	shared_chunks_init(&second, &again);
	shared_chunks_add(&first, &out, text);
	ck_assert_uint_eq(first.held - again, 4);
	shared_chunks_add(&second, &out, text);
	shared_chunks_add(&second, &out, other);
	ck_assert_uint_eq(first.held + second.held - again, 9);
	shared_chunks_written(&first, &out, 3);
	ck_assert_uint_eq(first.held + second.held - again, 9);
	shared_chunks_written(&first, &out, 1);
	ck_assert_uint_eq(first.held, 0);
	ck_assert_uint_eq(second.held - again, 9);
	shared_chunks_free(&second);
	ck_assert_uint_eq(second.held + again, 0);
	shared_drop(text);
	shared_drop(other);
}

static void teardown(void)
{
	buf_free(&out);
}

FIXTURE(NULL, teardown)
