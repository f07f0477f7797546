/* What kind of code a frame is, when only its name is known. */
#ifndef FLAMEGRAPH_KINDS_H
#define FLAMEGRAPH_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kinds_guess {
	uint8_t kind; /* enum frame_kind */
	bool comm; /* may be a thread's name, if it is the first of its stack */
};

/*
 * A guess by the shape of the name alone, for folded text without annotations: entry points of the kernel are KERNEL (what
 * lies above them is for the caller to know); the .NET runtime's own functions and "[libcoreclr.so+0x..]" are RUNTIME;
 * dotted names with a parameter list, perf's " [module] Type::Method", Java's and JavaScript's shapes are MANAGED;
 * "[unknown]", "[truncated]" and what else stands for a stack that is not known are UNKNOWN, "[idle]" is IDLE; all others NATIVE. Never fails.
 */
struct kinds_guess kinds_of_name(const char *name, size_t len);

/* Names of Java methods as perf-map-agent and others write them, by their package: "Lorg/foo/Bar;::run", "java/util/Map". */
bool kinds_is_java(const char *name, size_t len);

#endif
