#include "command/fan.h"

#include "util/num.h"

/*
 * The window is the number of parts in flight. WINDOW_UNKNOWN limits it until enough answers
 * with data have arrived to estimate their size. A fan with a limit requests as many parts as
 * it needs answers, plus SPARE, plus one for each miss so far.
 */
enum { WINDOW_UNKNOWN = 512, WINDOW_BYTES = 4 << 20, SPARE = 16 };

/*
 * The fans of a host share FLYING parts in flight. A fan of up to SMALL keys neither counts nor
 * is limited, and each other one may always have `first` parts in flight.
 */
enum { FLYING = 1024, SMALL = 128 };

struct fan_part *fan_part_at(const struct fan *fan, size_t i)
{
	/* Few fans wrap around, and a division is slow. */
	size_t place = i < fan->ring ? i : i % fan->ring;

	return (struct fan_part *)(void *)(fan->parts + place * fan->stride);
}

static size_t share(const struct fan *fan)
{
	size_t fans = fan->task->host->fans, parts = fans > 1 ? FLYING / fans : FLYING;

	return parts > fan->first ? parts : fan->first;
}

static size_t window(const struct fan *fan)
{
	size_t most = 4 * fan->hits, fit;

	if (fan->answered < fan->first)
		return fan->first;
	if (most < WINDOW_UNKNOWN)
		most = WINDOW_UNKNOWN;
	if (fan->total > SMALL)
		most = num_least_size(most, share(fan));
	if (fan->hits == 0)
		return most;
	fit = (size_t)(WINDOW_BYTES / (fan->bytes / fan->hits + 1)) + 1;
	return fit < most ? fit : most;
}

/* Returns how many parts may be between `written` and `asked`. */
static size_t span(const struct fan *fan)
{
	size_t missing = fan->limit - fan->replied,
	       useful = missing + SPARE + (fan->answered - fan->hits);

	return missing < fan->ring && useful < fan->ring ? useful : fan->ring;
}

static bool may_ask(const struct fan *fan)
{
	struct host *host = fan->task->host;

	if (host->calls_max && fan->asked - fan->answered >= host->calls_max)
		return false;
	if (fan->waits && fan->waits(fan))
		return false;
	if (fan->complete || fan->asked - fan->answered >= window(fan) ||
		fan->asked - fan->written >= span(fan))
		return false;
	if (fan->asked < fan->first)
		return true;
	return fan->held < WINDOW_BYTES && task_has_room(fan->task);
}

/* A fan without parts in flight, for example of a client that does not read, does not count. */
static void count_flying(struct fan *fan)
{
	bool flies = fan->answered < fan->asked;

	if (flies == fan->asking.flies)
		return;
	fan->asking.flies = flies;
	fan->task->host->fans += flies ? 1 : SIZE_MAX;
}

static void ask_more(struct fan *fan);

static void fan_begin_slice(struct waiter *waiter, const struct result *r)
{
	struct fan *fan = (struct fan *)((char *)waiter - offsetof(struct fan, asking.waiter));

	(void)r;
	fan->asking.pauses = false;
	ask_more(fan);
}

/*
 * Called after a request: pauses before the next one if the slice is over. The first parts are
 * few. After these, thousands of answers may arrive at once, and each may allow another request.
 */
static void pause_if_over(struct fan *fan)
{
	enum { STEPS = 32 /* of one request */ };

	if (fan->asked < fan->first || fan->asked == fan->total || fan->complete ||
		!env_is_over(&fan->task->host->env, STEPS))
		return;
	fan->asking.pauses = true;
	fan->asking.waiter.done = fan_begin_slice;
	task_pause(fan->task, &fan->asking.waiter);
}

/* Requests as many parts as the window allows. Finishes if all are answered. */
static void ask_more(struct fan *fan)
{
	if (fan->asking.on || fan->asking.pauses)
		return;
	fan->asking.on = true;
	while (fan->asked < fan->total && may_ask(fan) && !fan->asking.pauses) {
		struct fan_part *part = fan_part_at(fan, fan->asked);
		*part = (struct fan_part){ .fan = fan };
		fan->asked++;
		if (!fan->ask(fan, part)) {
			fan->asked--;
			fan->complete = true;
		}
		pause_if_over(fan);
	}
	fan->asking.on = false;
	if (fan->total > SMALL)
		count_flying(fan);
	fan->complete |= fan->asked == fan->total;
	if (!fan->complete || fan->answered < fan->asked || fan->asking.pauses)
		return;
	if (fan->finish)
		fan->finish(fan);
	else
		task_say_end(fan->task);
}

static size_t held_by(const struct fan_part *part)
{
	return buf_size(&part->held) + (part->text ? buf_size(&part->text->text) : 0);
}

static void count_held(struct fan *fan, size_t more, size_t less)
{
	fan->held += more - less;
	if (more != less)
		task_hold(fan->task, more, less);
}

static void drop_held(struct fan *fan, struct fan_part *part)
{
	count_held(fan, 0, held_by(part));
	buf_free(&part->held);
	shared_drop(part->text);
	part->text = NULL;
}

static void fan_resume(struct task *task)
{
	struct fan *fan = task->resume_arg;

	if (task_is_abandoned(task)) {
		fan->complete = true;
		/* Prevents the last part from finishing the task inside this loop. */
		fan->asking.on = true;
		for (size_t i = fan->written; i < fan->asked; i++)
			drop_held(fan, fan_part_at(fan, i));
		if (fan->abandon)
			fan->abandon(fan);
		fan->asking.on = false;
	}
	ask_more(fan);
}

void fan_start(struct fan *fan)
{
	fan->task->resume = fan_resume;
	fan->task->resume_arg = fan;
	fan_resume(fan->task);
}

static bool may_reply(const struct fan *fan)
{
	return fan->replied < fan->limit;
}

/* Holds an answer until the answers of earlier parts are written. */
static void keep_reply(struct fan_part *part, const struct reply *r)
{
	struct slice tail;

	if (!task_write(part->fan->task, &part->held, r, &tail))
		return;
	part->text = shared_hold(r->shared);
	part->before = buf_size(&part->held);
	buf_add_slice(&part->held, tail);
}

void fan_say(struct fan_part *part, const struct reply *reply)
{
	struct fan *fan = part->fan;
	struct reply r = *reply;

	r.more = true;
	part->hit = true;
	fan->hits++;
	fan->bytes += reply_bytes(&r).n;
	if (part != fan_part_at(fan, fan->written) || !may_reply(fan)) {
		keep_reply(part, &r);
		return;
	}
	fan->replied++;
	task_say(fan->task, &r);
}

static void reply_held(struct task *task, const struct fan_part *part)
{
	struct slice held = buf_slice(&part->held);

	if (part->text) {
		buf_add_slice(task_reply(task), slice_of(held.p, part->before));
		task_reply_shared(task, part->text);
		held = slice_skip(held, part->before);
	}
	buf_add_slice(task_reply(task), held);
}

/* Replies the answer that the oldest part held, and advances. The part must be done. */
static void write_oldest(struct fan *fan, struct fan_part *part)
{
	if (buf_size(&part->held) && may_reply(fan)) {
		reply_held(fan->task, part);
		fan->replied++;
	}
	drop_held(fan, part);
	fan->written++;
	if (part->failed)
		fan->limit = fan->replied;
}

void fan_part_done(struct fan_part *part)
{
	struct fan *fan = part->fan;

	part->done = true;
	fan->answered++;
	count_held(fan, held_by(part), 0);
	if (task_is_full(fan->task))
		drop_held(fan, part);
	while (fan->written < fan->asked && fan_part_at(fan, fan->written)->done)
		write_oldest(fan, fan_part_at(fan, fan->written));
	fan->complete |= !may_reply(fan) || task_is_full(fan->task);
	ask_more(fan);
}

void fan_part_failed(struct fan_part *part)
{
	part->failed = true;
	part->fan->complete = true;
	fan_part_done(part);
}
