/* Settings that all collections of a process share. */
#ifndef COLLECTION_OPTIONS_H
#define COLLECTION_OPTIONS_H

#include <stddef.h>

struct collection_options {
	size_t base_size;    /* bytes of a list's base, or of an item in an adopted encoding, that trigger compaction */
	size_t segment_size; /* maximum bytes of a list's segment */
	size_t log_size;     /* bytes of a set's log that trigger folding, and spilling to a table */
	size_t table_size;   /* maximum bytes of a table */
	size_t cache;        /* bytes of memory for views, tables and indexes */
	size_t result_max;   /* bytes that a command on several sets may collect; 0 for no limit */
	size_t merges;       /* concurrent merges of runs in one worker */
};

#endif
