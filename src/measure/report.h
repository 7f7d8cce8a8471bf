/*
 * Prints everything that was counted and measured, in three formats. One traversal handles the
 * rows of facts.def, with an encoder for each format.
 */
#ifndef MEASURE_REPORT_H
#define MEASURE_REPORT_H

#include <stdbool.h>

#include "measure/meter.h"
#include "measure/timeline.h"
#include "util/buf.h"
#include "util/slice.h"
#include "worker/daemon.h"

/*
 * Appends the lines of a group of `stats`, without END. "" is the default group. Returns false
 * if there is no such group. `from` is the meter of the worker that handles the request. May be
 * called from any thread while the workers exist.
 */
bool report_stats(struct daemon *d, const struct meter *from, struct slice group, struct buf *out);

/*
 * Appends the version that is reported to clients. May be called from any thread while the
 * workers exist.
 */
void report_version(struct daemon *d, struct buf *out);

/*
 * Append all measurements: as one JSON object, described in setlistd(8), or as text in the
 * Prometheus exposition format 0.0.4, in which no label contains a key. `obstacle` is why
 * clients are not served; NULL if they are. For the main thread.
 */
void report_json(
	struct daemon *d, const struct timeline *timeline, const char *obstacle, struct buf *out);
void report_metrics(struct daemon *d, const char *obstacle, struct buf *out);

#endif
