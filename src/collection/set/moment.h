/*
 * The moment that a view shows, if the set has members that expire: those whose date has passed by
 * v->now are not in it. The dates are by the clock of the set's server.
 */
#ifndef COLLECTION_SET_MOMENT_H
#define COLLECTION_SET_MOMENT_H

#include "collection/set/view.h"

/*
 * Moves the view to a later moment by the clock of the set's server, if it has members that expire.
 * An answer in progress that depends on one that has expired begins again.
 */
void set_view_advance(struct set_view *v, int64_t now);
static inline bool set_view_is_dated(const struct set_view *v)
{
	return v->overlay.dated || v->head.dated || v->dated_runs;
}

/* Returns whether about half of a run has expired, so that a merge would make the set smaller. */
bool set_view_is_spent(const struct set_view *v);

/*
 * Stores the number of members of a run that have expired. Returns false if that needs parts which
 * are not in memory; then they are wanted.
 */
bool set_view_expired(struct set_view *v, size_t run, uint64_t *out)
	__attribute__((warn_unused_result));

/* Stores the date of a member in `date`; EXPIRY_NONE if it does not expire. */
enum set_found set_view_date(struct set_view *v, struct slice member, uint32_t *date);

#endif
