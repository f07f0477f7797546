#include "base/log.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/default_target.h"
#include "profcpu/post/outfile.h"
#include "profcpu/stacks/print.h"

#include <errno.h>
#include <limits.h>

struct stacks_arguments {
	struct snapshot_options take;
	const char *out;
	bool json;
};

enum stacks_option {
	STACKS_JSON = 256,
	STACKS_RAW_NAMES,
	STACKS_MANGLED,
	STACKS_INLINES,
	STACKS_LINES,
};

static int stacks_option(struct stacks_arguments *a, int c)
{
	uint64_t pid;

	switch (c) {
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
	case 'p':
		if (options_u64("--pid", optarg, 1, INT_MAX, &pid))
			return -EINVAL;
		a->take.pid = (pid_t)pid;
		return 0;
	case 'o':
		a->out = optarg;
		return 0;
	case STACKS_JSON:
		a->json = true;
		return 0;
	case STACKS_RAW_NAMES:
		a->take.load.raw_names = true;
		return 0;
	case STACKS_MANGLED:
		a->take.load.mangled = true;
		return 0;
	case STACKS_INLINES:
		a->take.load.inlines = true;
		return 0;
	case STACKS_LINES:
		a->take.load.lines = true;
		return 0;
	default: /* options_next logged an error */
		return -EINVAL;
	}
}

static int stacks_parse(int argc, char **argv, struct stacks_arguments *a)
{
	static const struct option longopts[] = {
		{"pid", required_argument, NULL, 'p'},
		{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
		{"output", required_argument, NULL, 'o'},
		{"json", no_argument, NULL, STACKS_JSON},
		{"raw-names", no_argument, NULL, STACKS_RAW_NAMES},
		{"mangled", no_argument, NULL, STACKS_MANGLED},
		{"inlines", no_argument, NULL, STACKS_INLINES},
		{"lines", no_argument, NULL, STACKS_LINES},
		{0},
	};
	int r = 0;

	optind = 0;
	for (int c; !r && (c = options_next(&command_stacks, argc, argv, ":p:o:", longopts)) != -1;)
		r = stacks_option(a, c);
	return r ? r : options_no_argument(&command_stacks, argc, argv);
}

static int stacks_write(const struct stacks_arguments *a, struct snapshot *s)
{
	struct stacks_groups groups = {0};
	struct outfile file;
	int r = post_outfile_open(a->out, REPLACE_PRIVATE, &file);

	if (!r) {
		struct outbuf out = outbuf_to(file.fd);

		r = stacks_groups_make(s->profile, &s->threads, &groups);
		if (!r && a->json)
			stacks_print_json(&out, s, &groups);
		else if (!r)
			stacks_print_text(&out, s, &groups);
		int closed = outbuf_close(&out);

		r = post_outfile_close(&file, r ? r : closed);
		stacks_groups_free(&groups);
	}
	if (r)
		post_outfile_failed(a->out, "the stacks", r);
	return r;
}

static int stacks_run(int argc, char **argv)
{
	struct stacks_arguments a = {.take.load = {.write_store_dir_fd = -1}};
	struct snapshot s = {0};
	int status =
		stacks_parse(argc, argv, &a) ? EXIT_USAGE : default_target_one(&a.take.pid, false);

	if (status != EXIT_DONE)
		return status;
	a.take.load.functions_only = !a.take.load.lines;
	if (opener_new(&a.take.opener)) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	a.take.load.opener = a.take.opener;
	int r = snapshot_take(&a.take, &s);

	if (!r)
		r = stacks_write(&a, &s);
	options_warn_skipped();
	status = r || s.refused ? EXIT_FAILED : EXIT_DONE;
	snapshot_free(&s);
	opener_free(a.take.opener);
	return status;
}

const struct command command_stacks = {
	.name = "stacks",
	.summary = "print the stacks of all threads of a process",
	.usage = "usage: profcpu stacks [-p PID] [--json] [-o FILE] [OPTION...]\n"
		 "\n"
		 "Prints the stack of each thread of a process as it is now, with managed, native\n"
		 "and kernel frames, innermost first. Threads with equal stacks are printed\n"
		 "together, the most first. The process is not stopped: stacks of threads that\n"
		 "wait are read from its memory, and threads that run are sampled for a moment.\n"
		 "\n"
		 "  -p, --pid PID      the process; default: the only .NET process in sight, or\n"
		 "                     PID 1 if none is in sight\n"
		 "      --json         print JSON\n"
		 "  -o, --output FILE  write to FILE, not to stdout\n"
		 "      --inlines      show inlined functions as frames of their own\n"
		 "      --lines        add file.c:12 to each frame\n"
		 "      --raw-names    print names of .NET methods as the runtime spells them\n"
		 "      --mangled      print native names mangled\n"
		 "      --allow-fs TYPE\n"
		 "                     read files on this type of file system too; repeat it\n"
		 "                     (`profcpu help collect`)\n"
		 "\n"
		 "exit status:\n"
		 "  0  done; some threads may have no stack, each with the reason\n"
		 "  1  failed, or no stack can be read\n"
		 "  2  wrong usage, or a process must be named\n",
	.run = stacks_run,
};
