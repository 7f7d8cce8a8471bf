#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "engine.h"

/* Prints ${result}: "name value" lines, or one JSON object where the options ask for it. */
void report_print(const struct options *options, const struct result *result);

#endif
