#include "profcpu/input.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "profcpu/mend.h"
#include "profcpu/options.h"
#include "symbols/managed_name.h"
#include "symbols/pdb_room.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

int input_max_stack(struct input_options *options, const char *text)
{
	uint64_t frames;
	int r = options_u64("--max-stack", text, 1, CALLCHAINS_FRAMES_LIMIT, &frames);

	if (!r)
		options->max_stack = frames;
	return r;
}

static int input_failed(const char *name, int r, const struct parse_error *err)
{
	if (r == -ENOMEM)
		log_error("cannot read %s: out of memory%s", name, mend_of(r));
	else if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
		/* Reading has no such errors: many samples are put into a temporary file. */
		log_error("cannot read %s: %s for the samples; set TMPDIR to a directory with room", name, strerror(-r));
	else if (err->what && !err->offset)
		log_error("cannot read %s: %s", name, err->what);
	else if (err->what)
		log_error("cannot read %s: %s (at byte %llu)", name, err->what,
			  (unsigned long long)err->offset);
	else
		log_error("cannot read %s: %s", name, strerror(-r));
	return r;
}

/* Says what of the data did not come through. A recorder that was killed is no damage: its recording is whole up to then. */
static void input_judge_data(const struct source *source, const char *name, bool said, struct input_result *result)
{
	const struct perfdata_stats *d = &result->data.data;
	bool ours = source->has_manifest && !source->manifest.finished;

	result->unfinished = d->unfinished || ours;
	result->data_damaged = (d->truncated_at && !result->unfinished) ||
			       (result->data.damaged && !(result->unfinished && d->truncated_at)) || d->damaged;
	result->damaged |= result->data_damaged;
	if (said)
		return;
	if (result->unfinished)
		log_note("%s was not finished by its recorder; taking all that %s (%llu samples)", name,
			 source->damaged ? "is left" : "it wrote", (unsigned long long)d->samples);
	if (d->truncated_at && !result->unfinished)
		log_warn("%s is cut at byte %llu; %llu samples before that were read", name,
			 (unsigned long long)d->truncated_at, (unsigned long long)d->samples);
	if (result->data.damaged && !(result->unfinished && d->truncated_at))
		log_warn("%s is damaged at byte %llu (%s); %llu samples before that were read", name,
			 (unsigned long long)result->data.error.offset,
			 result->data.error.what ? result->data.error.what : "unreadable",
			 (unsigned long long)d->samples);
	if (d->damaged)
		log_warn("%s: %llu records do not fit their size and were skipped", name,
			 (unsigned long long)d->damaged);
}

/* Paths and PIDs of another machine say nothing here. */
static bool input_recorded_here(const struct source *source)
{
	struct utsname here;

	return source->has_manifest && source->manifest.host && !uname(&here) &&
	       !strcmp(source->manifest.host, here.nodename);
}

/* When the recording ended; 0: not known. */
static uint64_t input_recorded_until(const struct source *source)
{
	const struct recording_manifest *m = &source->manifest;

	return source->has_manifest && m->start_realtime_ns && m->duration_ns ? m->start_realtime_ns + m->duration_ns : 0;
}

static int input_load_data(struct source *source, const char *name, const struct input_options *options,
			   struct profile *profile, struct input_result *result)
{
	struct opener *own = NULL;
	int r = options->offline || options->opener ? 0 : opener_new(&own);

	if (r)
		return input_failed(name, r, &(struct parse_error){0});
	struct ingest_options ingest = {
		.symbols = {.store_dir_fd = source->store_fd,
			    .opener = options->opener ? options->opener : own,
			    .offline = options->offline,
			    .recorded_until_ns = input_recorded_until(source),
			    .recorded_from_ns = source->has_manifest ? source->manifest.start_realtime_ns : 0,
			    .from_ns = source->has_manifest ? source->manifest.start_monotonic_ns : 0,
			    .recorded_here = input_recorded_here(source),
			    .recorded_elsewhere = source->has_manifest && !input_recorded_here(source),
			    .improve = options->improve,
			    .jit_not_asked = source->manifest.jit_names && !strcmp(source->manifest.jit_names, "none"),
			    .raw_names = options->raw_names,
			    .mangled = options->mangled,
			    .inlines = options->inlines,
			    .lines = options->lines,
			    .by_function = options->functions_only,
			    .perf_names_only = options->functions_only && options->perf_names_only,
			    .max_stack = options->max_stack},
		.samples = source->has_samples ? &source->samples : NULL,
		.offcpu = source->has_offcpu ? &source->offcpu : NULL,
		.grades = options->grades,
		.ret_audit = options->ret_audit,
		.ret_images = options->ret_images,
		.ret_manifest = options->ret_manifest,
		.write_store_dir_fd = options->write_store_dir_fd > 0 ? options->write_store_dir_fd : -1,
	};

	r = ingest_perfdata(source->fd, &ingest, profile, &result->data);
	opener_free(own);
	if (r)
		return input_failed(name, r, &result->data.error);
	input_judge_data(source, name, options->said, result);
	return 0;
}

static void input_managed_name(const char *name, size_t len, struct outbuf *out)
{
	struct managed_name_part tier, module;

	managed_name_full(name, len, out, &tier, &module);
}

static int input_load_text(struct source *source, const char *name, const struct input_options *options,
			   struct profile *profile, struct input_result *result)
{
	struct script_text_options text = options->text;
	struct parse_error err = {0};

	if (!text.full_name && !options->raw_names)
		text.full_name = input_managed_name;
	if (options->inlines || options->lines)
		log_note("%s has no effect on %s: a text has the functions and lines that it has",
			 options->inlines ? "--inlines" : "--lines", name);
	if (options->max_stack || options->grades)
		log_note("%s has no effect on %s: a text has the stacks that it has", options->max_stack ? "--max-stack" : "--grades", name);
	if (options->mangled)
		log_note("--mangled has no effect on %s: names in a text stay as they are", name);
	int r = script_text_read(source->fd, &text, profile, &result->text, &err);

	if (r)
		return input_failed(name, r, &err);
	if (result->text.bad_lines) {
		result->damaged = true;
		log_warn("%s: %llu of %llu lines are not perf script's and were skipped", name,
			 (unsigned long long)result->text.bad_lines, (unsigned long long)result->text.lines);
	}
	if (result->text.unended) {
		result->damaged = true;
		log_warn("%s is cut inside of a sample, which is left out; %llu samples before that were read", name,
			 (unsigned long long)result->text.samples);
	}
	return 0;
}

static bool input_rings_free(const struct source *source)
{
	return source->manifest.ring_memory && !strcmp(source->manifest.ring_memory, RECORDING_RINGS_FREE);
}

int input_load_source(struct source *source, const char *name, const struct input_options *options,
		      struct profile *profile, struct input_result *ret_result)
{
	AUTO_FREE char *inside = NULL;

	*ret_result = (struct input_result){.kind = source->kind, .damaged = source->damaged, .rings_free = input_rings_free(source)};
	if (source->kind == SOURCE_TEXT)
		return input_load_text(source, name, options, profile, ret_result);
	/* Bytes that messages name are counted in there. */
	if (source->kind == SOURCE_ARCHIVE && asprintf(&inside, "%s in %s", RECORDING_PERF_DATA, name) < 0)
		inside = NULL;
	return input_load_data(source, inside ? inside : name, options, profile, ret_result);
}

/* " and 3 more" behind the name of the first; "" where it is the only one. */
static const char *input_more(uint64_t n, char more[64])
{
	more[0] = 0;
	if (n > 1)
		snprintf(more, 64, " and %llu more", (unsigned long long)n - 1);
	return more;
}

/* Once for all processes; they differ in no way but how they were recorded. */
static void input_say_jit_lines(const struct symbolizer_lineless *lineless)
{
	bool perf_map = !strcmp(lineless->jit_way, "perfmap");
	char more[64];

	log_note("there are no lines of what process %d%s compiled at run time: %s", lineless->jit_pid, input_more(lineless->jits, more),
		 perf_map		? "its perf map has none; `profcpu collect --lines` takes them with --jit-names=memory (.NET 10) and rundown" :
		 lineless->jit_way[0] ? "it was recorded without `profcpu collect --lines`, or its runtime did not tell (--jit-names=rundown)" :
					"its runtime wrote none");
}

static void input_say_pdbs(const struct symbolizer_lineless *lineless)
{
	char more[64];

	log_note("there are no lines of the .NET code that %s%s would tell: neither beside the assembl%s nor in %s, nor fetched before; "
		 "`profcpu symbols fetch --lines` asks symbol servers",
		 lineless->first_pdb, input_more(lineless->pdbs, more), lineless->pdbs == 1 ? "y" : "ies", lineless->pdbs == 1 ? "it" : "them");
}

static void input_say_no_room(const struct symbolizer_lineless *lineless)
{
	char more[64];

	log_note("there is no room for %s%s, and their code has no lines: PDBs of all processes may take %u GiB, those of one no more than they "
		 "leave; record fewer processes (`profcpu collect -p PID`)",
		 lineless->first_refused, input_more(lineless->pdbs_refused, more), (unsigned int)(PDB_ROOM_BYTES_MAX >> 30));
}

void input_say_lines(const struct input_options *options, const char *name, const struct input_result *result)
{
	const char *what = !options->lines ? "inlined functions" : !options->inlines ? "lines" : "inlined functions and lines";
	const struct symbolizer_lineless *lineless = &result->data.lineless;
	char more[64];

	if (lineless->jits)
		input_say_jit_lines(lineless);
	if (lineless->pdbs)
		input_say_pdbs(lineless);
	if (lineless->pdbs_refused)
		input_say_no_room(lineless);
	if (!lineless->files)
		return;
	log_note("the %s of %s%s are not in %s, and %s; `profcpu postprocess --inlines --lines` where it was recorded puts them there", what,
		 lineless->first, input_more(lineless->files, more), name, options->offline ? "--offline looks nowhere else" : "cannot be had here");
}

int input_load(const char *path, const struct input_options *options, struct profile *profile,
	       struct input_result *ret_result)
{
	struct source source;
	int r = source_open(path, &source);

	if (r)
		return r;
	r = input_load_source(&source, source_name(path), options, profile, ret_result);
	/* Who lists images says of each what it lacks. */
	if (!r && !options->ret_images)
		input_say_lines(options, source_name(path), ret_result);
	source_close(&source);
	return r;
}
