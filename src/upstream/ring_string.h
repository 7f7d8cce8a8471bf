/*
 * Rings from libmemcached's configuration strings. libmemcached itself parses them and builds
 * the ring.
 */
#ifndef UPSTREAM_RING_STRING_H
#define UPSTREAM_RING_STRING_H

struct ring;

/*
 * Creates a ring from a configuration string ("--SERVER=..."); the caller owns it. The string
 * may name files, which libmemcached reads. Returns NULL on failure, with the reason in
 * `error`.
 */
struct ring *ring_from_string(const char *configuration, char error[256]);

#endif
