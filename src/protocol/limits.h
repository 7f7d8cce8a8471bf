/* Sizes, in bytes, that requests keep to. */
#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

enum {
	KEY_MAX = 250,            /* memcached's own limit */
	COLLECTION_KEY_MAX = 220, /* leaves room for the suffixes of derived items */
	MEMBER_MAX = 250,
	META_LINE_MAX = 1024, /* memcached gives up on a longer line that is no get */
	OPAQUE_MAX = 32
};

#endif
