#include "profcpu/trace/trace.h"

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/remedy.h"
#include "container/access.h"
#include "container/dotnet_process.h"
#include "profcpu/jit/collectible.h"
#include "profcpu/port/report.h"
#include "profcpu/port/target.h"
#include "profcpu/trace/names.h"
#include "profcpu/trace/trace_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACE_READ_BYTES ((size_t)8 << 20)
#define TRACE_WAIT_MS 200
/* A runtime with very many methods takes long to list them. */
#define TRACE_STOP_NS (120 * NS_PER_S)
#define TRACE_STOP_BYTES (UINT64_C(1) << 30) /* it has far fewer */
#define TRACE_GIVE_UP_NS (2 * NS_PER_S)
#define TRACE_PATH_BYTES 128
#define TRACE_NAMELESS_PART 20        /* warn if more than one address in this many has no name */
#define TRACE_NAMES_NS (5 * NS_PER_S) /* of one step */
#define TRACE_WHY_BYTES (JIT_COLLECTIBLE_BYTES + 256)

enum trace_end {
	TRACE_GOES_ON,
	TRACE_END_TIME,
	TRACE_END_SIGNAL,
	TRACE_END_EVENT,
	TRACE_END_PROCESS,
	TRACE_END_ERROR,
};

struct trace {
	const struct trace_options *options;
	struct record_watch watch;
	struct port_target target;
	struct session *session;
	struct trace_file file;
	char path[TRACE_PATH_BYTES];
	struct nettrace_trace head;
	struct trace_names *names; /* NULL: the runtime lists its methods, or nobody */
	bool stopped_by_event, rundown, named;
	uint64_t begin_ns, whole; /* whole: of the file, when its first write failed */
	struct progress progress;
	enum trace_end end;
	int end_signal;
};

static int trace_take_head(void *ctx, const struct nettrace_trace *head)
{
	struct trace *t = ctx;

	t->head = *head;
	return 0;
}

static int trace_take_event(void *ctx, const struct nettrace_event *event)
{
	struct trace *t = ctx;

	if (t->names)
		trace_names_take(t->names, event, t->head.pointer_bytes);
	if (!t->stopped_by_event && t->options->stop->provider)
		t->stopped_by_event =
			stop_event_matches(t->options->stop, event, t->head.pointer_bytes);
	return 0;
}

static int trace_take_bytes(void *ctx, const void *data, size_t len)
{
	struct trace *t = ctx;
	bool failed_before = t->file.error;
	int r = trace_file_take(&t->file, data, len);

	if (t->file.error && !failed_before)
		t->whole = session_whole_bytes(t->session);
	return r;
}

/* "APP_YYYYMMDD_HHMMSS.nettrace", as dotnet-trace names it. */
static const char *trace_default_path(struct trace *t)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%d_%H%M%S", &tm);
	snprintf(t->path, sizeof(t->path), "%s_%s.nettrace", t->target.name, when);
	return t->path;
}

static int no_method(void *ctx, const struct rundown_method *method)
{
	(void)ctx;
	(void)method;
	return 0;
}

/* Whether nothing can be known of the program, because it has not started yet. */
static bool trace_is_before_start(const struct trace *t, uint64_t until_ns)
{
	const char *file;

	return t->options->target.argv ||
	       (t->target.suspended &&
		dotnet_loader_file(t->target.port.pid, until_ns, &file) == -ENODATA);
}

/*
 * Whether a list of methods could crash the process, because it unloads assemblies. what: why; "":
 * it could not. 0; errors of jit_collectible.
 */
static int trace_check_rundown(const struct trace *t, uint64_t until_ns, char *what, size_t cap,
			       struct port_error *err)
{
	const struct rundown_listener listener = {.method = no_method};
	const struct port *port = &t->target.port;
	struct rundown *rundown = NULL;

	*what = 0;
	*err = (struct port_error){.code = -ENOMEM, .what = "its assemblies cannot be listed"};
	int r = rundown_new(port->opener, port->pid, &listener, &rundown);

	if (!r)
		r = jit_collectible(rundown, port->pid, until_ns, what, cap, err);
	rundown_free(rundown);
	/* It may have no port of its own, or one that we cannot see. */
	if (r && (port->path || port->server)) {
		snprintf(what, cap, "it may unload assemblies");
		return 0;
	}
	return r;
}

/* Why the memory of the process cannot be read, to end a sentence. Returns the remedy. */
static const char *trace_explain_memory(pid_t pid, int error, const struct parse_error *err,
					char *why)
{
	struct access_denial denial;
	char text[ACCESS_TEXT_BYTES];

	snprintf(why, TRACE_WHY_BYTES, "%s", err->what ? err->what : strerror(-error));
	if ((error != -EPERM && error != -EACCES) || access_probe(pid, &denial))
		return "";
	access_text(&denial, text, sizeof(text));
	snprintf(why, TRACE_WHY_BYTES, "its memory cannot be read, because %s", text);
	return "give profcpu CAP_SYS_PTRACE, or ";
}

/*
 * Chooses who names the methods: we, from the memory of the process; or else the runtime, with
 * these keywords; or nobody. 0; errors of jit_collectible.
 */
static int trace_choose_names(struct trace *t, uint64_t *ret_keywords, struct port_error *err)
{
	const struct trace_options *o = t->options;
	const struct port *port = &t->target.port;
	uint64_t until_ns = clock_monotonic_ns() + PORT_TARGET_LIMIT_NS;
	char what[JIT_COLLECTIBLE_BYTES], why[TRACE_WHY_BYTES];
	struct parse_error unread = {0};

	*ret_keywords = o->rundown == TRACE_RUNDOWN_OFF ? 0 : o->rundown_keywords;
	if (o->rundown != TRACE_RUNDOWN_AUTO || trace_is_before_start(t, until_ns))
		return 0;
	int r = trace_names_new(port->opener, port->pid, until_ns, &t->names, &unread);

	if (!r) {
		*ret_keywords = 0;
		return 0;
	}
	const char *remedy = trace_explain_memory(port->pid, r, &unread, why);

	r = trace_check_rundown(t, until_ns, what, sizeof(what), err);
	if (r || !*what)
		return r;
	*ret_keywords = 0;
	log_warn("the trace has no names of methods: %s; and listing them could crash the process, "
		 "because %s; %suse --rundown on",
		 why, what, remedy);
	return 0;
}

/* Names what the trace has so far. It is not named later if the process has ended. */
static void trace_name(struct trace *t, bool last)
{
	if (t->names && !session_damage(t->session).code && (last || trace_names_is_due(t->names)))
		(void)trace_names_step(t->names, clock_monotonic_ns() + TRACE_NAMES_NS, last);
}

static int trace_begin(struct trace *t)
{
	const struct trace_options *o = t->options;
	const struct nettrace_listener listener = {
		.trace = trace_take_head, .event = trace_take_event, .ctx = t};
	const struct session_copy copy = {.take = trace_take_bytes, .ctx = t};
	struct session_request request = {.providers = o->providers,
					  .nproviders = o->nproviders,
					  .stacks = true,
					  .buffer_mb = o->buffer_mb,
					  .waits = o->waits};
	const char *path = o->out ? o->out : trace_default_path(t);
	struct port_error err = {0};
	int r = trace_choose_names(t, &request.rundown, &err);

	if (r) {
		port_report(&t->target.port, &err);
		return r;
	}
	r = session_begin(&t->target.port, &request, &listener, &copy,
			  clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &t->session, &err);
	if (r) {
		port_report(&t->target.port, &err);
		return r;
	}
	/* After all that may fail, because it replaces an old file. */
	r = trace_file_create(&t->file, path);
	if (r)
		log_error("cannot create %s: %s%s", path, strerror(-r), remedy_for(r));
	if (!r &&
	    (r = port_target_resume(&t->target, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &err)))
		port_report(&t->target.port, &err);
	if (!r && (r = record_watch_fd(&t->watch, session_fd(t->session))))
		log_error("cannot wait for events: %s", strerror(-r));
	if (r) {
		t->file.error = t->file.error ? t->file.error : r;
		(void)session_stop(t->session, clock_monotonic_ns() + TRACE_GIVE_UP_NS, &err);
		return r;
	}
	t->begin_ns = clock_monotonic_ns();
	t->rundown = request.rundown;
	return 0;
}

static void trace_show(struct trace *t, const char *what)
{
	struct nettrace_stats stats = session_stats(t->session);

	progress_show(&t->progress, "%s %.0f s, %llu events, %.1f MB", what,
		      (double)(clock_monotonic_ns() - t->begin_ns) / NS_PER_S,
		      (unsigned long long)stats.events, (double)stats.bytes / 1e6);
}

/* Waits for events at most until a time, and takes them. 0; errors of session_read; -errno. */
static int trace_step(struct trace *t, uint64_t until_ns, int *ret_signal)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t left_ms = until_ns > now ? (until_ns - now) / NS_PER_MS + 1 : 0;
	struct port_error err = {0};
	int r = record_watch_wait(&t->watch, left_ms < TRACE_WAIT_MS ? (int)left_ms : TRACE_WAIT_MS,
				  ret_signal);

	if (r) {
		log_error("cannot wait for events: %s", strerror(-r));
		return r;
	}
	port_target_resume_others(&t->target);
	r = session_read(t->session, TRACE_READ_BYTES, &err);
	if (r && r != -ENODATA)
		log_error("the events cannot be read: %s", err.what);
	if (!r)
		trace_name(t, false);
	return r;
}

/* Whether an event should end the trace, but events can no longer be read. */
static bool trace_cannot_stop(const struct trace *t)
{
	struct parse_error damage = session_damage(t->session);

	if (!damage.code || !t->options->stop->provider)
		return false;
	log_error("the stopping event cannot be recognized any longer: %s", damage.what);
	return true;
}

static enum trace_end trace_until_end(struct trace *t)
{
	uint64_t end_ns =
		t->options->duration_ns ? t->begin_ns + t->options->duration_ns : UINT64_MAX;

	for (;;) {
		int r = trace_step(t, end_ns, &t->end_signal);

		if (r == -ENODATA)
			return TRACE_END_PROCESS;
		if (r || t->file.error || trace_cannot_stop(t))
			return TRACE_END_ERROR;
		if (t->end_signal)
			return TRACE_END_SIGNAL;
		if (t->stopped_by_event)
			return TRACE_END_EVENT;
		if (clock_monotonic_ns() >= end_ns)
			return TRACE_END_TIME;
		trace_show(t, "recording events:");
	}
}

/* Whether the stream ended as a stopped session does. A list of methods can crash the process. */
static int trace_check_stopped(const struct trace *t)
{
	if (session_is_whole(t->session) || session_damage(t->session).code)
		return 0;
	log_error("the process ended before it had sent its last events%s",
		  t->rundown ? ": the list of its methods may have crashed it, and the trace lacks "
			       "their names; use --rundown off"
			     : "");
	return -ESRCH;
}

/* Stops the session and takes the rest. A signal meanwhile ends that. Returns 0 or -errno. */
static int trace_stop(struct trace *t)
{
	uint64_t until_ns = clock_monotonic_ns() + TRACE_STOP_NS;
	uint64_t received = session_received(t->session);
	struct port_error err = {0};
	int r = session_request_stop(t->session, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &err);
	int signal = 0;

	/* The process may have ended meanwhile. Its last events are in the socket. */
	while (!signal && clock_monotonic_ns() < until_ns) {
		int step = trace_step(t, until_ns, &signal);

		t->end_signal = t->end_signal ? t->end_signal : signal;
		if (step == -ENODATA)
			return trace_check_stopped(t);
		if (step)
			return step;
		if (r) {
			port_report(&t->target.port, &err);
			return r;
		}
		if (session_received(t->session) - received > TRACE_STOP_BYTES)
			break;
		trace_show(t, "the runtime sends its last events:");
	}
	log_error("the runtime did not send its last events%s: the trace may lack names",
		  signal ? "" : " in time");
	return -ETIMEDOUT;
}

/* Whether a process that ended by itself ended its trace. A killed one could not. */
static int trace_check_ended(const struct trace *t)
{
	if (session_is_whole(t->session) || session_damage(t->session).code)
		return 0;
	log_error("the events ended suddenly: the process was killed, or closed the connection; "
		  "its last events are missing");
	return -ESRCH;
}

static int trace_report_file(const struct trace *t, int error)
{
	log_error("cannot write %s: %s%s", t->file.name, strerror(-error),
		  strcmp(t->file.name, "-") ? remedy_for(error) : remedy_for_stdout(error));
	return error;
}

/* Reports the names that are missing or may be wrong. Code may end before it can be read. */
static void trace_report_names(const struct trace *t)
{
	struct trace_names_stats stats = trace_names_stats(t->names);

	if (stats.nameless > stats.addresses / TRACE_NAMELESS_PART)
		log_warn("%zu of %zu addresses in stacks have no name%s; --rundown on makes the "
			 "runtime list its methods",
			 stats.nameless, stats.addresses,
			 t->end == TRACE_END_PROCESS
				 ? ", because the process ended before they could be looked up"
				 : "");
	if (stats.left_out)
		log_warn("%zu addresses or methods got no names, because the trace has too many",
			 stats.left_out);
	if (stats.stacks_left_out)
		log_warn("%llu stacks may lack names, because different ones came too fast; record "
			 "fewer events",
			 (unsigned long long)stats.stacks_left_out);
	if (stats.replaced && !t->options->target.quiet)
		log_note("%zu methods were freed, and others took their places: samples of the "
			 "former have the names of the latter",
			 stats.replaced);
}

/* Reports what the trace lacks. */
static void trace_report(const struct trace *t, bool written)
{
	struct nettrace_stats stats = session_stats(t->session);
	struct parse_error damage = session_damage(t->session);
	double s = (double)(clock_monotonic_ns() - t->begin_ns) / NS_PER_S;

	if (damage.code)
		log_error(
			"profcpu cannot read the runtime's events, and kept them as they came: %s, "
			"at byte %llu; other tools may fail, too",
			damage.what, (unsigned long long)damage.offset);
	if (stats.lost)
		log_warn("the runtime dropped %llu events; record fewer events, or with a larger "
			 "--buffersize",
			 (unsigned long long)stats.lost);
	if (t->named)
		trace_report_names(t);
	if (t->options->stop->field_missing)
		log_warn("--stopping-event-payload-filter names a field that the event lacks");
	if (t->options->target.quiet)
		return;
	if (t->end == TRACE_END_PROCESS)
		log_note("the process ended");
	if (!written)
		return;
	char named[96] = "";

	if (t->named) {
		struct trace_names_stats names = trace_names_stats(t->names);

		snprintf(named, sizeof(named), "; named %zu methods, which took %.0f ms",
			 names.written, (double)names.step_ns / NS_PER_MS);
	}
	log_note("wrote %s: %llu event%s, %.1f MB, in %.1f s%s", t->file.name,
		 (unsigned long long)stats.events, stats.events == 1 ? "" : "s",
		 (double)t->file.bytes / 1e6, s, named);
}

/* Adds the names of methods to the file. 0; -errno of the file. */
static int trace_write_names(struct trace *t, uint64_t whole)
{
	struct outbuf out = outbuf_to(-1);
	int r = 0;

	if (!t->names || !t->head.version || session_damage(t->session).code)
		return 0;
	trace_show(t, "naming methods:");
	trace_name(t, true);
	r = trace_names_write(t->names, &t->head, whole, session_last_kind_id(t->session), &out);
	if (r) {
		log_error("the trace has no names of methods: %s",
			  r == -EBADMSG ? "its format is too old" : strerror(-r));
		r = 0;
	} else {
		r = trace_file_mend(&t->file, whole, t->head.version, &out);
		t->named = !r;
	}
	outbuf_close(&out);
	return r;
}

static int trace_finish(struct trace *t)
{
	bool stop = t->end != TRACE_END_PROCESS;
	int r = stop ? trace_stop(t) : trace_check_ended(t);
	int failed = t->file.error, mended = 0;
	uint64_t whole = failed ? t->whole : session_whole_bytes(t->session);

	if (!failed)
		mended = trace_write_names(t, whole);
	progress_close(&t->progress);
	if (failed || mended ||
	    (!session_is_whole(t->session) && !session_damage(t->session).code && !t->named)) {
		int cut = trace_file_mend(&t->file, whole, t->head.version, NULL);

		mended = mended ? mended : cut;
	}
	int closed = trace_file_close(&t->file);

	failed = failed ? failed : mended ? mended : closed;
	if (failed)
		trace_report_file(t, failed);
	if (failed && t->names && !t->named)
		log_warn("%s: has no names of methods, because they could not be written",
			 t->file.name);
	trace_report(t, !failed && t->file.bytes);
	r = r ? r : session_damage(t->session).code;
	return r ? r : failed;
}

static int trace_run_begun(struct trace *t)
{
	int r = port_target_reach(&t->target, &t->options->target, &t->watch, &t->end_signal);

	/* A failed write must not end profcpu before it has stopped the session. */
	record_watch_survive_writes();
	if (!r)
		r = trace_begin(t);
	if (r) {
		(void)trace_file_close(&t->file);
		return port_target_give_up(&t->target, r, &t->end_signal);
	}
	t->end = trace_until_end(t);
	int status = trace_finish(t) ? EXIT_FAILED : EXIT_DONE;

	/* A connection that has ended would wake each later wait. */
	session_free(t->session);
	t->session = NULL;
	return status;
}

static int trace_end_command(struct trace *t, int status)
{
	const struct port_target_end end = {.signal = t->end_signal,
					    .process = t->end == TRACE_END_PROCESS};

	return port_target_end_command(&t->target, &t->options->target, &t->watch, &end, status);
}

int trace_run(const struct trace_options *options)
{
	struct trace *t = calloc(1, sizeof(*t));
	int status = EXIT_FAILED;

	if (!t) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	t->options = options;
	t->file = TRACE_FILE_NONE;
	t->progress = progress_to(STDERR_FILENO, options->target.quiet);
	int r = record_watch_new(&t->watch);

	if (r)
		log_error("cannot wait for signals: %s", strerror(-r));
	else
		status = trace_end_command(t, trace_run_begun(t));
	progress_close(&t->progress);
	session_free(t->session);
	trace_names_free(t->names);
	port_target_release(&t->target);
	record_watch_free(&t->watch);
	free(t);
	return status;
}
