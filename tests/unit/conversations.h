/* Conversations with the fake: the calls to a server about a collection, and its replies. */
#ifndef UNIT_CONVERSATIONS_H
#define UNIT_CONVERSATIONS_H

#include "collection/machines.h"
#include "unit.h"

#define APPEND(key, bytes, log) "append " key " 0 0 " #bytes "\r\n" log "\r\n"
#define ADD(key, bytes, log) "add " key " 0 0 " #bytes "\r\n" log "\r\n"
#define FETCH(key) "mg " key " k f c t v\r\n"
#define FOUND(key, bytes, log) "VA " #bytes " k" key " f0 c5 t-1\r\n" log "\r\n"
#define FETCH_TO_REPLACE(key) "mg " key " k f c v\r\n"
#define LOOK(key) "mg " key " k f s\r\n"
#define LOOKED(key) "HD k" key " f0 s100\r\n"

/* A fake that each test of a file has for itself, since Check forks for each test. */
static struct fake fake;

static void fake_setup(void)
{
	fake_init(&fake);
}

static void fake_teardown(void)
{
	fake_fini(&fake);
}

__attribute__((constructor)) static void register_conversations(void)
{
	unit_fixture(__BASE_FILE__, fake_setup, fake_teardown);
}

/* One line of a conversation with this fake. */
#define fake_takes(options) fake_take(&fake, (options))
#define client_asks(text) asks(&fake, text)
#define server_is_asked(text) calls(&fake, text)
#define server_answers(text) answers(&fake, text)
#define client_is_told(text) told(&fake, text)
#define client_hears_nothing() told(&fake, "")
#define server_hears_nothing() calls(&fake, "")

/*
 * Several lines. serves: a call to a server, and its reply. relays: its reply, and the reply to
 * the client. exchanges: a request, the server's reply, the reply to the client. talks: a request,
 * the call to a server, its reply, the reply to the client. fails: a call fails; the reply to the
 * client.
 */
#define serves(asked, answer) \
	do { \
		server_is_asked(asked); \
		server_answers(answer); \
	} while (0)
#define relays(answer, reply) \
	do { \
		server_answers(answer); \
		client_is_told(reply); \
	} while (0)
#define exchanges(request, answer, reply) \
	do { \
		client_asks(request); \
		relays(answer, reply); \
	} while (0)
#define talks(request, asked, answer, reply) \
	do { \
		client_asks(request); \
		serves(asked, answer); \
		client_is_told(reply); \
	} while (0)
#define fails(status, reply) \
	do { \
		fake_fail(&fake, status); \
		client_is_told(reply); \
	} while (0)

#endif
