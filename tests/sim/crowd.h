/* A crowd: many proxies that write one set at once, over a network with random latencies. */
#ifndef SIM_CROWD_H
#define SIM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

enum { CROWD_PROXIES = 100, CROWD_SECONDS = 3, CROWD_BASE_MAX = 256 * 1024 };

/*
 * Runs a crowd from a seed. False, and a line on what was wrong, when the base grew beyond CROWD_BASE_MAX, rewrites came to a
 * stop, a command failed, or something acknowledged was lost. Without `noticing` no proxy learns how large the base is, so that
 * none holds its appends back.
 */
bool crowd_run(uint64_t seed, bool noticing);

#endif
