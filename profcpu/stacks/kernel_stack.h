/*
 * Names of the kernel's functions in which a thread waits. Sources: Linux fs/proc/base.c,
 * proc_pid_stack and proc_pid_wchan.
 */
#ifndef PROFCPU_STACKS_KERNEL_STACK_H
#define PROFCPU_STACKS_KERNEL_STACK_H

#include "base/outbuf.h"

#include <stdbool.h>

#define KERNEL_STACK_FRAMES_MAX 64 /* as in the kernel */

/*
 * Appends the names in the text of /proc/TID/stack, each with a newline, innermost first. A line is
 * "[<0>] futex_wait+0x60/0x90", for code of a module followed by " [MODULE]". Lines unlike that are
 * left out. Returns the number of names.
 */
int kernel_stack_names(const char *text, struct outbuf *out);

/* Whether the text of /proc/TID/wchan is a name. It is "0" for a thread that runs, or if denied. */
bool kernel_stack_is_wchan(const char *text);

#endif
