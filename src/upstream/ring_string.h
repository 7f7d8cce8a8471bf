/* Rings from libmemcached's configuration strings, which it parses and builds itself. */
#ifndef UPSTREAM_RING_STRING_H
#define UPSTREAM_RING_STRING_H

struct ring;

/*
 * The ring of a string ("--SERVER=..."), which the caller owns. On failure gives NULL, with the reason in `error`. The string may name
 * files, which libmemcached reads.
 */
struct ring *ring_from_string(const char *configuration, char error[256]);

#endif
