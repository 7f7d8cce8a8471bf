#include "command/order.h"

#include <stdint.h>

enum { NEVER = 0, ALWAYS = 1 };

static const struct traits {
	bool changes; /* It changes items that a staged read may not have read yet. */
	bool hides;   /* It hides writes; if staged_from is a number, only when it is staged. */
	/* The lanes of the counters already make it wait for hidden writes of events. */
	bool knows_hidden;
	bool is_plain; /* With one key it stages and hides nothing, and counts as one call. */
	bool waits;    /* Later requests must not start before it is done. */
	/*
	 * Number of calls of commands that read the counters of many buckets; 0: the number of
	 * keys.
	 */
	uint16_t calls;
	uint16_t staged_from; /* Number of keys from which it is staged; NEVER or ALWAYS. */
} classes[] = {
	[ORDER_READ] = { .is_plain = true },
	[ORDER_READ_KEYS] = { .is_plain = true, .staged_from = ORDER_KEYS_FIRST + 1 },
	[ORDER_READ_SETS] = { .is_plain = true, .staged_from = ORDER_SETS_FIRST + 1 },
	[ORDER_READ_BLOCKS] = { .staged_from = ALWAYS },
	[ORDER_WRITE] = { .changes = true, .is_plain = true },
	[ORDER_WRITE_LATER] = { .changes = true, .waits = true },
	[ORDER_TOUCH_KEYS] = { .changes = true,
		.hides = true,
		.is_plain = true,
		.staged_from = ORDER_KEYS_FIRST + 1 },
	[ORDER_EVENT_READ] = { .knows_hidden = true,
		.calls = ORDER_EVENT_CALLS,
		.staged_from = ALWAYS },
	[ORDER_EVENT_TOP] = { .calls = ORDER_EVENT_CALLS, .staged_from = ALWAYS },
	[ORDER_EVENT_COUNT] = { .changes = true, .knows_hidden = true, .is_plain = true },
	[ORDER_EVENT_LIMIT] = { .changes = true, .knows_hidden = true, .calls = ORDER_LIMIT_CALLS },
	[ORDER_EVENT_STORE] = { .changes = true, .knows_hidden = true, .hides = true },
	[ORDER_FLUSH] = { .changes = true, .is_plain = true },
};

struct order_effect order_effect_of(const struct command *command, size_t keys)
{
	const struct traits *t = &classes[command->order];
	size_t calls = t->calls ? t->calls : keys > 1 ? keys : 1;
	bool staged;

	if (t->is_plain && keys <= 1)
		return (struct order_effect){ .calls = 1 };
	staged = t->staged_from == ALWAYS || (t->staged_from != NEVER && keys >= t->staged_from);
	return (struct order_effect){
		.stages_reads = staged,
		.hides_writes = t->hides && (staged || t->staged_from == NEVER),
		.writes_later = t->waits,
		.calls = (uint16_t)(calls < ORDER_CALLS_MAX ? calls : ORDER_CALLS_MAX),
	};
}

static inline struct order_effect effect_of_needs(const struct request *request)
{
	return request->needs ? request->needs->effect
			      : order_effect_of(request->command, request->keys);
}

/*
 * The operation may be submitted later if it has many words; see word_log.h. Words have at most
 * twice the size of their elements. The words on the request's line need no estimate.
 */
static __attribute__((noinline)) struct order_effect effect_of_long(const struct request *request)
{
	struct order_effect effect = effect_of_needs(request);
	size_t words = request->rest.n + 2 * KEY_MAX + 2 * request->data.n;

	if (words > REQUEST_LONG &&
		(request->target > TARGET_PART || command_takes_args(request->command)))
		effect.writes_later |= order_class_changes(request->command->order);
	return effect;
}

struct order_effect order_effect(const struct request *request)
{
	if (!request->command || request->error)
		return (struct order_effect){ .calls = 1 };
	if (__builtin_expect(request->consumed > REQUEST_LONG / 2 - 2 * KEY_MAX, false))
		return effect_of_long(request);
	return effect_of_needs(request);
}

bool order_class_must_wait(const struct order *order, enum order_class class)
{
	const struct traits *t = &classes[class];

	/* No call of an earlier request may reach a server after the flush, or after this read. */
	if (class == ORDER_FLUSH || class == ORDER_EVENT_TOP)
		return order->tasks > 0;
	return order->later_writes || (order->hidden_writes && !t->knows_hidden) ||
		(order->staged_reads && t->changes);
}

bool order_must_wait(const struct order *order, const struct request *request)
{
	if (!request->needs)
		return order_class_must_wait(order, request->command->order);
	for (unsigned left = request->needs->classes; left; left &= left - 1) {
		if (order_class_must_wait(order, (enum order_class)__builtin_ctz(left)))
			return true;
	}
	return false;
}

bool order_class_changes(enum order_class class)
{
	return classes[class].changes;
}
