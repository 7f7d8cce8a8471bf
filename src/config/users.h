/*
 * The users who may authenticate, from the lines `user:password` of a file. Once made, they never change, so any thread may read
 * them. It does no I/O, except that it asks the system for a random key.
 *
 * No password is kept. A keyed hash (HMAC-SHA256, with a key that is random for each object) stands for each pair of user and
 * password. An attempt is hashed too, and compared with all of them in constant time. So the time that an attempt takes depends on
 * its own length and on the number of users, and says nothing about which users there are.
 */
#ifndef CONFIG_USERS_H
#define CONFIG_USERS_H

#include <stdbool.h>

#include "util/slice.h"

enum {
	USERS_MAX = 1000,
	USERS_LINE_MAX = 255 /* bytes of a line without its end; memcached takes no more */
};

struct users;

/*
 * Makes the users of a file's `text`; `name` is the file's, for errors. The caller owns the users. If a line is wrong, or there is
 * none, gives NULL, with "name:line: what" in `error`. No error has a part of the text in it.
 */
struct users *users_create(struct slice text, const char *name, char error[256]);
/* NULL does nothing. */
void users_destroy(struct users *users);

/* Whether this is the password of the user, of any length. A user may stand on several lines: then each password is right. */
bool users_authenticate(const struct users *users, struct slice user, struct slice password);

/* The fault of a user's name or a password, or NULL: they have 1 to 255 bytes, without spaces and control bytes. */
const char *users_check_word(struct slice word);

#endif
