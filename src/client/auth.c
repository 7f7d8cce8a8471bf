#include "client/auth.h"

#include <stdlib.h>

#include "client/log.h"
#include "client/protocols.h"
#include "client/state.h"
#include "config/users.h"
#include "protocol/login.h"
#include "util/alloc.h"

enum {
	LOGIN_REFUSED_MOST = 10, /* Number of requests. */
	PAUSE_FIRST_MS = 100,
	PAUSE_MOST_MS = 2000,
	/* Bytes that may be held during a pause, or until the client reads its replies. */
	HELD_MOST = 4096,
	TIME_MS = 60000 /* Time to authenticate if request_read_timeout is 0. */
};

static void auth_on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct client_auth *auth = arg;
	struct client *c = auth->client;

	(void)fd;
	(void)what;
	loop_enter(c->clients->loop);
	client_go_on(c, PAUSE_LOGIN);
}

static void publish_oldest_stranger(struct clients *all)
{
	const struct client_auth *first = TAILQ_FIRST(&all->strangers);

	bounds_set_stranger(all, first ? first->since : UINT64_MAX);
}

void auth_open(struct client *c)
{
	struct clients *all = c->clients;

	if (!client_config(c)->users)
		return;
	c->auth = xcalloc(1, sizeof(*c->auth));
	c->auth->client = c;
	c->auth->since = all->loop->now;
	event_assign(&c->auth->timer, all->loop->base, -1, 0, auth_on_pause_over, c->auth);
	TAILQ_INSERT_TAIL(&all->strangers, c->auth, link);
	publish_oldest_stranger(all);
	bounds_check(c);
}

void auth_end(struct client *c)
{
	if (!c->auth)
		return;
	event_del(&c->auth->timer);
	TAILQ_REMOVE(&c->clients->strangers, c->auth, link);
	publish_oldest_stranger(c->clients);
	free(c->auth);
	c->auth = NULL;
}

struct client *auth_oldest(const struct clients *all, uint64_t ms)
{
	const struct client_auth *first = TAILQ_FIRST(&all->strangers);

	return first && all->loop->now - first->since >= ms ? first->client : NULL;
}

static void close_stranger(struct client *c)
{
	client_log(c, "closed: too many requests without authentication");
	client_stop(c);
}

void auth_bound(struct client *c, size_t waiting)
{
	if (c->auth && !client_is_closing(c) && waiting > HELD_MOST && window_is_full(c))
		close_stranger(c);
}

/* Delays only this client: its requests are not read until the timer fires. */
void auth_slow_down(struct client *c, size_t waiting)
{
	unsigned refused = ++c->auth->refused;
	unsigned ms = PAUSE_FIRST_MS << (refused - 1);
	struct timeval pause;

	if (refused >= LOGIN_REFUSED_MOST || waiting > HELD_MOST) {
		close_stranger(c);
		return;
	}
	if (ms > PAUSE_MOST_MS)
		ms = PAUSE_MOST_MS;
	pause = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	event_add(&c->auth->timer, &pause);
	client_pause(c, PAUSE_LOGIN);
}

/* Answers a request that has no command here, so that the reply is its only effect. */
static void answer_plainly(struct client *c, const struct request *request, struct reply reply)
{
	const struct request plain = { .noreply = request->noreply, .consumed = request->consumed };

	task_say(task_new(client_host(c), &plain, c, sizeof(struct task)), &reply);
}

static void answer_error(struct client *c, const struct request *request, const char *line)
{
	answer_plainly(c, request, reply_error(slice_of(line, strlen(line))));
}

static void refuse_stranger(struct client *c, const struct request *request)
{
	client_notice(c, "refused: not authenticated");
	client_count(c, COUNT_cmd_refused, 1);
	answer_error(c, request, request->error);
}

/* If a new configuration has no users, every password is right. */
bool auth_is_right(const struct client *c, struct slice user, struct slice password)
{
	const struct users *users = client_config(c)->users;

	return !users || users_authenticate(users, user, password);
}

void auth_succeed(struct client *c)
{
	client_count(c, COUNT_auth_cmds, 1);
	client_count(c, COUNT_auth_ok, 1);
	auth_end(c);
}

/*
 * The log does not contain the name: a client that confuses user and password would send the
 * password there.
 */
void auth_fail(struct client *c)
{
	client_count(c, COUNT_auth_cmds, 1);
	client_count(c, COUNT_auth_failures, 1);
	client_count(c, COUNT_auth_errors, 1);
	client_notice(c, "authentication failure");
}

static void authenticate_by_text(struct client *c, const struct request *request, size_t waiting)
{
	const char *error = "CLIENT_ERROR bad authentication token format";
	struct slice user, password;

	if (login_split(request->data, &user, &password)) {
		if (auth_is_right(c, user, password)) {
			auth_succeed(c);
			answer_plainly(c, request, reply_word(WORD_STORED));
			return;
		}
		error = "CLIENT_ERROR authentication failure";
	}
	auth_fail(c);
	answer_error(c, request, error);
	auth_slow_down(c, waiting);
}

size_t client_text_authenticate(struct client *c, struct slice in)
{
	struct request request;

	switch (login_parse(in, &c->input.progress, &request)) {
	case REQUEST_MORE:
		return 0;
	case REQUEST_HANGUP:
		client_notice(c, "closed: it sent an HTTP request");
		client_stop(c);
		break;
	case REQUEST_FATAL:
		refuse_stranger(c, &request);
		client_stop(c);
		break;
	case REQUEST_REFUSED:
		refuse_stranger(c, &request);
		client_skip(c, &request);
		auth_slow_down(c, in.n - request.consumed);
		break;
	case REQUEST_READY:
		authenticate_by_text(c, &request, in.n - request.consumed);
	}
	request_progress_end(&c->input.progress);
	return request.consumed;
}

bool auth_is_late(const struct client *c)
{
	uint64_t time = client_config(c)->request_read_timeout;

	return c->auth && !client_is_closing(c) &&
		c->clients->loop->now - c->auth->since >= (time ? time : TIME_MS);
}
