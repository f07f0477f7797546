/*
 * Limits that cost a recording something, and how much. The recorder counts, manifest.json keeps
 * the counts, and the report names them.
 */
#ifndef RECORDING_LIMITS_H
#define RECORDING_LIMITS_H

#include <stdint.h>

/* One row for each: id, key in JSON, what the count is, remedy. Append; symbols/stacks has numbers.
 */
#define RECORDING_LIMITS(ROW)                                                                    \
	ROW(OPEN_FILES, "open_files",                                                            \
	    "stacks lack rules of files that were not opened: too many open files",              \
	    LIMITS_OPEN_FILES_REMEDY)                                                            \
	ROW(STACK_COPIES, "stack_copies",                                                        \
	    "stacks are longer than their copies, which did not grow: too many open files",      \
	    LIMITS_OPEN_FILES_REMEDY)                                                            \
	ROW(FILE_SIZE, "file_size",                                                              \
	    "stacks lack rules of files that are too large, or take too long, to unwind",        \
	    "use --call-graph fp for such programs")                                             \
	ROW(DEFERRED, "deferred_stacks",                                                         \
	    "stacks were unwound before their code was known: memory for such stacks was full",  \
	    "use a lower -F, or record fewer processes (-p)")                                    \
	ROW(MAX_STACK, "max_stack", "stacks end at the kernel's largest number of frames",       \
	    "raise it: sysctl kernel.perf_event_max_stack=1024")                                 \
	ROW(SAMPLE_RATE, "sample_rate_hz", "Hz fewer than requested with -F",                    \
	    "raise sysctl kernel.perf_event_max_sample_rate")                                    \
	ROW(WAKER_PROCESSES, "waker_processes",                                                  \
	    "processes that woke targets have no user stacks: over 1024, or not read in time",   \
	    "record fewer processes (-p)")                                                       \
	ROW(EVENT_IDS, "event_ids",                                                              \
	    "switches were left out, as other recorders' events took them: 1024 are known",      \
	    "end the other recorders")                                                           \
	ROW(LIBDW_RULES, "libdw_rules",                                                          \
	    "stacks lack rules of files on which libdw failed or took too long",                 \
	    "use --call-graph fp for such programs")                                             \
	ROW(LIBDW_PROCESS, "libdw_process",                                                      \
	    "stacks were not unwound: the process for libdw failed",                             \
	    "free memory or processes, and run `profcpu postprocess` again")                     \
	ROW(UNREAD_PROCESSES, "unread_processes",                                                \
	    "processes lack names: too many open files when they were read",                     \
	    LIMITS_OPEN_FILES_REMEDY)                                                            \
	ROW(USERS, "users",                                                                      \
	    "processes have no noted user, so their files may be refused: over 131072",          \
	    "record fewer processes (-p)")                                                       \
	ROW(STACK_MEMORY, "stack_memory",                                                        \
	    "stacks have only their innermost frames: too little memory is left",                \
	    LIMITS_STACK_MEMORY_REMEDY)                                                          \
	ROW(PICTURE_MEMORY, "picture_memory",                                                    \
	    "stacks in pictures lack frames or names: too little memory is left, or over "       \
	    "65,535 frames",                                                                     \
	    LIMITS_STACK_MEMORY_REMEDY)                                                          \
	ROW(CUT_MAPS, "cut_maps",                                                                \
	    "processes lack names: their mappings took over 16 MiB at the start",                \
	    "start the recording before them")                                                   \
	ROW(DEBUG_LINKS, "debug_links",                                                          \
	    "debug files were not compared: 4 GiB were read for an image, or 8 GiB for all",     \
	    "link such images with a build id")                                                  \
	ROW(CODE_LOOKUPS, "code_lookups",                                                        \
	    "lookups of a runtime's code were left out: too many, or too little memory",         \
	    "use a lower -F, or record fewer processes (-p)")                                    \
	ROW(SILENT, "silent_processes",                                                          \
	    "processes lack names: they, or 64 others of their user, did not answer in time",    \
	    "end them, or the servers of their file systems")                                    \
	ROW(ADDRESSES, "addresses",                                                              \
	    "times an address, a name or a thread was left out: too little memory is left",      \
	    LIMITS_STACK_MEMORY_REMEDY)                                                          \
	ROW(OTHER_RECORDS, "other_records",                                                      \
	    "records were lost, most of names, maps or forks, which came faster than they were " \
	    "read",                                                                              \
	    "with -a, no samples are lost for them")                                             \
	ROW(SMALL_RINGS, "small_rings",                                                          \
	    "samples were lost, as rings were made smaller: too little memory is left",          \
	    "record with more memory")                                                           \
	ROW(WAIT_THREADS, "wait_threads",                                                        \
	    "threads have no waits: too little memory was left, or more than 1048576 threads "   \
	    "ran at once",                                                                       \
	    "record fewer processes (-p), or with more memory")

#define LIMITS_STACK_MEMORY_REMEDY "run `profcpu postprocess` again with more memory"
#define LIMITS_OPEN_FILES_REMEDY "raise the hard limit as root, for example: ulimit -n 4096"

enum recording_limit {
#define LIMITS_ID(id, key, cost, remedy) LIMIT_##id,
	RECORDING_LIMITS(LIMITS_ID)
#undef LIMITS_ID
		LIMITS,
};

/* Counts; 0: the limit cost nothing. */
struct recording_limits {
	uint64_t cost[LIMITS];
};

/* Key in JSON, what the count is, and the remedy. Static. */
struct recording_limit_text {
	const char *key, *cost, *remedy;
};
struct recording_limit_text recording_limit_text(enum recording_limit limit);

#endif
