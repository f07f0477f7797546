/* Exit notice: a last line on stderr if a signal ends profcpu after a recording. */
#ifndef PROFCPU_RECORD_EXIT_NOTICE_H
#define PROFCPU_RECORD_EXIT_NOTICE_H

#include <stdbool.h>

/*
 * From now on the signals of record_watch_signals print where the samples are and how to make
 * outputs. Then they end the program with the same status as before. Only signals with the default
 * action change.
 *
 * pass_one: the recording ended by itself and is being finished, so the first signal does nothing.
 * If that is SIGHUP or SIGXCPU, later ones are ignored.
 */
void exit_notice_set(const char *dir, bool pass_one);

/* From now on no signal passes: the recording is finished. */
void exit_notice_pass_none(void);

#endif
