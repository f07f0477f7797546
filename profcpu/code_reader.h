/*
 * Reads the code that .NET processes compile out of their memory, as the unwinder asks for it: a thread of its own, as the memory of a
 * process can answer late or never, and samples do not wait for that.
 */
#ifndef PROFCPU_CODE_READER_H
#define PROFCPU_CODE_READER_H

#include "unwind/unwinder.h"

#define CODE_READER_QUESTIONS_MAX 65536 /* that wait to be looked at */
#define CODE_READER_END_NS 2000000000ULL /* the thread has to end in this time, or is left behind */

struct code_reader;

/* Starts the thread; signals that the caller has blocked stay blocked in it. 0 or -errno. */
int code_reader_new(struct code_reader **ret_reader);

/* A question, as of struct unwinder_options; ctx: the reader. False: too many wait. */
bool code_reader_ask(void *ctx, int32_t pid, uint64_t addr);

/* A process has ended, or executes another program. */
void code_reader_forget(struct code_reader *r, int32_t pid);

/* Hands the answers that there are to the unwinder. How many, or -ENOMEM. */
int code_reader_answer(struct code_reader *r, struct unwinder *u);

/* Waits until every question is answered, at most until until_ns (CLOCK_MONOTONIC). */
void code_reader_wait(struct code_reader *r, uint64_t until_ns);

/* Ends the thread and frees all. NULL is fine. */
void code_reader_free(struct code_reader *r);

#endif
