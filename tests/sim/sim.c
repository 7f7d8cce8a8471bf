/*
 * Histories of the collections in a simulated world, from seeds:
 *
 *     sim [-c | -e ENCODING] [-n HISTORIES] [-s FIRST_SEED] [-m] [-v]
 *
 * -e names another encoding than oplog: see form.c; `-e moving` changes the pool: see moving.h; `-e taking` is commands of two keys:
 * see taking.h. -c puts many proxies on one key: see crowd.h. -m puts in bugs on purpose, one after the other, and fails when one is
 * not found. A failure prints its seed: `-n 1 -s SEED -v` shows that history.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crowd.h"
#include "form.h"
#include "histories.h"
#include "moving.h"
#include "taking.h"
#include "world.h"

static struct world world;

static const struct form *form;

#define EVERY "oplog signed csv tombstone paired flip flip-mark indexed "

static const struct {
	const char *name, *encodings;
} mutations[MUTATIONS] = {
	{ "none", "" },
#define MUTATION(name, what, encodings) { what, encodings },
#include "mutations.def"
#undef MUTATION
};

static bool makes_sense(int mutation)
{
	char name[32];

	snprintf(name, sizeof(name), "%s ", form ? form->name : "oplog");
	for (const char *at = mutations[mutation].encodings; *at; at = strchr(at, ' ') + 1) {
		if (strncmp(at, name, strlen(name)) == 0)
			return true;
	}
	return false;
}

/* The seed of the first history that fails; 0 for none. */
static uint64_t run(uint64_t first, uint64_t count, int mutation, bool verbose)
{
	uint64_t commands = 0, failures = 0, compactions = 0, merges = 0, incomplete = 0, undone = 0;

	for (uint64_t seed = first; seed < first + count; seed++) {
		if (!world_run(&world, form, seed, (enum mutation)mutation, verbose)) {
			printf("seed %llu: %s: %s\n", (unsigned long long)seed, world.violation, world.detail);
			return seed;
		}
		commands += world.commands;
		failures += world.failures;
		compactions += world.compactions;
		merges += world.merges;
		incomplete += world.incomplete;
		undone += world.undone;
	}
	printf("%llu histories: %llu commands, %llu failed, %llu compactions, %llu merges, %llu "
	       "sets lost a segment, %llu touches undone\n",
		(unsigned long long)count, (unsigned long long)commands, (unsigned long long)failures,
		(unsigned long long)compactions, (unsigned long long)merges, (unsigned long long)incomplete,
		(unsigned long long)undone);
	return 0;
}

static const char *mutation_name(int mutation)
{
	return makes_sense(mutation) ? mutations[mutation].name : NULL;
}

static const struct histories histories = { run, mutation_name, MUTATIONS };

/* Runs crowds from these seeds. With the bug each must fail. */
static int run_crowds(uint64_t first, uint64_t count, bool mutated)
{
	int passed = 0, failed = 0;

	if (mutated)
		printf("put in on purpose: no proxy notices that a key is crowded, and so none holds its appends\n");
	for (uint64_t seed = first; seed < first + count; seed++) {
		if (crowd_run(seed, !mutated) != mutated)
			passed++;
		else
			failed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct histories *chosen = &histories;
	uint64_t count = 10000, first = 1;
	bool mutated = false, verbose = false, crowds = false;
	int c;

	while ((c = getopt(argc, argv, "ce:n:s:mv")) != -1) {
		switch (c) {
		case 'c':
			crowds = true;
			break;
		case 'e':
			form = form_named(optarg);
			if (strcmp(optarg, "moving") == 0)
				chosen = &moving_histories;
			else if (strcmp(optarg, "taking") == 0)
				chosen = &taking_histories;
			else if (!form && strcmp(optarg, "oplog") != 0)
				return 2;
			break;
		case 'n':
			count = strtoull(optarg, NULL, 10);
			break;
		case 's':
			first = strtoull(optarg, NULL, 10);
			break;
		case 'm':
			mutated = true;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (crowds)
		return run_crowds(first, count, mutated);
	return histories_main(chosen, first, count, mutated, verbose);
}
