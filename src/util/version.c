#include "util/version.h"

/* Defined by the Makefile for this file only. */
const char setlistd_version[] = SETLISTD_VERSION;
