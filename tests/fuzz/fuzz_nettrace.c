/* Input: a nettrace stream, read as a rundown, whole and in pieces. covers:
 * dotnet/eventpipe/nettrace.c dotnet/eventpipe/nettrace_blob.c dotnet/eventpipe/rundown.c */
#include "dotnet/eventpipe/method_name.h"
#include "dotnet/eventpipe/rundown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct rundown *rundown;
	uint64_t methods, bytes;
};

static int method(void *ctx, const struct rundown_method *m)
{
	struct seen *s = ctx;

	if (strlen(m->name) > m->len || !m->bytes)
		abort();
	s->methods++;
	s->bytes += m->len;
	return 0;
}

static int il_map(void *ctx, const struct rundown_il_map *map)
{
	struct seen *s = ctx;

	for (size_t i = 0; i < map->count * 4; i++)
		s->bytes += map->il[i] ^ map->native[i];
	return 0;
}

static int gone(void *ctx, uint64_t start, uint64_t time_ns)
{
	((struct seen *)ctx)->bytes += start ^ time_ns;
	return 0;
}

static int event(void *ctx, const struct nettrace_event *e)
{
	struct seen *s = ctx;

	for (size_t i = 0; i < e->stack_bytes; i++)
		s->bytes += e->stack[i];
	return rundown_take_event(s->rundown, e);
}

static struct seen run(const uint8_t *data, size_t size, size_t step)
{
	struct seen s = {0};
	struct rundown_listener methods = {
		.method = method, .gone = gone, .il_map = il_map, .ctx = &s};
	struct nettrace_listener events = {.event = event, .ctx = &s};
	struct parse_error err = {0};
	struct nettrace *n;
	int r = 0;

	if (rundown_new(NULL, 1, &methods, &s.rundown) || nettrace_new(&events, &n))
		abort();
	for (size_t at = 0; at < size && !r; at += step)
		r = nettrace_feed(n, data + at, size - at < step ? size - at : step, &err);
	if (r == -EBADMSG && (!err.what || err.offset > size))
		abort();
	rundown_flush(s.rundown);
	rundown_free(s.rundown);
	nettrace_free(n);
	s.rundown = NULL;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = run(data, size, size ? size : 1), pieces = run(data, size, 13);

	if (whole.methods != pieces.methods || whole.bytes != pieces.bytes)
		abort();
	return 0;
}
