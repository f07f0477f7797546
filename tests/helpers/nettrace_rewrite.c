/*
 * Reads a nettrace stream and writes its events anew. Another reader must get the same from both.
 *
 * usage: nettrace_rewrite 4|6 <TRACE >COPY   exit status 1: it cannot be read or written
 */
#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/eventpipe/nettrace_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct copy {
	struct outbuf out;
	struct nettrace_writer writer;
	struct hashmap kinds, threads; /* that were written; by number, by id */
	VEC(unsigned char) stack;      /* the last one */
	uint32_t stack_id;
};

static int take_head(void *ctx, const struct nettrace_trace *trace)
{
	struct copy *c = ctx;

	nettrace_writer_head(&c->writer, trace);
	return 0;
}

/* Whether a key is new in a map. */
static bool is_first(struct hashmap *map, uint64_t key)
{
	uint32_t *value;
	int fresh = 0;

	return !hashmap_entry(map, key, 1, &value, &fresh) && fresh;
}

static void put_stack(struct copy *c, const struct nettrace_event *event)
{
	if (event->stack_bytes == c->stack.len &&
	    !memcmp(event->stack, c->stack.v, event->stack_bytes))
		return;
	c->stack.len = 0;
	if (vec_reserve(&c->stack, event->stack_bytes))
		abort();
	memcpy(c->stack.v, event->stack, event->stack_bytes);
	c->stack.len = event->stack_bytes;
	nettrace_writer_stack(&c->writer, ++c->stack_id, event->stack, event->stack_bytes);
}

static int take_event(void *ctx, const struct nettrace_event *event)
{
	struct copy *c = ctx;
	struct nettrace_blob blob = event->blob;
	struct nettrace_kind kind = *event->kind;

	kind.metadata_id = kind.number + 1;
	if (is_first(&c->kinds, kind.number))
		nettrace_writer_kind(&c->writer, &kind);
	if (is_first(&c->threads, event->thread))
		nettrace_writer_thread(&c->writer, event->thread, event->pid, event->thread);
	if (is_first(&c->threads, event->capture_thread))
		nettrace_writer_thread(&c->writer, event->capture_thread, event->pid,
				       event->capture_thread);
	blob.metadata_id = kind.metadata_id;
	blob.thread = event->thread;
	blob.capture_thread = event->capture_thread;
	blob.labels_id = blob.stack_id = 0;
	if (event->stack) {
		put_stack(c, event);
		blob.stack_id = c->stack_id;
	}
	nettrace_writer_event(&c->writer, &blob);
	return 0;
}

int main(int argc, char **argv)
{
	struct copy c = {.out = outbuf_to(STDOUT_FILENO)};
	const struct nettrace_listener listener = {
		.trace = take_head, .event = take_event, .ctx = &c};
	struct parse_error err = {0};
	struct nettrace *n;
	char block[65536];
	ssize_t got;

	if (argc != 2 || nettrace_new(&listener, &n))
		return 2;
	c.writer = nettrace_writer_to(&c.out, (unsigned)atoi(argv[1]), 0);
	while ((got = read(STDIN_FILENO, block, sizeof(block))) > 0 &&
	       !nettrace_feed(n, block, (size_t)got, &err))
		;
	nettrace_writer_end(&c.writer);
	bool ended = nettrace_ended(n);

	nettrace_free(n);
	hashmap_free(&c.kinds);
	hashmap_free(&c.threads);
	vec_free(&c.stack);
	if (err.code)
		fprintf(stderr, "nettrace_rewrite: %s at %llu\n", err.what,
			(unsigned long long)err.offset);
	return outbuf_close(&c.out) || !ended;
}
