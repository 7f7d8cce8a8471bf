#include "config/users.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/alloc.h"
#include "util/buf.h"

enum { HASH = 32 };

struct users {
	unsigned char key[HASH];
	size_t count;
	unsigned char hashes[USERS_MAX][HASH];
};

/*
 * Neither users nor passwords contain spaces, so two different pairs never result in the same
 * text.
 */
static void hash(const struct users *users, struct slice user, struct slice password,
	unsigned char out[HASH])
{
	struct buf text = BUF_EMPTY;

	buf_add_word(&text, user);
	buf_add_slice(&text, password);
	if (!HMAC(EVP_sha256(), users->key, HASH, (const unsigned char *)text.data, buf_size(&text),
		    out, NULL))
		abort();
	OPENSSL_cleanse(text.data, text.end);
	buf_free(&text);
}

const char *users_check_word(struct slice word)
{
	if (word.n == 0)
		return "empty";
	if (word.n > USERS_LINE_MAX)
		return "too long";
	if (word_end(word.p, word.p + word.n) != word.p + word.n)
		return "a space or a control character";
	return NULL;
}

/* Adds the user on a line. Returns NULL, or the error. */
static const char *take_user(struct users *users, struct slice line)
{
	const char *colon = memchr(line.p, ':', line.n), *error;
	struct slice user, password;

	if (line.n > USERS_LINE_MAX)
		return "the line is too long";
	if (!colon)
		return "no colon: a line is user:password";
	if (users->count == USERS_MAX)
		return "too many users";
	user = slice_of(line.p, (size_t)(colon - line.p));
	password = slice_skip(line, user.n + 1);
	error = users_check_word(user);
	if (!error)
		error = users_check_word(password);
	if (!error)
		hash(users, user, password, users->hashes[users->count++]);
	return error;
}

struct users *users_create(struct slice text, const char *name, char error[256])
{
	const char *what = text.n ? NULL : "no user";
	struct users *users = xcalloc(1, sizeof(*users));
	size_t number = 0;

	if (RAND_bytes(users->key, HASH) != 1)
		abort();
	for (; text.n && !what; number++)
		what = take_user(users, slice_cut(&text, '\n'));
	if (!what)
		return users;
	snprintf(error, 256, "%s:%zu: %s", name, number ? number : 1, what);
	users_destroy(users);
	return NULL;
}

void users_destroy(struct users *users)
{
	free(users);
}

bool users_authenticate(const struct users *users, struct slice user, struct slice password)
{
	unsigned char tried[HASH];
	unsigned found = 0;

	hash(users, user, password, tried);
	for (size_t i = 0; i < users->count; i++)
		found |= CRYPTO_memcmp(tried, users->hashes[i], HASH) == 0;
	return found;
}
