/*
 * Meta commands on a key that is more than an item. Each is carried out as the classic command
 * of the same meaning, whose reply is written in the meta form.
 *
 *     mg tags-ann v -> metaform_parse -> gets tags-ann -> task_say -> metaform_form -> VA 4
 */
#include <assert.h>

#include "command/start.h"
#include "command/target.h"
#include "command/task.h"
#include "protocol/metaform.h"

static void start_classic(
	struct host *host, const struct request *request, void *owner, struct request *classic)
{
	size_t size = metaform_size(request);
	struct metaform *form = pool_get(host->env.pool, size);
	struct nest *into = request->reply ? request->reply->into : NULL;
	struct request_reply reply = { into, metaform_form, form, size, request };

	metaform_init(request, form);
	classic->target = request->target;
	classic->needs = request->needs;
	classic->reply = &reply;
	if (!task_start(host, classic, owner))
		assert(false);
	pool_put(host->env.pool, form, size);
}

void metaform_start(struct host *host, const struct request *request, void *owner)
{
	char decoded[KEY_MAX];
	struct slice key = target_key(request, decoded);
	const char *error = start_odd_key_refusal;
	struct request classic;

	if (request_key_valid(key, KEY_MAX))
		error = metaform_parse(request, key, &classic);
	if (error)
		task_refuse(host, request, owner, error);
	else
		start_classic(host, request, owner, &classic);
}
