#include "base/clock.h"
#include "base/log.h"
#include "profcpu/command.h"
#include "profcpu/counters/counters.h"
#include "profcpu/port_arguments.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNTERS_DEFAULT "System.Runtime"
/* As dotnet-counters has them. Tools that share a session of meters need equal ones. */
#define COUNTERS_MAX_HISTOGRAMS 10
#define COUNTERS_MAX_SERIES 1000
#define COUNTERS_INTERVAL_MIN_S 0.1 /* of the runtime */
#define COUNTERS_INTERVAL_MAX_S 86400

struct counters_arguments {
	struct counters_options options;
	struct counter_list list;
	struct port_arguments port;
};

enum counters_option {
	COUNTERS_LIST = 256,
	COUNTERS_INTERVAL,
	COUNTERS_SERIES,
	COUNTERS_HISTOGRAMS,
	COUNTERS_FORMAT,
};

static const struct option counters_longopts[] = {
	PORT_ARGUMENTS_LONG,
	{"counters", required_argument, NULL, COUNTERS_LIST},
	{"refresh-interval", required_argument, NULL, COUNTERS_INTERVAL},
	{"maxTimeSeries", required_argument, NULL, COUNTERS_SERIES},
	{"maxHistograms", required_argument, NULL, COUNTERS_HISTOGRAMS},
	{"duration", required_argument, NULL, 'd'},
	{"format", required_argument, NULL, COUNTERS_FORMAT},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{NULL, 0, NULL, 0},
};

static int counters_parse_list(struct counters_arguments *a)
{
	int r = counter_list_add(&a->list, optarg);

	if (r)
		log_error("--counters: %s", a->list.why);
	return r;
}

static int counters_parse_interval(struct counters_options *o)
{
	double s;
	int r = options_decimal("--refresh-interval", "a number of seconds", optarg,
				COUNTERS_INTERVAL_MIN_S, COUNTERS_INTERVAL_MAX_S, &s);

	o->interval_ms = r ? 0 : (uint64_t)lround(s * 1000);
	return r;
}

static int counters_parse_format(struct counters_options *o)
{
	static const char *const names[] = {
		[COUNTER_LINES] = "table", [COUNTER_CSV] = "csv", [COUNTER_JSON] = "json"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcasecmp(optarg, names[i])) {
			o->format = (enum counter_format)i;
			return 0;
		}
	log_error("--format: '%s' is not table, csv or json", optarg);
	return -EINVAL;
}

static int counters_parse_one(struct counters_arguments *a, int c)
{
	struct counters_options *o = &a->options;

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
	case COUNTERS_LIST:
		return counters_parse_list(a);
	case COUNTERS_INTERVAL:
		return counters_parse_interval(o);
	case COUNTERS_SERIES:
		return options_u64("--maxTimeSeries", optarg, 0, INT_MAX, &o->max_series);
	case COUNTERS_HISTOGRAMS:
		return options_u64("--maxHistograms", optarg, 0, INT_MAX, &o->max_histograms);
	case COUNTERS_FORMAT:
		return counters_parse_format(o);
	default: /* options_next logged an error */
		return -EINVAL;
	}
}

static int counters_check(const struct counters_arguments *a)
{
	const struct counters_options *o = &a->options;

	if (port_arguments_check(&a->port))
		return -EINVAL;
	if (a->port.options.argv && o->format != COUNTER_LINES && (!o->out || !strcmp(o->out, "-")))
		log_error("a command writes to standard output, too; write to a file with -o");
	else if (o->duration_ns && o->duration_ns <= o->interval_ms * NS_PER_MS)
		log_error("-d must be longer than --refresh-interval, or no value can come");
	else
		return 0;
	return -EINVAL;
}

static int counters_parse(int argc, char **argv, struct counters_arguments *a)
{
	optind = 0;
	for (int c; (c = options_next(&command_counters, argc, argv, "+:p:d:o:q",
				      counters_longopts)) != -1;)
		if (counters_parse_one(a, c))
			return -EINVAL;
	if (options_command(&command_counters, argc, argv, &a->port.options.argv) ||
	    counters_check(a))
		return -EINVAL;
	if (a->list.v.len || !counter_list_add(&a->list, COUNTERS_DEFAULT))
		return 0;
	log_error("--counters: %s", a->list.why);
	return -EINVAL;
}

static int counters_main(int argc, char **argv)
{
	struct counters_arguments a = {.options = {.max_series = COUNTERS_MAX_SERIES,
						   .max_histograms = COUNTERS_MAX_HISTOGRAMS,
						   .interval_ms = 1000}};
	int status = counters_parse(argc, argv, &a) ? EXIT_USAGE : EXIT_DONE;

	a.options.list = &a.list;
	if (status == EXIT_DONE)
		status = port_arguments_default(&a.port);
	a.options.target = a.port.options;
	if (status == EXIT_DONE)
		status = counters_run(&a.options);
	counter_list_free(&a.list);
	port_arguments_free(&a.port);
	return status;
}

const struct command command_counters = {
	.name = "counters",
	.summary = "show counters and meters of a .NET runtime, live or as CSV or JSON",
	.usage =
		"usage: profcpu counters [OPTION...] [-p PID | --diagnostic-port PATH | -- CMD "
		"ARG...]\n"
		"\n"
		"Shows the values of EventCounters and of meters (System.Diagnostics.Metrics), as\n"
		"dotnet-counters does. Ctrl-C ends it.\n"
		"\n"
		"which runtime:\n"
		"  -p, --pid PID           that of a process; default: the only .NET process in\n"
		"                          sight\n"
		"  -- CMD ARG...           start a command, and show its counters to its end\n"
		"      --diagnostic-port PATH[,listen|,connect]\n"
		"                          listen, the default: create a socket and wait until a\n"
		"                          runtime connects that starts with\n"
		"                          DOTNET_DiagnosticPorts=PATH; connect: a runtime\n"
		"                          listens on this socket\n"
		"\n"
		"which counters:\n"
		"      --counters LIST     PROVIDER or PROVIDER[NAME,...], separated by commas: a\n"
		"                          meter, or an EventSource if no meter has this name;\n"
		"                          EventCounters\\PROVIDER: only the EventSource\n"
		"                          (System.Runtime)\n"
		"      --refresh-interval SECONDS\n"
		"                          time between two values, from 0.1 (1)\n"
		"      --maxTimeSeries N   limit of values of meters with different tags (1000)\n"
		"      --maxHistograms N   limit of histograms with different tags (10)\n"
		"\n"
		"output:\n"
		"      --format FORMAT     table: a live table on a terminal, else a line for "
		"each\n"
		"                          value; csv or json: as `dotnet-counters collect`\n"
		"                          (table)\n"
		"  -o, --output FILE       write to FILE; - is standard output (-)\n"
		"  -d, --duration SECONDS  how long: 10, 500ms, 2m, 24h, or 00:00:00:10 (no "
		"limit)\n"
		"  -q, --quiet             print no notes\n"
		"\n"
		"exit status:\n"
		"  0         done\n"
		"  1         failed, or no value came\n"
		"  2         wrong usage, or a process must be named\n"
		"  126, 127  CMD cannot be executed, or was not found\n"
		"  STATUS    that of CMD, if it ended by itself\n",
	.run = counters_main,
};
