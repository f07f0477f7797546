#include "profcpu/trace/beside.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/remedy.h"
#include "base/replace.h"
#include "base/worker.h"
#include "container/proc.h"
#include "profcpu/port/report.h"
#include "profcpu/trace/names.h"
#include "profcpu/trace/trace_file.h"
#include "recording/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BESIDE_LIMIT_NS (10 * NS_PER_S) /* for a reply */
#define BESIDE_READ_BYTES ((size_t)8 << 20)
#define BESIDE_WAIT_MS 50
#define BESIDE_RETRY_MS 10                  /* until a command has its port */
#define BESIDE_THREADS_NS (200 * NS_PER_MS) /* between two looks at new threads */
#define BESIDE_JOIN_NS (2 * NS_PER_S)
#define BESIDE_PATH_BYTES 64
#define BESIDE_NAMES_NS NS_PER_S /* of one step, and to open the memory */
#define BESIDE_NAMES_RETRY_NS NS_PER_S

struct beside {
	struct beside_options options;
	struct session_provider providers[BESIDE_PROVIDERS_MAX];
	uint32_t ids[BESIDE_PROVIDERS_MAX][BESIDE_IDS_MAX];
	struct record_beside hooks;
	struct worker worker;
	bool started, waits_for_port;
	/* Only for the thread, until it has ended. */
	struct port port;
	struct session *session;
	struct trace_file file;
	struct nettrace_trace head;
	struct trace_names *names; /* NULL: none, as the memory cannot be read */
	uint64_t names_ns;         /* next try to open the memory */
	uint64_t sent_ns, received_ns;
	uint64_t whole;       /* of the file, when its first write failed */
	struct hashmap known; /* threads whose ids are noted */
	int threads_fd;       /* -1: ids are the same in both namespaces */
	uint64_t threads_ns;
	bool other_namespace, abandoned;
	struct port_error error;
	const char *failed; /* what failed, with error.code; NULL: the port's error says it */
	_Atomic uint64_t bytes;
};

static bool must_stop(struct beside *b)
{
	worker_lock(&b->worker);
	bool stopping = b->worker.stopping;

	worker_unlock(&b->worker);
	return stopping;
}

static int take_head(void *ctx, const struct nettrace_trace *head)
{
	struct beside *b = ctx;

	b->received_ns = clock_monotonic_ns();
	b->head = *head;
	return 0;
}

static int take_event(void *ctx, const struct nettrace_event *event)
{
	struct beside *b = ctx;

	if (b->names)
		trace_names_take(b->names, event, b->head.pointer_bytes);
	return 0;
}

/* Opens the memory of the process, for names. A command's runtime may need some time. */
static void begin_names(struct beside *b)
{
	uint64_t now = clock_monotonic_ns();
	struct parse_error unread = {0};

	if (b->names || now < b->names_ns)
		return;
	b->names_ns = now + BESIDE_NAMES_RETRY_NS;
	/* Memory that may not be read is not tried again. */
	if (trace_names_new(b->port.opener, b->port.pid, now + BESIDE_NAMES_NS, &b->names,
			    &unread) &&
	    !b->waits_for_port)
		b->names_ns = UINT64_MAX;
}

/* Names what the trace has so far, so that other tools can read it. */
static void name(struct beside *b, bool last)
{
	if (b->names && !session_damage(b->session).code && (last || trace_names_is_due(b->names)))
		(void)trace_names_step(b->names, clock_monotonic_ns() + BESIDE_NAMES_NS, last);
}

/* Adds the names to the file, or the end that the stream lacks. */
static void end_file(struct beside *b)
{
	uint64_t whole = b->file.error ? b->whole : session_whole_bytes(b->session);
	struct outbuf names = outbuf_to(-1);
	bool named = false;

	if (session_damage(b->session).code)
		return;
	if (b->names && b->head.version && !b->file.error) {
		name(b, true);
		named = !trace_names_write(b->names, &b->head, whole,
					   session_last_kind_id(b->session), &names);
	}
	if (named || !session_is_whole(b->session))
		(void)trace_file_mend(&b->file, whole, b->head.version, named ? &names : NULL);
	outbuf_close(&names);
}

static int take_bytes(void *ctx, const void *data, size_t len)
{
	struct beside *b = ctx;
	bool failed_before = b->file.error;
	int r = trace_file_take(&b->file, data, len);

	b->bytes = b->file.bytes;
	if (b->file.error && !failed_before)
		b->whole = session_whole_bytes(b->session);
	return r;
}

/* Notes the id of a thread in the namespace of its process. */
static int note_thread(void *ctx, pid_t tid)
{
	struct beside *b = ctx;
	struct proc_status status;
	char line[32];
	int n;

	if (hashmap_get(&b->known, (uint32_t)tid) || proc_status(tid, &status) ||
	    hashmap_put(&b->known, (uint32_t)tid, 0))
		return 0;
	n = snprintf(line, sizeof(line), RECORDING_TRACE_THREADS_LINE "\n", tid, status.ns_pid);
	if (file_write_all(b->threads_fd, line, (size_t)n))
		hashmap_remove(&b->known, (uint32_t)tid);
	return 0;
}

/* A runtime knows its threads by the ids that they have in its own PID namespace. */
static void note_threads(struct beside *b)
{
	uint64_t now = clock_monotonic_ns();
	char path[BESIDE_PATH_BYTES];

	if (!b->other_namespace || b->threads_fd < 0 || now < b->threads_ns)
		return;
	b->threads_ns = now + BESIDE_THREADS_NS;
	snprintf(path, sizeof(path), "/proc/%d/task", b->port.pid);
	(void)proc_each_numeric_name(b->port.pid, path, note_thread, b);
}

static void begin_threads(struct beside *b)
{
	struct proc_status status;

	b->other_namespace = !proc_status(b->port.pid, &status) && status.ns_depth > 1;
	if (b->other_namespace && file_create(b->options.dir_fd, RECORDING_TRACE_THREADS, O_WRONLY,
					      REPLACE_PRIVATE, &b->threads_fd))
		b->threads_fd = -1;
	note_threads(b);
}

static int fail(struct beside *b, int error, const char *what)
{
	b->error.code = error;
	b->failed = what;
	return error;
}

/* Whether the port of a command may come later. */
static bool may_come(const struct beside *b, int error)
{
	return b->waits_for_port && (error == -ENOENT || error == -ECONNREFUSED || error == -ESRCH);
}

static int begin_session(struct beside *b)
{
	const struct nettrace_listener listener = {
		.trace = take_head, .event = take_event, .ctx = b};
	const struct session_copy copy = {.take = take_bytes, .ctx = b};
	const struct session_request request = {.providers = b->options.providers,
						.nproviders = b->options.nproviders,
						.stacks = true,
						.buffer_mb = b->options.buffer_mb};
	int r;

	do {
		b->sent_ns = clock_monotonic_ns();
		r = session_begin(&b->port, &request, &listener, &copy,
				  b->sent_ns + BESIDE_LIMIT_NS, &b->session, &b->error);
		if (r && may_come(b, r))
			(void)poll(NULL, 0, BESIDE_RETRY_MS);
	} while (r && may_come(b, r) && !must_stop(b));
	return r;
}

static int begin(struct beside *b)
{
	int r = opener_new(&b->port.opener);

	if (r)
		return fail(b, r, "its files cannot be opened");
	r = trace_file_create_in(&b->file, b->options.dir_fd, RECORDING_TRACE);
	if (r)
		return fail(b, r, "its file cannot be created");
	r = begin_session(b);
	if (r)
		return r;
	begin_threads(b);
	begin_names(b);
	return 0;
}

/* Reads the session to its end. 0; -ETIMEDOUT; errors of session_read. */
static int take_events(struct beside *b)
{
	uint64_t until_ns = UINT64_MAX;
	bool asked = false;
	int r = 0;

	while (!r) {
		struct pollfd p = {.fd = session_fd(b->session), .events = POLLIN};

		if (!session_has_more(b->session))
			(void)poll(&p, 1, BESIDE_WAIT_MS);
		r = session_read(b->session, BESIDE_READ_BYTES, &b->error);
		note_threads(b);
		begin_names(b);
		name(b, false);
		if (r || clock_monotonic_ns() > until_ns)
			break;
		if (asked || !(must_stop(b) || b->file.error))
			continue;
		asked = true;
		until_ns = clock_monotonic_ns() + BESIDE_LIMIT_NS;
		r = session_request_stop(b->session, until_ns, &b->error);
	}
	if (!r)
		return fail(b, -ETIMEDOUT, "it sends no end");
	if (r != -ENODATA)
		return r;
	b->error = (struct port_error){0};
	return session_is_whole(b->session) || session_damage(b->session).code
		       ? 0
		       : fail(b, -ESRCH, "they ended suddenly");
}

static void run(void *ctx)
{
	struct beside *b = ctx;
	int r = begin(b);

	if (!r)
		r = take_events(b);
	if (b->session)
		end_file(b);
	r = trace_file_close(&b->file);
	if (r && !b->error.code)
		fail(b, r, "its file cannot be written");
	cleanup_close(&b->threads_fd);
}

static void begin_beside(void *ctx, pid_t command)
{
	struct beside *b = ctx;

	b->port.pid = b->options.pid ? b->options.pid : command;
	b->waits_for_port = !b->options.pid;
	int r = worker_start(&b->worker, "eventpipe", run, b);

	b->started = !r;
	if (r)
		fail(b, r, "its thread cannot be started");
}

static void end_beside(void *ctx)
{
	struct beside *b = ctx;

	if (!b->started)
		return;
	worker_lock(&b->worker);
	b->worker.stopping = true;
	worker_wake(&b->worker);
	worker_unlock(&b->worker);
}

static bool has_ended(void *ctx)
{
	struct beside *b = ctx;

	if (!b->started)
		return true;
	worker_lock(&b->worker);
	bool ended = b->worker.ended;

	worker_unlock(&b->worker);
	return ended;
}

static void note(void *ctx, struct recording_manifest *m)
{
	struct beside *b = ctx;

	b->abandoned = b->started && !worker_end(&b->worker, BESIDE_JOIN_NS);
	if (b->abandoned || !b->file.bytes)
		return;
	free(m->trace_events);
	m->trace_events = NULL;
	/* Without memory for it, the trace counts as one of the sampler. */
	if (b->options.events &&
	    asprintf(&m->trace_events, "%s%s", b->options.events,
		     session_takes_ids(b->session) ? "" : "," RECORDING_TRACE_UNLISTED) < 0)
		m->trace_events = NULL;
	m->trace_pid = (uint64_t)b->port.pid;
	m->trace_sent_ns = b->sent_ns;
	m->trace_received_ns = b->received_ns;
}

static uint64_t bytes(void *ctx)
{
	const struct beside *b = ctx;

	return b->bytes;
}

/* Copies the providers: a thread that hangs needs them longer than the caller. */
static int copy_providers(struct beside *b)
{
	if (b->options.nproviders > BESIDE_PROVIDERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < b->options.nproviders; i++) {
		struct session_provider *p = &b->providers[i];

		*p = b->options.providers[i];
		if (p->nids > BESIDE_IDS_MAX)
			return -E2BIG;
		if (p->nids)
			memcpy(b->ids[i], p->ids, p->nids * sizeof(*p->ids));
		p->ids = p->nids ? b->ids[i] : NULL;
	}
	b->options.providers = b->providers;
	return 0;
}

int beside_new(const struct beside_options *options, struct beside **ret_beside)
{
	struct beside *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->options = *options;
	int r = copy_providers(b);

	if (r) {
		free(b);
		return r;
	}
	b->file = TRACE_FILE_NONE;
	b->threads_fd = -1;
	b->hooks = (struct record_beside){.begin = begin_beside,
					  .end = end_beside,
					  .has_ended = has_ended,
					  .note = note,
					  .bytes = bytes,
					  .ctx = b};
	*ret_beside = b;
	return 0;
}

const struct record_beside *beside_of_recording(const struct beside *b)
{
	return &b->hooks;
}

int beside_check(struct beside *b)
{
	if (b->abandoned) {
		log_error("the events of process %d: it did not end its session in time; the "
			  "recording has no trace",
			  b->port.pid);
		return -ETIMEDOUT;
	}
	struct parse_error damage =
		b->session ? session_damage(b->session) : (struct parse_error){0};

	if (b->session && session_stats(b->session).lost)
		log_warn("the runtime dropped %llu events",
			 (unsigned long long)session_stats(b->session).lost);
	if (damage.code) {
		log_error("profcpu cannot read the runtime's events, and kept them as they came: "
			  "%s, at byte %llu",
			  damage.what, (unsigned long long)damage.offset);
		return damage.code;
	}
	if (!b->error.code)
		return 0;
	if (b->failed)
		log_error("the events of process %d: %s: %s%s", b->port.pid, b->failed,
			  strerror(-b->error.code), remedy_for(b->error.code));
	else
		port_report(&b->port, &b->error);
	return b->error.code;
}

void beside_free(struct beside *b)
{
	/* A thread that hangs still uses it. */
	if (!b || b->abandoned)
		return;
	session_free(b->session);
	trace_names_free(b->names);
	opener_free(b->port.opener);
	hashmap_free(&b->known);
	cleanup_close(&b->threads_fd);
	free(b);
}
