/* Inside of proc.c: reading the texts of /proc apart from reading its files. */
#ifndef CONTAINER_PROC_TEXT_H
#define CONTAINER_PROC_TEXT_H

#include "container/proc.h"

/* Moves *p over a number in base 10 or 16; false where there is none or it does not fit in 64 bits. */
bool proc_number(const char **p, unsigned base, uint64_t *ret);

/* Which lines of /proc/PID/status were there. */
enum {
	PROC_STATUS_PID = 1,
	PROC_STATUS_NSPID = 2,
	PROC_STATUS_KTHREAD = 4,
	PROC_STATUS_VM = 8,
};

/* Fills *s, which the caller has zeroed but for seccomp (-1), and gives the bits above. */
unsigned proc_status_scan(const char *text, struct proc_status *s);

#endif
