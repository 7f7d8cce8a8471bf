/* The groups of `stats` about what was measured: latency, hotkeys, largest, slow. */
#ifndef MEASURE_ADMIN_MEASURES_H
#define MEASURE_ADMIN_MEASURES_H

#include "upstream/servers.h"
#include "util/buf.h"
#include "worker/daemon.h"

/*
 * Appends the lines of a group, without END. Gives false if there is no such group. `servers` are those whose latencies are shown;
 * other threads may serve them too.
 */
bool admin_measures(struct daemon *d, const struct servers *servers, struct slice group, struct buf *out);

#endif
