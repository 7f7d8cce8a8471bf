/* Moves of sets with two copies. */
#include "two_servers.h"

#define TABLE "t0a000000001"
#define REFERENCE "@" TABLE ".1.1.0.9.0123456789abcdef "

FIXTURE(two_servers_set_up, two_servers_tear_down)

/* To the moves it is a set with another name: a read of a part moves its base. */
TEST(moves_a_second_copy_with_its_parts)
{
	static const char base[] = "@set.1 @t3a00000000x.1.1.0.9.0123456789abcdef +b ~o---0aaaa "
				   "~s---1aaaa +c ~e ";

	for (int i = 0; i < 2; i++) {
		put(O, "s.~copy", base, 0);
		put(O, "s.~copy.t3a00000000x", "table", 0);
		if (i == 0)
			reads(&proxies[0], "s.~copy", base);
		else
			reads(&proxies[0], "s.~copy.t3a00000000x", "table");
		has(N, "s.~copy", base);
		has(N, "s.~copy.t3a00000000x", "table");
		has(O, "s.~copy", NULL);
		has(O, "s.~copy.t3a00000000x", NULL);
		two_servers_tear_down();
		two_servers_set_up();
	}
}

/* Of sets with two copies the later closed part stays, with its parts. Words are joined by their stamps. */
TEST(both_have_a_copy)
{
	static const char older[] = "+a ~o---1aaaa ~s---4aaaa +b ~e ",
			  old_runs[] = "@set.1 " REFERENCE "~o---1aaaa ~s---4aaaa +b ~e ",
			  newer[] = "+c ~o---2aaaa ~s---3aaaa -b ~e ",
			  new_runs[] = "@set.1 " REFERENCE "~o---2aaaa ~s---3aaaa -b ~e ";

	put(O, "s", older, 0);
	put(N, "s", newer, 0);
	reads(&proxies[0], "s", "+c ~o---2aaaa ~s---4aaaa +b ~e ");
	has(O, "s", NULL);
	put(O, "t", old_runs, 0);
	put(O, "t." TABLE, "table", 0);
	put(N, "t", newer, 0);
	reads(&proxies[0], "t", "+c ~o---2aaaa ~s---4aaaa +b ~e ");
	has(O, "t." TABLE, NULL);
	has(N, "t." TABLE, NULL);
	put(O, "u", new_runs, 0);
	put(O, "u." TABLE, "table", 0);
	put(N, "u", older, 0);
	reads(&proxies[0], "u", "@set.1 " REFERENCE "~o---2aaaa ~s---4aaaa +b ~e ");
	has(O, "u." TABLE, NULL);
	has(N, "u." TABLE, "table");
	/* The date is that of the joined base. */
	put(O, "v", "~t1700000100 ~o---1aaaa ~s---4aaaa ~t1700000300 ~e ", 50);
	put(N, "v", "+c ~t1700000200 ~o---2aaaa ", 60);
	reads(&proxies[0], "v", "+c ~t1700000200 ~o---2aaaa ~s---4aaaa ~t1700000300 ~e ");
	ck_assert_int_eq(item(N, "v")->expires, 1700000300);
	ck_assert_uint_eq(moves_statistics(proxies[0].moves)->merged, 4);
	ck_assert_uint_eq(moves_statistics(proxies[0].moves)->dropped, 0);
}
