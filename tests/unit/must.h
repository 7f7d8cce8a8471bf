/* An assertion that is never compiled away, for what knows nothing of Check. */
#ifndef UNIT_MUST_H
#define UNIT_MUST_H

#include <stdlib.h>

#define MUST(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

#endif
