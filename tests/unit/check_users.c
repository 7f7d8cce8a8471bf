
#include "config/users.h"
#include "unit.h"
#include "util/buf.h"

static char error[256];

static struct users *make(const char *text)
{
	error[0] = '\0';
	return users_create(guard_text(text), "f", error);
}

static bool is_user(const struct users *users, const char *user, const char *password)
{
	return users_authenticate(
		users, slice_of(user, strlen(user)), slice_of(password, strlen(password)));
}

TEST(right_and_wrong)
{
	struct users *users = make("foo:bar\nann:b:c\nfoo:second\n");

	ck_assert_ptr_nonnull(users);
	ck_assert(is_user(users, "foo", "bar"));
	ck_assert(is_user(users, "foo", "second"));
	ck_assert(is_user(users, "ann", "b:c"));
	ck_assert(!is_user(users, "foo", "b:c"));
	ck_assert(!is_user(users, "ann", "bar"));
	ck_assert(!is_user(users, "foo", "ba"));
	ck_assert(!is_user(users, "foo", "barr"));
	ck_assert(!is_user(users, "fo", "obar"));
	ck_assert(!is_user(users, "foo", ""));
	ck_assert(!is_user(users, "", ""));
	ck_assert(!is_user(users, "FOO", "bar"));
	users_destroy(users);
}

/* A user without an end of line at the end; bytes above 127. */
TEST(odd_files)
{
	struct users *users = make("foo:bar");

	ck_assert(is_user(users, "foo", "bar"));
	users_destroy(users);
	users = make("#x:\xc3\xa4\n");
	ck_assert(is_user(users, "#x", "\xc3\xa4"));
	users_destroy(users);
	users_destroy(NULL);
}

TEST(wrong_lines)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "f:1: no user" },
		{ "foo:bar\n# comment\n", "f:2: no colon: a line is user:password" },
		{ "foo:bar\n\n", "f:2: no colon: a line is user:password" },
		{ "foo bar\n", "f:1: no colon: a line is user:password" },
		{ ":bar\n", "f:1: empty" },
		{ "foo:\n", "f:1: empty" },
		{ "foo:bar\r\n", "f:1: a space or a control character" },
		{ "f oo:bar\n", "f:1: a space or a control character" },
		{ "foo:b ar\n", "f:1: a space or a control character" },
		{ "a:b\nc:d\nfoo:b\tar\n", "f:3: a space or a control character" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_ptr_null(make(cases[i].text));
		ck_assert_str_eq(error, cases[i].error);
	}
}

TEST(sizes)
{
	struct buf text = BUF_EMPTY;
	struct users *users;
	char line[300];

	for (int i = 0; i < USERS_MAX; i++)
		buf_printf(&text, "user-%d:password-%d\n", i, i);
	users = users_create(buf_slice(&text), "f", error);
	ck_assert_ptr_nonnull(users);
	ck_assert(is_user(users, "user-0", "password-0"));
	ck_assert(is_user(users, "user-999", "password-999"));
	ck_assert(!is_user(users, "user-999", "password-0"));
	users_destroy(users);
	BUF_ADD(&text, "one:more\n");
	ck_assert_ptr_null(users_create(buf_slice(&text), "f", error));
	ck_assert_str_eq(error, "f:1001: too many users");
	buf_free(&text);
	snprintf(line, sizeof(line), "foo:%0251d", 0);
	users = make(line);
	ck_assert(is_user(users, "foo", line + 4));
	users_destroy(users);
	snprintf(line, sizeof(line), "foo:%0252d", 0);
	ck_assert_ptr_null(make(line));
	ck_assert_str_eq(error, "f:1: the line is too long");
}
