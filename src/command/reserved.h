/*
 * Rules with `only` keep sets and lists apart from plain items, so that an append to a set
 * cannot damage a plain value.
 */
#ifndef COMMAND_RESERVED_H
#define COMMAND_RESERVED_H

struct request;
struct rules;

/*
 * Returns the error line of a request that writes a plain item under a reserved key, or a set
 * or list under any other key; NULL for all other requests. The target of the request must be
 * known. Reads, touches, deletions and flushes are never refused.
 */
const char *reserved_refusal(const struct rules *rules, const struct request *request);

#endif
