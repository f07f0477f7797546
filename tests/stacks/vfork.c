/*
 * Children of vfork, which work on the parent's stack, execute this program again with an argument,
 * work, and end.
 */
#include "known.h"

#include <sys/wait.h>

static volatile unsigned sink;
static char *const again[] = {"vfork", "again", NULL};

LEAF(borrowed_leaf, ROUNDS * 20)
static NOINLINE unsigned child(unsigned x)
{
	sink = CALL(borrowed_leaf, x) + 1;
	LIBRARY(LIBC_ANY "+", execv("/proc/self/exe", again));
	_exit(1);
}
LEAF(parent_leaf, ROUNDS * 20)
static NOINLINE unsigned spawn(unsigned x)
{
	int status;
	pid_t pid = vfork();

	KNOWN_EDGE(__func__, "-", "child");
	if (pid == 0)
		child(x);
	LIBRARY(LIBC_ANY "+", waitpid(pid, &status, 0));
	return CALL(parent_leaf, x) + 1;
}

LEAF(again_leaf, ROUNDS * 40)
static NOINLINE unsigned again_work(unsigned x)
{
	return CALL(again_leaf, x) + 1;
}

int main(int argc, char **argv)
{
	unsigned x = 1;

	(void)argv;
	if (argc > 1) {
		sink = x += CALL(again_work, x);
		LIBRARY(LIBC_ANY "+", _exit(0));
	}
	/* Work of the loader at the start of each. */
	KNOWN_EDGE("-", LOADER "+", "-");
	KNOWN_EDGE("-", LOADER "+;" LIBC_ANY "+", "-");
	KNOWN_EDGE("-", "_start;" LIBC_ANY "+;[self]+;" LIBC_ANY "+", "-");
	known_ready();
	for (;;)
		sink = x += CALL(spawn, x);
}
