/*
 * Histories of the collections in a simulated world, from seeds:
 *
 *     sim [-c | -e ENCODING] [-n HISTORIES] [-s FIRST_SEED] [-m] [-v]
 *
 * -e names another encoding than oplog: see form.c; `-e moving` changes the pool: see moving.h; `-e taking` is commands of two keys:
 * see taking.h; `-e holding` is jobs that are held: see holding.h; `-e fresh` is reads from memory: see
 * fresh.h; `-e copies` is rules for sets with two copies: see model.h; `-e pairs` is such sets in the
 * daemon's code: see pairs.h. -c puts many proxies on one key: see crowd.h. -m puts in bugs on purpose, one after the other, and fails when one is
 * not found. A failure prints its seed: `-n 1 -s SEED -v` shows that history.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crowd.h"
#include "form.h"
#include "fresh.h"
#include "histories.h"
#include "holding.h"
#include "model.h"
#include "moving.h"
#include "pairs.h"
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

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	const struct world *w = &world;

	world_run(&world, form, seed, (enum mutation)mutation, verbose);
	return (struct verdict){ w->violation, w->detail,
		{ w->commands, w->failures, w->compactions, w->merges, w->incomplete, w->undone,
			w->expired } };
}

static const char *mutation_name(int mutation)
{
	return makes_sense(mutation) ? mutations[mutation].name : NULL;
}

static const struct histories histories = { run,
	{ "commands", "failed", "compactions", "merges", "sets lost a segment", "touches undone",
		"members expired" },
	mutation_name, MUTATIONS };

/* Runs crowds from these seeds. With the bug each must fail. */
static int run_crowds(uint64_t first, uint64_t count, bool mutated)
{
	int passed = 0, failed = 0;

	if (mutated)
		printf("put in on purpose: no proxy notices that a key is crowded, and so none "
		       "holds its appends\n");
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
			else if (strcmp(optarg, "copies") == 0)
				chosen = &model_histories;
			else if (strcmp(optarg, "pairs") == 0)
				chosen = &pairs_histories;
			else if (strcmp(optarg, "holding") == 0)
				chosen = &holding_histories;
			else if (strcmp(optarg, "fresh") == 0)
				chosen = &fresh_histories;
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
