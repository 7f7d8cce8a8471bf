/*
 * A task carries out one request: it makes calls and operations, and writes one reply. Tasks do
 * no I/O. They are created by task_new, and freed by the host when they are done.
 */
#ifndef COMMAND_TASK_H
#define COMMAND_TASK_H

#include <sys/queue.h>

#include "collection/account.h"
#include "collection/op.h"
#include "command/host.h"
#include "command/order.h"
#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/buf.h"
#include "util/shared.h"

struct task {
	STAILQ_ENTRY(task) link; /* Used by the host: tasks in the order of their requests. */
	struct host *host;
	void *owner; /* Used by the host. */
	/* The client's account, set by the host in `begin`; valid until the task is done. */
	struct account *account;
	struct nest *nest; /* Not NULL for a nested task, which the host does not see. */
	/*
	 * Used by the host: a reply that is held back until earlier ones are done; or a nested
	 * task's reply.
	 */
	struct buf spill;
	struct buf scratch; /* Used by the command; freed with the task. */
	size_t size;        /* Size of the whole object. */
	struct {
		struct slice list; /* Separated by spaces if there are several. */
		uint32_t count;
	} keys;         /* The keys of the request, set by task_keys; initially none. */
	uint64_t began; /* Used by the host: the time when the request was received. */
	struct {
		const struct command *command;
		bool refused; /* The task, or one nested in it, was created by task_refuse. */
		/* Used by the host: loop.now_us when the task began, or was restarted. */
		uint32_t started;
		uint32_t bytes;
		/*
		 * Maximum number of values in the reply. Initially the number of keys of the
		 * request, then set by the host.
		 */
		uint32_t values;
	} sent;            /* The request as the client sent it. */
	uint32_t expected; /* Set by the host in `begin`: call.expected of each read of a value. */
	size_t spilled;    /* Used by the host: bytes of `spill` that are already counted. */
	/* The command that the task carries out; NULL for a refused request. */
	const struct command *command;
	struct {
		reply_form *form;
		const void *asked; /* Argument of `form`: a copy at the end of the object. */
	} as;                      /* How the reply is written. */
	/* Called when there is room again, or when the client has disconnected; or NULL. */
	void (*resume)(struct task *task);
	void *resume_arg; /* Used by the command. */
	bool quiet;       /* The host discards the reply. */
	struct order_effect order;
	bool done; /* Used by the host: the reply is complete. */
};

/*
 * The place of a task inside another one. The outer task receives the reply, and makes its own
 * reply from it. A reply of several parts is collected as a LINE: the text of all parts without
 * the last END and the last line end. Collected bytes count as held by the outer task.
 */
struct nest {
	/* Set by the outer task. */
	struct task *outer;
	/*
	 * Called when the reply is complete; the reply is borrowed for the call. The outer task
	 * may be done, and the nest freed, when this returns. The reply is an ERROR if the
	 * client has disconnected, or if the reply is larger than result_max. A LINE that was
	 * made of a META has its word.
	 */
	void (*done)(struct nest *nest, const struct reply *reply);
	bool collects; /* A reply of a single VALUE is collected, too. */

	struct request_reply way; /* The `reply` of the nested request. */
	struct task *task;        /* The nested task while it runs, else NULL. */
	bool overflows;           /* The reply is larger than result_max. */
};

/*
 * For the `resume` of an outer task that is abandoned: lets the nested task stop early, too.
 * `done` is still called.
 */
void task_abandon_inside(struct nest *nest);

/* Frees a task that is done. Called by the host. */
void task_free(struct task *task);

/*
 * Creates a task of `size` bytes, which begins with struct task; the other bytes are not
 * cleared. Calls host->begin. `request` is borrowed for the call; `owner` is passed to the
 * host.
 */
void *task_new(struct host *host, const struct request *request, void *owner, size_t size);

/* Creates a task that replies this line and is done. */
void task_refuse(struct host *host, const struct request *request, void *owner, const char *line);

/* Replies the error of a request that the task has refused, and is done. */
void task_say_refusal(struct task *task, const char *line);

/* Makes the task's client the owner of the operation. */
void task_owns(const struct task *task, struct op *op);

/*
 * Calls the waiter in the next slice of the task's client. For tasks that work in slices; see
 * env_is_over.
 */
void task_pause(struct task *task, struct waiter *waiter);

/* Counts the steps, pauses if the slice is over, and returns whether it paused. */
bool task_pauses(struct task *task, size_t steps, struct waiter *waiter);

/* Minimum size of a text that replies share; smaller texts are copied. */
enum { TASK_SHARES = 16 * 1024 };

/*
 * Adds a part to the reply. The task is done after the last part, which has no `more`, and may
 * be freed when this returns.
 */
void task_say(struct task *task, const struct reply *reply);

/* Returns whether an outer task receives this reply as it is. */
bool task_passes(const struct task *task, const struct reply *reply);

/* Returns whether only the text of a reply is used. */
static inline bool task_is_plain(const struct task *task)
{
	return task->as.form == reply_text_form && !task->nest;
}

/* Complete the reply. `line` is an error line without its end. */
void task_say_word(struct task *task, enum reply_word word);
void task_say_number(struct task *task, uint64_t n);
void task_say_error(struct task *task, const char *line);
void task_say_failure(struct task *task, const struct result *r);

/*
 * Functions for tasks that hold parts of a reply. task_write appends a part to `out`, as
 * reply_form does. task_reply returns the buffer for the next bytes of the reply, as
 * host->reply does. task_reply_shared adds a text, without copying it if possible.
 */
bool task_write(
	const struct task *task, struct buf *out, const struct reply *reply, struct slice *tail);
struct buf *task_reply(struct task *task);
void task_reply_shared(struct task *task, struct shared *text);

/* The error line of a request that would collect more than result_max bytes. */
extern const char task_too_large[];

/*
 * Returns whether the client has disconnected. Its tasks may stop early; their replies are
 * discarded.
 */
static inline bool task_is_abandoned(const struct task *task)
{
	return task->account->gone;
}

/*
 * Returns whether no more of the reply can be sent: further parts are discarded, and the task
 * may stop early.
 */
bool task_is_full(const struct task *task);

/*
 * task_has_room returns whether the client has room for more of the reply, as host->room does.
 * task_hold counts parts of the reply that are held back in the task, and task_use counts its
 * other memory, as account_hold and account_use do. A task that is done must hold and use
 * nothing.
 */
bool task_has_room(const struct task *task);
void task_hold(const struct task *task, size_t more, size_t less);
void task_use(const struct task *task, size_t more, size_t less);

/* Ends a task whose reply is complete or empty. The task may be freed when this returns. */
void task_done(struct task *task);

/*
 * For a task that keeps the first failure of its parts in the scratch, as an error line without
 * its end. The task_note functions store a failure unless there already is one. task_fails
 * replies the failure and returns true if there is one; then the task is done. task_say_end
 * replies the failure, or else END.
 */
void task_note(struct task *task, const char *line);
void task_note_failure(struct task *task, const struct result *r);
bool task_has_failed(const struct task *task);
bool task_fails(struct task *task);
void task_say_end(struct task *task);

/*
 * Return and reply the success word of the task's command, such as STORED. The task is done
 * after task_say_done.
 */
enum reply_word task_done_word(const struct task *task);
void task_say_done(struct task *task);

/*
 * Sets task->keys, which are read when the task is done: `count` keys, separated by spaces if
 * there are several. They must stay valid as long as the task. Returns `keys`.
 */
struct slice task_keys(struct task *task, struct slice keys, size_t count);

/*
 * Copies the key of a request to `*at`, and returns the copy. Sets task->keys to it unless the
 * key has spaces or control bytes.
 */
struct slice task_keep_key(struct task *task, const struct request *request, char **at);

/*
 * Copies `s` to `*at`, and advances `*at`. Returns the copy. For slices of the request that a
 * task keeps.
 */
struct slice task_keep(char **at, struct slice s);

#endif
