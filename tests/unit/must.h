/* An assertion that is never compiled away, for code that does not use Check. */
#ifndef UNIT_MUST_H
#define UNIT_MUST_H

#include <stdlib.h>

#define MUST(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

#endif
