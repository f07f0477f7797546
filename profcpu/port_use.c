#include "profcpu/port_use.h"

#include "base/log.h"
#include "base/remedy.h"

#include <errno.h>
#include <string.h>

#define PORT_USE_HURRY_NS NS_PER_S /* to resume the runtime after a failure or signal */

int port_use_begin(struct port_use *u)
{
	const struct port_options *o = &u->arguments.options;
	int status = port_arguments_default(&u->arguments), signal = 0, r = 0;

	if (status != EXIT_DONE)
		return status;
	u->watch = RECORD_WATCH_NONE;
	u->begun = true;
	/* Otherwise signals end profcpu at once, because nothing needs to be put right. */
	if (o->listen)
		r = record_watch_new(&u->watch);
	if (r) {
		log_error("cannot wait for signals: %s", strerror(-r));
		return EXIT_FAILED;
	}
	r = port_target_reach(&u->target, o, &u->watch, &signal);
	if (r == -EINTR)
		log_error("%s: interrupted before a runtime connected", o->socket);
	else if (!r && o->listen)
		port_cancel_on(u->watch.signal_fd);
	return r ? EXIT_FAILED : EXIT_DONE;
}

static int port_use_resume(struct port_use *u, int status)
{
	bool hurry = status != EXIT_DONE || (u->watch.masked && record_watch_signal(&u->watch));
	struct port_error err = {0};

	port_cancel_on(-1);
	int r = port_target_resume(
		&u->target,
		clock_monotonic_ns() + (hurry ? PORT_USE_HURRY_NS : PORT_TARGET_LIMIT_NS), &err);

	port_target_resume_others(&u->target);
	if (r && status == EXIT_DONE)
		port_report(&u->target.port, &err);
	if (r && u->arguments.options.listen)
		log_note("the runtime may still wait at its start; `profcpu resume "
			 "--diagnostic-port %s` lets it run",
			 u->arguments.options.socket);
	return r ? EXIT_FAILED : status;
}

int port_use_end(struct port_use *u, int status)
{
	if (u->begun) {
		status = port_use_resume(u, status);
		port_target_release(&u->target);
		record_watch_free(&u->watch);
	}
	port_arguments_free(&u->arguments);
	return status;
}

int port_use_end_output(struct outbuf *out)
{
	int r = outbuf_close(out);

	if (r)
		log_error("cannot write to stdout: %s%s", strerror(-r), remedy_for_stdout(r));
	return r ? EXIT_FAILED : EXIT_DONE;
}
