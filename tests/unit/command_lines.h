/*
 * A request of each command, from the tables of commands and grammars, for tests that send all of
 * them. A command is in these tests by its row in commands.def; a new grammar needs a row in
 * command_lines.c.
 *
 * The set or list sk is large, sn and sn0, sn1 ... are missing. The item v is small, b is large,
 * and e is a type of events.
 */
#ifndef UNIT_COMMAND_LINES_H
#define UNIT_COMMAND_LINES_H

#include "protocol/command.h"
#include "util/buf.h"

/* What the arguments of a request are: few, as many different words as it may have, or as many equal ones. */
enum line_size { LINE_SMALL, LINE_MANY, LINE_EQUAL, LINE_SIZES };

enum { LINE_WORDS = 300, LINE_WORDS_WAIT = 200, LINE_DATA = 32 * 1024 };

/* How the request is sent; the last three as a command in the key of a get or a set. */
enum line_form { LINE_TEXT, LINE_KEY, LINE_META, LINE_BINARY, LINE_FORMS };

/* The prefix of commands that are keys. */
#define LINE_PREFIX "q|"

/* Returns what follows the name of the command; NULL if its grammar has no row. */
const char *command_line_small(const struct command *command);

/*
 * Appends a request. Returns false, and appends nothing, if there is none of this form or size that
 * differs from the others.
 */
bool command_line(
	const struct command *command, enum line_form form, enum line_size size, struct buf *out);

#endif
