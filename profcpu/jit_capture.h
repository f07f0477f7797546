/*
 * The names of JIT-compiled code, taken from the .NET processes of a recording while they run: afterwards nobody knows them. A
 * thread of its own looks for .NET runtimes among the processes it is told of, follows each in one of the ways of jit_way.h
 * and writes what it learns to symbols/ of the recording (symbols/jit_methods.h), which post-processing reads.
 */
#ifndef PROFCPU_JIT_CAPTURE_H
#define PROFCPU_JIT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum jit_names {
	JIT_NAMES_AUTO, /* memory where the runtime describes itself, else the perf map, else the runtime's events */
	JIT_NAMES_MEMORY,
	JIT_NAMES_PERF_MAP,
	JIT_NAMES_RUNDOWN,
	JIT_NAMES_NONE, /* nothing is asked of anybody; a perf map or jitdump that is there is read all the same */
};

/* "auto", "memory", "perfmap", "rundown", "none". 0 or -EINVAL. */
int jit_names_parse(const char *text, enum jit_names *ret_names);

const char *jit_names_word(enum jit_names names); /* the other way round. Static */

struct jit_capture;

/* dir_fd: the recording; borrowed. 0 or -errno. */
int jit_capture_new(enum jit_names names, int dir_fd, struct jit_capture **ret_capture);

/* Before the start: which source lines code comes from is to be known too, as far as the way that is taken can tell. */
void jit_capture_want_lines(struct jit_capture *c);

/* Starts the thread. Signals that the caller has blocked stay blocked in it. all: every process of the machine is looked
 * at. 0 or -errno. */
int jit_capture_start(struct jit_capture *c, bool all);

/* A process of the recording: looked at soon, and for a while, as a runtime takes its time to start. From any thread. */
void jit_capture_process(struct jit_capture *c, pid_t pid);

/* The recording has ended: a last look at all processes, everything is put back, the thread ends. Processes that hang share
 * JIT_CAPTURE_END_S; a thread that the kernel holds is left behind 2 s later. Does nothing the second time. */
#define JIT_CAPTURE_END_S 8
void jit_capture_end(struct jit_capture *c);

/* After the end: one line for each process, by log_note where its names come from and by log_warn that they could not be
 * taken, or not all of them or not without a trace, and why. */
void jit_capture_say(const struct jit_capture *c, bool quiet);

/* False: names could not be written to the recording. Of a thread that was left behind nobody knows: true. */
bool jit_capture_is_written(const struct jit_capture *c);

/* Ends it if need be. */
void jit_capture_free(struct jit_capture *c);

#endif
