/* All registers that a callee saves, except the frame pointer of some flags, as clobbers. */
#ifndef SAVED_H
#define SAVED_H

#if defined(__x86_64__)
#define SAVED "rbx", "r12", "r13", "r14", "r15"
#define SOME_SAVED "rbx", "r12"
#elif defined(__i386__)
#define SAVED "ebx", "esi", "edi"
#define SOME_SAVED "ebx", "esi"
#else
#define SAVED "x19", "x20", "x21", "x22", "x23", "x24", "d8", "d9"
#define SOME_SAVED "x19", "x20"
#endif

#endif
