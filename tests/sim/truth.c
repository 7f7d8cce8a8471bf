#include "truth.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/alloc.h"

static void change(struct truth *truth, struct history *h, bool value, uint32_t date)
{
	if (h->count == h->capacity) {
		h->capacity = h->capacity ? h->capacity * 2 : 8;
		h->changes = xrealloc(h->changes, h->capacity * sizeof(*h->changes));
	}
	h->changes[h->count++] = (struct change){ truth->tick, value, date };
}

void truth_init(struct truth *truth)
{
	*truth = (struct truth){ .tick = 1 };
	for (int key = 0; key < SIM_KEYS; key++) {
		for (int m = 0; m < SIM_MEMBERS; m++)
			change(truth, &truth->sets[key].members[m], false, 0);
		change(truth, &truth->sets[key].absent, true, 0);
		change(truth, &truth->sets[key].gone, true, 0);
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
	free(truth->moments);
}

void truth_begin_tick(struct truth *truth, uint64_t time)
{
	size_t n = truth->moment_count;

	truth->tick++;
	if (n && truth->moments[n - 1].time == time)
		return;
	if (n == truth->moment_capacity) {
		truth->moment_capacity = n ? n * 2 : 64;
		truth->moments =
			xrealloc(truth->moments, truth->moment_capacity * sizeof(*truth->moments));
	}
	truth->moments[truth->moment_count++] = (struct moment){ truth->tick, time };
}

uint64_t truth_time(const struct truth *truth, uint64_t tick)
{
	size_t from = 0, to = truth->moment_count;

	while (to - from > 1) {
		size_t middle = from + (to - from) / 2;
		if (truth->moments[middle].tick <= tick)
			from = middle;
		else
			to = middle;
	}
	return to ? truth->moments[from].time : 0;
}

static void set_member(struct truth *truth, int key, int member, bool in, uint32_t date)
{
	struct truth_set *set = &truth->sets[key];

	if (set->in[member] == in && set->dates[member] == date)
		return;
	set->in[member] = in;
	set->dates[member] = date;
	change(truth, &set->members[member], in, date);
}

void truth_add_dated(struct truth *truth, int key, int member, uint32_t date)
{
	set_member(truth, key, member, true, date);
}

void truth_set_member(struct truth *truth, int key, int member, bool in)
{
	set_member(truth, key, member, in, 0);
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
		change(truth, h, value, 0);
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

const struct change *truth_change(const struct history *h, uint64_t tick)
{
	size_t i = h->count - 1;

	while (i > 0 && h->changes[i].tick > tick)
		i--;
	return &h->changes[i];
}

bool truth_at(const struct history *h, uint64_t tick)
{
	return truth_change(h, tick)->value;
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
