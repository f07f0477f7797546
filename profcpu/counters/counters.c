#include "profcpu/counters/counters.h"

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/remedy.h"
#include "profcpu/counters/counter_screen.h"
#include "profcpu/counters/counter_session.h"
#include "profcpu/counters/counter_stream.h"
#include "profcpu/port/report.h"
#include "profcpu/port/target.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTERS_BUFFER_MB 10
#define COUNTERS_READ_BYTES ((size_t)4 << 20)
#define COUNTERS_WAIT_MS 100
#define COUNTERS_STOP_NS (10 * NS_PER_S)
#define COUNTERS_SHARED_SINCE 8      /* of .NET: sessions of meters can be shared */
#define COUNTERS_METERS_SINCE 6      /* of .NET: the runtime sends values of meters */
#define COUNTERS_MISSING_INTERVALS 3 /* without a value, after which a note says so */
#define COUNTERS_MISSING_NS (3 * NS_PER_S)
#define COUNTERS_WARNING_BYTES 320

enum counters_end {
	COUNTERS_GO_ON,
	COUNTERS_END_TIME,
	COUNTERS_END_SIGNAL,
	COUNTERS_END_PROCESS,
	COUNTERS_END_ERROR,
};

/* Each is given once. */
enum counters_warning {
	COUNTERS_SERIES_LIMIT,
	COUNTERS_HISTOGRAM_LIMIT,
	COUNTERS_CALLBACK,
	COUNTERS_INTERVAL,
	COUNTERS_MISSING,
	COUNTERS_WARNINGS,
};

struct counters {
	const struct counters_options *options;
	struct record_watch watch;
	struct port_target target;
	struct counter_session request;
	struct session *session;
	struct counter_stream *stream;
	struct counter_output output;
	struct counter_screen screen;
	bool on_screen, screen_closed;
	bool pipe_ends;                         /* SIGPIPE would have ended this program */
	bool reader_left;                       /* nobody reads stdout any longer */
	char head[PORT_TARGET_NAME_BYTES + 96]; /* of the screen */
	unsigned version;                       /* of .NET; 0: unknown */
	uint32_t pointer_bytes;
	uint64_t begin_ns;
	enum counters_end end;
	int end_signal;
	char error[COUNTERS_WARNING_BYTES]; /* "": none; logged when the screen is closed */
	char warnings[COUNTERS_WARNINGS][COUNTERS_WARNING_BYTES];
};

/* On a screen, messages would be lost among the values: they stand above them, and come again at
 * the end. */
static void __attribute__((format(printf, 3, 4)))
counters_warn(struct counters *c, enum counters_warning which, const char *format, ...)
{
	char *text = c->warnings[which];
	va_list args;

	if (*text)
		return;
	va_start(args, format);
	vsnprintf(text, COUNTERS_WARNING_BYTES, format, args);
	va_end(args);
	if (c->on_screen)
		counter_screen_note(&c->screen, text);
	else
		log_warn("%s", text);
}

/* Keeps the first error. */
static void __attribute__((format(printf, 2, 3)))
counters_fail(struct counters *c, const char *format, ...)
{
	va_list args;

	if (*c->error)
		return;
	va_start(args, format);
	vsnprintf(c->error, sizeof(c->error), format, args);
	va_end(args);
}

static int counters_first_line(const char *text)
{
	return (int)strcspn(text, "\r\n");
}

static void counters_take_value(void *ctx, const struct counter_value *v)
{
	struct counters *c = ctx;

	if (!c->on_screen)
		counter_output_value(&c->output, v);
	else if (!c->screen_closed)
		counter_screen_value(&c->screen, v);
}

static void counters_take_ended(void *ctx, const struct counter_value *v)
{
	struct counters *c = ctx;

	if (c->on_screen && !c->screen_closed)
		counter_screen_ended(&c->screen, v);
}

static void counters_take_problem(void *ctx, const struct counter_event *e)
{
	struct counters *c = ctx;
	const char *text = e->text[COUNTER_MESSAGE];

	switch (e->type) {
	case COUNTER_EVENT_SERIES_LIMIT:
		counters_warn(c, COUNTERS_SERIES_LIMIT,
			      "time series beyond %llu are not shown; --maxTimeSeries raises the "
			      "limit, and the process takes more memory",
			      (unsigned long long)c->options->max_series);
		return;
	case COUNTER_EVENT_HISTOGRAM_LIMIT:
		counters_warn(c, COUNTERS_HISTOGRAM_LIMIT,
			      "histograms beyond %llu are not shown; --maxHistograms raises the "
			      "limit, and the process takes more memory",
			      (unsigned long long)c->options->max_histograms);
		return;
	case COUNTER_EVENT_CALLBACK_ERROR:
		counters_warn(c, COUNTERS_CALLBACK,
			      "an instrument's callback in the process failed: %.*s",
			      counters_first_line(text), text);
		return;
	case COUNTER_EVENT_OTHER_SESSION:
		counters_fail(
			c,
			"another tool reads the meters of this process and does not share "
			"them; end it, or take EventCounters: --counters 'EventCounters\\%.80s'",
			c->options->list->v.v[0].provider);
		return;
	case COUNTER_EVENT_OTHER_LIMITS:
		counters_fail(
			c,
			"another tool reads the meters of this process; use its limits: "
			"--refresh-interval %.20s --maxTimeSeries %.20s --maxHistograms %.20s",
			e->text[COUNTER_INTERVAL], e->text[COUNTER_MAX_SERIES],
			e->text[COUNTER_MAX_HISTOGRAMS]);
		return;
	default:
		counters_fail(c, "the runtime cannot send the values of meters: %.*s",
			      counters_first_line(text), text);
	}
}

static int counters_take_head(void *ctx, const struct nettrace_trace *head)
{
	struct counters *c = ctx;

	c->pointer_bytes = head->pointer_bytes;
	c->output.clock = event_clock_of(head);
	return 0;
}

static int counters_take_event(void *ctx, const struct nettrace_event *event)
{
	struct counters *c = ctx;

	/* After an error of the session nothing more counts. */
	return *c->error ? 0
			 : counter_stream_take(c->stream, event, c->pointer_bytes,
					       clock_monotonic_ns());
}

/* Finds out the version, on which the session depends. 0; errors of port_info. */
static int counters_ask_version(struct counters *c, struct port_error *err)
{
	struct ipc_process_info info = {0};
	int r = port_info(&c->target.port, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &info, err);

	if (r)
		return r == -ENOTSUP ? 0 : r; /* .NET Core 3 */
	c->version = ipc_version_major(info.version);
	ipc_process_info_free(&info);
	return 0;
}

static int counters_begin_session(struct counters *c)
{
	const struct counters_options *o = c->options;
	const struct nettrace_listener listener = {
		.trace = counters_take_head, .event = counters_take_event, .ctx = c};
	const struct counter_stream_sink sink = {.value = counters_take_value,
						 .ended = counters_take_ended,
						 .problem = counters_take_problem,
						 .ctx = c};
	struct counter_session_limits limits = {.interval_ms = o->interval_ms,
						.max_series = o->max_series,
						.max_histograms = o->max_histograms};
	struct session_request request = {.buffer_mb = COUNTERS_BUFFER_MB};
	struct port_error err = {0};
	int r = counters_ask_version(c, &err);

	if (r) {
		port_report(&c->target.port, &err);
		return r;
	}
	limits.shared = c->version >= COUNTERS_SHARED_SINCE;
	r = counter_session_make(&c->request, o->list, &limits);
	struct counter_stream_options stream = {.list = o->list,
						.session = c->request.id,
						.client = c->request.client,
						.interval_ms = o->interval_ms,
						.totals = o->format == COUNTER_LINES};

	if (!r)
		r = counter_stream_new(&stream, &sink, &c->stream);
	if (r) {
		log_error("cannot create a session: %s", strerror(-r));
		return r;
	}
	request.providers = c->request.providers.v;
	request.nproviders = c->request.providers.len;
	r = session_begin(&c->target.port, &request, &listener, NULL,
			  clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &c->session, &err);
	if (r)
		port_report(&c->target.port, &err);
	return r;
}

/* Opens the output after all that may fail, because it replaces an old file. */
static int counters_begin_output(struct counters *c)
{
	const struct counters_options *o = c->options;
	const char *out = o->out ? o->out : "-";
	int r;

	c->on_screen = c->options->format == COUNTER_LINES && !strcmp(out, "-") &&
		       !o->target.argv && isatty(STDOUT_FILENO);
	if (c->on_screen) {
		snprintf(c->head, sizeof(c->head),
			 "profcpu counters: %s, process %d, every %g s; Ctrl-C ends",
			 c->target.name, (int)c->target.port.pid,
			 (double)c->options->interval_ms / 1000);
		c->screen = counter_screen_to(STDOUT_FILENO, c->head);
		return 0;
	}
	r = counter_output_begin(&c->output, out, c->target.name);
	if (r)
		log_error("cannot create %s: %s%s", out, strerror(-r), remedy_for(r));
	return r;
}

static int counters_begin(struct counters *c)
{
	struct port_error err = {0};
	int r = counters_begin_session(c);

	if (r)
		return r;
	r = counters_begin_output(c);
	if (!r &&
	    (r = port_target_resume(&c->target, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &err)))
		port_report(&c->target.port, &err);
	if (!r && (r = record_watch_fd(&c->watch, session_fd(c->session))))
		log_error("cannot wait for events: %s", strerror(-r));
	if (r)
		(void)session_stop(c->session, clock_monotonic_ns() + COUNTERS_STOP_NS, &err);
	c->begin_ns = clock_monotonic_ns();
	return r;
}

static int counters_write(struct counters *c, uint64_t now_ns)
{
	counter_stream_tick(c->stream, now_ns);
	return c->on_screen ? counter_screen_draw(&c->screen, now_ns)
			    : counter_output_flush(&c->output);
}

/* A reader of stdout that leaves ends the command, and is no error. */
static void counters_report_write(struct counters *c, int error)
{
	const char *name = c->on_screen ? "-" : c->output.file.name;
	bool is_stdout = !strcmp(name, "-");

	c->reader_left = is_stdout && error == -EPIPE;
	if (c->reader_left)
		return;
	log_error("cannot write %s%s: %s%s", is_stdout ? "to " : "", is_stdout ? "stdout" : name,
		  strerror(-error), is_stdout ? remedy_for_stdout(error) : remedy_for(error));
}

/* Waits for events at most until a time, and takes them. 0; errors of session_read; -errno. */
static int counters_step(struct counters *c, uint64_t until_ns, int *ret_signal)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t left_ms = until_ns > now ? (until_ns - now) / NS_PER_MS + 1 : 0;
	struct port_error err = {0};
	int wait_ms = left_ms < COUNTERS_WAIT_MS ? (int)left_ms : COUNTERS_WAIT_MS;
	int r = record_watch_wait(&c->watch, wait_ms, ret_signal);

	if (r) {
		counters_fail(c, "cannot wait for events: %s", strerror(-r));
		return r;
	}
	port_target_resume_others(&c->target);
	r = session_read(c->session, COUNTERS_READ_BYTES, &err);
	if (r && r != -ENODATA)
		counters_fail(c, "the events cannot be read: %s", err.what);
	return r;
}

/* Puts the counters without a value, as the user named them. */
static void counters_put_missing(const struct counters *c, struct outbuf *out)
{
	const struct counter_list *l = c->options->list;

	for (size_t i = 0; i < l->v.len; i++) {
		const struct counter_group *g = &l->v.v[i];

		if (!g->seen) {
			outbuf_printf(out, "%s%s", out->len ? ", " : "", g->provider);
			continue;
		}
		for (size_t k = 0; k < g->names.len; k++)
			if (!g->names.v[k].seen)
				outbuf_printf(out, "%s%s[%s]", out->len ? ", " : "", g->provider,
					      g->names.v[k].name);
	}
	if (out->len)
		outbuf_char(out, 0);
}

static void counters_note_missing(struct counters *c, uint64_t now_ns)
{
	uint64_t after_ns = COUNTERS_MISSING_INTERVALS * c->options->interval_ms * NS_PER_MS +
			    COUNTERS_MISSING_NS;
	struct outbuf names = outbuf_to(-1);

	if (*c->warnings[COUNTERS_MISSING] || now_ns - c->begin_ns < after_ns)
		return;
	counters_put_missing(c, &names);
	if (names.len && !names.error)
		counters_warn(c, COUNTERS_MISSING, "no value yet of %.240s", names.data);
	outbuf_close(&names);
}

static void counters_note_interval(struct counters *c)
{
	uint64_t other_ms = counter_stream_stats(c->stream).other_interval_ms;

	if (other_ms)
		counters_warn(
			c, COUNTERS_INTERVAL,
			"another tool has the runtime send EventCounters every %g s, so their "
			"values are of this time",
			(double)other_ms / 1000);
}

static enum counters_end counters_until_end(struct counters *c)
{
	uint64_t duration_ns = c->options->duration_ns;
	uint64_t end_ns = duration_ns ? c->begin_ns + duration_ns : UINT64_MAX;

	for (;;) {
		int r = counters_step(c, end_ns, &c->end_signal);
		uint64_t now = clock_monotonic_ns();
		int written = counters_write(c, now);

		if (r == -ENODATA)
			return COUNTERS_END_PROCESS;
		if (r || written || *c->error)
			return COUNTERS_END_ERROR;
		if (c->end_signal)
			return COUNTERS_END_SIGNAL;
		if (now >= end_ns)
			return COUNTERS_END_TIME;
		counters_note_missing(c, now);
		counters_note_interval(c);
	}
}

/* Stops the session and takes the rest. A signal meanwhile ends that. 0; -errno after a message. */
static int counters_stop(struct counters *c)
{
	uint64_t until_ns = clock_monotonic_ns() + COUNTERS_STOP_NS;
	struct port_error err = {0};
	int r = session_request_stop(c->session, until_ns, &err), signal = 0;

	while (!signal && clock_monotonic_ns() < until_ns) {
		int step = counters_step(c, until_ns, &signal);

		c->end_signal = c->end_signal ? c->end_signal : signal;
		if (step)
			return step == -ENODATA ? 0 : step;
		if (r) {
			port_report(&c->target.port, &err);
			return r;
		}
	}
	log_error("the runtime did not end the session%s", signal ? "" : " in time");
	return -ETIMEDOUT;
}

static void counters_report_lost(const struct counters *c)
{
	struct nettrace_stats stats = session_stats(c->session);
	uint64_t damaged = counter_stream_stats(c->stream).damaged;

	if (stats.lost)
		log_warn("the runtime dropped %llu events, so values are missing; name fewer "
			 "counters",
			 (unsigned long long)stats.lost);
	if (damaged)
		log_warn("%llu events could not be read, so values are missing",
			 (unsigned long long)damaged);
	if (c->on_screen && c->screen.hidden)
		log_warn("%llu values had no room in the table; name fewer counters",
			 (unsigned long long)c->screen.hidden);
}

/* Returns -ENODATA, after a message, if no value came at all. */
static int counters_report_missing(const struct counters *c)
{
	struct outbuf names = outbuf_to(-1);
	bool none = !counter_stream_stats(c->stream).values;

	counters_put_missing(c, &names);
	if (names.len && !names.error) {
		const char *why = c->version && c->version < COUNTERS_METERS_SINCE
					  ? "; meters need .NET 6"
					  : "; check the names, which differ between versions of "
					    ".NET, and whether the program has used them yet";

		if (none)
			log_error("no value came of %.400s%s", names.data, why);
		else
			log_warn("no value came of %.400s%s", names.data, why);
	}
	outbuf_close(&names);
	return none ? -ENODATA : 0;
}

/* Closes the screen, so that messages can follow it. 0; -errno. */
static int counters_close_screen(struct counters *c)
{
	if (!c->on_screen)
		return 0;
	counter_stream_tick(c->stream, UINT64_MAX);
	c->screen_closed = true;
	int r = counter_screen_close(&c->screen);

	for (size_t i = 0; i < COUNTERS_WARNINGS; i++)
		if (*c->warnings[i] && i != COUNTERS_MISSING)
			log_warn("%s", c->warnings[i]);
	return r;
}

static int counters_finish(struct counters *c)
{
	int written = counters_close_screen(c);
	int r = c->end == COUNTERS_END_PROCESS ? 0 : counters_stop(c);

	if (!r && !*c->error && !session_is_whole(c->session)) {
		log_error("the process was killed, or closed the connection; its last values are "
			  "missing");
		r = -ESRCH;
	}
	counter_stream_tick(c->stream, UINT64_MAX);
	if (!c->on_screen)
		written = counter_output_end(&c->output);
	if (*c->error)
		log_error("%s", c->error);
	if (written)
		counters_report_write(c, written);
	counters_report_lost(c);
	int missing = r || written || *c->error ? 0 : counters_report_missing(c);

	if (!c->options->target.quiet && c->end == COUNTERS_END_PROCESS && !r)
		log_note("the process ended");
	if (r || (written && !c->reader_left))
		return r ? r : written;
	return *c->error ? -EIO : missing;
}

static int counters_run_begun(struct counters *c)
{
	struct sigaction pipe;
	int r = port_target_reach(&c->target, &c->options->target, &c->watch, &c->end_signal);

	/* A failed write must not end profcpu before it has stopped the session. */
	c->pipe_ends = !sigaction(SIGPIPE, NULL, &pipe) && pipe.sa_handler == SIG_DFL;
	record_watch_survive_writes();
	if (!r)
		r = counters_begin(c);
	if (r) {
		(void)counter_output_end(&c->output);
		return port_target_give_up(&c->target, r, &c->end_signal);
	}
	c->end = counters_until_end(c);
	int status = counters_finish(c) ? EXIT_FAILED : EXIT_DONE;

	/* A connection that has ended would wake each later wait. */
	session_free(c->session);
	c->session = NULL;
	return status;
}

int counters_run(const struct counters_options *options)
{
	struct counters *c = calloc(1, sizeof(*c));
	int status = EXIT_FAILED;

	if (!c) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	c->options = options;
	c->output = counter_output_new(options->format);
	int r = record_watch_new(&c->watch);

	if (r) {
		log_error("cannot wait for signals: %s", strerror(-r));
	} else {
		status = counters_run_begun(c);
		const struct port_target_end end = {.signal = c->end_signal,
						    .process = c->end == COUNTERS_END_PROCESS};

		status = port_target_end_command(&c->target, &options->target, &c->watch, &end,
						 status);
	}
	bool by_pipe = c->reader_left && c->pipe_ends;

	session_free(c->session);
	counter_stream_free(c->stream);
	counter_session_free(&c->request);
	port_target_release(&c->target);
	record_watch_free(&c->watch);
	free(c);
	/* As other commands end, now that the session has ended. */
	if (by_pipe && signal(SIGPIPE, SIG_DFL) != SIG_ERR)
		raise(SIGPIPE);
	return status;
}
