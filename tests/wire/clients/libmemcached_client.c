/* libmemcached, in C. steps.py says what steps are. */
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 16 };

static memcached_st *client;
static uint64_t token;

/* The last message is that of a success where a server answered with an error that libmemcached does not quote. */
static void print_error(memcached_return_t rc)
{
	const char *message = memcached_last_error(client) == MEMCACHED_SUCCESS
		? NULL
		: memcached_last_error_message(client);
	printf("error: %s\n", message ? message : memcached_strerror(client, rc));
}

static void print_yes_no(memcached_return_t rc)
{
	if (rc == MEMCACHED_SUCCESS)
		puts("yes");
	else if (rc == MEMCACHED_NOTFOUND || rc == MEMCACHED_NOTSTORED ||
		rc == MEMCACHED_DATA_EXISTS)
		puts("no");
	else
		print_error(rc);
}

typedef memcached_return_t count_function(
	memcached_st *, const char *key, size_t klen, uint32_t delta, uint64_t *number);

static void print_count(count_function *count, const char *key, const char *delta)
{
	uint64_t number = 0;
	memcached_return_t rc = count(client, key, strlen(key), (uint32_t)atol(delta), &number);
	if (rc == MEMCACHED_SUCCESS)
		printf("%llu\n", (unsigned long long)number);
	else if (rc == MEMCACHED_NOTFOUND)
		puts("missing");
	else
		print_error(rc);
}

static void replace_bytes(char *text, char from, char to)
{
	while (text && (text = strchr(text, from)))
		*text = to;
}

/* The values of the keys that the server has, in the order of the keys. */
static void print_values(const char *const *keys, size_t count)
{
	size_t lengths[MAX_WORDS];
	char *values[MAX_WORDS] = { NULL };
	for (size_t i = 0; i < count; i++)
		lengths[i] = strlen(keys[i]);
	memcached_return_t rc = memcached_mget(client, keys, lengths, count);
	memcached_result_st *result;
	while (rc == MEMCACHED_SUCCESS && (result = memcached_fetch_result(client, NULL, &rc))) {
		token = memcached_result_cas(result);
		for (size_t i = 0; i < count; i++)
			if (lengths[i] == memcached_result_key_length(result) &&
				memcmp(keys[i], memcached_result_key_value(result), lengths[i]) ==
					0)
				values[i] = strndup(memcached_result_value(result),
					memcached_result_length(result));
		memcached_result_free(result);
	}
	if (rc != MEMCACHED_END && rc != MEMCACHED_NOTFOUND && rc != MEMCACHED_SUCCESS)
		print_error(rc);
	else
		for (size_t i = 0; i < count; i++) {
			replace_bytes(values[i], '\n', '\v');
			printf("%s%s%s%c", values[i] ? "<" : "missing", values[i] ? values[i] : "",
				values[i] ? ">" : "", i + 1 < count ? '\t' : '\n');
		}
	for (size_t i = 0; i < count; i++)
		free(values[i]);
}

static void carry_out(const char *verb, const char *const *words, size_t count)
{
	const char *key = words[0], *data = count > 1 ? words[1] : "";
	size_t klen = strlen(key), dlen = strlen(data);
	time_t ttl = count > 2 ? atol(words[2]) : 0;
	if (!strcmp(verb, "get") || !strcmp(verb, "gets") || !strcmp(verb, "multi"))
		print_values(words, count);
	else if (!strcmp(verb, "set"))
		print_yes_no(memcached_set(client, key, klen, data, dlen, ttl, 0));
	else if (!strcmp(verb, "add"))
		print_yes_no(memcached_add(client, key, klen, data, dlen, 0, 0));
	else if (!strcmp(verb, "append"))
		print_yes_no(memcached_append(client, key, klen, data, dlen, 0, 0));
	else if (!strcmp(verb, "prepend"))
		print_yes_no(memcached_prepend(client, key, klen, data, dlen, 0, 0));
	else if (!strcmp(verb, "cas"))
		print_yes_no(memcached_cas(client, key, klen, data, dlen, 0, 0, token));
	else if (!strcmp(verb, "incr"))
		print_count(memcached_increment, key, data);
	else if (!strcmp(verb, "decr"))
		print_count(memcached_decrement, key, data);
	else if (!strcmp(verb, "touch"))
		print_yes_no(memcached_touch(client, key, klen, atol(data)));
	else if (!strcmp(verb, "delete"))
		print_yes_no(memcached_delete(client, key, klen, 0));
	else
		puts("none");
}

int main(int argc, char **argv)
{
	char config[128];
	if (argc != 3)
		return 2;
	snprintf(config, sizeof(config),
		"--SERVER=127.0.0.1:%s --POLL-TIMEOUT=60000 --CONNECT-TIMEOUT=60000 "
		"--SUPPORT-CAS%s",
		argv[1], strcmp(argv[2], "binary") ? "" : " --BINARY-PROTOCOL");
	client = memcached(config, strlen(config));
	if (!client)
		return 1;
	char *line = NULL;
	size_t size = 0;
	while (getline(&line, &size, stdin) > 0) {
		const char *words[MAX_WORDS];
		size_t count = 0;
		for (char *word = strtok(line, "\t\n"); word && count < MAX_WORDS;
			word = strtok(NULL, "\t\n"))
			words[count++] = word;
		for (size_t i = 0; i < count; i++)
			replace_bytes((char *)words[i], '\v', '\n');
		carry_out(words[0], words + 1, count - 1);
		fflush(stdout);
	}
	free(line);
	memcached_free(client);
	return 0;
}
