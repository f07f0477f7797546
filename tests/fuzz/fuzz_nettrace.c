/* Input: a nettrace stream of any version, whole and in pieces. It is read as a rundown, and all
 * values are written. covers: dotnet/eventpipe/nettrace.c dotnet/eventpipe/nettrace_blob.c
 * dotnet/eventpipe/nettrace_objects.c dotnet/eventpipe/nettrace_v6.c
 * dotnet/eventpipe/event_fields.c dotnet/eventpipe/event_payload.c dotnet/eventpipe/rundown.c */
#include "base/json.h"
#include "dotnet/eventpipe/event_payload.h"
#include "dotnet/eventpipe/method_name.h"
#include "dotnet/eventpipe/rundown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define JSON_MAX ((size_t)16 << 20) /* of all events */

struct seen {
	struct outbuf json;
	size_t json_bytes;
	uint32_t pointer_bytes;
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

/* The output must be JSON. */
static void put_values(struct seen *s, const struct nettrace_event *e)
{
	struct reader labels = reader_of(e->labels, e->labels_bytes);
	struct nettrace_label label;
	struct json_writer w;
	struct json j;

	s->json.len = 0;
	w = json_put_document(&s->json, 0);
	event_payload_put(e, s->pointer_bytes, &w, "payload");
	while (nettrace_label_next(&labels, &label))
		if (label.key)
			json_put_chars(&w, "label", label.key, label.key_len);
	json_put_end(&w);
	j = json_of(s->json.data, s->json.len);
	if (s->json.error)
		return;
	/* Our own reader refuses deep documents, and NUL in texts. */
	if (json_skip(&j) != -E2BIG && (j.error || json_end(&j)) &&
	    !memmem(s->json.data, s->json.len, "\\u0000", 6))
		abort();
	s->json_bytes += s->json.len;
}

static int trace(void *ctx, const struct nettrace_trace *t)
{
	((struct seen *)ctx)->pointer_bytes = t->pointer_bytes;
	return 0;
}

static int event(void *ctx, const struct nettrace_event *e)
{
	struct seen *s = ctx;

	if (s->json_bytes < JSON_MAX)
		put_values(s, e);
	for (size_t i = 0; i < e->stack_bytes; i++)
		s->bytes += e->stack[i];
	return rundown_take_event(s->rundown, e);
}

static struct seen run(const uint8_t *data, size_t size, size_t step)
{
	struct seen s = {.json = outbuf_to(-1)};
	struct rundown_listener methods = {
		.method = method, .gone = gone, .il_map = il_map, .ctx = &s};
	struct nettrace_listener events = {.trace = trace, .event = event, .ctx = &s};
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
	outbuf_close(&s.json);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = run(data, size, size ? size : 1), pieces = run(data, size, 13);

	if (whole.methods != pieces.methods || whole.bytes != pieces.bytes ||
	    whole.json_bytes != pieces.json_bytes)
		abort();
	return 0;
}
