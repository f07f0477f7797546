#include "profcpu/post/postprocess.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"
#include "base/replace.h"
#include "base/shell_word.h"
#include "profcpu/compare/report.h"
#include "profcpu/post/outputs.h"
#include "profcpu/post/report.h"
#include "profcpu/post/wall.h"
#include "recording/perfdata_writer.h"
#include "symbols/jit/methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* Whether dir is the directory of the source's perf.data. */
static bool postprocess_in_place(const struct post_source *source, int dir_fd)
{
	struct stat a, b;

	return source->dir_fd >= 0 && !fstat(source->dir_fd, &a) && !fstat(dir_fd, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void postprocess_warn_no_store(const char *dir, int error)
{
	bool too_many = error == -E2BIG, failed = error == -EAGAIN;

	log_warn("cannot keep the names in %s/%s: %s%s; other machines will not have them", dir,
		 RECORDING_SYMBOLS,
		 too_many ? "they exceed 1 GiB"
		 : failed ? "the process for libdw failed"
			  : strerror(-error),
		 too_many ? "; record for a shorter time, or fewer processes (-p)"
		 : failed ? "; run `profcpu postprocess` again"
			  : remedy_for(error));
}

/* Opens or makes symbols/ in the recording. Returns its descriptor, or -1 after a warning. */
static int postprocess_store(int dir_fd, const char *dir)
{
	static const char *const names[] = {RECORDING_NAMES, RECORDING_STACKS};
	int fd = -1;

	if (!mkdirat(dir_fd, RECORDING_SYMBOLS, 0700) || errno == EEXIST)
		fd = openat(dir_fd, RECORDING_SYMBOLS,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		postprocess_warn_no_store(dir, -errno);
	else
		replace_remove_stale(fd, names, sizeof(names) / sizeof(names[0]));
	return fd;
}

/*
 * Warns once for all files for names that could not be read. The report has its own lines for perf
 * maps. On another machine it repeats no warning of the first.
 */
static void postprocess_warn_unread(const char *dir, bool offline,
				    const struct symbolizer_unread *unread)
{
	AUTO_FREE char *word = shell_word(dir);

	if (unread->files && unread->searched)
		log_warn(
			"cannot read %llu file%s for names, the first is %s; known names stay, and "
			"`profcpu postprocess %s`%s tries again",
			(unsigned long long)unread->files, unread->files == 1 ? "" : "s",
			unread->first, word ? word : "DIR",
			unread->kernel_hidden ? " as root or with CAP_SYSLOG, because kernel names "
						"are hidden,"
					      : "");
	else if (unread->sources && offline && !unread->has_store)
		log_warn(
			"%s: no names in %s/, and --offline reads no other files, for instance %s; "
			"run `profcpu postprocess` without it on the machine of the recording",
			dir, RECORDING_SYMBOLS, unread->first);
}

/* Sets the times of the recording to those of its samples. */
static void postprocess_take_times(struct recording_manifest *m, const struct profile *profile)
{
	struct profile_span span = profile_span(profile);

	m->start_monotonic_ns = span.first_ns;
	m->duration_ns = span.last_ns - span.first_ns;
}

/*
 * Completes the header of a killed recorder's perf.data, so that perf opens it too, and marks the
 * recording finished. Leaves recordings of other programs unchanged.
 */
static void postprocess_repair(struct post_source *source, const char *dir,
			       const struct profile *profile, bool quiet)
{
	struct profile_span span = profile_span(profile);
	struct parse_error err = {0};

	if (!perfdata_is_ours(source->fd)) {
		if (!quiet)
			log_note("%s/%s: unfinished, and not repaired because another program "
				 "recorded it; profcpu can read it, perf may refuse it",
				 dir, RECORDING_PERF_DATA);
		return;
	}
	AUTO_CLOSE int fd = -1;
	int r = file_open_to_write(source->dir_fd, RECORDING_PERF_DATA, O_RDWR, &fd);

	if (!r)
		r = perfdata_repair(fd, NULL, &err);

	if (r) {
		log_warn("cannot repair %s/%s: %s%s%s%s; profcpu can read it, perf may refuse it",
			 dir, RECORDING_PERF_DATA, err.what ? err.what : "", err.what ? ": " : "",
			 strerror(-r), remedy_for(r));
		return;
	}
	if (!source->has_manifest)
		return;
	source->manifest.finished = true;
	if (!source->manifest.ended)
		source->manifest.ended = strdup(RECORDING_KILLED);
	source->manifest.duration_ns = span.last_ns - span.first_ns;
}

/*
 * Blanks the copies of stacks that the recorder kept only to unwind them here. Returns whether none
 * are left.
 */
static bool postprocess_blank_copies(const struct post_source *source, const char *dir,
				     const struct post_result *result)
{
	struct parse_error err = {0};

	if (!result->data.stacks.by_libdw)
		return true;
	if (!result->data.stacks_kept) {
		log_note("%s/%s: still has copies of stacks of 32-bit programs, because %s", dir,
			 RECORDING_PERF_DATA,
			 result->data.store_error ? "their callers could not be kept"
						  : "libdw cannot unwind them here");
		return false;
	}
	AUTO_CLOSE int fd = -1;
	int r = file_open_to_write(source->dir_fd, RECORDING_PERF_DATA, O_RDWR, &fd);

	if (!r)
		r = perfdata_blank_copies(fd, &err);

	if (r)
		log_warn("%s/%s: cannot blank the copies of stacks of 32-bit programs: %s%s%s%s",
			 dir, RECORDING_PERF_DATA, err.what ? err.what : "", err.what ? ": " : "",
			 strerror(-r), remedy_for(r));
	return !r;
}

static void postprocess_manifest(struct post_source *source, const char *dir,
				 const struct post_result *result, bool offline)
{
	struct recording_manifest *m = &source->manifest;
	bool blanked = source->has_manifest && m->blanks_copies && !offline &&
		       postprocess_blank_copies(source, dir, result);

	uint64_t forger = source->copied ? source->forger : m->forger;

	if (!source->has_manifest ||
	    (m->symbols_complete == result->data.store_complete && !result->unfinished &&
	     !source->lacks_manifest && !blanked && m->forger == forger))
		return;
	m->forger = forger;
	m->blanks_copies &= !blanked;
	source->lacks_manifest = false;
	m->symbols_complete = result->data.store_complete;
	int r = recording_manifest_write(source->dir_fd, m);

	if (r)
		log_warn("cannot write %s/%s: %s", dir, RECORDING_MANIFEST, strerror(-r));
}

static const char *postprocess_title(const struct post_source *source,
				     const struct postprocess_options *options)
{
	return options->title ? options->title : post_open_title(source);
}

static int postprocess_report(struct profile *profile, const struct outputs_options *outputs,
			      bool compares)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	int r = 0;

	if (!compares)
		r = post_report_write(profile, outputs->result, outputs->waits, outputs->audit,
				      outputs->managed, outputs->dir, &out);
	else
		compare_report_text(outputs->compare, outputs->methods, profile, &out);
	if (!r && !compares && outputs->compare)
		outbuf_str(&out, "compared  EventPipe's samples with the kernel's: "
				 "see " RECORDING_COMPARE_TEXT "\n");
	int closed = outbuf_close(&out);

	r = r ? r : closed;
	/* A reader such as `head -1` may leave. The report is in report.json too. */
	if (r == -EPIPE)
		return 0;
	if (r)
		log_error("cannot print the report: %s%s", strerror(-r), remedy_for_stdout(r));
	return r;
}

/* Whether the archive must stay: it may hold data that a damaged file has lost since. */
static bool postprocess_keeps_archive(const struct post_source *source, const struct outdir *dir,
				      const struct post_result *result, bool waits_are_whole)
{
	const char *lost = result->data_damaged                              ? RECORDING_PERF_DATA
			   : !waits_are_whole                                ? RECORDING_OFFCPU
			   : source->samples_fd >= 0 && !source->has_samples ? RECORDING_SAMPLES
									     : NULL;

	if (!lost || faccessat(dir->fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW))
		return false;
	AUTO_FREE char *word = shell_word(dir->path);

	log_note("%s/%s: kept, because it may hold data that %s has lost; try `profcpu postprocess "
		 "-o NEW-DIR %s/%s`",
		 dir->path, RECORDING_ARCHIVE, lost, word ? word : "DIR", RECORDING_ARCHIVE);
	return true;
}

/* Whether offcpu.idx has all waits. True for damaged recordings: they were reported before. */
static bool postprocess_waits_are_whole(const struct post_source *source, const char *dir,
					const struct post_result *result)
{
	uint64_t waits = result->data.waits, missing = result->data.waits_missing;

	if (!source->has_manifest || result->data_damaged ||
	    (source->manifest.damage && *source->manifest.damage) || !waits ||
	    (source->has_offcpu && !missing))
		return true;
	if (source->has_offcpu)
		log_warn("%s/%s: lacks %llu of %llu waits; wall.* is not made, wakeup.* is "
			 "incomplete",
			 dir, RECORDING_OFFCPU, (unsigned long long)missing,
			 (unsigned long long)waits);
	else if (source->offcpu_fd < 0)
		log_warn("%s/%s: missing; wakers and the times of threads are not known", dir,
			 RECORDING_OFFCPU);
	return false;
}

/* Notes outputs of --off-cpu that are not made, and why. */
static void postprocess_note_waits(const struct post_source *source, const char *dir,
				   struct profile *profile, bool compares)
{
	if (!source->has_offcpu)
		return;
	if (profile_off_cpu_event(profile) == PROFILE_NONE)
		log_note(
			"%s: no offcpu.*, wall.* and wakeup.*, because no wait above --off-cpu-min "
			"was recorded",
			dir);
	else if (profile_wakeup_event(profile) == PROFILE_NONE && !compares)
		log_note("%s: no wakeup.*, because no waker is known", dir);
	if (profile_off_cpu_event(profile) != PROFILE_NONE && !source->offcpu.file.ended)
		log_note("%s: no wall.*, because the recorder did not reach the end, where it "
			 "writes the times of threads",
			 dir);
}

/* Reports what is missing, and completes the recording. */
static void postprocess_settle(struct post_source *source, struct profile *profile,
			       const struct outputs_options *outputs,
			       const struct postprocess_options *options)
{
	const struct post_result *result = outputs->result;

	if (!profile_nsamples(profile) && !options->none_expected && !result->data.no_cpu)
		log_warn("%s: no samples%s", outputs->dir,
			 result->damaged ? " in the readable part of the recording"
					 : "; record longer, raise -F, use --off-cpu if the target "
					   "only waits, or check that the event happens in it");
	if (outputs->in_place && result->unfinished)
		postprocess_repair(source, outputs->dir, profile, options->quiet);
	if (outputs->in_place)
		postprocess_manifest(source, outputs->dir, result, options->load.offline);
	postprocess_note_waits(source, outputs->dir, profile, options->compares);
}

/* Writes the outputs and the report, which share their sums. idle: of the profile. */
static int postprocess_outputs(struct post_source *source, struct profile *profile,
			       struct idle *idle, const struct outdir *dir,
			       struct post_result *result, const struct audit *audit,
			       const struct compare *compare,
			       const struct managed_profiles *managed,
			       const struct postprocess_options *options, bool *ret_wrote)
{
	AUTO_FREE struct profile_group *wall = NULL;
	struct compare_methods methods = {0};
	struct report_waits waits = {0};
	int r = idle ? report_waits_sum(profile, idle, &waits) : 0;

	waits.compared = compare || options->compares;
	bool in_place = postprocess_in_place(source, dir->fd),
	     whole = postprocess_waits_are_whole(source, dir->path, result);
	struct outputs_options outputs = {
		.dir = dir->path,
		.dir_fd = dir->fd,
		.title = postprocess_title(source, options),
		.result = result,
		.limits = &result->limits,
		.audit = audit,
		.waits = &waits,
		.idle = options->load.idle ? NULL : idle,
		.in_place = in_place,
		.archive = in_place && !postprocess_keeps_archive(source, dir, result, whole),
		.lines = options->load.lines,
		.script = true};

	if (!r && waits.samples && source->has_offcpu && source->offcpu.file.ended && whole)
		r = post_wall_groups(profile, &source->offcpu, outputs.idle, &wall, &outputs.nwall);
	if (r) {
		log_error("%s: cannot sum up its waits: %s%s", dir->path, strerror(-r),
			  remedy_for(r));
		return r;
	}
	if (compare && (r = compare_methods_make(compare, profile, &methods))) {
		log_error("%s: cannot sum up its comparison: %s%s", dir->path, strerror(-r),
			  remedy_for(r));
		return r;
	}
	outputs.compare = compare;
	outputs.managed = managed;
	outputs.methods = &methods;
	outputs.wall = wall;
	if (result->kind == INPUT_TEXT && result->text.first_event != PROFILE_NONE)
		outputs.first_event = profile_text_of(profile, result->text.first_event, NULL);
	postprocess_settle(source, profile, &outputs, options);
	r = post_outputs_write(profile, &outputs, ret_wrote);
	int reported = options->quiet ? 0
				      : postprocess_report(profile, &outputs,
							   options->compares && outputs.compare);

	compare_methods_free(&methods);

	return r ? r : reported;
}

static int postprocess_load_once(struct post_source *source, const char *name,
				 const struct post_options *input, struct profile **ret_profile,
				 struct post_result *result)
{
	struct profile *profile = NULL;
	int r = profile_new(&profile);

	if (r)
		log_error("out of memory%s", remedy_for(r));
	else
		r = post_load_source(source, name, input, profile, result);
	if (r)
		profile_free(profile);
	else
		*ret_profile = profile;
	return r;
}

/*
 * Loads with the names of this machine. If functions have no name, downloads the debug files of
 * their images. Loads once more after a download, or if a process has ended whose names were still
 * being written, with the names that the first load kept in symbols/.
 */
static int postprocess_load(struct post_source *source, const char *name,
			    const struct postprocess_options *options, struct post_options *input,
			    struct profile **ret_profile, struct post_result *result)
{
	struct symbolizer_images images = {0};
	bool may_fetch = options->fetch && !options->fetch->off && !input->offline &&
			 input->write_store_dir_fd >= 0;

	input->improve = true;
	input->ret_images = may_fetch ? &images : NULL;
	int r = postprocess_load_once(source, name, input, ret_profile, result);

	bool can_repeat = !r && input->write_store_dir_fd >= 0 && !result->data.store_error;
	bool repeats = can_repeat && result->data.unread.closed;

	if (can_repeat && may_fetch)
		repeats |= download_missing_files(options->fetch, &images);
	if (repeats) {
		struct symbolizer_unread unread = result->data.unread;

		if (source->store_fd < 0)
			source->store_fd = fcntl(input->write_store_dir_fd, F_DUPFD_CLOEXEC, 0);
		profile_free(*ret_profile);
		*ret_profile = NULL;
		compare_free(*input->ret_compare);
		*input->ret_compare = NULL;
		managed_profiles_free(*input->ret_managed);
		*input->ret_managed = NULL;
		audit_free(input->ret_audit);
		input->ret_images = NULL;
		input->ret_manifest = NULL;
		input->no_damage = true;
		r = postprocess_load_once(source, name, input, ret_profile, result);
		result->data.unread = unread;
	}
	symbolizer_images_free(&images);
	return r;
}

int postprocess_run(struct post_source *source, const char *name, const struct outdir *dir,
		    const struct postprocess_options *options, bool *ret_wrote)
{
	AUTO_CLOSE int store_fd = -1;
	struct post_options input = options->load;
	struct post_result result = {0};
	struct profile *profile = NULL;
	struct idle *idle = NULL;
	struct audit audit = {0};
	struct compare *compare = NULL;
	struct managed_profiles *managed = NULL;
	bool in_place = postprocess_in_place(source, dir->fd), wrote = false;

	/* A reader of stdout that leaves must not end this program before the outputs are made. */
	signal(SIGPIPE, SIG_IGN);
	if (in_place && !input.offline)
		store_fd = postprocess_store(dir->fd, dir->path);
	input.write_store_dir_fd = store_fd;
	input.ret_audit = &audit;
	input.ret_compare = &compare;
	input.ret_managed = &managed;
	bool makes_manifest = in_place && source->lacks_manifest;

	if (makes_manifest)
		input.ret_manifest = &source->manifest;
	int r = postprocess_load(source, name, options, &input, &profile, &result);

	if (!r && makes_manifest) {
		source->has_manifest = true;
		postprocess_take_times(&source->manifest, profile);
	}
	if (!r && result.data.store_error)
		postprocess_warn_no_store(dir->path, result.data.store_error);
	/*
	 * The store has the names of all samples. Drop the files with thousands of other methods.
	 */
	if (!r && store_fd >= 0 && result.data.store_complete && !result.data.keeps_lines)
		(void)jit_methods_remove(store_fd);
	if (!r)
		postprocess_warn_unread(dir->path, input.offline, &result.data.unread);
	if (!r)
		post_load_report_lines(&input, name, &result);
	if (!r && result.data.hides_lines && !options->quiet)
		log_note("%s: has lines or inlined functions; show them with --lines and --inlines",
			 dir->path);
	if (!r && (r = idle_new(profile, &idle)))
		log_error("out of memory%s", remedy_for(r));
	if (!r)
		r = postprocess_outputs(source, profile, idle, dir, &result, &audit, compare,
					managed, options, &wrote);
	if (!r && options->compares && !compare) {
		log_error("%s: nothing to compare: it has no samples of a .NET runtime in %s; "
			  "record them with `profcpu compare` or `profcpu collect --eventpipe`",
			  dir->path, RECORDING_TRACE);
		r = -ENODATA;
	}
	compare_free(compare);
	managed_profiles_free(managed);
	idle_free(idle);
	profile_free(profile);
	audit_free(&audit);
	if (ret_wrote)
		*ret_wrote = wrote;
	return r || result.damaged ? EXIT_FAILED : EXIT_DONE;
}
