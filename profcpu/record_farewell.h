/* The last line of a program that a signal ends after it has recorded. */
#ifndef PROFCPU_RECORD_FAREWELL_H
#define PROFCPU_RECORD_FAREWELL_H

/*
 * From now on SIGINT, SIGTERM and SIGHUP, where they would have ended this program, still do, with
 * the same status, but say first on stderr where the samples are and what makes outputs of them.
 */
void record_farewell_set(const char *dir);

#endif
