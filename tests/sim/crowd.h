/* A crowd: many proxies that write one set concurrently, over a network with random latencies. */
#ifndef SIM_CROWD_H
#define SIM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

enum { CROWD_PROXIES = 100, CROWD_SECONDS = 3, CROWD_BASE_MAX = 256 * 1024 };

/*
 * Runs a crowd from a seed. Prints a line and returns false if the base grew beyond
 * CROWD_BASE_MAX, rewrites stopped succeeding, a command failed, or an acknowledged write was
 * lost. Without `noticing`, no proxy detects how large the base is, so that none holds its appends
 * back.
 */
bool crowd_run(uint64_t seed, bool noticing);

#endif
