#include "dialect_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	dialect_fuzz(&dialect_classic, false, slice_of((const char *)data, size));
	return 0;
}
