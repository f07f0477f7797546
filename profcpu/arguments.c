#include "profcpu/arguments.h"

#include "base/clock.h"
#include "base/log.h"
#include "container/file_systems.h"
#include "profcpu/command.h"
#include "symbols/callchains.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OPTIONS_DURATION_MAX_S (366.0 * 24 * 3600)

static bool options_knows(const struct option *longs, const char *shorts, int c)
{
	for (; longs->name; longs++)
		if (longs->val == c)
			return true;
	return c > 0 && c < 128 && strchr(shorts, c);
}

/* Number of long options that begin with text, up to its "=". */
static int options_matches(const struct option *longs, const char *text)
{
	int n = 0;

	while (*text == '-')
		text++;
	for (; longs->name; longs++)
		n += *text && !strncmp(longs->name, text, strcspn(text, "="));
	return n;
}

/* The name of a long option as typed: after one or two dashes, up to "=". */
static const char *options_name(const char *text, size_t *ret_len)
{
	const char *name = text + (*text == '-') + (*text == '-' && text[1] == '-');

	*ret_len = strcspn(name, "=");
	return name;
}

/*
 * Whether text is one letter that getopt would complete to a long option. For users of other tools
 * it means something else.
 */
static bool options_is_stray_letter(const char *shorts, const char *text)
{
	size_t len;
	const char *name = options_name(text, &len);

	return len == 1 && (name - text == 2 || !strchr(shorts, *name));
}

/* A hint for an option of perf that profcpu does not have; "" for others. */
static const char *options_of_perf(const struct command *command, const char *text)
{
	static const struct {
		const char *command, *option, *hint;
	} table[] = {
		{"collect", "t", ": -p PID records all threads of a process"},
		{"collect", "g", ": stacks are always recorded; see --call-graph"},
		{"postprocess", "g", ": stacks are always read"},
		{"fold", "g", ": stacks are always read"},
		{"flamegraph", "g", ": stacks are always read"},
		{"postprocess", "i", ": give the input without an option"},
		{"fold", "i", ": give the input without an option"},
		{"flamegraph", "i", ": give the input without an option"},
	};
	size_t len;
	const char *name = options_name(text, &len);

	/* "-t12" is "-t" with its value. */
	if (name - text == 1 && len > 1 && name[1] >= '0' && name[1] <= '9')
		len = 1;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].command, command->name) && strlen(table[i].option) == len &&
		    !strncmp(table[i].option, name, len))
			return table[i].hint;
	return "";
}

/* Whether an option takes the name of a file, which is never empty. */
static bool options_takes_path(const struct option *longs, int index, int c)
{
	const char *name = index < 0 ? "" : longs[index].name;

	return c == 'o' || !strcmp(name, "output") || !strcmp(name, "dir");
}

int options_next(const struct command *command, int argc, char **argv, const char *shorts,
		 const struct option *longs)
{
	int index = -1, c = getopt_long_only(argc, argv, shorts, longs, &index);
	bool failed = c == '?' || c == ':';
	bool is_empty = !failed && optarg && !*optarg && options_takes_path(longs, index, c);

	if (!failed && index < 0 && !is_empty)
		return c;
	/* The option is one argument further back if its value is an argument of its own. */
	const char *text = argv[optind - (optarg == argv[optind - 1] ? 2 : 1)];
	/* optopt: a short option's letter, the value of a known long option, or 0. */
	char letter[] = {'-', (char)optopt, 0};

	if (failed && optopt > 0 && optopt < 128 && !options_knows(longs, "", optopt))
		text = letter;
	bool is_stray = options_is_stray_letter(shorts, text);

	if (!failed && !is_stray && !is_empty)
		return c;
	const char *what = is_stray                                  ? "is not an option"
			   : c == ':'                                ? "lacks its value"
			   : is_empty                                ? "has an empty value"
			   : options_knows(longs, shorts, optopt)    ? "takes no value"
			   : !optopt && options_matches(longs, text) ? "is ambiguous"
								     : "is not an option";
	const char *hint = strcmp(what, "is not an option") ? "" : options_of_perf(command, text);

	log_error("'%s' %s%s; `profcpu help %s` shows the options", text, what, hint,
		  command->name);
	return '?';
}

int options_input(const struct command *command, const char *name)
{
	if (*name)
		return 0;
	log_error("%s: the name of the input is empty; see `profcpu help %s`", command->name,
		  command->name);
	return -EINVAL;
}

int options_one_argument(const struct command *command, int argc, char **argv,
			 const char *otherwise, const char **ret_argument)
{
	*ret_argument = optind < argc ? argv[optind++] : otherwise;
	if (*ret_argument && optind == argc)
		return options_input(command, *ret_argument);
	log_error("%s takes one input; see `profcpu help %s`", command->name, command->name);
	return -EINVAL;
}

int options_no_argument(const struct command *command, int argc, char **argv)
{
	if (optind == argc)
		return 0;
	log_error("%s takes no argument '%s'; see `profcpu help %s`", command->name, argv[optind],
		  command->name);
	return -EINVAL;
}

int options_command(const struct command *command, int argc, char **argv, char *const **ret_argv)
{
	if (optind <= 1 || strcmp(argv[optind - 1], "--") != 0)
		return options_no_argument(command, argc, argv);
	if (optind == argc || !*argv[optind]) {
		log_error("a command is missing after --");
		return -EINVAL;
	}
	*ret_argv = argv + optind;
	return 0;
}

int options_allow_fs(const char *type)
{
	int r = file_systems_permit(type);

	if (r == -E2BIG)
		log_error("--allow-fs %s: at most %d types; leave out the others", type,
			  FILE_SYSTEMS_MAX);
	else if (r)
		log_error("--allow-fs: '%s' is no file system with files of programs; use a name "
			  "that the report or /proc/mounts shows",
			  type);
	return r ? -EINVAL : 0;
}

void options_warn_skipped(void)
{
	struct file_system_skipped skipped[FILE_SYSTEMS_SKIPPED_MAX];
	size_t n = file_systems_skipped(skipped);

	for (size_t i = 0; i < n; i++)
		log_warn("files on %s skipped: %llu; that file system may never answer; %s%s",
			 skipped[i].type, (unsigned long long)skipped[i].files,
			 skipped[i].may_permit ? "use --allow-fs " : "--allow-fs cannot name it",
			 skipped[i].may_permit ? skipped[i].type : "");
}

int options_u64(const char *option, const char *text, uint64_t min, uint64_t max,
		uint64_t *ret_value)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max) {
		log_error("%s: needs a whole number from %llu to %llu, not '%s'", option,
			  (unsigned long long)min, (unsigned long long)max, text);
		return -EINVAL;
	}
	*ret_value = value;
	return 0;
}

int options_decimal(const char *option, const char *what, const char *text, double min, double max,
		    double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	if (*text < '0' || *text > '9' || strspn(text, "0123456789.") != strlen(text) || *end ||
	    value < min || value > max) {
		log_error("%s: needs %s from %g to %g, not '%s'", option, what, min, max, text);
		return -EINVAL;
	}
	*ret_value = value;
	return 0;
}

/* Reads "DAYS:HOURS:MINUTES:SECONDS"; the first ones may be left out. 0: it is none. */
static double options_clock(const char *text)
{
	static const double scale[] = {60, 60, 24};
	double parts[4], s = 0, unit = 1;
	size_t n = 0;
	char *end = NULL;

	for (const char *p = text; n < 4; p = end + 1) {
		parts[n++] = strtod(p, &end);
		if (*p < '0' || *p > '9' || (*end && *end != ':'))
			return 0;
		if (!*end)
			break;
	}
	if (*end)
		return 0;
	for (size_t i = 0; i < n; i++) {
		s += parts[n - 1 - i] * unit;
		unit *= i < 3 ? scale[i] : 1;
	}
	return s;
}

int options_duration(const char *option, const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double s;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
	char *end;
	double value = strtod(text, &end), of_clock = strchr(text, ':') ? options_clock(text) : 0;

	if (of_clock >= 0.001 && of_clock <= OPTIONS_DURATION_MAX_S) {
		*ret_ns = (uint64_t)(of_clock * (double)NS_PER_S);
		return 0;
	}
	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
		double s = value * units[i].s;

		if (strcmp(end, units[i].suffix) || !isfinite(s) || s < 0.001 ||
		    s > OPTIONS_DURATION_MAX_S)
			continue;
		*ret_ns = (uint64_t)(s * (double)NS_PER_S);
		return 0;
	}
	log_error("%s: needs a time from 1ms to 366 days, such as 10, 0.5, 500ms or 2m, not '%s'",
		  option, text);
	return -EINVAL;
}

int options_size(const char *option, const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "BKMG";
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned int shift = unit ? 10 * (unsigned int)(unit - units) : 0;

	if (*text < '0' || *text > '9' || !unit || end[1] || errno || !value ||
	    value > (unsigned long long)INT64_MAX >> shift) {
		log_error("%s: needs a size with a unit, such as 512K, 100M or 2G, not '%s'",
			  option, text);
		return -EINVAL;
	}
	*ret_bytes = value << shift;
	return 0;
}

int options_pids(const char *option, const char *text, struct options_pids *pids)
{
	const char *at = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || pid < 1 || pid > INT32_MAX ||
		    (*end && *end != ',')) {
			log_error("%s: needs process ids separated by commas, not '%s'", option,
				  text);
			return -EINVAL;
		}
		if (vec_push(&pids->list, (pid_t)pid)) {
			log_error("out of memory");
			return -ENOMEM;
		}
		if (!*end)
			return 0;
		at = end + 1;
	}
}

int options_max_stack(const char *text, size_t *ret_frames)
{
	uint64_t frames;
	int r = options_u64("--max-stack", text, 1, CALLCHAINS_FRAMES_LIMIT, &frames);

	if (!r)
		*ret_frames = frames;
	return r;
}

int options_port(const char *text, char **socket, bool *ret_listen)
{
	free(*socket);
	*socket = strdup(text);
	if (!*socket) {
		log_error("out of memory");
		return -ENOMEM;
	}
	char *comma = strrchr(*socket, ',');

	*ret_listen = !comma || strcasecmp(comma + 1, "connect") != 0;
	if (comma)
		*comma = 0;
	if (**socket && (!comma || !*ret_listen || !strcasecmp(comma + 1, "listen")))
		return 0;
	log_error("--diagnostic-port: '%s' is not PATH, PATH,listen or PATH,connect", text);
	return -EINVAL;
}
