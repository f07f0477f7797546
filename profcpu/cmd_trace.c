#include "base/clock.h"
#include "base/log.h"
#include "profcpu/command.h"
#include "profcpu/port_arguments.h"
#include "profcpu/trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TRACE_BUFFER_MB 256
#define TRACE_BUFFER_MAX_MB 65536

struct trace_arguments {
	struct trace_options options;
	struct provider_list providers;
	struct stop_event stop;
	const char *profiles, *runtime_events, *runtime_level;
	struct port_arguments port;
};

enum trace_option {
	TRACE_PROFILE = 256,
	TRACE_PROVIDERS,
	TRACE_CLREVENTS,
	TRACE_CLREVENTLEVEL,
	TRACE_BUFFERSIZE,
	TRACE_NO_DROP,
	TRACE_RUNDOWN,
	TRACE_STOP_PROVIDER,
	TRACE_STOP_EVENT,
	TRACE_STOP_FIELDS,
};

static const struct option trace_longopts[] = {
	PORT_ARGUMENTS_LONG,
	{"profile", required_argument, NULL, TRACE_PROFILE},
	{"providers", required_argument, NULL, TRACE_PROVIDERS},
	{"clrevents", required_argument, NULL, TRACE_CLREVENTS},
	{"clreventlevel", required_argument, NULL, TRACE_CLREVENTLEVEL},
	{"buffersize", required_argument, NULL, TRACE_BUFFERSIZE},
	{"no-drop", no_argument, NULL, TRACE_NO_DROP},
	{"rundown", required_argument, NULL, TRACE_RUNDOWN},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"stopping-event-provider-name", required_argument, NULL, TRACE_STOP_PROVIDER},
	{"stopping-event-event-name", required_argument, NULL, TRACE_STOP_EVENT},
	{"stopping-event-payload-filter", required_argument, NULL, TRACE_STOP_FIELDS},
	{NULL, 0, NULL, 0},
};

/* "auto", "on", "off" (dotnet-trace: "true", "false"), or keywords. */
static int trace_parse_rundown(struct trace_options *o)
{
	char *end;

	if (!strcmp(optarg, "auto"))
		o->rundown = TRACE_RUNDOWN_AUTO;
	else if (!strcmp(optarg, "off") || !strcasecmp(optarg, "false"))
		o->rundown = TRACE_RUNDOWN_OFF;
	else
		o->rundown = TRACE_RUNDOWN_ON;
	if (o->rundown != TRACE_RUNDOWN_ON || !strcmp(optarg, "on") || !strcasecmp(optarg, "true"))
		return 0;
	errno = 0;
	o->rundown_keywords = strtoull(optarg, &end, 16);
	if (optarg[0] == '0' && (optarg[1] | 0x20) == 'x' && optarg[2] && !*end && !errno)
		return 0;
	log_error("--rundown: '%s' is none of auto, on, off and a number such as 0x138", optarg);
	return -EINVAL;
}

static int trace_parse_providers(struct trace_arguments *a)
{
	int r = provider_list_add(&a->providers, optarg);

	if (r)
		log_error("--providers: %s", a->providers.why);
	return r;
}

static int trace_parse_fields(struct trace_arguments *a)
{
	int r = stop_event_fields(&a->stop, optarg);

	if (r == -ENOMEM)
		log_error("out of memory");
	else if (r)
		log_error("--stopping-event-payload-filter: '%s' is not FIELD:VALUE,FIELD:VALUE",
			  optarg);
	return r;
}

static int trace_parse_one(struct trace_arguments *a, int c)
{
	struct trace_options *o = &a->options;
	uint64_t value;
	int r = 0;

	switch (c) {
	case 'p':
	case PORT_ARGUMENTS_SOCKET:
		return port_arguments_take(&a->port, c);
	case 'd':
		return options_duration("-d", optarg, &o->duration_ns);
	case 'o':
		o->out = optarg;
		return 0;
	case 'q':
		a->port.options.quiet = true;
		return 0;
	case TRACE_PROFILE:
		a->profiles = optarg;
		return 0;
	case TRACE_PROVIDERS:
		return trace_parse_providers(a);
	case TRACE_CLREVENTS:
		a->runtime_events = optarg;
		return 0;
	case TRACE_CLREVENTLEVEL:
		a->runtime_level = optarg;
		return 0;
	case TRACE_BUFFERSIZE:
		r = options_u64("--buffersize", optarg, 1, TRACE_BUFFER_MAX_MB, &value);
		o->buffer_mb = r ? 0 : (uint32_t)value;
		return r;
	case TRACE_NO_DROP:
		o->waits = true;
		return 0;
	case TRACE_RUNDOWN:
		return trace_parse_rundown(o);
	case TRACE_STOP_PROVIDER:
		a->stop.provider = optarg;
		return 0;
	case TRACE_STOP_EVENT:
		a->stop.event = optarg;
		return 0;
	case TRACE_STOP_FIELDS:
		return trace_parse_fields(a);
	default: /* options_next logged an error */
		return -EINVAL;
	}
}

static int trace_add_profiles(struct trace_arguments *a)
{
	char *names = strdup(a->profiles), *rest = names;
	int r = names ? 0 : -ENOMEM;

	for (char *name; !r && (name = strsep(&rest, ","));)
		r = provider_list_add_profile(&a->providers, name);
	free(names);
	if (r == -EINVAL)
		log_error("--profile: %s", a->providers.why);
	else if (r)
		log_error("out of memory");
	return r;
}

/* The providers of all options. Without any, those that dotnet-trace takes then. */
static int trace_choose_providers(struct trace_arguments *a)
{
	bool none = !a->profiles && !a->providers.v.len && !a->runtime_events;
	int r = 0;

	if (none)
		a->profiles = "dotnet-common,dotnet-sampled-thread-time";
	if (a->profiles)
		r = trace_add_profiles(a);
	if (r || !a->runtime_events)
		return r;
	if (provider_list_has(&a->providers, PROVIDER_RUNTIME))
		log_warn("--clrevents is not used, because --providers or --profile name the "
			 "runtime's events");
	r = provider_list_add_runtime(&a->providers, a->runtime_events, a->runtime_level);
	if (r)
		log_error("--clrevents: %s", a->providers.why);
	return r;
}

static int trace_check(const struct trace_arguments *a)
{
	const struct trace_options *o = &a->options;

	if (port_arguments_check(&a->port))
		return -EINVAL;
	if (a->port.options.argv && o->out && !strcmp(o->out, "-"))
		log_error("-o - does not go with a command, which writes to standard output, too; "
			  "write to a file");
	else if ((a->stop.event || a->stop.fields.len) && !a->stop.provider)
		log_error("a stopping event needs --stopping-event-provider-name");
	else if (a->stop.fields.len && !a->stop.event)
		log_error("--stopping-event-payload-filter needs --stopping-event-event-name");
	else if (a->runtime_level && !a->runtime_events)
		log_error("--clreventlevel is the level of --clrevents; add --clrevents");
	else
		return 0;
	return -EINVAL;
}

static int trace_parse(int argc, char **argv, struct trace_arguments *a)
{
	optind = 0;
	for (int c;
	     (c = options_next(&command_trace, argc, argv, "+:p:d:o:q", trace_longopts)) != -1;)
		if (trace_parse_one(a, c))
			return -EINVAL;
	if (options_command(&command_trace, argc, argv, &a->port.options.argv))
		return -EINVAL;
	if (trace_check(a))
		return -EINVAL;
	return trace_choose_providers(a);
}

static int trace_main(int argc, char **argv)
{
	struct trace_arguments a = {.options = {.rundown_keywords = TRACE_RUNDOWN_KEYWORDS,
						.buffer_mb = TRACE_BUFFER_MB}};
	int status = trace_parse(argc, argv, &a) ? EXIT_USAGE : EXIT_DONE;

	a.options.providers = a.providers.v.v;
	a.options.nproviders = a.providers.v.len;
	a.options.stop = &a.stop;
	if (status == EXIT_DONE)
		status = port_arguments_default(&a.port);
	a.options.target = a.port.options;
	if (status == EXIT_DONE)
		status = trace_run(&a.options);
	provider_list_free(&a.providers);
	stop_event_free(&a.stop);
	port_arguments_free(&a.port);
	return status;
}

const struct command command_trace = {
	.name = "trace",
	.summary = "record events of a .NET runtime in a .nettrace file",
	.usage =
		"usage: profcpu trace [OPTION...] [-p PID | --diagnostic-port PATH | -- CMD "
		"ARG...]\n"
		"\n"
		"Records events of a .NET runtime in a file that profcpu, dotnet-trace, PerfView\n"
		"and Visual Studio read. Ctrl-C ends the recording; the file is whole then.\n"
		"\n"
		"which runtime:\n"
		"  -p, --pid PID           that of a process; default: the only .NET process in\n"
		"                          sight\n"
		"  -- CMD ARG...           start a command, and record from the start of its\n"
		"                          runtime to its end\n"
		"      --diagnostic-port PATH[,listen|,connect]\n"
		"                          listen, the default: create a socket and wait until a\n"
		"                          runtime connects that starts with\n"
		"                          DOTNET_DiagnosticPorts=PATH; connect: a runtime\n"
		"                          listens on this socket\n"
		"\n"
		"which events:\n"
		"      --providers LIST    NAME[:KEYWORDS[:LEVEL[:KEY=VALUE;...]]], separated by\n"
		"                          commas; KEYWORDS are hexadecimal (0), LEVEL is 0 to 5\n"
		"                          or a word (informational)\n"
		"      --profile NAME,...  dotnet-common, dotnet-sampled-thread-time, gc-verbose,\n"
		"                          gc-collect, database. Without --profile, --providers\n"
		"                          and --clrevents: the first two\n"
		"      --clrevents GROUP+GROUP...\n"
		"                          groups of the runtime's events: gc, exception,\n"
		"                          contention, jit, loader, threading, ...\n"
		"      --clreventlevel LEVEL\n"
		"                          their level (informational)\n"
		"      --buffersize MB     limit of the runtime's buffer (256)\n"
		"      --no-drop           threads of the process wait while that buffer is full,\n"
		"                          and lose no events; before .NET 11 they drop events\n"
		"      --rundown WHICH     how tools can name methods. auto, the default: profcpu\n"
		"                          reads the names from the memory of the process and\n"
		"                          adds them at the end. on, or keywords such as 0x138:\n"
		"                          the runtime lists all its methods, which could crash a\n"
		"                          process that unloads assemblies. off: no names\n"
		"\n"
		"when to end:\n"
		"  -d, --duration SECONDS  how long: 10, 500ms, 2m, 24h, or 00:00:00:10 (no "
		"limit)\n"
		"      --stopping-event-provider-name NAME\n"
		"      --stopping-event-event-name NAME\n"
		"      --stopping-event-payload-filter FIELD:VALUE,...\n"
		"                          end after this event; NAME as `profcpu events` prints\n"
		"                          it, or its number\n"
		"\n"
		"  -o, --output FILE       write to FILE; - is standard output\n"
		"                          (PROGRAM_YYYYMMDD_HHMMSS.nettrace)\n"
		"  -q, --quiet             print no progress and no notes\n"
		"\n"
		"exit status:\n"
		"  0         done\n"
		"  1         failed, or events are missing at the end\n"
		"  2         wrong usage, or a process must be named\n"
		"  126, 127  CMD cannot be executed, or was not found\n"
		"  STATUS    that of CMD, if it ended by itself\n",
	.run = trace_main,
};
