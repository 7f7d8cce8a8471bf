#include "dialect_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	dialect_fuzz(&dialect_meta, true, slice_of((const char *)data, size));
	return 0;
}
