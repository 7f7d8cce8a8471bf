/* How collections are stored and kept: one setting for all of a process. */
#ifndef COLLECTION_OPTIONS_H
#define COLLECTION_OPTIONS_H

#include <stddef.h>

struct collection_options {
	size_t base_size;    /* bytes of a base above which its log is folded, and spilled to segments */
	size_t segment_size; /* bytes of a segment at most */
	size_t cache;        /* bytes of the fold cache */
	size_t merges;       /* merges of segments at once */
};

#endif
