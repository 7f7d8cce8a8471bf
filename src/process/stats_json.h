/* All that was counted and measured, as one JSON object: for programs, and for the live page. */
#ifndef PROCESS_STATS_JSON_H
#define PROCESS_STATS_JSON_H

#include "snapshot.h"
#include "util/buf.h"

/* Appends the object. `state` is "ready", or why no client is served. setlistd(8) describes its members. */
void stats_json_print(struct daemon *daemon, const struct snapshot *snapshot, const char *state, struct buf *out);

#endif
