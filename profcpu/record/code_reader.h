/*
 * Reads JIT-compiled code of .NET processes from their memory when the unwinder needs it. A thread
 * of its own does it, because such a read may take long or never end.
 */
#ifndef PROFCPU_RECORD_CODE_READER_H
#define PROFCPU_RECORD_CODE_READER_H

#include "unwind/unwinder.h"

#define CODE_READER_REQUESTS_MAX 65536 /* requests whose results were not taken */
/* Bytes of results that were not taken, or an eighth of the memory that is left. */
#define CODE_READER_RESULTS_BYTES ((size_t)16 << 20)
#define CODE_READER_END_NS 2000000000ULL /* time for the thread to end before it is abandoned */

struct code_reader;

/*
 * Starts the thread; signals that the caller blocks stay blocked in it. memory: bytes that are
 * left, which may shrink limits; 0: memory_left(). 0 or -errno.
 */
int code_reader_new(uint64_t memory, struct code_reader **ret_reader);

/* For unwinder_options.request_code; ctx: the reader. False: too many requests. */
bool code_reader_request(void *ctx, int32_t pid, uint64_t addr);

/* Forgets a process that has ended or executed another program. */
void code_reader_forget(struct code_reader *r, int32_t pid);

/* Lookups that were refused or have no result, because of the limits. */
uint64_t code_reader_left_out(struct code_reader *r);

/* Passes finished lookups to the unwinder. Their number, or -ENOMEM. */
int code_reader_take(struct code_reader *r, struct unwinder *u);

/* Waits for all pending requests, at most until until_ns (CLOCK_MONOTONIC). */
void code_reader_wait(struct code_reader *r, uint64_t until_ns);

/* Ends the thread and frees all. NULL is fine. */
void code_reader_free(struct code_reader *r);

#endif
