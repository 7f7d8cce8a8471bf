/* The largest sizes in requests, in bytes. */
#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

enum {
	KEY_MAX = 250,            /* as in memcached */
	COLLECTION_KEY_MAX = 220, /* leaves room for the suffixes of tables and segments */
	MEMBER_MAX = 250,
	META_LINE_MAX = 1024, /* memcached closes on a longer line that is not a get */
	OPAQUE_MAX = 32
};

#endif
