/* Reads a whole trace from a file or a pipe. */
#ifndef DOTNET_EVENTPIPE_NETTRACE_READ_H
#define DOTNET_EVENTPIPE_NETTRACE_READ_H

#include "dotnet/eventpipe/nettrace.h"

/*
 * Reads from fd (borrowed) to the end of the trace. *ret_cut: the end is missing. 0; errors of
 * nettrace_feed, with *err; -errno of read. Sets *ret_stats and *ret_cut in any case.
 */
int nettrace_read(int fd, const struct nettrace_listener *listener,
		  struct nettrace_stats *ret_stats, bool *ret_cut, struct parse_error *err);

#endif
