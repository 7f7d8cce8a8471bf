/* Prints what was counted and measured, in three formats. What facts.def names has one walk, with an encoder for each format. */
#ifndef MEASURE_REPORT_H
#define MEASURE_REPORT_H

#include <stdbool.h>

#include "measure/meter.h"
#include "measure/timeline.h"
#include "util/buf.h"
#include "util/slice.h"
#include "worker/daemon.h"

/*
 * Appends the lines of a group of `stats`, without END. "" is the group without a name. Gives false if there is no such group. `from`
 * is the meter of the worker that is asked. From any thread, as long as the workers exist.
 */
bool report_stats(struct daemon *d, const struct meter *from, struct slice group, struct buf *out);

/* Appends the version that clients of memcached see. From any thread, likewise. */
void report_version(struct daemon *d, struct buf *out);

/*
 * Append all that was counted and measured: as one JSON object, which setlistd(8) describes, or as text for Prometheus, in the
 * exposition format 0.0.4, where no label has a key. `obstacle` is why clients are not served; NULL if they are. From the main thread.
 */
void report_json(struct daemon *d, const struct timeline *timeline, const char *obstacle, struct buf *out);
void report_metrics(struct daemon *d, const char *obstacle, struct buf *out);

#endif
