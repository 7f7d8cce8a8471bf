/*
 * The users that may authenticate, from the lines `user:password` of a file. Immutable once
 * created, so any thread may read them. It does no I/O, except for getting a random key from
 * the system.
 *
 * No password is kept. Each pair of user and password is represented by a keyed hash
 * (HMAC-SHA256, with a random key for each object). An attempt is hashed too, and compared with
 * all hashes in constant time. So the time of an attempt depends on its own length and the
 * number of users, and does not reveal which users exist.
 */
#ifndef CONFIG_USERS_H
#define CONFIG_USERS_H

#include <stdbool.h>

#include "util/slice.h"

enum {
	USERS_MAX = 1000,
	USERS_LINE_MAX = 255 /* Bytes of a line without its end; memcached accepts no more. */
};

struct users;

/*
 * Creates the users in a file's `text`; `name` is the name of the file, for errors. The caller
 * owns the result. If a line is wrong or there is none, returns NULL, with "name:line: what" in
 * `error`. Errors contain no part of the text.
 */
struct users *users_create(struct slice text, const char *name, char error[256]);
/* NULL does nothing. */
void users_destroy(struct users *users);

/*
 * Returns whether this is a password of the user, of any length. If a user is on several lines,
 * each of the passwords is valid.
 */
bool users_authenticate(const struct users *users, struct slice user, struct slice password);

/*
 * Checks a user's name or a password: 1 to 255 bytes, without spaces and control bytes. Returns
 * NULL, or the error.
 */
const char *users_check_word(struct slice word);

#endif
