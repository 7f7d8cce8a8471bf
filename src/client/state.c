#include "client/state.h"

enum { LINGER_MOST = 16 << 20 /* Bytes of input to discard before reading stops. */ };

/* The time of an incomplete request starts again. */
void client_go_on(struct client *c, unsigned why)
{
	unsigned before = c->pauses;

	c->pauses &= ~why;
	if (!before || c->pauses || client_is_closing(c))
		return;
	bounds_unfinished(c, client_is_skipping(c), true);
	stream_resume(&c->stream);
}

/*
 * There is room only well below the limits, so that a client does not pause and resume for each
 * request.
 */
void client_look_for_room(struct client *c)
{
	unsigned gone = window_has_room(c);

	if (gone && c->order.tasks == 0)
		gone |= PAUSE_ORDER;
	client_go_on(c, gone);
}

/*
 * Returns whether input of a paused client is still read and stored when `held` bytes of it are
 * already stored. The kernel reports the end of a connection only after all bytes before it, so
 * the input of a client that is blocked on lists must be read to detect its disconnect. A
 * client that sends more than this limit is no longer blocked: see client_has_ended.
 */
static bool reads_on(const struct client *c, size_t held)
{
	if (!c->order.later_writes || c->input.has_ended || c->state != CLIENT_OPEN)
		return false;
	return held <= client_config(c)->client_buffer;
}

void client_hold(struct client *c, size_t held)
{
	if (reads_on(c, held))
		return;
	stream_pause(&c->stream);
	bounds_check(c);
}

/* A closing client still gets its replies, so none of its commands may block. */
bool client_has_ended(const struct client *c)
{
	return c->input.has_ended || client_is_closing(c) || (c->pauses && !c->stream.reading);
}

void client_depart(struct client *c)
{
	c->state = CLIENT_DEPARTING;
	c->input.owed = buf_size(&c->stream.in);
}

void client_stop(struct client *c)
{
	if (!client_is_closing(c)) {
		c->state = CLIENT_CLOSING;
		bounds_check(c);
	}
	stream_pause(&c->stream);
	account_change(&c->account);
}

void client_linger(struct client *c)
{
	c->state = CLIENT_LINGERING;
	c->input.is_silent = true;
	c->input.skip.bytes = LINGER_MOST;
	bounds_linger(c);
	stream_finish(&c->stream);
	stream_resume(&c->stream);
}
