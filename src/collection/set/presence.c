#include "collection/set/presence.h"

#include <stdlib.h>

#include "collection/rewrite/segments.h"
#include "util/alloc.h"

enum { PRESENCE_EVERY = 60 * 1000 /* milliseconds */ };

struct presence {
	struct lanes *lanes;
	size_t key_size;
	char key[];
};

static void present(struct segments *segments)
{
	struct presence *p = segments->arg;
	struct cache_entry *entry = cache_find(p->lanes->cache, slice_of(p->key, p->key_size));

	if (entry) {
		entry->asking = false;
		entry->present = p->lanes->env->now;
		entry->suspect |= segments->missing > 0 && !segments->failure.happened;
	}
	p->lanes->background--;
	segments_destroy(segments);
	free(p);
}

void presence_consider(struct lanes *lanes, struct slice key, struct cache_entry *entry)
{
	uint64_t now = lanes->env->now;
	struct presence *p;

	if (entry->view.run_count == 0 || entry->asking)
		return;
	if (entry->present == 0)
		entry->present = now;
	if (now - entry->present < PRESENCE_EVERY)
		return;
	entry->asking = true;
	lanes->background++;
	p = xcalloc(1, sizeof(*p) + key.n);
	p->lanes = lanes;
	p->key_size = key.n;
	memcpy(p->key, key.p, key.n);
	segments_call_all(lanes, key, entry->view.parts.refs, (struct call){ .verb = CALL_GET }, present, p);
}

struct suspicion {
	struct op op;
	struct set_request request;
	struct lanes *lanes;
	struct cache_entry *entry;
	char key[];
};

static void found_out(struct op *op, const struct outcome *outcome)
{
	struct suspicion *s = (struct suspicion *)op;

	(void)outcome;
	set_request_free(&s->request);
	cache_close(s->lanes->cache, s->entry);
	free(s);
}

void presence_suspect(struct lanes *lanes, struct slice key)
{
	struct suspicion *s = xcalloc(1, sizeof(*s) + key.n);

	memcpy(s->key, key.p, key.n);
	s->lanes = lanes;
	s->entry = cache_open(lanes->cache, key);
	s->entry->suspect = true;
	s->op = (struct op){
		.kind = OP_READ, .key = slice_of(s->key, key.n), .client = s, .set = &s->request, .done = found_out
	};
	s->request = (struct set_request){ .verb = SET_TEST, .members = slice_of("", 0) };
	lanes_submit(lanes, &s->op);
}
