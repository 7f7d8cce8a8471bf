/* All that was counted and measured, as one JSON object: for programs, and for the live page. */
#ifndef MEASURE_STATS_JSON_H
#define MEASURE_STATS_JSON_H

#include "measure/snapshot.h"
#include "util/buf.h"

/* Appends the object. `state` is "ready", or why no client is served. setlistd(8) describes its members. */
void stats_json_print(struct daemon *daemon, const struct snapshot *snapshot, const char *state, struct buf *out);

#endif
