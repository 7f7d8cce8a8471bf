#include "conversations.h"

/* q is never sent to a server; the replies that it hides are suppressed here, and no others. */
TEST(quiet_get)
{
	talks("mg a q v\r\nmg b q v\r\nmg c q s\r\n", "mg a v\r\nmg b v\r\nmg c s\r\n",
		"EN\r\nVA 1\r\nx\r\nHD s1\r\n", "VA 1\r\nx\r\nHD s1\r\n");
}

TEST(quiet_writes)
{
	client_asks("ms a 1 q\r\nx\r\nms b 1 q\r\nx\r\nmd c q\r\nmd d q\r\nma e q\r\nma f q "
		    "v\r\nma g q\r\n");
	server_is_asked("ms a 1\r\nx\r\nms b 1\r\nx\r\nmd c\r\nmd d\r\nma e\r\nma f v\r\nma g\r\n");
	relays("HD\r\nNS\r\nHD\r\nEX\r\nHD\r\nVA 1\r\n5\r\nNS\r\n", "NS\r\nEX\r\nNS\r\n");
}

/* The flag is for us. Any other P is for proxies behind us. */
TEST(item)
{
	talks("mg a Pitem v\r\nmd a P0 q\r\nma a v q Pitem\r\n", "mg a v\r\nmd a P0\r\nma a v\r\n",
		"EN\r\nNF\r\nNF\r\n", "EN\r\nNF\r\nNF\r\n");
}

/* An error is returned even with q. */
TEST(quiet_failures)
{
	client_asks("mg a q v\r\nms b 1 q\r\nx\r\nmg c q\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	fake_fail(&fake, RESULT_LOST);
	server_answers("SERVER_ERROR out of memory\r\n");
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n"
		       "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n"
		       "SERVER_ERROR out of memory\r\n");
}

/* The decoded bytes of a key determine its server and its lane. */
TEST(encoded_keys)
{
	client_asks("sadd foo a\r\nmg Zm9v b v\r\nmg YmFy b v\r\n");
	server_is_asked(APPEND("foo", 3, "+a ") "mg YmFy b v\r\n");
	assert_bytes(fake.calls[1].call.key, "bar");
	fake_result(&fake, 1, &(struct result){ .status = RESULT_TEXT, .line = SLICE("EN") });
	server_answers("STORED\r\n");
	server_is_asked("mg Zm9v b v\r\n");
	assert_bytes(fake.calls[2].call.key, "foo");
	relays("VA 3\r\n+a \r\n", "STORED\r\nVA 3\r\n+a \r\nEN\r\n");
}

/*
 * The same item as with the plain key: the server decides in which of both forms it prints the
 * key.
 */
TEST(encoded_keys_that_could_be_plain)
{
	talks("mg Zm9v b k v\r\nmd Zm9v k b q\r\n", "mg Zm9v b k v\r\nmd Zm9v k b\r\n",
		"VA 1 kfoo\r\nx\r\nNF kZm9v b\r\n", "VA 1 kfoo\r\nx\r\nNF kZm9v b\r\n");
}

/*
 * A server may print an encoded key with line ends in it: the key is not requested from it, and
 * the client receives its own text, if requested.
 */
TEST(encoded_keys_come_from_the_client)
{
	client_asks(
		"mg YQ0KRU4= b N30 k\r\nmg YQ0KRU4= t k O1 v b\r\nms YQ0KRU4= 1 k b F1 c\r\nx\r\n"
		"md YQ0KRU4= b O5 k\r\nma YQ0KRU4= k b v\r\nmg YQ0KRU4= b k O3\r\nmg YQ0KRU4= b "
		"O3\r\n");
	server_is_asked(
		"mg YQ0KRU4= b N30\r\nmg YQ0KRU4= t O1 v b\r\nms YQ0KRU4= 1 b F1 c\r\nx\r\n"
		"md YQ0KRU4= b O5\r\nma YQ0KRU4= b v\r\nmg YQ0KRU4= b O3\r\nmg YQ0KRU4= b O3\r\n");
	server_answers(
		"HD W\r\nVA 1 t9 O1 Z\r\nx\r\nHD c7\r\nNF O5\r\nVA 1\r\n5\r\nEN O3\r\nHD O3\r\n");
	client_is_told(
		"HD kYQ0KRU4= b W\r\nVA 1 t9 kYQ0KRU4= b O1 Z\r\nx\r\nHD kYQ0KRU4= b c7\r\n"
		"NF O5 kYQ0KRU4= b\r\nVA 1 kYQ0KRU4= b\r\n5\r\nEN kYQ0KRU4= b O3\r\nHD O3\r\n");
}

TEST(debug)
{
	client_asks("me Zm9v b k\r\nme foo x Z\r\nme Zm9v b\r\nme Zm9v k b\r\n");
	server_is_asked("me foo\r\nme foo\r\nme foo\r\nme Zm9v\r\n");
	server_answers("ME foo exp=-1 la=0\r\nME Zm9v exp=-1 la=0\r\nEN\r\nEN\r\n");
	client_is_told("ME foo exp=-1 la=0\r\nME Zm9v exp=-1 la=0\r\nEN\r\nEN\r\n");
}

/*
 * Only memcached knows whether it created the item, which q does not hide: it is sent with q,
 * followed by a no-op.
 */
TEST(quiet_arithmetic)
{
	client_asks(
		"ma a N0 q\r\nma a q N0\r\nma a N0 J5 q v\r\nma a N0 q\r\nma YSBi b k N0 q\r\n");
	server_is_asked(
		"ma a N0 q\r\nmn\r\nma a q N0\r\nmn\r\nma a N0 J5 q v\r\nmn\r\nma a N0 q\r\nmn\r\n"
		"ma YSBi b N0 q\r\nmn\r\n");
	server_answers("HD\r\nMN\r\nMN\r\nVA 1\r\n5\r\nMN\r\nCLIENT_ERROR not a "
		       "number\r\nMN\r\nHD\r\nMN\r\n");
	client_is_told("HD\r\nVA 1\r\n5\r\nCLIENT_ERROR not a number\r\nHD kYSBi b\r\n");
}

/*
 * A reply that the server suppresses would keep the item, and the time to live would be that of an
 * item that is not returned.
 */
TEST(arithmetic_with_a_time)
{
	talks("get a\r\nma a T100\r\nma a T100 N0 q\r\n",
		"mg a k f v\r\nmn\r\nma a T100\r\nmn\r\nma a T100 N0 q\r\nmn\r\n",
		"EN\r\nMN\r\nHD\r\nMN\r\nMN\r\n", "END\r\nHD\r\n");
}

/* memcached deletes the item that an `ms` with a value that is too large would have replaced. */
TEST(too_large)
{
	client_asks("ms k 2000000 T0\r\n");
	talks("ms YSBi 2000000 b q\r\n", "delete k\r\nmd YSBi b\r\n", "DELETED\r\nNF\r\n",
		"SERVER_ERROR object too large for cache\r\nSERVER_ERROR object too large for "
		"cache\r\n");
	client_asks("ms k 1\r\nx\r\n");
	ck_assert(fake.calls[2].call.discards);
	relays("HD\r\n", "HD\r\n");
}

#define REFUSED "CLIENT_ERROR the key is a part of a set or list, and can only be read\r\n"

/* The parts of a set or list. */
TEST(keys_of_parts)
{
	client_asks(
		"ms k.t1abcdefghij 1\r\nx\r\nmd k.i1abcdefghij q\r\nma k.labcdefghijk.1.2\r\n"
		"mg k.t1abcdefghij N30\r\nmg k.t1abcdefghij T30\r\nmd ay50MWFiY2RlZmdoaWo= b\r\n");
	server_hears_nothing();
	client_is_told(REFUSED REFUSED REFUSED REFUSED REFUSED REFUSED);
	talks("mg k.t1abcdefghij v R30\r\nme k.t1abcdefghij\r\n",
		"mg k.t1abcdefghij v R30\r\nme k.t1abcdefghij\r\n", "EN\r\nEN\r\n", "EN\r\nEN\r\n");
}

#define COPY "CLIENT_ERROR the key is that of a second copy, and can only be read\r\n"

/* The last key is k.~copy in base64. */
TEST(keys_of_second_copies)
{
	client_asks("ms k.~copy 1\r\nx\r\nmd k.~copy q\r\nma k.~copy\r\nmg k.~copy N30\r\n"
		    "mg k.~copy T30\r\nmd ay5+Y29weQ== b\r\n");
	server_hears_nothing();
	client_is_told(COPY COPY COPY COPY COPY COPY);
	talks("mg k.~copy v R30\r\nme k.~copy\r\n", "mg k.~copy v R30\r\nme k.~copy\r\n",
		"EN\r\nEN\r\n", "EN\r\nEN\r\n");
}

/* The length for the server is written again, and each flag after one space. */
TEST(written_anew)
{
	client_asks("ms  k  003   q   T30\r\nabc\r\n");
	serves("ms k 3 T30\r\nabc\r\n", "HD\r\n");
	client_hears_nothing();
}
