/*
 * A plain item while one proxy has only the former ring: its writes undo no acknowledged write of
 * another proxy.
 *
 *     a: the item on the new server   b: that on the former one   c: bits
 *
 * The proxy with the old configuration works on b. The others work on b until the time of the move,
 * and then on a. At any moment one of them may move the item: a stays if it exists, and b is
 * dropped; otherwise b moves to a. A deletion, which reads the former server too, moves the item
 * first. If the mover is killed before it deletes b, a is a copy that becomes the item when the
 * other proxy has deleted b.
 */
#include "moving.h"
#include "protocol/commands.h"
#include "util/num.h"

/* The time has come; `a` is a copy whose mover has not finished, so that no client has read it. */
enum { MOVES = 1, COPY = 2 };

static uint64_t number_of(const struct moving *w, uint64_t text)
{
	struct slice rest = moving_text_of(w, text);
	uint64_t number = 0;

	(void)slice_cut(&rest, ':');
	(void)num_parse_u64(rest, &number);
	return number;
}

static uint64_t larger(const struct moving *w, uint64_t a, uint64_t b)
{
	return number_of(w, a) >= number_of(w, b) ? a : b;
}

static void move(
	const struct moving *w, enum moving_kind kind, struct linear_state *s, bool finishes)
{
	bool copy = s->c & COPY;

	s->c |= MOVES;
	if (s->b && (!s->a || copy))
		s->a = copy && kind == MOVING_NUMBER ? larger(w, s->a, s->b) : s->b;
	else if (!finishes)
		return;
	s->b = 0;
	s->c = finishes ? MOVES : MOVES | COPY;
}

/* Copies the item. Returns false if there is none, or a is the item. */
static bool copy(struct linear_state *s)
{
	if (!s->b || (s->a && !(s->c & COPY)))
		return false;
	s->a = s->b;
	s->c = MOVES | COPY;
	return true;
}

/*
 * The choices for the proxy with the old configuration: what others do with the item right before.
 */
static enum linear_step step_former(
	struct moving *w, const struct moving_op *op, unsigned choice, struct linear_state *s)
{
	enum { ALONE, MOVED, UNFINISHED, COPIED };

	switch (choice) {
	case ALONE:
		break;
	case MOVED:
	case UNFINISHED:
		move(w, w->keys[op->key].kind, s, choice == MOVED);
		break;
	case COPIED:
		if (!copy(s))
			return LINEAR_WRONG;
		break;
	default:
		return LINEAR_END;
	}
	return moving_step_item(w, op, &s->b);
}

/*
 * Returns whether a write of the proxy with the old configuration, or of the others, may have been
 * concurrent with the command.
 */
static bool meets_write(const struct moving *w, const struct moving_op *command, bool former)
{
	const struct moving_key *k = &w->keys[command->key];

	for (size_t i = 0; i < k->count; i++) {
		const struct moving_op *op = k->ops[i];
		if (op != command && op->former == former && op->command != COMMAND_GET &&
			(!command->replied || op->asked < command->replied) &&
			(!op->replied || op->replied > command->asked))
			return true;
	}
	return false;
}

/*
 * Returns whether the command, if it works on `a`, must have moved the item. A deletion may have
 * read the former server before a write there.
 */
static bool must_move(
	const struct moving *w, const struct moving_op *op, const struct linear_state *s)
{
	if (!s->b)
		return false;
	return op->command == COMMAND_DELETE ? !meets_write(w, op, true)
					     : op->command == COMMAND_GET && s->c & COPY;
}

/*
 * Returns whether the command may have read the former server. It may have read the new one before
 * a write there.
 */
static bool may_peek(
	const struct moving *w, const struct moving_op *op, const struct linear_state *s)
{
	return op->command == COMMAND_GET && (!s->a || s->c & COPY || meets_write(w, op, false));
}

/* The choices of all others. */
static enum linear_step step_new(
	struct moving *w, const struct moving_op *op, unsigned choice, struct linear_state *s)
{
	enum { BEFORE, HERE, MOVED, COPIED, PEEKED };

	switch (choice) {
	case BEFORE:
		return s->c & MOVES ? LINEAR_WRONG : moving_step_item(w, op, &s->b);
	case HERE:
		if (must_move(w, op, s))
			return LINEAR_WRONG;
		s->c = MOVES;
		return moving_step_item(w, op, &s->a);
	case MOVED:
		move(w, w->keys[op->key].kind, s, true);
		return moving_step_item(w, op, &s->a);
	case COPIED:
		/* It completes the copy of a mover that has not deleted b yet. */
		if (!copy(s) || must_move(w, op, s))
			return LINEAR_WRONG;
		s->c = MOVES;
		return moving_step_item(w, op, &s->a);
	case PEEKED:
		return may_peek(w, op, s) ? moving_step_item(w, op, &s->b) : LINEAR_WRONG;
	default:
		return LINEAR_END;
	}
}

enum linear_step moving_step_undone(struct moving *w, const struct moving_op *op,
	const struct linear_state *before, unsigned choice, struct linear_state *after)
{
	*after = *before;
	return op->former ? step_former(w, op, choice, after) : step_new(w, op, choice, after);
}
