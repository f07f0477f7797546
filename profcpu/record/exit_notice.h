/* Exit notice: a last line on stderr if a signal ends profcpu after a recording. */
#ifndef PROFCPU_RECORD_EXIT_NOTICE_H
#define PROFCPU_RECORD_EXIT_NOTICE_H

/*
 * From now on the signals of record_watch_signals print where the samples are and how to make
 * outputs. Then they end the program with the same status as before. Only signals with the default
 * action change.
 */
void exit_notice_set(const char *dir);

#endif
