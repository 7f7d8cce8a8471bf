/*
 * A task carries out one request: it makes calls and operations, and writes one reply. Tasks do no I/O. task_new makes them, and
 * the host frees them when they are done.
 */
#ifndef COMMAND_TASK_H
#define COMMAND_TASK_H

#include <sys/queue.h>

#include "collection/account.h"
#include "collection/op.h"
#include "command/host.h"
#include "command/nest.h"
#include "command/order.h"
#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/buf.h"
#include "util/shared.h"

struct task {
	STAILQ_ENTRY(task) link; /* for the host: tasks in the order of their requests */
	struct host *host;
	void *owner;             /* for the host */
	struct account *account; /* of the client, set by the host in `begin`; it stays until the task is done */
	struct nest *nest;       /* of a task inside of another one, which the host does not see; else NULL */
	struct buf
		spill; /* for the host: a reply that waits for earlier ones; or the reply of a task inside of another one */
	struct buf scratch; /* for the command; freed with the task */
	size_t size;        /* of the whole object */
	struct {
		struct slice list; /* separated by spaces, if there are several */
		uint32_t count;
	} keys;         /* set by task_keys: those of the request; none at first */
	uint64_t began; /* the host's: when the request came */
	struct {
		const struct command *command;
		bool refused; /* the task, or one inside of it, was made by task_refuse */
		uint32_t bytes;
		uint32_t values;       /* of the reply, at most; at first the keys of the request, then the host's */
	} sent;                        /* the request as the client has sent it */
	uint32_t expected;             /* set by the host in `begin`: for call.expected of each read of a value */
	size_t spilled;                /* the host's: bytes of `spill` that it has counted */
	const struct command *command; /* what the task carries out; NULL for a refused request */
	struct {
		reply_form *form;
		const void *asked;         /* for `form`: a copy at the end of the object */
	} as;                              /* how the reply is written */
	void (*resume)(struct task *task); /* called when there is room again, or when the client has gone; or NULL */
	void *resume_arg;                  /* for the command */
	bool quiet;                        /* the host discards the reply */
	struct order_effect order;
	bool done; /* for the host: the reply is complete */
};

/* For the host: frees a task that is done. */
void task_free(struct task *task);

/*
 * Makes a task of `size` bytes, which begins with struct task; the other bytes are not cleared. Calls host->begin. `request` is
 * borrowed for this call; `owner` is passed to the host.
 */
void *task_new(struct host *host, const struct request *request, void *owner, size_t size);

/* Makes a task that replies with this line, and is done. */
void task_refuse(struct host *host, const struct request *request, void *owner, const char *line);

/* The operation is one of the task's client. */
void task_owns(const struct task *task, struct op *op);

/* For a task that works in slices, as env_is_over says: has the waiter called in the next slice of the task's client. */
void task_pause(struct task *task, struct waiter *waiter);

/* Texts of this size are shared by replies, smaller ones are copied. */
enum { TASK_SHARES = 16 * 1024 };

/* Adds a part to the reply. After the last one, which has no `more`, the task is done, and may be freed when this returns. */
void task_say(struct task *task, const struct reply *reply);

/* Whether nothing of a reply is of use but its text. */
static inline bool task_is_plain(const struct task *task)
{
	return task->as.form == reply_text_form && !task->nest;
}

/* These complete the reply. `line` is an error line without its end. */
void task_say_word(struct task *task, enum reply_word word);
void task_say_number(struct task *task, uint64_t n);
void task_say_error(struct task *task, const char *line);
void task_say_failure(struct task *task, const struct result *r);

/*
 * For tasks that hold parts of a reply. task_write appends a part to `out`, as reply_form does. task_reply returns the buffer for the next
 * bytes of the reply, as host->reply does; task_reply_shared adds a text, without a copy if possible.
 */
bool task_write(const struct task *task, struct buf *out, const struct reply *reply, struct slice *tail);
struct buf *task_reply(struct task *task);
void task_reply_shared(struct task *task, struct shared *text);

/* The reply to a request that would collect more than result_max. */
extern const char task_too_large[];

/* Whether the client has gone: the task may stop early, and nobody gets its reply. */
static inline bool task_is_abandoned(const struct task *task)
{
	return task->account->gone;
}

/* Whether nobody will get more of the reply: what is added to it is discarded, and the task may stop early. */
bool task_is_full(const struct task *task);

/*
 * Whether the client has room for more of the reply, as host->room; parts of it that wait in the task, and what else the task takes, as
 * account_hold and account_use. A task that is done must hold and use nothing.
 */
bool task_has_room(const struct task *task);
void task_hold(const struct task *task, size_t more, size_t less);
void task_use(const struct task *task, size_t more, size_t less);

/* Ends a task that has said all, or nothing. It may be freed when this returns. */
void task_done(struct task *task);

/*
 * For a task that keeps the first failure of its parts in the scratch, as an error line without its end. task_note_... keep a failure
 * unless there is one. If there is one, task_fails replies it and returns true; then the task is done. task_say_end replies it
 * or END.
 */
void task_note(struct task *task, const char *line);
void task_note_failure(struct task *task, const struct result *r);
bool task_has_failed(const struct task *task);
bool task_fails(struct task *task);
void task_say_end(struct task *task);

/* The word that says that the command of the task is done, such as STORED; and to reply it, after which the task is done. */
enum reply_word task_done_word(const struct task *task);
void task_say_done(struct task *task);

/*
 * Says which keys the request has, for those who look at the task when it is done: `count` of them, separated by spaces if there are
 * several. They must stay as long as the task. Gives `keys`.
 */
struct slice task_keys(struct task *task, struct slice keys, size_t count);

/* Copies the key of a request, which the client may have sent with spaces or control bytes, to `*at`; says that it is the key unless it has. */
struct slice task_keep_key(struct task *task, const struct request *request, char **at);

/* Copies `s` to `*at`, and advances `*at`. Gives the copy: for slices of the request that a task keeps. */
struct slice task_keep(char **at, struct slice s);

#endif
