/* How collections are stored and kept: one setting for all of a process. */
#ifndef COLLECTION_OPTIONS_H
#define COLLECTION_OPTIONS_H

#include <stddef.h>

struct collection_options {
	size_t base_size; /* bytes of a list's base, or of an item in another encoding, above which it is compacted */
	size_t segment_size; /* bytes of a list's segment at most */
	size_t log_size;     /* bytes of a set's log above which it is folded, and spilled to a table */
	size_t table_size;   /* bytes of a table at most */
	size_t cache;        /* bytes of views, tables and indexes that are kept */
	size_t merges;       /* merges of segments at once */
};

#endif
