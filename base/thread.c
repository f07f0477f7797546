#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIGNAL_STACK_BYTES ((size_t)64 << 10) /* beside the saved registers of the kernel */

struct thread_begin {
	const char *name;
	void *(*run)(void *ctx);
	void *ctx;
};

/* A page that faults, then the stack. */
static size_t signal_stack_bytes(size_t page)
{
	size_t bytes = SIGNAL_STACK_BYTES + getauxval(AT_MINSIGSTKSZ);

	return page + ((bytes + page - 1) & ~(page - 1));
}

void *thread_begin_signal_stack(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = signal_stack_bytes(page);
	stack_t stack, before;
	unsigned char *memory;

	if (sigaltstack(NULL, &before) || !(before.ss_flags & SS_DISABLE))
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	mprotect(memory, page, PROT_NONE);
	stack = (stack_t){.ss_sp = memory + page, .ss_size = bytes - page};
	if (sigaltstack(&stack, NULL)) {
		munmap(memory, bytes);
		return NULL;
	}
	return memory;
}

void thread_end_signal_stack(void *stack)
{
	const stack_t none = {.ss_flags = SS_DISABLE};

	if (stack && !sigaltstack(&none, NULL))
		munmap(stack, signal_stack_bytes((size_t)sysconf(_SC_PAGESIZE)));
}

static void *thread_main(void *arg)
{
	struct thread_begin begin = *(struct thread_begin *)arg;
	void *stack = thread_begin_signal_stack(), *result;
	const int signals[] = THREAD_CRASH_SIGNALS;
	sigset_t crash;

	free(arg);
	pthread_setname_np(pthread_self(), begin.name);
	sigemptyset(&crash);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&crash, signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &crash, NULL);
	result = begin.run(begin.ctx);
	thread_end_signal_stack(stack);
	return result;
}

int thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *ctx), void *ctx)
{
	struct thread_begin *begin = malloc(sizeof(*begin));
	int error;

	if (!begin)
		return -ENOMEM;
	*begin = (struct thread_begin){.name = name, .run = run, .ctx = ctx};
	error = pthread_create(ret_thread, NULL, thread_main, begin);
	if (error)
		free(begin);
	return -error;
}
