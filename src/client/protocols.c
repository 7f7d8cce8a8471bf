#include "client/protocols.h"

#include "client/command.h"
#include "protocol/binary.h"

/* --- the text protocol --- */

enum request_status client_text_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct parsed *out)
{
	return request_parse(in, limits, progress, &out->request);
}

void client_text_start(struct client *c, struct parsed *parsed)
{
	client_start(c, &parsed->request);
}

/* --- the table --- */

static const struct protocol protocols[] = {
#define PROTOCOL(...) { __VA_ARGS__ },
#include "client/protocols.def"
#undef PROTOCOL
};

const struct protocol *protocol_of(unsigned char first)
{
	const struct protocol *p = protocols;

	while (p->first != -1 && p->first != first)
		p++;
	return p;
}
