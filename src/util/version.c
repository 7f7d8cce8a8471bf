#include "util/version.h"

/* The Makefile defines it for this file alone. */
const char setlistd_version[] = SETLISTD_VERSION;
