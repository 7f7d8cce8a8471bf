/* What was counted and measured, as text for Prometheus: the exposition format 0.0.4. */
#ifndef MEASURE_METRICS_H
#define MEASURE_METRICS_H

#include "measure/snapshot.h"
#include "util/buf.h"

/* Appends all metrics but those of the process. No label has a key. */
void metrics_print(struct daemon *daemon, const struct snapshot *snapshot, struct buf *out);

/* Appends the lines HELP and TYPE of a metric. */
void metrics_head(struct buf *out, const char *name, const char *type, const char *help);

#endif
