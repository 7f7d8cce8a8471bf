
#include "protocol/command.h"
#include "protocol/commands.h"
#include "unit.h"

TEST(sorted)
{
	for (int i = 0; i + 1 < COMMAND_COUNT; i++) {
		const char *a = command_get(i)->name.p, *b = command_get(i + 1)->name.p;
		ck_assert_msg(strcmp(a, b) < 0, "%s stands before %s", a, b);
	}
}

TEST(every_name_is_found)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const struct command *command = command_get(i);
		ck_assert_int_eq(command->id, i);
		ck_assert_uint_eq(command->name.n, strlen(command->name.p));
		ck_assert_ptr_eq(command_lookup(guard_place(command->name)), command);
		ck_assert(slice_starts(slice_of(command->usage, strlen(command->usage)), command->name));
		ck_assert_uint_gt(strlen(command->summary), 0);
	}
}

static bool is_command(const char *name)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(command_get(i)->name.p, name) == 0)
			return true;
	}
	return false;
}

/* Names cut short, lengthened, in upper case, or one letter off. */
TEST(nothing_else_is_found)
{
	char name[64];

	ck_assert_ptr_null(command_lookup(SLICE("")));
	ck_assert_ptr_null(command_lookup(SLICE("get\0")));
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const char *good = command_get(i)->name.p;
		for (size_t cut = 0; cut < strlen(good); cut++) {
			snprintf(name, sizeof(name), "%.*s", (int)cut, good);
			ck_assert_int_eq(command_lookup(guard_text(name)) != NULL, is_command(name));
			for (int c = 1; c < 256; c++) {
				snprintf(name, sizeof(name), "%s", good);
				name[cut] = (char)c;
				ck_assert_int_eq(command_lookup(guard_text(name)) != NULL, is_command(name));
			}
		}
		for (int c = 1; c < 256; c++) {
			snprintf(name, sizeof(name), "%s%c", good, c);
			ck_assert_int_eq(command_lookup(guard_text(name)) != NULL, is_command(name));
		}
	}
}

/* What only reads, or is about the connection, has a reply in any case. */
TEST(noreply_only_where_something_is_written)
{
	const char *reading[] = { "get", "gets", "gat", "gats", "mg", "ms", "mn", "smembers", "scard", "sismember",
		"smismember", "sinfo", "evcount", "evrange", "evlast", "version", "stats", "quit" };

	for (size_t i = 0; i < sizeof(reading) / sizeof(reading[0]); i++)
		ck_assert(!command_lookup(slice_of(reading[i], strlen(reading[i])))->noreply);
}
