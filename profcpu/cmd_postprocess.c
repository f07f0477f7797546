#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/post/outdir.h"
#include "profcpu/post/postprocess.h"

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
	{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
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
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
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
		a->options.load.raw_names = true;
		return 0;
	case POSTPROCESS_MANGLED:
		a->options.load.mangled = true;
		return 0;
	case POSTPROCESS_INLINES:
		a->options.load.inlines = true;
		return 0;
	case POSTPROCESS_LINES:
		a->options.load.lines = true;
		return 0;
	case POSTPROCESS_OFFLINE:
		a->options.load.offline = true;
		return 0;
	case POSTPROCESS_IDLE:
		a->options.load.idle = true;
		return 0;
	case POSTPROCESS_GRADES:
		a->options.load.grades = true;
		return 0;
	case POSTPROCESS_MAX_STACK:
		return options_max_stack(optarg, &a->options.load.max_stack);
	case POSTPROCESS_NO_DOWNLOAD:
		a->fetch.off = true;
		return 0;
	case POSTPROCESS_SYMBOL_SERVER:
		return download_missing_add_server(&a->fetch, optarg);
	default:
		return -EINVAL;
	}
}

static int postprocess_parse(int argc, char **argv, struct postprocess_arguments *a)
{
	int c;

	optind = 0;
	a->options.fetch = &a->fetch;
	while ((c = options_next(&command_postprocess, argc, argv, ":o:q", postprocess_longopts)) !=
	       -1)
		if (postprocess_parse_one(a, c))
			return -EINVAL;
	if (a->input)
		return options_no_argument(&command_postprocess, argc, argv);
	return options_one_argument(&command_postprocess, argc, argv, NULL, &a->input);
}

/* The directory of -o before anything is written there. */
struct postprocess_dir {
	int fd; /* -1: it does not exist yet */
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

/* 0, also if the directory cannot be opened; -EPERM after one log_error line: another owner. */
static int postprocess_dir_probe(const char *path, struct postprocess_dir *d)
{
	struct parse_error err;
	int r;

	*d = (struct postprocess_dir){.fd = -1};
	r = path ? post_outdir_open(path, &d->fd) : -ENOENT;
	if (r)
		return r == -EPERM ? r : 0;
	r = recording_manifest_read(d->fd, &d->manifest, NULL, &err);

	/* A broken manifest does not count: other programs have files of that name too. */
	d->has_manifest = !r;
	d->has_recording = !r || r == -ENOTSUP ||
			   !faccessat(d->fd, RECORDING_PERF_DATA, F_OK, AT_SYMLINK_NOFOLLOW) ||
			   !faccessat(d->fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW);
	d->is_empty = postprocess_dir_is_empty(d->fd);
	return 0;
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

	return !fstatat(dir_fd, name, &st, 0) && st.st_dev == input->st_dev &&
	       st.st_ino == input->st_ino;
}

/* Whether the input is, or was merged to, a perf.data with the same bytes as the one in d. */
static bool postprocess_is_copy(const struct post_source *source, const struct postprocess_dir *d)
{
	AUTO_CLOSE int fd = -1;

	return (source->kind == INPUT_PERF_DATA || source->kind == INPUT_PERF_DIR) &&
	       !file_open_regular(d->fd, RECORDING_PERF_DATA, &fd) && file_equal(source->fd, fd);
}

/*
 * Whether the input is the recording in d: one of its files, or a copy. A copy has the same bytes,
 * or the same start and machine.
 */
static bool postprocess_is_same(const struct post_source *source, const struct postprocess_dir *d)
{
	const struct recording_manifest *a = &source->manifest, *b = &d->manifest;
	struct stat st;

	if (!fstat(source->fd, &st) && (postprocess_is_file_of(&st, d->fd, RECORDING_PERF_DATA) ||
					postprocess_is_file_of(&st, d->fd, RECORDING_SCRIPT)))
		return true;
	if (postprocess_is_copy(source, d))
		return true;
	return source->has_manifest && d->has_manifest && a->start_realtime_ns &&
	       a->start_realtime_ns == b->start_realtime_ns &&
	       a->start_monotonic_ns == b->start_monotonic_ns && a->host && b->host &&
	       !strcmp(a->host, b->host);
}

/* Refuses to write beside another recording: the picture would seem to be of that one. */
static int postprocess_check_dir(const struct post_source *source, const struct postprocess_dir *d,
				 const char *path)
{
	if (d->fd < 0)
		return 0;
	if (d->has_recording && !postprocess_is_same(source, d)) {
		log_error("%s: has another recording; choose another directory with -o", path);
		return -EEXIST;
	}
	if (!d->has_recording && !d->is_empty && input_is_recording(source->kind)) {
		log_error("%s: not empty, but a recording needs a directory of its own; choose "
			  "another one with -o",
			  path);
		return -ENOTEMPTY;
	}
	return 0;
}

/*
 * Chooses the directory for the outputs: that of -o, the recording itself, or a new one as collect
 * makes it.
 */
static int postprocess_out_dir(const struct postprocess_arguments *a,
			       const struct postprocess_dir *there,
			       const struct post_source *source, struct outdir *ret_dir)
{
	if (there->fd >= 0)
		return post_outdir_use(there->fd, a->out, ret_dir);
	if (!a->out && source->kind == INPUT_RECORDING)
		return post_outdir_use(source->dir_fd, a->input, ret_dir);
	return post_outdir_make(a->out, ret_dir);
}

/*
 * Whether to make the input a recording in the output directory. Not for text, and not for a
 * recording that stays in place.
 */
static bool postprocess_is_copied(const struct postprocess_arguments *a,
				  const struct postprocess_dir *there,
				  const struct post_source *source)
{
	return input_is_recording(source->kind) && (a->out || source->kind != INPUT_RECORDING) &&
	       (there->fd < 0 || there->is_empty);
}

/* Opens the directory of a recording again, now with the checks of a directory for outputs. */
static int postprocess_reopen(const char *path, struct post_source *source)
{
	cleanup_close(&source->dir_fd);
	return post_outdir_open_recording(path, &source->dir_fd);
}

/*
 * Opens the input, and the directory in which it becomes a recording. If the directory of -o has
 * the same recording already, opens that one instead.
 */
static int postprocess_open(const struct postprocess_arguments *a,
			    const struct postprocess_dir *there, struct outdir *ret_dir,
			    struct post_source *ret_source)
{
	struct post_source source;
	int r = post_open_begin(a->input, &source);

	if (r)
		return r;
	bool is_copied = postprocess_is_copied(a, there, &source);

	if (is_copied)
		r = postprocess_out_dir(a, there, &source, ret_dir);
	else if (!a->out && source.kind == INPUT_RECORDING && strcmp(a->input, "-") != 0)
		r = postprocess_reopen(a->input, &source);
	if (r) {
		post_open_close(&source);
		return r;
	}
	r = post_open_finish(&source, a->input, ret_dir->fd);
	if (r)
		return r;
	r = is_copied ? 0 : postprocess_check_dir(&source, there, a->out);
	if (!r && !is_copied && input_is_recording(source.kind) && there->has_recording) {
		post_open_close(&source);
		return post_open_dir(there->fd, a->out, NULL, ret_source);
	}
	if (r)
		post_open_close(&source);
	else
		*ret_source = source;
	return r;
}

static int postprocess_one(const struct postprocess_arguments *a,
			   const struct postprocess_dir *there, struct outdir *ret_dir,
			   bool *ret_wrote)
{
	struct post_source source;
	int status = EXIT_FAILED;

	*ret_wrote = false;

	/*
	 * Open the input before making a directory for it, so that a wrong one leaves nothing
	 * behind.
	 */
	if (postprocess_open(a, there, ret_dir, &source))
		return EXIT_FAILED;
	if (ret_dir->fd >= 0 || !postprocess_out_dir(a, there, &source, ret_dir))
		status = postprocess_run(&source, post_open_name(a->input), ret_dir, &a->options,
					 ret_wrote);
	/* The copy is not a recording, or has no outputs: remove it. */
	if (!*ret_wrote && ret_dir->fd >= 0 && postprocess_is_copied(a, there, &source))
		file_remove_contents(ret_dir->fd);
	post_open_close(&source);
	return status;
}

static int postprocess_main(int argc, char **argv)
{
	struct postprocess_arguments a = {0};
	struct postprocess_dir there;
	struct outdir dir = OUTDIR_NONE;

	if (postprocess_parse(argc, argv, &a)) {
		download_missing_options_free(&a.fetch);
		return EXIT_USAGE;
	}
	bool wrote = false;
	int status = EXIT_FAILED;

	if (!postprocess_dir_probe(a.out, &there))
		status = postprocess_one(&a, &there, &dir, &wrote);

	if (status != EXIT_DONE && there.fd < 0)
		post_outdir_remove_empty(&dir);
	postprocess_dir_release(&there);
	/* Also after a failure: damaged input has outputs too. */
	if (wrote && !a.options.quiet)
		printf("written   %s\n", dir.path);
	post_outdir_release(&dir);
	download_missing_options_free(&a.fetch);
	return command_end(status);
}

const struct command command_postprocess = {
	.name = "postprocess",
	.summary = "make the picture and the other outputs of a recording again",
	.usage = "usage: profcpu postprocess [OPTION...] INPUT\n"
		 "       profcpu postprocess -dir DIR\n"
		 "\n"
		 "Makes flamegraph.svg, folded_stacks.out, perf_script.out, report.json and\n"
		 "prof.tar.gz. For a recording with waits, makes also offcpu.*, wall.* and\n"
		 "wakeup.*, each .svg and .folded.\n"
		 "\n"
		 "INPUT is one of these:\n"
		 "  DIR              a recording; the outputs go into it\n"
		 "  perf.data        of profcpu or perf: a file, or the directory of a perf\n"
		 "                   that recorded with threads\n"
		 "  prof.tar.gz      an archived recording\n"
		 "  perf_script.out  text of perf script\n"
		 "  -                stdin: any of the above files; perf.data only as\n"
		 "                   `perf record -o -` writes it\n"
		 "\n"
		 "Other inputs than DIR are first made a recording, in\n"
		 "profilings/HH-MM-SS_YYYY-MM-DD/. Text is not: it gets no perf.data and no\n"
		 "prof.tar.gz.\n"
		 "\n"
		 "It works on any machine. Names come from the recording. Only files that could\n"
		 "not be read before, and debug files, are read from this machine.\n"
		 "\n"
		 "  -o, --output DIR   write to DIR: new, empty, or with the same recording; its\n"
		 "                     parent must exist. For text, any DIR without another\n"
		 "                     recording\n"
		 "      --title TEXT   title of the picture\n"
		 "      --offline      take names only from the recording\n"
		 "      --allow-fs TYPE\n"
		 "                     read files on this type of file system too; repeat it\n"
		 "                     (`profcpu help collect`)\n"
		 "      --no-download  download no debug files; else missing ones of sampled\n"
		 "                     libraries are downloaded, for at most 60 s\n"
		 "      --symbol-server URL\n"
		 "                     download them from here (`profcpu help symbols`)\n"
		 "      --raw-names    print .NET method names as the runtime spells them\n"
		 "      --mangled      print names of native functions mangled\n"
		 "      --inlines      give inlined functions frames of their own\n"
		 "      --lines        make each source line a frame\n"
		 "      --max-stack N  at most N frames of a stack: 1 to 65536 (10000)\n"
		 "      --idle         show idle waits with their stacks, such as those of pool\n"
		 "                     threads without work, not as [idle]\n"
		 "      --grades       mark spliced frames with _[s], guessed ones with _[g]\n"
		 "  -q, --quiet        print no progress, no notes and no report\n"
		 "\n"
		 "exit status:\n"
		 "  0  done\n"
		 "  1  failed, or the input is damaged; the outputs have its readable part\n"
		 "  2  wrong usage\n",
	.run = postprocess_main,
};
