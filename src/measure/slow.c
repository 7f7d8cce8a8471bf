#include "measure/slow.h"

#include <string.h>

void slow_init(struct slow *s)
{
	pthread_mutex_init(&s->lock, NULL);
	s->count = 0;
}

void slow_fini(struct slow *s)
{
	pthread_mutex_destroy(&s->lock);
}

void slow_add(struct slow *s, const struct slow_request *request)
{
	pthread_mutex_lock(&s->lock);
	s->list[s->count++ % SLOW_REQUESTS] = *request;
	pthread_mutex_unlock(&s->lock);
}

void slow_reset(struct slow *s)
{
	pthread_mutex_lock(&s->lock);
	s->count = 0;
	pthread_mutex_unlock(&s->lock);
}

size_t slow_copy(struct slow *s, struct slow_request out[SLOW_REQUESTS], uint64_t *count)
{
	size_t n;

	pthread_mutex_lock(&s->lock);
	n = s->count < SLOW_REQUESTS ? (size_t)s->count : SLOW_REQUESTS;
	memcpy(out, s->list, n * sizeof(*out));
	*count += s->count;
	pthread_mutex_unlock(&s->lock);
	return n;
}
