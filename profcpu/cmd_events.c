#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/remedy.h"
#include "dotnet/eventpipe/event_clock.h"
#include "dotnet/eventpipe/event_payload.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_BLOCK_BYTES ((size_t)256 << 10)

struct events_options {
	const char *input, *provider, *event;
	bool no_stacks, raw;
};

struct events_run {
	const struct events_options *options;
	struct outbuf out;
	struct nettrace_trace trace;
	struct event_clock clock;
	uint64_t shown, other; /* events that were printed, and that were not chosen */
	uint64_t raw;          /* printed ones whose fields do not describe the payload */
};

static int events_take_trace(void *ctx, const struct nettrace_trace *t)
{
	struct events_run *e = ctx;

	e->trace = *t;
	e->clock = event_clock_of(t);
	return 0;
}

static void events_put_time(const struct events_run *e, struct json_writer *w, uint64_t time_ns)
{
	char text[64];
	struct tm tm;
	uint64_t ns;

	if (!event_clock_utc(&e->clock, time_ns, &ns))
		return;
	time_t s = (time_t)(ns / NS_PER_S);

	if (!gmtime_r(&s, &tm))
		return;
	size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);

	snprintf(text + len, sizeof(text) - len, ".%06uZ", (unsigned)(ns % NS_PER_S / 1000));
	json_put_text(w, "time", text);
}

static bool events_has_guid(const unsigned char *guid)
{
	static const unsigned char none[16];

	return memcmp(guid, none, sizeof(none)) != 0;
}

static void events_put_hex(struct json_writer *w, const char *key, uint64_t x)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)x);
	json_put_text(w, key, text);
}

static void events_put_labels(struct json_writer *w, const struct nettrace_event *event)
{
	struct reader list = reader_of(event->labels, event->labels_bytes);
	struct nettrace_label label;
	struct json_writer labels, one;
	bool begun = false;

	while (nettrace_label_next(&list, &label)) {
		if (label.kind < NETTRACE_LABEL_TRACE_ID || label.kind > NETTRACE_LABEL_NUMBER)
			continue; /* printed elsewhere */
		if (!begun)
			labels = json_put_array(w, "labels");
		begun = true;
		one = json_put_object(&labels, NULL);
		if (label.kind == NETTRACE_LABEL_TRACE_ID) {
			json_put_hex(&one, "trace_id", label.bytes, 16);
		} else if (label.kind == NETTRACE_LABEL_SPAN_ID) {
			json_put_hex(&one, "span_id", &label.number, sizeof(label.number));
		} else {
			json_put_chars(&one, "key", label.key, label.key_len);
			if (label.kind == NETTRACE_LABEL_TEXT)
				json_put_chars(&one, "value", label.text, label.text_len);
			else
				json_put_i64(&one, "value", (int64_t)label.number);
		}
		json_put_end(&one);
	}
	if (begun)
		json_put_end(&labels);
}

static void events_put_stack(const struct events_run *e, struct json_writer *w,
			     const struct nettrace_event *event)
{
	size_t bytes = e->trace.pointer_bytes;
	struct json_writer stack = json_put_array(w, "stack");

	for (size_t at = 0; at + bytes <= event->stack_bytes; at += bytes) {
		uint64_t address = 0;

		memcpy(&address, event->stack + at, bytes);
		events_put_hex(&stack, NULL, address);
	}
	json_put_end(&stack);
}

static void events_put(struct events_run *e, const struct nettrace_event *event)
{
	const struct nettrace_kind *kind = event->kind;
	struct json_writer w = json_put_document(&e->out, 0);

	json_put_u64(&w, "time_ns", event->time_ns);
	events_put_time(e, &w, event->time_ns);
	json_put_text(&w, "provider", kind->provider);
	json_put_u64(&w, "id", kind->event_id);
	json_put_text(&w, "name", kind->name);
	json_put_u64(&w, "version", kind->version);
	json_put_u64(&w, "level", kind->level);
	json_put_u64(&w, "opcode", kind->opcode);
	events_put_hex(&w, "keywords", kind->keywords);
	json_put_u64(&w, "pid", event->pid);
	json_put_u64(&w, "thread", event->thread);
	if (event->capture_thread != event->thread)
		json_put_u64(&w, "capture_thread", event->capture_thread);
	if (event->blob.processor != UINT32_MAX)
		json_put_u64(&w, "processor", event->blob.processor);
	if (events_has_guid(event->blob.activity))
		event_put_guid(&w, "activity", event->blob.activity);
	if (events_has_guid(event->blob.related_activity))
		event_put_guid(&w, "related_activity", event->blob.related_activity);
	if (event->labels)
		events_put_labels(&w, event);
	bool whole = event_payload_put(event, e->trace.pointer_bytes, &w, "payload");

	if (!whole || e->options->raw)
		json_put_hex(&w, "raw", event->blob.payload, event->blob.payload_len);
	e->raw += !whole;
	if (event->stack && !e->options->no_stacks)
		events_put_stack(e, &w, event);
	json_put_end(&w);
}

/* Whether the option that chooses events names this one, by its name or its number. */
static bool events_is_wanted(const struct events_options *o, const struct nettrace_kind *kind)
{
	return (!o->provider || !strcmp(o->provider, kind->provider)) &&
	       (!o->event || nettrace_kind_is(kind, o->event));
}

static int events_take(void *ctx, const struct nettrace_event *event)
{
	struct events_run *e = ctx;

	if (!events_is_wanted(e->options, event->kind)) {
		e->other++;
		return 0;
	}
	e->shown++;
	events_put(e, event);
	return e->out.error;
}

/* Reports what the lines do not show. */
static void events_report(const struct events_run *e, const struct nettrace *n, const char *name)
{
	struct nettrace_stats stats = nettrace_stats(n);

	if (!nettrace_ended(n))
		log_warn("%s was cut off: its last events are missing", name);
	if (stats.lost)
		log_warn("%s: the runtime dropped %llu events; record fewer events, or with a "
			 "larger buffer",
			 name, (unsigned long long)stats.lost);
	if (stats.unknown)
		log_warn("%s: %llu events or blocks are left out, because nothing describes them",
			 name, (unsigned long long)stats.unknown);
	if (e->raw)
		log_note("the fields of %llu events do not describe their whole payload, so its "
			 "bytes are in \"raw\"",
			 (unsigned long long)e->raw);
	if (!e->shown && e->other)
		log_warn("%s has %llu events, but none that was chosen", name,
			 (unsigned long long)e->other);
}

static int events_read(struct events_run *e, int fd, const char *name)
{
	const struct nettrace_listener listener = {
		.trace = events_take_trace, .event = events_take, .ctx = e};
	AUTO_FREE char *block = malloc(EVENTS_BLOCK_BYTES);
	struct parse_error err = {0};
	struct nettrace *n = NULL;
	int r = block ? nettrace_new(&listener, &n) : -ENOMEM;
	ssize_t got = 0;

	while (!r && !nettrace_ended(n)) {
		got = read(fd, block, EVENTS_BLOCK_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		r = nettrace_feed(n, block, (size_t)got, &err);
		/* A reader of our output gets events as they come. */
		if (!r)
			r = outbuf_flush(&e->out);
	}
	if (!r && got < 0)
		r = -errno;
	int written = outbuf_close(&e->out);

	if (written)
		log_error("cannot write to stdout: %s%s", strerror(-written),
			  remedy_for_stdout(written));
	else if (r == -ENOMEM)
		log_error("too little memory to read %s", name);
	else if (r && err.what)
		log_error("cannot read %s: %s, at byte %llu%s", name, err.what,
			  (unsigned long long)err.offset,
			  e->shown ? "; the events before it are printed"
				   : "; give a .nettrace file");
	else if (r)
		log_error("cannot read %s: %s", name, strerror(-r));
	else if (!nettrace_stats(n).bytes)
		log_error("%s is empty: give a .nettrace file", name);
	else
		events_report(e, n, name);
	bool empty = !r && n && !nettrace_stats(n).bytes;

	nettrace_free(n);
	return r || written || empty ? EXIT_FAILED : EXIT_DONE;
}

static int events_parse(int argc, char **argv, struct events_options *o)
{
	enum { EVENTS_PROVIDER = 256, EVENTS_EVENT, EVENTS_NO_STACKS, EVENTS_RAW };
	static const struct option longopts[] = {
		{"provider", required_argument, NULL, EVENTS_PROVIDER},
		{"event", required_argument, NULL, EVENTS_EVENT},
		{"no-stacks", no_argument, NULL, EVENTS_NO_STACKS},
		{"raw", no_argument, NULL, EVENTS_RAW},
		{0},
	};

	optind = 0;
	for (int c; (c = options_next(&command_events, argc, argv, ":", longopts)) != -1;) {
		if (c == EVENTS_PROVIDER)
			o->provider = optarg;
		else if (c == EVENTS_EVENT)
			o->event = optarg;
		else if (c == EVENTS_NO_STACKS)
			o->no_stacks = true;
		else if (c == EVENTS_RAW)
			o->raw = true;
		else
			return -EINVAL;
	}
	return options_one_argument(&command_events, argc, argv, "-", &o->input);
}

static int events_run(int argc, char **argv)
{
	struct events_options options = {0};
	struct events_run run = {.options = &options, .out = outbuf_to(STDOUT_FILENO)};
	AUTO_CLOSE int fd = -1;

	if (events_parse(argc, argv, &options))
		return EXIT_USAGE;
	if (!strcmp(options.input, "-"))
		return events_read(&run, STDIN_FILENO, "standard input");
	fd = open(options.input, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		log_error("cannot open %s: %s", options.input, strerror(errno));
		return EXIT_FAILED;
	}
	return events_read(&run, fd, options.input);
}

const struct command command_events = {
	.name = "events",
	.summary = "print the events of a .nettrace file as JSON lines",
	.usage = "usage: profcpu events [--provider NAME] [--event NAME] [--no-stacks] [--raw]\n"
		 "                      [FILE]\n"
		 "\n"
		 "Prints each event of a trace of .NET (nettrace, as dotnet-trace writes it, and\n"
		 "netperf of .NET Core 2) as one line of JSON, in the order of the file. FILE is\n"
		 "a file, or - for standard input, the default.\n"
		 "\n"
		 "      --provider NAME  only events of this provider\n"
		 "      --event NAME     only events with this name or number\n"
		 "      --no-stacks      leave out the addresses of stacks\n"
		 "      --raw            add the bytes of each payload\n"
		 "\n"
		 "time_ns is the clock CLOCK_MONOTONIC of the recorded machine. Bytes of payloads\n"
		 "are in \"raw\" if nothing describes them whole.\n",
	.run = events_run,
};
