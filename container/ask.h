/*
 * Asks the kernel about a process that may not answer. A process can be stuck in execve, or with
 * the lock of its memory taken, for instance because a FUSE file system is silent. Then a read of
 * /proc/PID/stat, maps, root and most other files waits for it. Pages of files on such a file
 * system can be anywhere in a target's memory, and SIGKILL does not end each wait for them. A
 * process that waits so can keep a directory locked, also /proc/PID of any process. Then each
 * lookup of a new name there waits.
 *
 * So another process asks. It shares memory and descriptors with profcpu as a thread does, but the
 * end of profcpu does not wait for it, unless profcpu is PID 1 of a PID namespace. If it gets no
 * answer in time, it is abandoned with all that it uses, and the target is not asked again until it
 * has answered. Without CAP_SYS_PTRACE, a thread asks.
 */
#ifndef CONTAINER_ASK_H
#define CONTAINER_ASK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ASK_NAME "ask"              /* of the process and of its thread */
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
/* For a process that runs, or waits for a CPU: its answer comes soon, but the machine is busy. */
#define ASK_BUSY_MS 2000
/*
 * Processes that do not answer. With so many, profcpu asks no other; with so many of one user, no
 * other of this user.
 */
#define ASK_SILENT_MAX 256
#define ASK_SILENT_USER_MAX 64
/* Instead of a PID: all files with holes, and paths of no process. */
#define ASK_HOLES 0
#define ASK_PATHS (-1)

/*
 * Calls fn(state) in another process or thread, and returns its result. So in fn, the PID, handlers
 * of signals and most resource limits can differ from ours. It gets a copy of the `bytes` of state,
 * and may change it; state has the changes afterwards. A call from fn itself, or about our own
 * process, runs directly.
 *
 * -ETIME: no answer. Then state is unchanged, and what it owns is lost to the caller: drop
 * frees it, at once or after fn has returned. drop: NULL if it owns nothing.
 */
int ask(pid_t pid, int (*fn)(void *state), void (*drop)(void *state), void *state, size_t bytes);

/*
 * Call at the end of profcpu, and ask nothing after it. Ends the processes that asked, so that none
 * is left to a PID 1 that does not wait for it. If questions are without an answer, it writes what
 * streams hold, and closes all descriptors. Else readers of our output would wait for those
 * questions, too.
 */
void ask_leave(void);

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
