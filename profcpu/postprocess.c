#include "profcpu/postprocess.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/replace.h"
#include "profcpu/command.h"
#include "profcpu/mend.h"
#include "profcpu/outputs.h"
#include "profcpu/report.h"
#include "recording/perfdata_writer.h"
#include "symbols/jit_methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Whether dir is the directory that the source's perf.data stands in. */
static bool postprocess_in_place(const struct source *source, int dir_fd)
{
	struct stat a, b;

	return source->dir_fd >= 0 && !fstat(source->dir_fd, &a) && !fstat(dir_fd, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void postprocess_say_no_store(const char *dir, int error)
{
	bool too_many = error == -E2BIG;

	log_warn("cannot keep the names in %s/%s: %s%s; the recording will not have them elsewhere", dir, RECORDING_SYMBOLS,
		 too_many ? "they have more than 1 GiB" : strerror(-error),
		 too_many ? "; record for a shorter time, or fewer processes (-p)" : mend_of(error));
}

/* Opens or makes symbols/ in the recording, so that names are kept. -1 where that is not possible; it was said. */
static int postprocess_store(int dir_fd, const char *dir)
{
	static const char *const names[] = {RECORDING_NAMES, RECORDING_STACKS};
	int fd = -1;

	if (!mkdirat(dir_fd, RECORDING_SYMBOLS, 0700) || errno == EEXIST)
		fd = openat(dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		postprocess_say_no_store(dir, -errno);
	else
		replace_clear(fd, names, sizeof(names) / sizeof(names[0]));
	return fd;
}

/*
 * One line for all whose names are missing for want of a file; of perf maps the report has its own. Where it is known
 * already it is not said on other machines.
 */
static void postprocess_say_unread(const char *dir, bool offline, const struct symbolizer_unread *unread)
{
	if (unread->files && unread->looked)
		log_warn("could not read %llu of the files that name the code, the first is %s; names that are known stay, and "
			 "`profcpu postprocess %s`%s tries again",
			 (unsigned long long)unread->files, unread->first, dir,
			 unread->kernel_hidden ? " as root or with CAP_SYSLOG, as the kernel's are hidden," : "");
	else if (unread->sources && offline && !unread->has_store)
		log_warn("%s has no names in %s/, and --offline looks nowhere else, for instance in %s; run `profcpu postprocess` "
			 "without it on the machine of the recording",
			 dir, RECORDING_SYMBOLS, unread->first);
}

struct postprocess_span {
	uint64_t first_ns, last_ns;
};

static int postprocess_span_add(void *ctx, const struct profile_sample *sample)
{
	struct postprocess_span *span = ctx;

	if (!span->first_ns || sample->time_ns < span->first_ns)
		span->first_ns = sample->time_ns;
	if (sample->time_ns > span->last_ns)
		span->last_ns = sample->time_ns;
	return 0;
}

/* When it was recorded, as far as the samples say. */
static void postprocess_take_times(struct recording_manifest *m, struct profile *profile)
{
	struct postprocess_span span = {0};

	if (profile_each_sample(profile, postprocess_span_add, &span))
		return;
	m->start_monotonic_ns = span.first_ns;
	m->duration_ns = span.last_ns - span.first_ns;
}

/*
 * Gives a killed recorder's perf.data its sizes, so that perf opens it too, and marks the recording finished. What another
 * program recorded is not changed.
 */
static void postprocess_repair(struct source *source, const char *dir, struct profile *profile, bool quiet)
{
	struct postprocess_span span = {0};
	struct parse_error err = {0};

	if (!perfdata_is_ours(source->fd)) {
		if (!quiet)
			log_note("%s/%s was not recorded by profcpu and stays as it is: perf may refuse it, profcpu does not", dir,
				 RECORDING_PERF_DATA);
		return;
	}
	AUTO_CLOSE int fd = openat(source->dir_fd, RECORDING_PERF_DATA, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : perfdata_repair(fd, NULL, &err);

	if (r) {
		log_warn("cannot repair %s/%s: %s%s%s%s; perf may refuse it, profcpu does not", dir, RECORDING_PERF_DATA,
			 err.what ? err.what : "", err.what ? ": " : "", strerror(-r), mend_of(r));
		return;
	}
	if (!source->has_manifest)
		return;
	source->manifest.finished = true;
	if (!source->manifest.ended)
		source->manifest.ended = strdup(RECORDING_KILLED);
	if (!profile_each_sample(profile, postprocess_span_add, &span))
		source->manifest.duration_ns = span.last_ns - span.first_ns;
}

static void postprocess_manifest(struct source *source, const char *dir, const struct input_result *result)
{
	struct recording_manifest *m = &source->manifest;

	if (!source->has_manifest || (m->symbols_complete == result->data.store_complete && !result->unfinished &&
				      !source->lacks_manifest))
		return;
	source->lacks_manifest = false;
	m->symbols_complete = result->data.store_complete;
	int r = recording_manifest_write(source->dir_fd, m);

	if (r)
		log_warn("cannot write %s/%s: %s", dir, RECORDING_MANIFEST, strerror(-r));
}

static const char *postprocess_title(const struct source *source, const struct postprocess_options *options)
{
	const char *recorded = source_title(source);

	if (options->title)
		return options->title;
	return recorded ? recorded : "Flame Graph";
}

static int postprocess_report(struct profile *profile, const struct input_result *result, const struct audit *audit)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	int r = report_write(profile, result, audit, &out);
	int closed = outbuf_close(&out);

	r = r ? r : closed;
	if (r)
		log_error("cannot print the report: %s%s", strerror(-r), mend_of_stdout(r));
	return r;
}

/* What an archive holds that was made before a file was damaged cannot be made again. */
static bool postprocess_keeps_archive(const struct source *source, const struct outdir *dir, const struct input_result *result, bool waits_are_whole)
{
	const char *lost = result->data_damaged ? RECORDING_PERF_DATA : !waits_are_whole ? RECORDING_OFFCPU :
			   source->samples_fd >= 0 && !source->has_samples ? RECORDING_SAMPLES : NULL;

	if (!lost || faccessat(dir->fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW))
		return false;
	log_note("%s/%s stays as it is, as it may hold what %s has lost: `profcpu postprocess -o NEW-DIR %s/%s`", dir->path,
		 RECORDING_ARCHIVE, lost, dir->path, RECORDING_ARCHIVE);
	return true;
}

/* Whether offcpu.idx speaks of all waits. (A recording that came to no good end has said so, and has what it has.) */
static bool postprocess_waits_are_whole(const struct source *source, const char *dir, struct profile *profile, const struct input_result *result)
{
	uint64_t waits = 0, off_ns = 0, untold = result->data.waits_untold;

	if (!source->has_manifest || result->data_damaged || (source->manifest.damage && *source->manifest.damage) ||
	    profile_off_cpu_sum(profile, &waits, &off_ns) || !waits || (source->has_offcpu && !untold))
		return true;
	if (source->has_offcpu)
		log_warn("%s/%s says nothing of %llu of %llu waits: there is no %s, and %s lacks them", dir, RECORDING_OFFCPU,
			 (unsigned long long)untold, (unsigned long long)waits, RECORDING_WALL_FOLDED, RECORDING_WAKEUP_FOLDED);
	else if (source->offcpu_fd < 0)
		log_warn("%s/%s is missing: who ended waits is not known, nor what threads did in all", dir, RECORDING_OFFCPU);
	return false;
}

/* Outputs of waits that are not made though waits were recorded. */
static void postprocess_say_waits(const struct source *source, const char *dir, struct profile *profile)
{
	if (!source->has_offcpu)
		return;
	if (profile_off_cpu_event(profile) == PROFILE_NONE)
		log_note("%s has no %s, %s and their pictures, nor wakeups: there was no wait, or only such as are below --off-cpu-min, before the "
			 "recording or the target ended", dir, RECORDING_OFFCPU_FOLDED, RECORDING_WALL_FOLDED);
	else if (profile_wakeup_event(profile) == PROFILE_NONE)
		log_note("%s has no %s and its picture: of no wait it is known who ended it", dir, RECORDING_WAKEUP_FOLDED);
	if (profile_off_cpu_event(profile) != PROFILE_NONE && !source->offcpu.file.ended)
		log_note("%s has no %s and its picture: what threads did in all is written at the recording's end, which its recorder did not come to", dir,
			 RECORDING_WALL_FOLDED);
}

static int postprocess_outputs(struct source *source, struct profile *profile, const struct outdir *dir,
			       struct input_result *result, const struct audit *audit, const struct postprocess_options *options,
			       bool *ret_wrote)
{
	bool in_place = postprocess_in_place(source, dir->fd), whole = postprocess_waits_are_whole(source, dir->path, profile, result);
	struct outputs_options outputs = {.dir = dir->path,
					  .dir_fd = dir->fd,
					  .title = postprocess_title(source, options),
					  .result = result,
					  .audit = audit,
					  .offcpu = source->has_offcpu && source->offcpu.file.ended && whole ? &source->offcpu : NULL,
					  .in_place = in_place,
					  .archive = in_place && !postprocess_keeps_archive(source, dir, result, whole),
					  .lines = options->input.lines,
					  .idle = options->input.idle,
					  .script = true};

	if (result->kind == SOURCE_TEXT && result->text.first_event != PROFILE_NONE)
		outputs.first_event = profile_text_of(profile, result->text.first_event, NULL);

	if (!profile_nsamples(profile) && !options->none_expected)
		log_warn("%s has no samples: %s", dir->path,
			 result->damaged ? "what is left of the recording holds none"
					 : "the target ran for less than the time between two, or not at all, or the event did not happen in it");
	if (in_place && result->unfinished)
		postprocess_repair(source, dir->path, profile, options->quiet);
	if (in_place)
		postprocess_manifest(source, dir->path, result);
	postprocess_say_waits(source, dir->path, profile);
	int r = outputs_write(profile, &outputs, ret_wrote);
	int reported = options->quiet ? 0 : postprocess_report(profile, result, audit);

	return r ? r : reported;
}

static int postprocess_load_once(struct source *source, const char *name, const struct input_options *input,
				 struct profile **ret_profile, struct input_result *result)
{
	struct profile *profile = NULL;
	int r = profile_new(&profile);

	if (r)
		log_error("out of memory%s", mend_of(r));
	else
		r = input_load_source(source, name, input, profile, result);
	if (r)
		profile_free(profile);
	else
		*ret_profile = profile;
	return r;
}

/*
 * Names once with what is here; where that leaves functions without a name, fetches the debug files of their images, and
 * names once more, from what was kept in store_fd the first time.
 */
static int postprocess_load(struct source *source, const char *name, const struct postprocess_options *options,
			    struct input_options *input, struct profile **ret_profile, struct input_result *result)
{
	struct symbolizer_images images = {0};
	bool may_fetch = options->fetch && !options->fetch->off && !input->offline && input->write_store_dir_fd >= 0;

	input->improve = true;
	input->ret_images = may_fetch ? &images : NULL;
	int r = postprocess_load_once(source, name, input, ret_profile, result);

	if (!r && may_fetch && !result->data.store_error && fetch_for(options->fetch, &images)) {
		struct symbolizer_unread unread = result->data.unread;

		if (source->store_fd < 0)
			source->store_fd = fcntl(input->write_store_dir_fd, F_DUPFD_CLOEXEC, 0);
		profile_free(*ret_profile);
		*ret_profile = NULL;
		audit_free(input->ret_audit);
		input->ret_images = NULL;
		input->ret_manifest = NULL;
		input->said = true;
		r = postprocess_load_once(source, name, input, ret_profile, result);
		result->data.unread = unread;
	}
	symbolizer_images_free(&images);
	return r;
}

int postprocess_run(struct source *source, const char *name, const struct outdir *dir,
		    const struct postprocess_options *options, bool *ret_wrote)
{
	AUTO_CLOSE int store_fd = -1;
	struct input_options input = options->input;
	struct input_result result = {0};
	struct profile *profile = NULL;
	struct audit audit = {0};
	bool in_place = postprocess_in_place(source, dir->fd), wrote = false;

	if (in_place && !input.offline)
		store_fd = postprocess_store(dir->fd, dir->path);
	input.write_store_dir_fd = store_fd;
	input.ret_audit = &audit;
	bool makes_manifest = in_place && source->lacks_manifest;

	if (makes_manifest)
		input.ret_manifest = &source->manifest;
	int r = postprocess_load(source, name, options, &input, &profile, &result);

	if (!r && makes_manifest) {
		source->has_manifest = true;
		postprocess_take_times(&source->manifest, profile);
	}
	if (!r && result.data.store_error)
		postprocess_say_no_store(dir->path, result.data.store_error);
	/* What was sampled has its names in the store now; the rest is thousands of methods that nobody asks for. */
	if (!r && store_fd >= 0 && result.data.store_complete && !result.data.keeps_lines)
		(void)jit_methods_remove(store_fd);
	if (!r)
		postprocess_say_unread(dir->path, input.offline, &result.data.unread);
	if (!r)
		input_say_lines(&input, name, &result);
	if (!r && result.data.hides_lines && !options->quiet)
		log_note("%s has lines or inlined functions, which the outputs have with --lines and --inlines", dir->path);
	if (!r)
		r = postprocess_outputs(source, profile, dir, &result, &audit, options, &wrote);
	profile_free(profile);
	audit_free(&audit);
	if (ret_wrote)
		*ret_wrote = wrote;
	return r || result.damaged ? EXIT_FAILED : EXIT_DONE;
}
