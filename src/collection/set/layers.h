/* The runs of a view, and their indexes and tables that are in memory. */
#ifndef COLLECTION_SET_LAYERS_H
#define COLLECTION_SET_LAYERS_H

#include <sys/queue.h>

#include "collection/text/fences.h"
#include "collection/text/oplog.h"
#include "collection/text/table.h"

struct set_view;

/* An index or a table in memory. */
struct set_part {
	TAILQ_ENTRY(set_part) link;  /* in set_store.used */
	TAILQ_ENTRY(set_part) spare; /* in set_view.spare */
	struct set_view *view;       /* the owner */
	struct set_slot *slot;       /* the slot of the part; NULL for a spare part */
	/* Of a spare part: number of changes of the references since it was added. */
	unsigned age;
	uint64_t when; /* the store's clock at the last use */
	struct buf data;
	struct table table; /* if it is a table */
	uint64_t *ranks;
	/* Members that have expired, and the date of the next one; UINT32_MAX for none. */
	uint32_t expired, next_date;
	struct fences fences; /* if it is an index */
	char id[OPLOG_ID];
};
TAILQ_HEAD(set_parts, set_part);

/* Uses within this many ticks of the clock do not change the LRU order noticeably. */
enum { SET_CLOSELY = 4096 };

/* The parts of all views of a worker. */
struct set_store {
	struct set_parts used; /* most recently used first */
	size_t memory;         /* bytes */
	uint64_t clock;        /* counts uses */
};

struct set_slot {
	struct set_part *part; /* NULL if it is not in memory */
	bool wanted;
	bool filtered; /* the members are in the filter of the run */
};

struct set_run {
	struct oplog_run ref; /* its id is `id` */
	char id[OPLOG_ID];
	struct set_slot index;   /* if ref.indexed */
	struct set_slot *tables; /* array of ref.tables slots; NULL until the index is loaded */
	uint64_t *filter;        /* filter of the hashes of its members; NULL for none */
	uint64_t filtered;       /* number of tables whose members are in the filter */
};

enum { SET_INDEX = -1 };

/* A part that must be loaded. */
struct set_want {
	uint32_t run;
	int64_t table; /* SET_INDEX for the index */
};

/* Drops a part from memory. Defined in view.c. */
void set_part_drop(struct set_part *part);

#endif
