/* Which machine carries out which kind of operation, by the encoding of the key. */
#ifndef COLLECTION_MACHINES_H
#define COLLECTION_MACHINES_H

#include "collection/lane/lanes.h"

extern const struct lane_machines machines;

/* Bytes that views, tables and segments in memory hold. */
size_t machines_cache_memory(const struct lanes *lanes);

#endif
