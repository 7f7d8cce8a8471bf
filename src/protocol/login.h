/*
 * The requests of a client that must authenticate first, as memcached's option -Y has it: `set <any> <any> <any> <bytes>` with the
 * data block "user password". Everything else is refused. Pure: it only reads bytes.
 */
#ifndef PROTOCOL_LOGIN_H
#define PROTOCOL_LOGIN_H

#include "protocol/request.h"

/* Sizes that end the connection of a client that is not authenticated: of a line with its end, of a data block. */
enum { LOGIN_LINE_MAX = 2048, LOGIN_BLOCK_MAX = 1024 };

extern const char login_unauthenticated[];

/*
 * Parses one request at the front of `in`, as request_parse does. With READY, `out->data` is what the client sent to authenticate.
 * With REFUSED, `out->error` is login_unauthenticated, and `out->skip.bytes` is small. No other field says anything about a command.
 */
enum request_status login_parse(struct slice in, struct request_progress *progress, struct request *out);

/* Splits "user password" at its spaces. What follows the password is ignored, as in memcached. False if one of the two is missing. */
bool login_split(struct slice data, struct slice *user, struct slice *password);

#endif
