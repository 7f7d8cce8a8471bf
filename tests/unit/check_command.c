
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
		ck_assert(slice_starts(
			slice_of(command->usage, strlen(command->usage)), command->name));
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
			ck_assert_int_eq(
				command_lookup(guard_text(name)) != NULL, is_command(name));
			for (int c = 1; c < 256; c++) {
				snprintf(name, sizeof(name), "%s", good);
				name[cut] = (char)c;
				ck_assert_int_eq(
					command_lookup(guard_text(name)) != NULL, is_command(name));
			}
		}
		for (int c = 1; c < 256; c++) {
			snprintf(name, sizeof(name), "%s%c", good, c);
			ck_assert_int_eq(
				command_lookup(guard_text(name)) != NULL, is_command(name));
		}
	}
}

/* Commands that only read, or concern the connection, always have a reply. */
TEST(noreply_only_where_something_is_written)
{
	const char *reading[] = { "get", "gets", "gat", "gats", "mg", "ms", "mn", "smembers",
		"scard", "sismember", "smismember", "sinfo", "evcount", "evrange", "evlast",
		"evtop", "version", "stats", "quit" };

	for (size_t i = 0; i < sizeof(reading) / sizeof(reading[0]); i++)
		ck_assert(!command_lookup(slice_of(reading[i], strlen(reading[i])))->noreply);
}

static bool names_key(struct slice word)
{
	static const struct slice keys[] = { { "<key>", 5 }, { "<key>+", 6 }, { "<type>", 6 },
		{ "<prefix>", 8 }, { "<source>", 8 }, { "<target>", 8 } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (slice_equal(word, keys[i]))
			return true;
	}
	return false;
}

/* The grammar of a command matches its usage. */
TEST(grammar_is_that_of_usage)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const struct command *command = command_get(i);
		const struct grammar_traits *traits = command_traits(command);
		struct slice rest = slice_of(command->usage, strlen(command->usage)), word;
		unsigned before = 0;
		(void)slice_token(&rest);
		while ((word = slice_token(&rest)).n && !names_key(word))
			before++;
		ck_assert_msg((word.n == 0) == (traits->keys == KEYS_NONE), "%s", command->usage);
		if (word.n)
			ck_assert_msg(traits->before == before, "%s", command->usage);
		ck_assert_msg(
			command_has_keys(command) == (strstr(command->usage, "<key>+") != NULL),
			"%s", command->usage);
		ck_assert_msg(traits->has_data == (strstr(command->usage, "<bytes>") != NULL), "%s",
			command->usage);
	}
}
