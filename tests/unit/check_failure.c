/* The first failure of several calls, after its result was freed. */
#include "protocol/failure.h"
#include "unit.h"

TEST(outlives_its_result)
{
	struct failure failure = { 0 };
	char line[] = "SERVER_ERROR out of memory";

	ck_assert(!failure.happened);
	failure_keep(&failure,
		&(struct result){ .status = RESULT_REFUSED,
			.line = slice_of(line, strlen(line)),
			.value = SLICE("borrowed"),
			.server = "a:1" });
	memset(line, '#', sizeof(line));
	ck_assert(failure.happened);
	ck_assert_int_eq(failure.result.status, RESULT_REFUSED);
	ck_assert_str_eq(failure.result.server, "a:1");
	assert_bytes(failure.result.line, "SERVER_ERROR out of memory");
	assert_bytes(failure.result.value, "");
	failure_free(&failure);
}

TEST(the_first_is_kept)
{
	struct failure failure = { 0 };

	failure_keep(&failure, &(struct result){ .status = RESULT_LOST, .server = "a:1" });
	failure_keep(&failure,
		&(struct result){
			.status = RESULT_REFUSED, .line = SLICE("ERROR"), .server = "b:2" });
	ck_assert_int_eq(failure.result.status, RESULT_LOST);
	ck_assert_str_eq(failure.result.server, "a:1");
	assert_bytes(failure.result.line, "");
	failure_free(&failure);
}
