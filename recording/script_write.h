/* Writes a profile as the text of `perf script`. */
#ifndef RECORDING_SCRIPT_WRITE_H
#define RECORDING_SCRIPT_WRITE_H

#include "base/outbuf.h"
#include "profile/profile.h"

/*
 * Writes all samples in their order as `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso` prints them, with
 * script_put_* of profile/script_line.h. Folded again (by stackcollapse-perf.pl or by us) it gives the same as the profile
 * folded in perf's form, byte for byte; FlameScope reads it. Time is cut to microseconds.
 * Samples off the CPU are left out, as the text has one scale only.
 * Samples of events without stacks are one line each, unless all events are such. 0, -ENOMEM, or the first write error.
 */
int script_text_write(struct profile *profile, struct outbuf *out);

#endif
