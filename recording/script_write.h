/* Writes a profile as the text of `perf script`. */
#ifndef RECORDING_SCRIPT_WRITE_H
#define RECORDING_SCRIPT_WRITE_H

#include "base/outbuf.h"
#include "profile/profile.h"

/*
 * Writes all samples in their order, as `perf script -F
 * comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso` prints them. Uses script_put_* of
 * profile/script_line.h. 0, -ENOMEM, or the first write error.
 *
 * Folding the text, with stackcollapse-perf.pl or profcpu, gives the same bytes as folding the
 * profile in perf's form. FlameScope can read it. Times are cut to microseconds. Samples of events
 * without stacks are one line each, unless all events are such. Samples off the CPU are left out,
 * because the text has only one scale.
 */
int script_text_write(struct profile *profile, struct outbuf *out);

#endif
