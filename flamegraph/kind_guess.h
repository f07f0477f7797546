/* Guesses the kind of code of a frame from its name, when only the name is known. */
#ifndef FLAMEGRAPH_KIND_GUESS_H
#define FLAMEGRAPH_KIND_GUESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kind_guess {
	uint8_t kind; /* enum frame_kind */
	bool comm;    /* it may be a thread's name, if it is the first of its stack */
};

/*
 * Guesses by the form of the name alone, for folded text without annotations. Never fails.
 *   KERNEL: entry points of the kernel; the caller knows that frames above them are kernel too
 *   RUNTIME: functions of the .NET runtime, and "[libcoreclr.so+0x..]"
 *   MANAGED: dotted names with a parameter list, perf's " [module] Type::Method", Java, JavaScript
 *   UNKNOWN: "[unknown]", "[truncated]" and other names for unknown stacks
 *   IDLE: "[idle]"
 *   NATIVE: all others
 */
struct kind_guess kind_guess_of_name(const char *name, size_t len);

/*
 * Whether the name is a Java method, as perf-map-agent and others write them, by its package:
 * "Lorg/foo/Bar;::run", "java/util/Map".
 */
bool kind_guess_is_java(const char *name, size_t len);

#endif
