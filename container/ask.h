/*
 * Asks the kernel about a process that may not answer. A process can be stuck in execve, or with
 * the lock of its memory taken, for instance because a FUSE file system is silent. Then a read of
 * /proc/PID/stat, maps, root and most other files waits for it, and only SIGKILL ends that.
 *
 * So another thread asks. If it gets no answer in time, it is abandoned with all that it uses, and
 * the process is not asked again until it has answered. If profcpu ends first, the kernel ends the
 * thread.
 */
#ifndef CONTAINER_ASK_H
#define CONTAINER_ASK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ASK_BYTES ((size_t)8 << 10) /* largest state */
#define ASK_WAIT_MS 500             /* for one answer */
/*
 * All waits over ASK_LATE_MS together, and 2 % of the time since the first one. After them, an
 * answer must come in ASK_LATE_MS; and in ASK_TOO_LATE_MS if such waits take as much again.
 */
#define ASK_WAITS_MS 1000
#define ASK_WAITS_PART 50
#define ASK_LATE_MS 20
#define ASK_TOO_LATE_MS 2
/* For a thread that runs, or waits for a CPU: its answer comes soon, but the machine is busy. */
#define ASK_BUSY_MS 2000
/*
 * Processes that do not answer. With so many, profcpu asks no other; with so many of one user, no
 * other of this user.
 */
#define ASK_SILENT_MAX 256
#define ASK_SILENT_USER_MAX 64

/*
 * Calls fn(state) in another thread, and returns its result. fn gets a copy of the `bytes` of
 * state, and may change it; state has the changes afterwards. A call from fn itself, or
 * about our own process, runs directly.
 *
 * -ETIME: no answer. Then state is unchanged, and what it owns is lost to the caller: drop
 * frees it, at once or after fn has returned. drop: NULL if it owns nothing.
 */
int ask(pid_t pid, int (*fn)(void *state), void (*drop)(void *state), void *state, size_t bytes);

/* For messages: why a process does not answer, and what helps. */
#define ASK_SILENT_WHY \
	"waits in execve or for its memory, such as for a network or FUSE file system"
#define ASK_SILENT_REMEDY "end it, or the server of its file system"

/*
 * Returns how many processes have not answered in time since profcpu started. At least some of
 * those that were not asked, because so many others did not answer, count too.
 */
uint64_t ask_silent(void);

#endif
