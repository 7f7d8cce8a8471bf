/* What the generator can ask for: a new op is an entry here. */
#include "ops.h"

#include <stddef.h>

#define TEN_KEYS "%k %k %k %k %k %k %k %k %k %k"

#define FIFTY_KEYS TEN_KEYS " " TEN_KEYS " " TEN_KEYS " " TEN_KEYS " " TEN_KEYS
#define HUNDRED_KEYS FIFTY_KEYS " " FIFTY_KEYS

/* clang-format off */
#define SADD { { "sadd %k %m", REPLY_STORED }, { "SADD %k %m", REPLY_RESP_NUMBER } }
#define SREM { { "srem %k %m", REPLY_DELETED }, { "SREM %k %m", REPLY_RESP_NUMBER } }
#define SISMEMBER { { "sismember %k %m", REPLY_NUMBER }, { "SISMEMBER %k %m", REPLY_RESP_NUMBER } }

const struct op ops[] = {
	{ "get", LOAD_VALUE,
	  { { "get %k", REPLY_VALUES }, { "GET %k", REPLY_RESP_BULK } }, .keys = 1 },
	{ "mget", LOAD_VALUE,
	  { { "get " TEN_KEYS, REPLY_VALUES }, { "MGET " TEN_KEYS, REPLY_RESP_ARRAY } },
	  .keys = 10 },
	{ "mget100", LOAD_VALUE,
	  { { "get " HUNDRED_KEYS, REPLY_VALUES }, { "MGET " HUNDRED_KEYS, REPLY_RESP_ARRAY } },
	  .keys = 100 },
	{ "mg", LOAD_VALUE,
	  { { "mg %k k f v", REPLY_META_VALUE } }, .keys = 1 },
	{ "get-binary", LOAD_VALUE,
	  { { "%b", REPLY_BINARY_VALUE } }, .keys = 1 },
	{ "set", LOAD_NOTHING,
	  { { "set %k 0 0 %n\r\n%v", REPLY_STORED }, { "SET %k %v", REPLY_RESP_OK } },
	  .keys = 1 },
	{ "ms", LOAD_NOTHING,
	  { { "ms %k %n\r\n%v", REPLY_META_STORED } }, .keys = 1 },
	{ "append", LOAD_LOG,
	  { { "append %k 0 0 %l\r\n+%m ", REPLY_STORED }, { "APPEND %k %m", REPLY_RESP_NUMBER } },
	  .keys = 1 },
	{ "incr", LOAD_COUNTER,
	  { { "incr %k 1", REPLY_NUMBER }, { "INCR %k", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ "evincr", LOAD_NOTHING,
	  { { "evincr %k", REPLY_NUMBER }, { "INCR %k", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ "sadd", LOAD_MEMBER, SADD, .keys = 1 },
	{ "srem", LOAD_MEMBER, SREM, .keys = 1 },
	{ "hot", LOAD_MEMBER, SADD, SREM, .minor_percent = 20, .keys = 1 },
	{ "churn", LOAD_MEMBER, SADD, SREM, .minor_percent = 50, .keys = 1 },
	{ "rw", LOAD_MEMBERS, SISMEMBER, SADD, .minor_percent = 50, .keys = 1 },
	{ "rw10", LOAD_MEMBERS, SISMEMBER, SADD, .minor_percent = 10, .keys = 1 },
	{ "pop", LOAD_MEMBERS,
	  SADD,
	  { { "spop %k", REPLY_VALUES }, { "SPOP %k", REPLY_RESP_BULK } },
	  .alternating = true, .new_members = true, .keys = 1, .items = 1 },
	{ "srand", LOAD_MEMBERS,
	  SADD,
	  { { "srandmember %k", REPLY_VALUES }, { "SRANDMEMBER %k", REPLY_RESP_BULK } },
	  .alternating = true, .new_members = true, .keys = 1, .items = 1 },
	{ "sinter", LOAD_APART,
	  { { "sinter left right", REPLY_VALUES }, { "SINTER left right", REPLY_RESP_ARRAY } },
	  .keys = 0 },
	{ "smembers", LOAD_MEMBERS,
	  { { "smembers %k", REPLY_VALUES }, { "SMEMBERS %k", REPLY_RESP_ARRAY } }, .keys = 1 },
	{ "scard", LOAD_MEMBERS,
	  { { "scard %k", REPLY_NUMBER }, { "SCARD %k", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ "scard-key", LOAD_MEMBERS,
	  { { "get q|scard|%k", REPLY_VALUES } }, .keyed = true, .keys = 1 },
	{ "sismember", LOAD_MEMBERS, SISMEMBER, .keys = 1 },
	{ "sadd-onto", LOAD_MEMBERS, SADD, .keys = 1 },
	{ "evadd", LOAD_NOTHING,
	  { { "evadd %k 0 0 %n\r\n%v", REPLY_EVENT } }, .keys = 1 },
	{ "lrange", LOAD_ITEMS,
	  { { "lrange %k 0 99", REPLY_VALUES }, { "LRANGE %k 0 99", REPLY_RESP_ARRAY } },
	  .keys = 1, .items = 100 },
	{ "rpush", LOAD_ITEM,
	  { { "rpush %k %m", REPLY_STORED }, { "RPUSH %k %m", REPLY_RESP_NUMBER } }, .keys = 1 },
	{ .name = NULL },
};

const struct op loads[LOADS] = {
	[LOAD_VALUE] = { .major = { { "set %k 0 0 %n\r\n%v", REPLY_STORED },
				    { "SET %k %v", REPLY_RESP_OK } } },
	[LOAD_COUNTER] = { .major = { { "set %k 0 0 1\r\n0", REPLY_STORED },
				      { "SET %k 0", REPLY_RESP_OK } } },
	[LOAD_LOG] = { .major = { { "set %k 0 0 %l\r\n+%m ", REPLY_STORED },
				  { "SET %k %m", REPLY_RESP_OK } } },
	[LOAD_MEMBER] = { .major = SADD },
	[LOAD_MEMBERS] = { .major = { { "sadd %k %M", REPLY_STORED },
				      { "SADD %k %M", REPLY_RESP_NUMBER } } },
	[LOAD_ITEM] = { .major = { { "rpush %k %m", REPLY_STORED },
				   { "RPUSH %k %m", REPLY_RESP_NUMBER } } },
	[LOAD_ITEMS] = { .major = { { "rpush %k %M", REPLY_STORED },
				    { "RPUSH %k %M", REPLY_RESP_NUMBER } } },
};
/* clang-format on */
