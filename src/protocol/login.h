/*
 * The requests of a client that must authenticate first, compatible with memcached's option -Y:
 * `set <any> <any> <any> <bytes>` with the data block "user password". All other requests are
 * refused. Pure functions without I/O.
 */
#ifndef PROTOCOL_LOGIN_H
#define PROTOCOL_LOGIN_H

#include "protocol/request.h"

/*
 * Maximum size of a line with its end, and of a data block, of a client that is not
 * authenticated. A larger one closes the connection.
 */
enum { LOGIN_LINE_MAX = 2048, LOGIN_BLOCK_MAX = 1024 };

extern const char login_unauthenticated[];

/*
 * Parses one request at the front of `in`, as request_parse does. READY: `out->data` is the
 * block with user and password. REFUSED: `out->error` is login_unauthenticated, and
 * `out->skip.bytes` is small. The fields that describe a command are not set.
 */
enum request_status login_parse(
	struct slice in, struct request_progress *progress, struct request *out);

/*
 * Splits "user password" at its spaces. Ignores any text after the password, like memcached.
 * Returns false if one of the two is missing.
 */
bool login_split(struct slice data, struct slice *user, struct slice *password);

#endif
