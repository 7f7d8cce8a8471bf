#include "protocol/metaform.h"

#include <assert.h>

#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/num.h"

/* --- the request --- */

bool metaform_has(const struct command *command)
{
	return command->id != COMMAND_ME && command_traits(command)->subject == SUBJECT_META;
}

/*
 * Returns the flags that have a meaning. P and L are for proxies, u is a hint, and h and l are
 * returned as for a new item.
 */
static const char *meaningful(command_id command)
{
	switch (command) {
	case COMMAND_MG:
		return "bcfhklqstuvLOPT";
	case COMMAND_MS:
		return "bckqCFLMOPT";
	case COMMAND_MA:
		return "bckqvCDJLMNOP";
	default:
		return "bkqCLOP";
	}
}

/* Returns the error line for other flags that metaflags_parse accepts. */
static const char *flag_refusal(char flag)
{
#define LINE(letter, text) [letter] = "CLIENT_ERROR the flag " text " is for plain items"
	static const char *const lines[UINT8_MAX + 1] = {
		LINE('c', "c"),
		LINE('f', "f"),
		LINE('h', "h"),
		LINE('l', "l"),
		LINE('s', "s"),
		LINE('t', "t"),
		LINE('u', "u"),
		LINE('v', "v"),
		LINE('x', "x"),
		LINE('C', "C"),
		LINE('D', "D"),
		LINE('E', "E"),
		LINE('F', "F"),
		LINE('I', "I"),
		LINE('J', "J"),
		LINE('M', "M"),
		LINE('N', "N"),
		LINE('R', "R"),
		LINE('T', "T"),
	};
#undef LINE

	return lines[(unsigned char)flag];
}

/* Takes a flag; metaflags_parse has checked the numbers and the mode. */
static void apply_flag(struct slice flag, struct request *out, char *mode)
{
	struct slice token = slice_skip(flag, 1);
	bool good = true;

	switch (flag.p[0]) {
	case 'C':
		good = num_parse_u64(token, &out->extras.compare);
		break;
	case 'D':
		good = num_parse_u64(token, &out->number);
		break;
	case 'F':
		good = num_parse_u32(token, &out->flags);
		break;
	case 'J':
		good = num_parse_u64(token, &out->extras.initial);
		break;
	case 'M':
		*mode = token.p[0];
		break;
	case 'N':
		out->extras.has_initial = true;
		good = num_parse_exptime(token, &out->exptime);
		break;
	case 'T':
		good = num_parse_exptime(token, &out->exptime);
		break;
	}
	assert(good);
}

/* Like in the binary protocol, a set, add or replace with a CAS id is a cas. */
static command_id choose_write(char mode, struct request *out)
{
	if (strchr("Aa", mode))
		return COMMAND_APPEND;
	if (strchr("Pp", mode))
		return COMMAND_PREPEND;
	if (out->extras.compare) {
		out->number = out->extras.compare;
		out->extras.compare = 0;
		return COMMAND_CAS;
	}
	return strchr("Ee", mode)    ? COMMAND_ADD
		: strchr("Rr", mode) ? COMMAND_REPLACE
				     : COMMAND_SET;
}

static command_id choose(const struct request *meta, char mode, struct request *out)
{
	switch (meta->command->id) {
	case COMMAND_MG:
		out->keys = 1;
		return metaflags_has(&meta->meta, 'T') ? COMMAND_GATS : COMMAND_GETS;
	case COMMAND_MS:
		return choose_write(mode, out);
	case COMMAND_MA:
		return strchr("Dd-", mode) ? COMMAND_DECR : COMMAND_INCR;
	default:
		return COMMAND_DELETE;
	}
}

const char *metaform_parse(const struct request *meta, struct slice key, struct request *out)
{
	const char *letters = meaningful(meta->command->id);
	struct slice rest = meta->rest, flag;
	char mode = 'S';

	*out = (struct request){
		.key = key,
		.rest = slice_of(key.p + key.n, 0),
		.data = meta->data,
		.number = 1, /* The delta of ma, unless D sets another. */
	};
	while ((flag = slice_token(&rest)).n) {
		if (!strchr(letters, flag.p[0]))
			return flag_refusal(flag.p[0]);
		apply_flag(flag, out, &mode);
	}
	out->command = command_get(choose(meta, mode, out));
	return NULL;
}

/* --- its reply --- */

size_t metaform_size(const struct request *meta)
{
	return sizeof(struct metaform) + meta->key.n + meta->rest.n;
}

void metaform_init(const struct request *meta, struct metaform *room)
{
	*room = (struct metaform){
		.command = meta->command->id,
		.flags = meta->meta,
		.key_size = (uint32_t)meta->key.n,
		.line_size = (uint32_t)meta->rest.n,
	};
	(void)slice_write(slice_write(room->bytes, meta->key), meta->rest);
}

static const struct slice codes[WORDS] = {
	[WORD_STORED] = { "HD", 2 },
	[WORD_DELETED] = { "HD", 2 },
	[WORD_NOT_STORED] = { "NS", 2 },
	[WORD_EXISTS] = { "EX", 2 },
	[WORD_NOT_FOUND] = { "NF", 2 },
	[WORD_END] = { "EN", 2 },
};

enum reply_word metaform_word(struct slice code)
{
	if (slice_equal(code, codes[WORD_STORED]))
		return WORD_NONE;
	for (enum reply_word word = WORD_COUNT; word < WORDS; word++) {
		if (codes[word].n && slice_equal(code, codes[word]))
			return word;
	}
	return WORD_NONE;
}

/* Returns the code of the reply; empty if it is not one of a meta command, such as an error. */
static struct slice code_of(const struct metaform *form, const struct reply *r)
{
	if (r->kind == REPLY_VALUE || r->kind == REPLY_NUMBER)
		return metaflags_has(&form->flags, 'v') ? SLICE("VA") : SLICE("HD");
	return r->kind == REPLY_WORD ? codes[r->word] : slice_of(NULL, 0);
}

static void add_number_flag(struct buf *out, const char *letter, uint64_t number)
{
	buf_add(out, letter, 2);
	buf_add_u64(out, number);
}

/* Appends this flag if every reply has it. */
static void add_returned(struct buf *out, const struct metaform *form, struct slice flag)
{
	if (flag.p[0] == 'O') {
		BUF_ADD(out, " ");
		buf_add_slice(out, flag);
	} else if (flag.p[0] == 'k') {
		BUF_ADD(out, " k");
		buf_add(out, form->bytes, form->key_size);
		if (metaflags_has(&form->flags, 'b'))
			BUF_ADD(out, " b");
	}
}

/* Appends this flag if replies have it only for an existing item. */
static void add_read(struct buf *out, char flag, const struct reply *r, size_t size)
{
	switch (flag) {
	case 'c':
		add_number_flag(out, " c", r->cas);
		break;
	case 'f':
		add_number_flag(out, " f", r->flags);
		break;
	case 'h':
		BUF_ADD(out, " h0");
		break;
	case 'l':
		BUF_ADD(out, " l0");
		break;
	case 's':
		add_number_flag(out, " s", size);
		break;
	case 't':
		BUF_ADD(out, " t");
		buf_add_i64(out, r->ttl == TTL_UNKNOWN ? TTL_NEVER : r->ttl);
		break;
	}
}

static void add_meta_line(struct buf *out, const struct metaform *form, const struct reply *r,
	struct slice code, size_t size)
{
	struct slice rest = slice_of(form->bytes + form->key_size, form->line_size), flag;
	bool found =
		r->kind == REPLY_VALUE || r->kind == REPLY_NUMBER || slice_equal(code, SLICE("HD"));

	buf_add_slice(out, code);
	if (slice_equal(code, SLICE("VA"))) {
		BUF_ADD(out, " ");
		buf_add_u64(out, size);
	}
	while ((flag = slice_token(&rest)).n) {
		add_returned(out, form, flag);
		if (found)
			add_read(out, flag.p[0], r, size);
	}
	BUF_ADD(out, "\r\n");
}

bool metaform_form(struct buf *out, const struct reply *r, const void *asked, struct slice *tail)
{
	const struct metaform *form = asked;
	struct slice code = code_of(form, r), value = reply_bytes(r);
	char digits[NUM_U64_MAX];

	if (code.n == 0)
		return reply_text_form(out, r, NULL, tail);
	if (metaflags_hide(&form->flags, form->command, code))
		return false;
	if (r->kind == REPLY_NUMBER)
		value = slice_of(digits, num_format_u64(digits, r->number));
	add_meta_line(out, form, r, code, value.n);
	if (!slice_equal(code, SLICE("VA")))
		return false;
	*tail = SLICE("\r\n");
	if (r->shared)
		return true;
	buf_add_slice(out, value);
	buf_add_slice(out, *tail);
	return false;
}
