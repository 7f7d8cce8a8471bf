/* Rules with `only`: sets and lists are kept apart from plain items, so that an append to a set cannot damage a plain value. */
#ifndef COMMAND_RESERVED_H
#define COMMAND_RESERVED_H

struct request;
struct rules;

/*
 * The error line of a request that writes a plain item under a reserved key, or a set or list under any other key; NULL if there is no
 * such write. The target of the request is known. Reads, touches, deletions and flushes are never refused.
 */
const char *reserved_refusal(const struct rules *rules, const struct request *request);

#endif
