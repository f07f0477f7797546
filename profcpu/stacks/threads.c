#include "profcpu/stacks/threads.h"

#include "base/cleanup.h"
#include "profcpu/stacks/kernel_stack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_BYTES ((size_t)64 << 10) /* of status and stack */

static int threads_add(void *ctx, pid_t tid)
{
	struct stacks_threads *t = ctx;

	if (t->list.len == STACKS_THREADS_MAX) {
		t->left_out++;
		return 0;
	}
	return vec_push(&t->list, ((struct stacks_thread){.tid = tid, .number = -1}));
}

static int by_tid(const void *a, const void *b)
{
	const struct stacks_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

int stacks_threads_list(pid_t pid, struct stacks_threads *ret_threads)
{
	struct stacks_threads t = {.pid = pid};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	int r = proc_each_numeric_name(pid, path, threads_add, &t);

	if (!r && !t.list.len)
		r = -ESRCH;
	if (!r)
		qsort(t.list.v, t.list.len, sizeof(*t.list.v), by_tid);
	for (size_t i = 0; i < t.list.len && !r; i++) {
		r = hashmap_put(&t.by_tid, (uint64_t)t.list.v[i].tid, (uint32_t)i);
		if (!r)
			r = stacks_threads_read_state(&t, &t.list.v[i]);
		/* A silent process still has threads to list. */
		if (r == -ESRCH || r == -ENOENT || r == -ETIME)
			r = 0;
	}
	if (r)
		stacks_threads_free(&t);
	else
		*ret_threads = t;
	return r;
}

void stacks_threads_free(struct stacks_threads *t)
{
	for (size_t i = 0; i < t->list.len; i++) {
		free(t->list.v[i].kernel);
		free(t->list.v[i].why);
	}
	vec_free(&t->list);
	hashmap_free(&t->by_tid);
}

struct stacks_thread *stacks_threads_find(const struct stacks_threads *t, pid_t tid)
{
	const uint32_t *index = hashmap_get(&t->by_tid, (uint64_t)tid);

	return index ? &t->list.v[*index] : NULL;
}

int stacks_threads_read_state(struct stacks_threads *t, struct stacks_thread *thread)
{
	struct proc_status status = {.seccomp = -1};
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = proc_read(t->pid, thread->tid, "status", STATE_BYTES, &text, &len);

	if (!r)
		r = proc_status_parse(text, &status);
	thread->ended = r == -ESRCH || r == -ENOENT;
	if (r)
		return r;
	memcpy(thread->name, status.comm, sizeof(thread->name));
	thread->state = status.state;
	thread->ns_tid = status.ns_pid;
	return 0;
}

/* The text of a small file of the thread. 0; 1: it cannot be read now; -EACCES, -EPERM; -ENOMEM. */
static int threads_read(const struct stacks_threads *t, const struct stacks_thread *thread,
			const char *name, char **ret_text)
{
	size_t len;
	int r = proc_read(t->pid, thread->tid, name, STATE_BYTES, ret_text, &len);

	return r && r != -ENOMEM && r != -EACCES && r != -EPERM ? 1 : r;
}

int stacks_threads_read_kernel(struct stacks_threads *t, struct stacks_thread *thread)
{
	struct outbuf names = outbuf_to(-1);
	AUTO_FREE char *stack = NULL, *wchan = NULL;
	int r = t->no_kernel_stacks ? -EPERM : threads_read(t, thread, "stack", &stack);

	t->no_kernel_stacks = r == -EPERM || r == -EACCES;
	if (!r)
		(void)kernel_stack_names(stack, &names);
	else if (t->no_kernel_stacks)
		r = threads_read(t, thread, "wchan", &wchan);
	if (wchan && kernel_stack_is_wchan(wchan))
		outbuf_printf(&names, "%s\n", wchan);
	if (names.len)
		outbuf_char(&names, 0);
	free(thread->kernel);
	thread->kernel = names.error ? NULL : TAKE_PTR(names.data);
	names.len = 0;
	int closed = outbuf_close(&names);

	return r == -ENOMEM ? r : closed;
}

int stacks_thread_why(struct stacks_thread *thread, const char *format, ...)
{
	va_list args;
	char *why = NULL;

	va_start(args, format);
	int n = vasprintf(&why, format, args);

	va_end(args);
	if (n < 0)
		return -ENOMEM;
	free(thread->why);
	thread->why = why;
	return 0;
}
