#include "profcpu/post/load.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/remedy.h"
#include "container/ask.h"
#include "container/memory_left.h"
#include "dotnet/pdb_budget.h"
#include "elf/debug_file.h"
#include "profile/text_room.h"
#include "symbols/names/managed_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LOAD_EVENTS_SHOWN 16 /* names of events in a message */

static int load_failed(const char *name, int r, const struct parse_error *err)
{
	if (r == -ENOMEM)
		log_error("cannot read %s: out of memory%s", name, remedy_for(r));
	else if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
		/* Reading has no such errors, but large profiles use a temporary file. */
		log_error("cannot read %s: no temporary file for its samples: %s; set TMPDIR to a "
			  "directory with room",
			  name, strerror(-r));
	else if (r == -E2BIG && !err->what)
		log_error("cannot read %s: it has too many different stacks, names or threads for "
			  "one run; split it, or leave memory for it",
			  name);
	else if (err->what && !err->offset)
		log_error("cannot read %s: %s", name, err->what);
	else if (err->what)
		log_error("cannot read %s: %s (at byte %llu)", name, err->what,
			  (unsigned long long)err->offset);
	else
		log_error("cannot read %s: %s", name, strerror(-r));
	return r;
}

/* Reports damage of the data. A killed recorder is not damage: its recording is whole until then.
 */
static void load_report_damage(const struct post_source *source, const char *name, bool no_damage,
			       struct post_result *result)
{
	const struct perfdata_stats *d = &result->data.data;
	bool ours = source->has_manifest && !source->manifest.finished;

	result->unfinished = d->unfinished || ours;
	result->data_damaged = (d->truncated_at && !result->unfinished) ||
			       (result->data.damaged && !(result->unfinished && d->truncated_at)) ||
			       d->damaged;
	result->damaged |= result->data_damaged;
	if (no_damage)
		return;
	if (result->unfinished)
		log_note("%s: its recorder did not finish it; loaded all that %s (%llu samples)",
			 name, source->damaged ? "is left" : "it wrote",
			 (unsigned long long)d->samples);
	if (d->truncated_at && !result->unfinished)
		log_warn("%s: cut at byte %llu; %llu samples before it were read", name,
			 (unsigned long long)d->truncated_at, (unsigned long long)d->samples);
	if (result->data.damaged && !(result->unfinished && d->truncated_at))
		log_warn("%s: damaged at byte %llu (%s); %llu samples before it were read", name,
			 (unsigned long long)result->data.error.offset,
			 result->data.error.what ? result->data.error.what : "unreadable",
			 (unsigned long long)d->samples);
	if (d->damaged)
		log_warn("%s: %llu records with contents that do not fit their size were skipped",
			 name, (unsigned long long)d->damaged);
}

/* Whether this machine made the recording. Else its paths and PIDs mean nothing here. */
static bool load_recorded_here(const struct post_source *source)
{
	struct utsname here;

	return source->has_manifest && source->manifest.host && !uname(&here) &&
	       !strcmp(source->manifest.host, here.nodename);
}

/* End of the recording in real time; 0: not known. */
static uint64_t load_recorded_until(const struct post_source *source)
{
	const struct recording_manifest *m = &source->manifest;

	return source->has_manifest && m->start_realtime_ns && m->duration_ns
		       ? m->start_realtime_ns + m->duration_ns
		       : 0;
}

void post_load_report_texts(const char *name, struct profile_text_changes changes)
{
	if (changes.escaped)
		log_warn("%s: %u names have control characters or invalid UTF-8, which are shown "
			 "as \\x and two digits",
			 name, changes.escaped);
	if (changes.cut)
		log_warn("%s: %u names have more than %u bytes and are cut; their last 8 digits "
			 "tell them apart%s",
			 name, changes.cut, changes.max,
			 changes.max < PROFILE_TEXT_MAX
				 ? ". Longer names would make outputs too large"
				 : "");
}

uint64_t post_load_picture_memory(void)
{
	return memory_left() / 2 + 1;
}

void post_load_report_cut(const char *name, enum recording_limit limit, uint64_t cut)
{
	if (cut)
		log_warn("%s: %llu %s; run the command again with more memory", name,
			 (unsigned long long)cut, recording_limit_text(limit).cost);
}

static void load_warn_owner(const struct post_source *source, const char *name)
{
	if (!source->forger)
		return;
	if (source->only_dir_forged)
		log_warn("%s: user %u owns it, so files of ended processes are opened with the "
			 "rights of this user; choose another directory with -o if you need more",
			 name, source->forger);
	else if (source->forger == OPENER_NOBODY)
		log_warn("%s: several users may have forged it, so only files that everybody may "
			 "read are opened, and no running process is looked at; copy it if you "
			 "trust it",
			 name);
	else
		log_warn("%s: user %u may have forged it, so files are opened with the rights of "
			 "this user, and no running process is looked at; copy it if you trust it",
			 name, source->forger);
}

/* Warns of a trace that is damaged, or of no use. what: what is lacking then. */
static void load_report_managed(const char *name, const char *what, int r,
				const struct parse_error *err)
{
	if (r)
		log_warn("%s/%s: %s: %s", name, RECORDING_TRACE, what,
			 r == -ENODATA ? "it has no samples of the runtime's sampler"
			 : err->what   ? err->what
				       : strerror(-r));
	else if (err->code)
		log_warn("%s/%s: damaged at byte %llu (%s); the events before it were read", name,
			 RECORDING_TRACE, (unsigned long long)err->offset,
			 err->what ? err->what : "unreadable");
}

/* Goes back to the start of the trace: it was read before, or copied. False: it cannot be read. */
static bool load_rewind_trace(const struct post_source *source)
{
	return source->trace_fd >= 0 && !lseek(source->trace_fd, 0, SEEK_SET) &&
	       (source->trace_threads_fd < 0 || !lseek(source->trace_threads_fd, 0, SEEK_SET));
}

/* Reads the trace of a recording, as its manifest says what it is for. */
static void load_trace_of(const struct post_source *source, const char *name,
			  const struct post_options *options, struct profile *profile,
			  struct compare **ret_compare, struct managed_profiles **ret_managed)
{
	const struct recording_manifest *m = &source->manifest;
	const struct trace_place_options place = {.threads_fd = source->trace_threads_fd,
						  .pid = (pid_t)m->trace_pid,
						  .sent_ns = m->trace_sent_ns,
						  .received_ns = m->trace_received_ns};
	const struct compare_options compare = {
		.trace_fd = source->trace_fd, .place = place, .max_bytes = memory_left() / 4};
	/* Without samples on CPUs, there are none of the runtime's work. */
	unsigned no_cpu =
		m->event && !strcmp(m->event, RECORDING_NO_EVENT) ? 1u << MANAGED_RUNTIME : 0;
	const struct managed_options managed = {
		.trace_fd = source->trace_fd,
		.wanted = managed_kinds_of(m->trace_events) & ~no_cpu,
		.place = place,
		.max_bytes = memory_left() / 4,
		.unlisted = managed_words_have(m->trace_events, RECORDING_TRACE_UNLISTED),
		.raw_names = options->raw_names};
	struct parse_error err = {0};

	if (!load_rewind_trace(source))
		return;
	if (!managed.wanted || managed_words_have(m->trace_events, RECORDING_TRACE_SAMPLER))
		load_report_managed(name, "nothing can be compared",
				    compare_new(profile, &compare, ret_compare, &err), &err);
	if (!managed.wanted || !load_rewind_trace(source))
		return;
	err = (struct parse_error){0};
	load_report_managed(name, "its events have no profiles",
			    managed_profiles_new(profile, &managed, ret_managed, &err), &err);
}

/* The stacks of the trace that need names. Returns their number. */
static uint32_t load_sources(struct compare *compare, struct managed_profiles *managed,
			     struct unnamed_source ret_sources[2])
{
	uint32_t n = 0;

	if (compare)
		ret_sources[n++] = compare_source(compare);
	if (managed)
		ret_sources[n++] = managed_profiles_source(managed);
	return n;
}

/* Completes the results of load_trace_of, or frees them after an error. r: of the import. */
static int load_end_trace(const struct post_options *options, int r, struct compare *compare,
			  struct managed_profiles *managed)
{
	if (!r && managed)
		r = managed_profiles_finish(managed);
	if (!r && options->ret_compare) {
		*options->ret_compare = compare;
		*options->ret_managed = managed;
	} else {
		compare_free(compare);
		managed_profiles_free(managed);
	}
	return r;
}

static int load_data(struct post_source *source, const char *name,
		     const struct post_options *options, struct profile *profile,
		     struct post_result *result)
{
	struct managed_profiles *managed = NULL;
	struct unnamed_source sources[2];
	struct opener *own = NULL;
	int r;

	if (!options->offline)
		load_warn_owner(source, name);
	if (source->forger && !source->only_dir_forged)
		opener_confine(source->forger);
	r = options->offline || options->opener ? 0 : opener_new(&own);

	if (r)
		return load_failed(name, r, &(struct parse_error){0});
	struct import_options import = {
		.symbols = {.store_dir_fd = source->store_fd,
			    .foreign = source->forger,
			    .owner = source->forger,
			    .opener = options->opener ? options->opener : own,
			    .offline = options->offline,
			    .recorded_until_ns = load_recorded_until(source),
			    .recorded_from_ns =
				    source->has_manifest ? source->manifest.start_realtime_ns : 0,
			    .from_ns =
				    source->has_manifest ? source->manifest.start_monotonic_ns : 0,
			    .recorded_here = load_recorded_here(source),
			    .recorded_elsewhere =
				    source->has_manifest && !load_recorded_here(source),
			    .improve = options->improve,
			    .jit_names_off = source->manifest.jit_names &&
					     !strcmp(source->manifest.jit_names, "none"),
			    .raw_names = options->raw_names,
			    .mangled = options->mangled,
			    .inlines = options->inlines,
			    .lines = options->lines,
			    .by_function = options->functions_only,
			    .perf_names_only = options->functions_only && options->perf_names_only,
			    .max_stack = options->max_stack},
		.data = TAKE_PTR(source->data),
		.samples = source->has_samples ? &source->samples : NULL,
		.at_call_sites = source->manifest.unwound,
		.offcpu = source->has_offcpu ? &source->offcpu : NULL,
		.perf_threads = options->perf_names_only,
		.grades = options->grades,
		.ret_audit = options->ret_audit,
		.ret_images = options->ret_images,
		.ret_manifest = options->ret_manifest,
		.write_store_dir_fd =
			options->write_store_dir_fd > 0 ? options->write_store_dir_fd : -1,
	};

	if (options->ret_compare)
		load_trace_of(source, name, options, profile, &import.compare, &managed);
	import.managed = managed;
	import.nsources = load_sources(import.compare, managed, sources);
	import.sources = sources;
	r = post_import_perfdata(source->fd, &import, profile, &result->data);
	r = load_end_trace(options, r, import.compare, managed);
	opener_free(own);
	if (!r)
		r = text_room_fit(profile);
	if (r)
		return load_failed(name, r, &result->data.error);
	load_report_damage(source, name, options->no_damage, result);
	return 0;
}

static void load_managed_name(const char *name, size_t len, struct outbuf *out)
{
	struct managed_name_part tier, module;

	managed_name_full(name, len, out, &tier, &module);
}

static int load_text(struct post_source *source, const char *name,
		     const struct post_options *options, struct profile *profile,
		     struct post_result *result)
{
	struct script_text_options text = options->text;
	struct parse_error err = {0};

	if (!text.full_name && !options->raw_names)
		text.full_name = load_managed_name;
	if (options->inlines || options->lines)
		log_note("%s has no effect on %s: text keeps its own functions and lines",
			 options->inlines ? "--inlines" : "--lines", name);
	if (options->max_stack || options->grades)
		log_note("%s has no effect on %s: text keeps its own stacks",
			 options->max_stack ? "--max-stack" : "--grades", name);
	if (options->mangled)
		log_note("--mangled has no effect on %s: text keeps its own names", name);
	int r = script_text_read(source->fd, &text, profile, &result->text, &err);

	if (r)
		return load_failed(name, r, &err);
	if (result->text.bad_lines) {
		result->damaged = true;
		log_warn("%s: %llu of %llu lines are not lines of perf script and were skipped",
			 name, (unsigned long long)result->text.bad_lines,
			 (unsigned long long)result->text.lines);
	}
	if (result->text.unended) {
		result->damaged = true;
		log_warn("%s: cut inside a sample; %llu samples before it were read", name,
			 (unsigned long long)result->text.samples);
	}
	return 0;
}

/* Reports what the samples of a trace lack. */
static void load_report_trace(const char *name, const struct post_options *options,
			      const struct import_trace_result *trace)
{
	if (trace->lost)
		log_warn("%s: the runtime dropped %llu events", name,
			 (unsigned long long)trace->lost);
	if (trace->unknown)
		log_warn("%s: %llu events or blocks are left out, because nothing describes them",
			 name, (unsigned long long)trace->unknown);
	if (trace->unweighted)
		log_warn("%s: %llu events have no number in the field of '%s', and were left out",
			 name, (unsigned long long)trace->unweighted, options->trace_event);
	if (trace->methods_left_out)
		log_warn("%s: %llu methods of its list are left out, because they take too much "
			 "memory",
			 name, (unsigned long long)trace->methods_left_out);
	if (trace->nameless)
		log_warn("%s: %.1f %% of the frames have no name, because the trace lists no "
			 "method there%s",
			 name, 100.0 * (double)trace->nameless / (double)trace->frames,
			 trace->nameless < trace->frames / 2
				 ? ""
				 : "; `profcpu trace` adds the names at its end, if it can");
	if (options->inlines || options->lines || options->grades || options->mangled)
		log_note("%s has no effect on %s: a trace has no such data",
			 options->inlines  ? "--inlines"
			 : options->lines  ? "--lines"
			 : options->grades ? "--grades"
					   : "--mangled",
			 name);
}

/* -ENOENT after a message: no event can be drawn, or not the chosen one. */
static int load_check_trace(const char *name, const struct post_options *options,
			    const struct import_trace_result *trace)
{
	if (trace->samples || trace->unweighted)
		return 0;
	log_error("%s has no %s%s%s", name,
		  options->trace_event ? "event with a stack named " : "samples of the sampler",
		  options->trace_event ? options->trace_event : "",
		  !trace->other_events ? ", and no other event with a stack"
				       : "; choose other events with `profcpu fold --event`");
	if (trace->other_events)
		log_note("its events with stacks: %s", trace->others);
	return -ENOENT;
}

static int load_trace(struct post_source *source, const char *name,
		      const struct post_options *options, struct profile *profile,
		      struct post_result *result)
{
	const struct import_trace_options trace = {.event = options->trace_event,
						   .raw_names = options->raw_names,
						   .functions_only = options->functions_only,
						   .max_stack = options->max_stack};
	struct parse_error err = {0};
	int r = post_import_trace(source->fd, &trace, profile, &result->trace, &err);

	if (r && (!result->trace.samples || r == -ENOTSUP || err.code != r))
		return load_failed(name, r, &err);
	if (r || result->trace.is_cut) {
		result->damaged = true;
		log_warn("%s: %s%s; what came before is used", name,
			 r ? "damaged: " : "the trace was cut off", r ? err.what : "");
	}
	r = load_check_trace(name, options, &result->trace);
	if (r)
		return r;
	load_report_trace(name, options, &result->trace);
	return text_room_fit(profile);
}

static bool load_rings_free(const struct post_source *source)
{
	return source->manifest.ring_memory &&
	       !strcmp(source->manifest.ring_memory, RECORDING_RINGS_FREE);
}

int post_load_source(struct post_source *source, const char *name,
		     const struct post_options *options, struct profile *profile,
		     struct post_result *ret_result)
{
	AUTO_FREE char *inside = NULL;
	uint64_t silent = ask_silent();

	*ret_result = (struct post_result){.kind = source->kind,
					   .damaged = source->damaged,
					   .rings_free = load_rings_free(source)};
	/* Messages count bytes in the unpacked file, so name it. */
	if ((source->kind == INPUT_ARCHIVE || source->kind == INPUT_PERF_DIR) &&
	    asprintf(&inside, "%s in %s", RECORDING_PERF_DATA, name) < 0)
		inside = NULL;
	profile_limit_memory(profile, memory_left);
	int r = source->kind == INPUT_TEXT ? load_text(source, name, options, profile, ret_result)
		: source->kind == INPUT_TRACE
			? load_trace(source, name, options, profile, ret_result)
			: load_data(source, inside ? inside : name, options, profile, ret_result);

	ret_result->limits = source->manifest.limits;
	for (int i = 0; i < LIMITS; i++)
		ret_result->limits.cost[i] += ret_result->data.stacks.limits.cost[i];
	ret_result->limits.cost[LIMIT_STACK_MEMORY] += ret_result->data.cut_stacks +
						       ret_result->text.cut_stacks +
						       ret_result->trace.cut_stacks;
	ret_result->limits.cost[LIMIT_DEBUG_LINKS] += debug_file_take_uncompared();
	ret_result->limits.cost[LIMIT_SILENT] += ask_silent() - silent;
	ret_result->limits.cost[LIMIT_ADDRESSES] +=
		profile_left_out(profile) + ret_result->data.left_out;
	if (!r)
		post_load_report_texts(name, profile_text_changes(profile));
	/* The report has lines of its own. */
	if (!r && !options->ret_audit) {
		post_load_report_cut(name, LIMIT_STACK_MEMORY,
				     ret_result->limits.cost[LIMIT_STACK_MEMORY]);
		post_load_report_cut(name, LIMIT_ADDRESSES,
				     ret_result->limits.cost[LIMIT_ADDRESSES]);
		if (ret_result->data.dropped.maps)
			log_warn("%s: %llu maps of code were left out, so frames in them have no "
				 "names; run the command again with more memory",
				 name, (unsigned long long)ret_result->data.dropped.maps);
	}
	return r;
}

uint64_t post_lost_samples(const struct post_result *result)
{
	const struct import_result *data = &result->data;
	uint64_t lost = data->data.lost_events + data->data.lost_samples,
		 others = data->lost_switches + result->limits.cost[LIMIT_OTHER_RECORDS];

	/* The recording may lack records that the recorder counted. */
	return lost > others ? lost - others : 0;
}

/* " and 3 more" to follow the name of the first; "" if it is the only one. */
static const char *load_more(uint64_t n, char more[64])
{
	more[0] = 0;
	if (n > 1)
		snprintf(more, 64, " and %llu more", (unsigned long long)n - 1);
	return more;
}

/* One note for all processes, because all have the same reason. */
static void load_note_jit_lines(const struct symbolizer_missing_lines *lineless)
{
	char more[64];

	log_note("process %d%s: JIT-compiled code has no lines: %s", lineless->jit_pid,
		 load_more(lineless->jits, more),
		 lineless->jit_way[0] ? "it was recorded without `profcpu collect --lines`, or its "
					"runtime gave none; try --jit-names=rundown"
				      : "its runtime wrote none");
}

static void load_note_pdbs(const struct symbolizer_missing_lines *lineless)
{
	char more[64];

	log_note("%s%s: missing, or the target may not read it, so .NET code has no lines; make "
		 "it readable (chmod a+r, directories a+x), or run `profcpu symbols fetch --lines`",
		 lineless->first_pdb, load_more(lineless->pdbs, more));
}

static void load_note_no_room(const struct symbolizer_missing_lines *lineless)
{
	char more[64];

	log_note("%s%s: left out, so their code has no lines: by its headers, too large for a "
		 "quarter of the free memory, %u GiB, or %u GiB unpacked; record fewer processes",
		 lineless->first_refused, load_more(lineless->pdbs_refused, more),
		 (unsigned int)(PDB_BUDGET_BYTES_MAX >> 30),
		 (unsigned int)(PDB_BUDGET_UNPACKED_MAX >> 30));
}

void post_load_report_lines(const struct post_options *options, const char *name,
			    const struct post_result *result)
{
	const char *what = !options->lines     ? "inlined functions"
			   : !options->inlines ? "lines"
					       : "inlined functions and lines";
	const struct symbolizer_missing_lines *lineless = &result->data.lineless;
	char more[64];

	if (lineless->jits)
		load_note_jit_lines(lineless);
	if (lineless->pdbs)
		load_note_pdbs(lineless);
	if (lineless->pdbs_refused)
		load_note_no_room(lineless);
	if (!lineless->files)
		return;
	log_note("%s of %s%s: not in %s, and %s; add them with `profcpu postprocess --inlines "
		 "--lines` on the machine of the recording",
		 what, lineless->first, load_more(lineless->files, more), name,
		 options->offline ? "--offline reads nothing else" : "not on this machine");
}

void post_load_report_event(const struct profile *profile, const char *name, const char *wanted)
{
	uint32_t n = profile_nevents(profile),
		 shown = n < LOAD_EVENTS_SHOWN ? n : LOAD_EVENTS_SHOWN;
	struct outbuf events = outbuf_to(-1);

	for (uint32_t i = 0; i < shown; i++)
		outbuf_printf(&events, "%s'%s'", i ? ", " : "",
			      profile_text_of(profile, profile_event_of(profile, i)->name, NULL));
	if (n > shown)
		outbuf_printf(&events, " and %u more", n - shown);
	outbuf_char(&events, '\0');
	log_error("%s: no samples of the event '%s'; %s%s", name, wanted,
		  n ? "choose from " : "it has no samples of any event",
		  !n             ? ""
		  : events.error ? "its events"
				 : events.data);
	outbuf_close(&events);
}

int post_load_need_cpu(const char *name, const struct post_result *result)
{
	if (!result->data.no_cpu)
		return 0;
	log_error("%s: " POST_NO_CPU, name);
	return -ENODATA;
}

int post_load(const char *path, const struct post_options *options, struct profile *profile,
	      struct post_result *ret_result)
{
	struct post_source source;
	int r = post_open(path, &source);

	if (r)
		return r;
	r = post_load_source(&source, post_open_name(path), options, profile, ret_result);
	/* A caller with ret_images reports for each image what it lacks. */
	if (!r && !options->ret_images)
		post_load_report_lines(options, post_open_name(path), ret_result);
	post_open_close(&source);
	return r;
}
