/*
 * Lines of the report about .NET processes that get no more names. A long recording sees many end,
 * so each takes little memory, and only the first ones are kept one by one.
 */
#ifndef PROFCPU_JIT_ENDED_H
#define PROFCPU_JIT_ENDED_H

#include "base/vec.h"
#include "profcpu/jit/capture_process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_ENDED_MAX 1024 /* that are kept one by one while the recording runs */

struct jit_ended {
	pid_t pid;
	uint64_t since_ns;
	char comm[PROC_COMM_BYTES], version[DOTNET_VERSION_BYTES];
	const char *words; /* as in struct jit_process */
	char *why;
	bool broken;
};

/* Zeroed, it is empty. */
struct jit_ended_list {
	VEC(struct jit_ended) v;
	size_t more, more_lack; /* processes beyond the limit; those of them that lack names */
	bool write_failed;      /* names of a process could not be written */
};

/* Adds a process. last: the recording has ended, so there is no limit. */
void jit_ended_add(struct jit_ended_list *list, const struct jit_process *p, bool last);

/* Sorts the kept ones by PID. */
void jit_ended_sort(struct jit_ended_list *list);

/* Reports them, as jit_capture_report. names: the option. */
void jit_ended_report(const struct jit_ended_list *list, enum jit_names names, bool quiet);

void jit_ended_free(struct jit_ended_list *list);

#endif
