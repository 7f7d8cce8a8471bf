/* The kinds of options, and the types of their values. */
#ifndef CONFIG_KINDS_H
#define CONFIG_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/address.h"
#include "protocol/command.h"

struct text_list {
	char **at;
	size_t count;
};

struct address_list {
	struct address *at;
	size_t count;
	/* For servers: a configuration string of libmemcached instead of addresses; or NULL. */
	char *string;
};

struct user_list {
	uid_t *at;
	size_t count;
};

/* Kinds of options; config_is_list() returns which of them are lists. */
enum config_kind {
	KIND_NUMBER,
	KIND_FLAG,
	KIND_WORD,
	KIND_MODE,
	KIND_TEXT,
	KIND_LOGIN, /* A text that errors do not show. */
	KIND_TEXTS,
	KIND_ADDRESSES,
	KIND_SERVERS,
	KIND_USERS,
	KIND_COMMANDS
};

/* The types of values in struct config. */
#define TYPE_NUMBER uint64_t /* Below 2^63. */
#define TYPE_FLAG bool
#define TYPE_WORD int /* Index among the permitted words. */
#define TYPE_MODE mode_t
#define TYPE_TEXT char * /* "" for none, never NULL. */
#define TYPE_LOGIN char *
#define TYPE_TEXTS struct text_list
#define TYPE_ADDRESSES struct address_list
#define TYPE_SERVERS struct address_list
#define TYPE_USERS struct user_list
#define TYPE_COMMANDS struct command_set

#endif
