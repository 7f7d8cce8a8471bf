/* The table of machines: which function carries out which kind of operation, for each encoding. */
#ifndef COLLECTION_MACHINES_H
#define COLLECTION_MACHINES_H

#include "collection/lane/lanes.h"

extern const struct lane_machines machines;

/* Bytes of memory that cached views, tables and segments use. */
size_t machines_cache_memory(const struct lanes *lanes);

#endif
