#include "client/window.h"

enum {
	VALUES_FIRST = 4, /* Values in flight before one has arrived. */
	VALUES_MOST = 32, /* Maximum values of one request before their size is known. */
	VALUE_LEAST = 64, /* Minimum bytes of a value with its line. */
	NO_VALUE = 8,     /* Maximum bytes of a reply without a value. */
	LARGE = 16 << 10, /* Mean bytes of a value from which a client takes turns with others. */
	MEMORY = 8        /* Approximate number of values in a mean. */
};

static void estimate(struct client *c, size_t size)
{
	struct client_window *w = &c->window;
	size_t due;

	size = size < VALUE_LEAST ? VALUE_LEAST : size < UINT32_MAX ? size : UINT32_MAX;
	due = client_config(c)->client_buffer / size + 1;
	w->estimate = (uint32_t)size;
	w->due = (uint32_t)due;
	w->largest = 0;
}

/* Values of a new client are never assumed to be small. */
uint32_t window_expected(const struct client *c)
{
	size_t first = c->clients->first_value;

	if (c->window.mean)
		return c->window.mean > LARGE ? c->window.mean : 0;
	return first > 2 * LARGE ? (uint32_t)first : 2 * LARGE;
}

static size_t moved_mean(size_t mean, size_t size)
{
	return mean - mean / MEMORY + size / MEMORY;
}

static void learn_mean(struct client *c, size_t size)
{
	struct client_window *w = &c->window;

	/* Where both are small, the difference does not matter. */
	if (size <= LARGE && w->mean && w->mean <= LARGE)
		return;
	size = size < VALUE_LEAST ? VALUE_LEAST : size < UINT32_MAX ? size : UINT32_MAX;
	if (w->mean == 0)
		c->clients->first_value = moved_mean(c->clients->first_value, size);
	w->mean = (uint32_t)(w->mean ? moved_mean(w->mean, size) : size);
}

/*
 * Updates the estimate. A larger value raises it at once. It is halved after as many smaller
 * values as could be in flight. A reply without a value changes nothing.
 */
static void learn(struct client *c, size_t values, size_t size)
{
	struct client_window *w = &c->window;

	if (values == 0 || size <= NO_VALUE)
		return;
	if (values > 1)
		size /= values;
	learn_mean(c, size);
	if (size > w->estimate) {
		estimate(c, size);
		return;
	}
	if (size > w->largest)
		w->largest = (uint32_t)size;
	if (w->due > values)
		w->due -= (uint32_t)values;
	else
		estimate(c, w->largest > w->estimate / 2 ? w->largest : w->estimate / 2);
}

void window_task_begin(struct client *c, struct task *task)
{
	if (!task->sent.command || task->sent.command->reply == COMMAND_REPLY_LINE)
		task->sent.values = 0;
	else if (task->sent.values == 0 || task->sent.values > VALUES_MOST)
		task->sent.values = task->sent.values ? VALUES_MOST : 1;
	c->window.values += task->sent.values;
	task->expected =
		task->sent.values && task->sent.command->reads_values ? window_expected(c) : 0;
	c->account.used += task->size + task->sent.bytes;
}

void window_task_end(struct client *c, const struct task *task, size_t size)
{
	c->window.values -= task->sent.values;
	learn(c, task->sent.values, size);
}

/*
 * Returns the bytes of the requests in flight and one more, if each value is as large as the
 * estimate.
 */
static size_t demand(const struct client *c)
{
	const struct client_window *w = &c->window;

	return stream_waiting(&c->stream) + c->account.used + c->account.held +
		(w->values ? (w->values + (size_t)1) * w->estimate : 0);
}

size_t window_buffer(const struct client *c)
{
	enum { STRANGER = 4096 };

	return c->auth ? STRANGER : client_config(c)->client_buffer;
}

unsigned window_is_full(const struct client *c)
{
	const struct config *config = client_config(c);

	if (stream_waiting(&c->stream) >= window_buffer(c))
		return PAUSE_BACKLOG;
	if (c->order.tasks >= config->max_pipeline || c->order.calls >= client_host(c)->calls_max)
		return PAUSE_WINDOW;
	if (c->account.waiting)
		return PAUSE_WINDOW;
	return c->order.tasks == 0 || demand(c) <= config->client_buffer ? 0 : PAUSE_WINDOW;
}

unsigned window_has_room(const struct client *c)
{
	const struct config *config = client_config(c);

	if (stream_waiting(&c->stream) > window_buffer(c) / 2)
		return 0;
	if (c->account.waiting || c->order.tasks > config->max_pipeline / 2 ||
		c->order.calls > client_host(c)->calls_max / 2 ||
		(c->order.tasks > 0 && demand(c) > config->client_buffer / 2))
		return PAUSE_BACKLOG;
	return PAUSE_BACKLOG | PAUSE_WINDOW;
}

void window_open(struct client *c)
{
	estimate(c, client_config(c)->client_buffer / VALUES_FIRST);
}
