#include "profcpu/port_target.h"

#include "base/log.h"
#include "base/remedy.h"
#include "profcpu/arguments.h"
#include "profcpu/default_target.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int port_target_pid(struct port *p, const char *text)
{
	uint64_t pid;
	int r = options_u64("--pid", text, 1, INT_MAX, &pid);

	if (!r)
		p->pid = (pid_t)pid;
	return r;
}

int port_target_open(struct port *p)
{
	int status = default_target_one(&p->pid, true);

	if (status != EXIT_DONE)
		return status;
	int r = opener_new(&p->opener);

	if (r)
		log_error("cannot open files of process %d: %s", p->pid, strerror(-r));
	return r ? EXIT_FAILED : EXIT_DONE;
}

int port_target_close(struct outbuf *out)
{
	int r = outbuf_close(out);

	if (r)
		log_error("cannot write to stdout: %s%s", strerror(-r), remedy_for_stdout(r));
	return r ? EXIT_FAILED : EXIT_DONE;
}
