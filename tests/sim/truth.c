#include "truth.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/alloc.h"

static void change(struct truth *truth, struct history *h, bool value)
{
	if (h->count == h->capacity) {
		h->capacity = h->capacity ? h->capacity * 2 : 8;
		h->changes = xrealloc(h->changes, h->capacity * sizeof(*h->changes));
	}
	h->changes[h->count++] = (struct change){ truth->tick, value };
}

void truth_init(struct truth *truth)
{
	*truth = (struct truth){ .tick = 1 };
	for (int key = 0; key < SIM_KEYS; key++) {
		for (int m = 0; m < SIM_MEMBERS; m++)
			change(truth, &truth->sets[key].members[m], false);
		change(truth, &truth->sets[key].absent, true);
		change(truth, &truth->sets[key].gone, true);
	}
}

void truth_fini(struct truth *truth)
{
	for (int key = 0; key < SIM_KEYS; key++) {
		for (int m = 0; m < SIM_MEMBERS; m++)
			free(truth->sets[key].members[m].changes);
		free(truth->sets[key].absent.changes);
		free(truth->sets[key].gone.changes);
	}
}

void truth_set_member(struct truth *truth, int key, int member, bool in)
{
	struct truth_set *set = &truth->sets[key];

	if (set->in[member] == in)
		return;
	set->in[member] = in;
	change(truth, &set->members[member], in);
}

void truth_wipe(struct truth *truth, int key)
{
	for (int m = 0; m < SIM_MEMBERS; m++)
		truth_set_member(truth, key, m, false);
	truth_set_absent(truth, key, true);
	truth_set_gone(truth, key, true);
}

static void set(struct truth *truth, struct history *h, bool value)
{
	if (h->changes[h->count - 1].value != value)
		change(truth, h, value);
}

void truth_set_absent(struct truth *truth, int key, bool absent)
{
	set(truth, &truth->sets[key].absent, absent);
}

void truth_set_gone(struct truth *truth, int key, bool gone)
{
	set(truth, &truth->sets[key].gone, gone);
}

bool truth_was(const struct history *h, uint64_t from, bool value)
{
	for (size_t i = h->count; i-- > 0;) {
		if (h->changes[i].value == value)
			return true;
		if (h->changes[i].tick <= from)
			return false;
	}
	return false;
}

bool truth_at(const struct history *h, uint64_t tick)
{
	size_t i = h->count - 1;

	while (i > 0 && h->changes[i].tick > tick)
		i--;
	return h->changes[i].value;
}

int truth_member(struct slice name)
{
	if (name.n != 4 || name.p[0] != '^' || name.p[2] != 'm')
		return -1;
	int client = name.p[1] - '0', number = name.p[3] - '0';
	return client < 0 || client >= SIM_CLIENTS || number < 0 || number >= SIM_OWN
		? -1
		: client * SIM_OWN + number;
}

void truth_name(int member, char name[16])
{
	snprintf(name, 16, "^%dm%d", member / SIM_OWN, member % SIM_OWN);
}
