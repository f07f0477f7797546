#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/command.h"
#include "profcpu/options.h"
#include "profcpu/outdir.h"
#include "profcpu/postprocess.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct postprocess_arguments {
	struct postprocess_options options;
	struct fetch_options fetch;
	const char *input, *out;
};

enum postprocess_option {
	POSTPROCESS_DIR = 256,
	POSTPROCESS_TITLE,
	POSTPROCESS_RAW_NAMES,
	POSTPROCESS_MANGLED,
	POSTPROCESS_INLINES,
	POSTPROCESS_LINES,
	POSTPROCESS_OFFLINE,
	POSTPROCESS_NO_DOWNLOAD,
	POSTPROCESS_SYMBOL_SERVER,
	POSTPROCESS_MAX_STACK,
	POSTPROCESS_GRADES,
	POSTPROCESS_IDLE,
};

static const struct option postprocess_longopts[] = {
	{"dir", required_argument, NULL, POSTPROCESS_DIR},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"title", required_argument, NULL, POSTPROCESS_TITLE},
	{"raw-names", no_argument, NULL, POSTPROCESS_RAW_NAMES},
	{"mangled", no_argument, NULL, POSTPROCESS_MANGLED},
	{"inlines", no_argument, NULL, POSTPROCESS_INLINES},
	{"lines", no_argument, NULL, POSTPROCESS_LINES},
	{"offline", no_argument, NULL, POSTPROCESS_OFFLINE},
	{"no-download", no_argument, NULL, POSTPROCESS_NO_DOWNLOAD},
	{"symbol-server", required_argument, NULL, POSTPROCESS_SYMBOL_SERVER},
	{"max-stack", required_argument, NULL, POSTPROCESS_MAX_STACK},
	{"grades", no_argument, NULL, POSTPROCESS_GRADES},
	{"idle", no_argument, NULL, POSTPROCESS_IDLE},
	{NULL, 0, NULL, 0},
};

static int postprocess_parse_one(struct postprocess_arguments *a, int c)
{
	switch (c) {
	case POSTPROCESS_DIR:
		a->input = optarg;
		return 0;
	case 'o':
		a->out = optarg;
		return 0;
	case 'q':
		a->options.quiet = a->fetch.quiet = true;
		return 0;
	case POSTPROCESS_TITLE:
		a->options.title = optarg;
		return 0;
	case POSTPROCESS_RAW_NAMES:
		a->options.input.raw_names = true;
		return 0;
	case POSTPROCESS_MANGLED:
		a->options.input.mangled = true;
		return 0;
	case POSTPROCESS_INLINES:
		a->options.input.inlines = true;
		return 0;
	case POSTPROCESS_LINES:
		a->options.input.lines = true;
		return 0;
	case POSTPROCESS_OFFLINE:
		a->options.input.offline = true;
		return 0;
	case POSTPROCESS_IDLE:
		a->options.input.idle = true;
		return 0;
	case POSTPROCESS_GRADES:
		a->options.input.grades = true;
		return 0;
	case POSTPROCESS_MAX_STACK:
		return input_max_stack(&a->options.input, optarg);
	case POSTPROCESS_NO_DOWNLOAD:
		a->fetch.off = true;
		return 0;
	case POSTPROCESS_SYMBOL_SERVER:
		return fetch_add_server(&a->fetch, optarg);
	default:
		return -EINVAL;
	}
}

static int postprocess_parse(int argc, char **argv, struct postprocess_arguments *a)
{
	int c;

	optind = 0;
	a->options.fetch = &a->fetch;
	while ((c = options_next(&command_postprocess, argc, argv, ":o:q", postprocess_longopts)) != -1)
		if (postprocess_parse_one(a, c))
			return -EINVAL;
	if (a->input)
		return options_no_argument(&command_postprocess, argc, argv);
	return options_one_argument(&command_postprocess, argc, argv, NULL, &a->input);
}

/* What stands in the directory of -o before anything is written there. */
struct postprocess_dir {
	int fd; /* -1: there is none yet */
	bool is_empty;
	bool has_recording, has_manifest;
	struct recording_manifest manifest;
};

static bool postprocess_dir_is_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		cleanup_close(&fd);
		return false;
	}
	while (n <= 2 && readdir(dir))
		n++;
	closedir(dir);
	return n <= 2;
}

static void postprocess_dir_look(const char *path, struct postprocess_dir *d)
{
	struct parse_error err;

	*d = (struct postprocess_dir){.fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1};
	if (d->fd < 0)
		return;
	int r = recording_manifest_read(d->fd, &d->manifest, &err);

	/* Others have files of that name too. */
	d->has_manifest = !r;
	d->has_recording = !r || r == -ENOTSUP || !faccessat(d->fd, RECORDING_PERF_DATA, F_OK, AT_SYMLINK_NOFOLLOW) ||
			   !faccessat(d->fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW);
	d->is_empty = postprocess_dir_is_empty(d->fd);
}

static void postprocess_dir_release(struct postprocess_dir *d)
{
	if (d->has_manifest)
		recording_manifest_free(&d->manifest);
	cleanup_close(&d->fd);
}

static bool postprocess_is_file_of(const struct stat *input, int dir_fd, const char *name)
{
	struct stat st;

	return !fstatat(dir_fd, name, &st, 0) && st.st_dev == input->st_dev && st.st_ino == input->st_ino;
}

/* A perf.data of which d's is a copy. */
static bool postprocess_is_copy(const struct source *source, const struct postprocess_dir *d)
{
	AUTO_CLOSE int fd = -1;

	return source->kind == SOURCE_PERF_DATA && !file_open_regular(d->fd, RECORDING_PERF_DATA, &fd) &&
	       file_equal(source->fd, fd);
}

/* Whether the input is the recording in d: a file of it, or a copy, by its bytes or by when and where it was recorded. */
static bool postprocess_is_same(const struct source *source, const struct postprocess_dir *d)
{
	const struct recording_manifest *a = &source->manifest, *b = &d->manifest;
	struct stat st;

	if (!fstat(source->fd, &st) && (postprocess_is_file_of(&st, d->fd, RECORDING_PERF_DATA) ||
					postprocess_is_file_of(&st, d->fd, RECORDING_SCRIPT)))
		return true;
	if (postprocess_is_copy(source, d))
		return true;
	return source->has_manifest && d->has_manifest && a->start_realtime_ns &&
	       a->start_realtime_ns == b->start_realtime_ns && a->start_monotonic_ns == b->start_monotonic_ns &&
	       a->host && b->host && !strcmp(a->host, b->host);
}

/* Nothing is put beside another recording, whose picture it would be taken for. */
static int postprocess_check_dir(const struct source *source, const struct postprocess_dir *d, const char *path)
{
	if (d->fd < 0)
		return 0;
	if (d->has_recording && !postprocess_is_same(source, d)) {
		log_error("%s holds another recording already; choose another directory with -o", path);
		return -EEXIST;
	}
	if (!d->has_recording && !d->is_empty && source->kind != SOURCE_TEXT) {
		log_error("%s is not empty, and a recording gets a directory of its own; choose another one with -o", path);
		return -ENOTEMPTY;
	}
	return 0;
}

/* A recording's own directory gets its outputs; everything else a directory of its own, as collect makes one. */
static int postprocess_out_dir(const struct postprocess_arguments *a, const struct postprocess_dir *there,
			       const struct source *source, struct outdir *ret_dir)
{
	if (there->fd >= 0)
		return outdir_of(there->fd, a->out, ret_dir);
	if (!a->out && source->kind == SOURCE_RECORDING)
		return outdir_of(source->dir_fd, a->input, ret_dir);
	return outdir_make(a->out, ret_dir);
}

/* Whether the input is to become a recording in the directory that is written to: all but text, and one that stays in place. */
static bool postprocess_takes_in(const struct postprocess_arguments *a, const struct postprocess_dir *there,
				 const struct source *source)
{
	return source->kind != SOURCE_TEXT && (a->out || source->kind != SOURCE_RECORDING) &&
	       (there->fd < 0 || there->is_empty);
}

/*
 * Opens the input, and with it the directory in which it becomes a recording. One of what is in the directory of -o already
 * is not taken in again.
 */
static int postprocess_open(const struct postprocess_arguments *a, const struct postprocess_dir *there,
			    struct outdir *ret_dir, struct source *ret_source)
{
	struct source source;
	int r = source_begin(a->input, &source);

	if (r)
		return r;
	bool take_in = postprocess_takes_in(a, there, &source);

	if (take_in && (r = postprocess_out_dir(a, there, &source, ret_dir))) {
		source_close(&source);
		return r;
	}
	r = source_go_on(&source, a->input, ret_dir->fd);
	if (r)
		return r;
	r = take_in ? 0 : postprocess_check_dir(&source, there, a->out);
	if (!r && !take_in && source.kind != SOURCE_TEXT && there->has_recording) {
		source_close(&source);
		return source_open_dir(there->fd, a->out, ret_source);
	}
	if (r)
		source_close(&source);
	else
		*ret_source = source;
	return r;
}

static int postprocess_one(const struct postprocess_arguments *a, const struct postprocess_dir *there,
			   struct outdir *ret_dir, bool *ret_wrote)
{
	struct source source;
	int status = EXIT_FAILED;

	*ret_wrote = false;

	/* The input is opened before a directory is made for it, so that a wrong one leaves nothing behind. */
	if (postprocess_open(a, there, ret_dir, &source))
		return EXIT_FAILED;
	if (ret_dir->fd >= 0 || !postprocess_out_dir(a, there, &source, ret_dir))
		status = postprocess_run(&source, source_name(a->input), ret_dir, &a->options, ret_wrote);
	/* What was taken in is no recording after all, or could not be made one. */
	if (!*ret_wrote && ret_dir->fd >= 0 && postprocess_takes_in(a, there, &source))
		file_remove_below(ret_dir->fd);
	source_close(&source);
	return status;
}

static int postprocess_main(int argc, char **argv)
{
	struct postprocess_arguments a = {0};
	struct postprocess_dir there;
	struct outdir dir = OUTDIR_NONE;

	if (postprocess_parse(argc, argv, &a)) {
		fetch_options_free(&a.fetch);
		return EXIT_USAGE;
	}
	postprocess_dir_look(a.out, &there);
	bool wrote;
	int status = postprocess_one(&a, &there, &dir, &wrote);

	if (status != EXIT_DONE && there.fd < 0)
		outdir_remove_empty(&dir);
	postprocess_dir_release(&there);
	/* Damaged input has outputs too. */
	if (wrote && !a.options.quiet)
		printf("written   %s\n", dir.path);
	outdir_release(&dir);
	fetch_options_free(&a.fetch);
	return command_end(status);
}

const struct command command_postprocess = {
	.name = "postprocess",
	.summary = "make the picture and the other outputs of a recording again",
	.usage = "usage: profcpu postprocess [-o DIR] [OPTION...] DIR|perf.data|prof.tar.gz|perf_script.out|-\n"
		 "       profcpu postprocess -dir DIR\n\n"
		 "Makes flamegraph.svg, folded_stacks.out, perf_script.out, report.json and prof.tar.gz, and of a recording with waits\n"
		 "offcpu, wall and wakeup.svg and .folded: for a recording's directory in it, for anything else in\n"
		 "profilings/HH-MM-SS_YYYY-MM-DD/, which becomes a recording, with its own perf.data, manifest.json and symbols/; of perf_script.out without these and prof.tar.gz. Works on any machine: names come\n"
		 "from the recording, and only of files that could not be read yet, and of debug files, from this machine. Through a pipe (-) perf.data\n"
		 "must be in the form of `perf record -o -`.\n\n"
		 "  -o, --output DIR   make the recording there; new or empty, or the same recording's; what DIR is to\n"
		 "                     stand in must exist; perf_script.out: any DIR without another recording\n"
		 "      --title TEXT   title of the picture\n"
		 "      --offline      take no name from this machine's files\n"
		 "      --no-download  fetch no debug files; else those of libraries without symbols are, for at most 60 s\n"
		 "      --symbol-server URL   fetch them from there (`profcpu help symbols`)\n"
		 "      --raw-names    names of managed methods as the runtime spells them\n"
		 "      --mangled      names of native functions mangled\n"
		 "      --inlines      functions that were inlined have frames of their own\n"
		 "      --lines        source lines: each line is a frame\n"
		 "      --max-stack N  at most so many frames of a stack (10000; 1 to 65536)\n"
		 "      --idle         waits that are idle (pool threads without work, ...) with their stacks, not as [idle]\n"
		 "      --grades       in the picture _[s] behind frames that were spliced, _[g] behind guessed ones\n"
		 "  -q, --quiet        no report\n",
	.run = postprocess_main,
};
