/* A sorted array, to compare sorted tables with. */
#ifndef UNIT_TABLE_MODEL_H
#define UNIT_TABLE_MODEL_H

#include "collection/text/fences.h"
#include "collection/text/table.h"

enum { TABLE_MODEL_MAX = 300, TABLE_MODEL_WORLDS = 4 };

struct table_model {
	struct table_model_entry {
		char name[MEMBER_WORD_MAX];
		size_t size;
		bool removed;
		uint32_t date; /* EXPIRY_NONE for none */
	} list[TABLE_MODEL_MAX];
	size_t count;
};

static inline struct slice table_model_name(const struct table_model *m, size_t i)
{
	return slice_of(m->list[i].name, m->list[i].size);
}

/* As member_compare. */
int table_model_order(struct slice a, struct slice b);

/* Returns whether the entry is a removal, or has expired. */
static inline bool table_model_gone(const struct table_model *m, size_t i, int64_t now)
{
	return m->list[i].removed || (m->list[i].date && m->list[i].date <= now);
}

/* Appends a member without a date; a full model stays unchanged. */
void table_model_add(struct table_model *m, struct slice name, bool removed);

/* Sorts the members that were added. Of duplicates one is kept. */
void table_model_sort(struct table_model *m);

/* Returns the number of the first entry that is not below `from`, or the count. */
size_t table_model_seek(const struct table_model *m, struct slice from);

/*
 * Returns the size of a random name. The names of one world have long common prefixes, or short
 * ones; some have the maximum length.
 */
size_t table_model_random_name(uint64_t *random, unsigned world, char name[MEMBER_WORD_MAX]);

/*
 * Creates a random array; counts near those at which a restart is due are frequent. No member has a
 * date. table_model_random_dates gives dates to some or all of them, or to none.
 */
void table_model_random(struct table_model *m, uint64_t *random);
void table_model_random_dates(struct table_model *m, uint64_t *random);

/* Adds the entries from `start` up to `end` to a writer. */
void table_model_write(
	const struct table_model *m, size_t start, size_t end, struct table_writer *w);

/* Returns whether `finds` is correct for each member, its neighbours, and random names. */
bool table_model_tries(const struct table_model *m,
	bool (*finds)(const void *where, struct slice name), const void *where, uint64_t *random);

/*
 * Returns whether a table, or an index, with any content, is in order, and is consistent whichever
 * way it is read. `from` is any member to search for. Reading must not go beyond the bytes that
 * were opened.
 */
bool table_model_walks(const struct table *t, struct slice from);
bool table_model_walks_index(const struct fences *f, struct slice from);

#endif
