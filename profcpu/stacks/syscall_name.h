/* Names of system calls, on the architecture of this build. */
#ifndef PROFCPU_STACKS_SYSCALL_NAME_H
#define PROFCPU_STACKS_SYSCALL_NAME_H

#include <stdint.h>

/* "futex"; NULL: this build does not know the number. Static. */
const char *syscall_name(int64_t number);

#endif
