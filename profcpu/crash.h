/*
 * Prints profcpu's own stack on stderr when profcpu crashes, then lets the signal take its default
 * action. The handler takes no lock, allocates nothing and reads memory only through the kernel.
 * The signal stops it after CRASH_SECONDS_MAX.
 */
#ifndef PROFCPU_CRASH_H
#define PROFCPU_CRASH_H

#define CRASH_FRAMES_MAX 64
#define CRASH_SECONDS_MAX 5

/*
 * Handles the signals of a crash (base/thread.h) that have their default action; leaves the others
 * to their handlers, as a sanitizer's. Without memory it handles none. Call it once, before other
 * threads start.
 */
void crash_begin(void);

#endif
