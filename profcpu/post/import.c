#include "profcpu/post/import_impl.h"

#include "base/bigmem.h"
#include "container/memory_left.h"
#include "recording/perfdata_offcpu.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* samples; about as many as are begun while the names of the kernel are read */
#define IMPORT_DEFERRED_MAX ((size_t)128 << 10)
#define IMPORT_DEFERRED_PART 32 /* they may take this part of the memory that is left */

/* The profile's event for event `index` of the file. Makes it for the first sample. */
static int import_event(struct import *in, uint32_t index, struct import_event **ret_event)
{
	const struct perfdata_event *all;
	struct profile_event event = {0};
	size_t n;
	int r;

	all = perfdata_events(in->data, &n);
	if (index >= n)
		return -EBADMSG;
	if (index >= in->nevents) {
		struct import_event *more = reallocarray(in->events, n, sizeof(*more));

		if (!more)
			return -ENOMEM;
		memset(more + in->nevents, 0, (n - in->nevents) * sizeof(*more));
		in->events = more;
		in->nevents = n;
	}
	*ret_event = &in->events[index];
	if (in->events[index].known)
		return 0;
	/*
	 * perf script prints a period, if necessary the event's fixed one, except for tracepoints.
	 */
	event.has_period = all[index].attr.type != PERF_TYPE_TRACEPOINT;
	event.timeless = !(all[index].attr.sample_type & PERF_SAMPLE_TIME);
	event.stackless = !(all[index].attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	event.has_fields = all[index].attr.type == PERF_TYPE_TRACEPOINT &&
			   (all[index].attr.sample_type & PERF_SAMPLE_RAW);
	/* In recordings of perf, offcpu-time is an ordinary event, as in perf's readers. */
	event.off_cpu = perfdata_offcpu_kind(&all[index].attr) == PERFDATA_OFFCPU_WAIT;
	in->events[index].waker = perfdata_offcpu_kind(&all[index].attr) == PERFDATA_OFFCPU_WAKER;
	r = profile_text(in->profile, all[index].name, strlen(all[index].name), &event.name);
	in->events[index].id = PROFILE_NONE;
	if (!r && !in->events[index].waker)
		r = profile_event(in->profile, &event, &in->events[index].id);
	in->events[index].has_period = event.has_period;
	in->events[index].lbr_callchains =
		(all[index].attr.sample_type & PERF_SAMPLE_BRANCH_STACK) &&
		(all[index].attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK);
	in->events[index].known = !r;
	return r;
}

static const struct perfdata_event *import_file_event(const struct import *in, uint32_t index)
{
	size_t n;

	return &perfdata_events(in->data, &n)[index];
}

/*
 * The callchain of a sample whose user part is in branch records, where the processor kept the
 * calls. It has the kernel part, the target of the newest call, and the sources of all calls, as in
 * resolve_lbr_callchain_sample of tools/perf/util/machine.c.
 */
static int import_lbr(struct import *in, struct perfdata_sample *sample)
{
	size_t kernel = 0, n;

	while (kernel < sample->ncallchain && sample->callchain[kernel] != PERF_CONTEXT_USER)
		kernel++;
	if (kernel == sample->ncallchain || !sample->branches || !sample->nbranches ||
	    sample->nbranches > PERFDATA_CALLCHAIN_MAX)
		return 0;
	n = kernel + 1;
	if (n + 1 + sample->nbranches > in->lbr_cap &&
	    vec_grow((void **)&in->lbr, &in->lbr_cap, sizeof(*in->lbr),
		     n + 1 + (size_t)sample->nbranches))
		return -ENOMEM;
	memcpy(in->lbr, sample->callchain, n * sizeof(*in->lbr));
	in->lbr[n++] = sample->branches[1];
	for (uint64_t i = 0; i < sample->nbranches; i++)
		in->lbr[n++] = sample->branches[3 * i];
	sample->callchain = in->lbr;
	sample->ncallchain = n;
	return 0;
}

/* In all outputs, a wait without a stack gets the frame PROFILE_NO_STACK. */
static int import_stackless_wait(struct import *in, struct profile_sample *sample)
{
	if (sample->stack != PROFILE_STACK_EMPTY ||
	    !profile_event_of(in->profile, sample->event)->off_cpu)
		return 0;
	return profile_label(in->profile, PROFILE_NO_STACK, FRAME_LABEL, &sample->stack);
}

/*
 * Adds the time in which a thread waited for a CPU as a sample of its own, and leaves the rest of
 * the wait in *sample.
 */
static int import_wait(struct import *in, uint64_t file_off, struct profile_sample *sample)
{
	const struct offcpu_idx_wait *wait =
		in->offcpu ? offcpu_idx_find(in->offcpu, file_off) : NULL;
	struct profile_sample runnable = *sample;

	in->result->waits++;
	in->result->waits_missing += in->offcpu && !wait;
	if (!wait || !wait->runnable_ns)
		return 0;
	if (runnable.weight > wait->runnable_ns)
		runnable.weight = wait->runnable_ns;
	in->result->off_runnable_ns += runnable.weight;
	sample->weight -= runnable.weight;
	int r = profile_mark(in->profile, sample->stack, PROFILE_RUNNABLE, FRAME_RUNNABLE,
			     &runnable.stack);

	return r ? r : profile_sample(in->profile, &runnable);
}

/*
 * A task that is ending has tid -1. stackcollapse-perf.pl skips this tid as it looks for the number
 * after the name. So it takes the period as the tid, and all before it as the name, with the CPU
 * and the time.
 */
static int import_dead_thread(struct import *in, struct profile_sample *sample)
{
	const struct profile_event *event = profile_event_of(in->profile, sample->event);
	struct profile_thread thread = *profile_thread_of(in->profile, sample->thread);
	char text[128], period[24];
	int r, n;

	if (!in->perf_threads || thread.tid != -1 || !event->has_period || event->off_cpu)
		return 0;
	n = snprintf(text, sizeof(text), "%.32s %*d",
		     profile_text_of(in->profile, thread.comm, NULL), in->perf_tid_width, -1);
	if (sample->cpu >= 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " [%03d]", sample->cpu);
	if (!event->timeless)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      " %5llu.%06llu:", (unsigned long long)(sample->time_ns / 1000000000),
			      (unsigned long long)(sample->time_ns / 1000 % 1000000));
	r = profile_text(in->profile, text, (size_t)n, &thread.comm);
	n = snprintf(period, sizeof(period), "%llu", (unsigned long long)sample->weight);
	if (!r)
		r = profile_text(in->profile, period, (size_t)n, &thread.ids_text);
	thread.ids_text++;
	return r ? r : profile_thread(in->profile, &thread, &sample->thread);
}

static int import_end(struct import *in, struct import_deferred *deferred)
{
	struct profile_sample *sample = &deferred->sample;
	int r = 0;

	if (deferred->of_trace)
		return post_import_end_unnamed(in, deferred);
	if (!deferred->again)
		r = symbolizer_end(in->symbols, &deferred->begun, sample->time_ns, &in->thread,
				   &in->stack);
	sample->thread = in->thread;
	sample->stack = in->stack;
	if (!r && sample->event == PROFILE_NONE)
		return post_wakeups_waker(in->wakeups, deferred->file_off, sample->thread,
					  sample->stack);
	if (!r)
		r = import_stackless_wait(in, sample);
	if (!r)
		r = import_dead_thread(in, sample);
	/* wakeups ignores other samples, because the index has only waits. */
	if (!r && in->wakeups)
		r = post_wakeups_wait(in->wakeups, deferred->file_off, sample);
	if (!r)
		r = post_import_compare(in, deferred->file_off, sample);
	if (!r)
		r = post_import_cause(in, deferred->file_off, sample);
	if (!r && profile_event_of(in->profile, sample->event)->off_cpu)
		r = import_wait(in, deferred->file_off, sample);
	return r || !sample->weight ? r : profile_sample(in->profile, sample);
}

/* Ends all deferred samples, and defers no more. */
static int import_end_deferred(struct import *in)
{
	int r = 0;

	for (size_t i = 0; i < in->deferred.len && !r; i++)
		r = import_end(in, &in->deferred.v[i]);
	vec_free(&in->deferred);
	in->defers = false;
	return r;
}

/* Takes address space for all deferred samples at once; memory follows with the samples. */
static int import_make_room(struct import *in)
{
	size_t room = memory_left() / IMPORT_DEFERRED_PART / sizeof(*in->deferred.v);

	in->deferred_max = room < IMPORT_DEFERRED_MAX ? room + 1 : IMPORT_DEFERRED_MAX;
	in->deferred.v = bigmem_alloc(in->deferred_max, sizeof(*in->deferred.v));
	in->deferred.cap = in->deferred.v ? in->deferred_max : 0;
	return in->deferred.v ? 0 : -ENOMEM;
}

/* Unwinds the sample and begins to name its stack. */
static int import_begin(struct import *in, const struct import_event *event,
			struct perfdata_record *record, struct symbolizer_sample *ret_begun)
{
	struct symbolizer_stack stack;
	int r = event->lbr_callchains ? import_lbr(in, &record->sample) : 0;

	if (!r)
		r = post_stacks_sample(in->stacks, import_file_event(in, record->event), record,
				       &stack);
	if (!r)
		r = symbolizer_begin(in->symbols, record, &stack, ret_begun);
	if (r || in->kernel_seen || ret_begun->half.kernel == CALLCHAINS_NO_KERNEL)
		return r;
	in->kernel_seen = true;
	in->defers = symbolizer_prefetch_kernel(in->symbols);
	return in->defers ? import_make_room(in) : 0;
}

int post_import_defer(struct import *in, struct import_deferred *deferred)
{
	if (!in->defers)
		return import_end(in, deferred);
	if (vec_push(&in->deferred, *deferred))
		return -ENOMEM;
	return in->deferred.len == in->deferred_max || symbolizer_full(in->symbols)
		       ? import_end_deferred(in)
		       : 0;
}

static int import_sample(struct import *in, struct perfdata_record *record)
{
	struct import_deferred deferred = {
		.sample = {.time_ns = record->time_ns, .cpu = record->cpu},
		.file_off = record->file_off,
		.again = record->again && in->group_begun};
	struct import_event *event;
	int r = import_event(in, record->event, &event);

	in->group_begun = deferred.again;
	if (r)
		return r == -EBADMSG ? 0 : r;
	if (event->waker && !in->wakeups)
		return 0;
	if (!event->has_samples && !event->waker)
		in->result->events_with_samples++;
	event->has_samples = true;
	if (in->compared_event == PROFILE_NONE && !event->waker &&
	    !profile_event_of(in->profile, event->id)->off_cpu)
		in->compared_event = event->id;
	deferred.sample.event = event->id;
	/* A period of 0 counts as 1, as for readers of perf script. */
	deferred.sample.weight =
		event->has_period && record->sample.period ? record->sample.period : 1;
	if (!deferred.again)
		r = import_begin(in, event, record, &deferred.begun);
	if (r)
		return r;
	in->group_begun = true;
	return post_import_defer(in, &deferred);
}

/*
 * Whether no event can have samples of CPUs: sampler_event_none, and waits beside it. A dummy that
 * the user asked for has a frequency, or a period above 1.
 */
static bool import_has_no_cpu(const struct perfdata *data)
{
	size_t n;
	const struct perfdata_event *events = perfdata_events(data, &n);

	for (size_t i = 0; i < n; i++)
		if (!perfdata_offcpu_kind(&events[i].attr) &&
		    (events[i].attr.type != PERF_TYPE_SOFTWARE ||
		     events[i].attr.config != PERF_COUNT_SW_DUMMY || events[i].attr.freq ||
		     events[i].attr.sample_period != 1))
			return false;
	return n > 0;
}

/* Losses of the rings of switches are not lost samples. */
static void import_lost(struct import *in, const struct perfdata_record *record)
{
	if (perfdata_offcpu_kind(&import_file_event(in, record->event)->attr))
		in->result->lost_switches += record->lost.lost;
}

static int import_other(struct import *in, const struct perfdata_record *record)
{
	if (record->type == PERF_RECORD_LOST)
		import_lost(in, record);
	int r = in->deferred.len && symbolizer_changes_kernel(record) ? import_end_deferred(in) : 0;

	return r ? r : symbolizer_apply(in->symbols, record);
}

/* Hands on events and build ids that are new since the last call. */
static int import_news(struct import *in)
{
	const struct perfdata_info *info = perfdata_info(in->data);
	size_t n;
	const struct perfdata_event *events = perfdata_events(in->data, &n);
	int r = 0;

	if (n != in->nevents_known)
		r = post_stacks_events(in->stacks, events, n);
	in->nevents_known = n;
	if (info->arch)
		post_stacks_arch(in->stacks, info->arch);
	if (!r && info->nbuild_ids > in->build_ids && in->deferred.len)
		r = import_end_deferred(in);
	if (!r && info->nbuild_ids > in->build_ids)
		r = symbolizer_build_ids(in->symbols, info->build_ids + in->build_ids,
					 info->nbuild_ids - in->build_ids);
	in->build_ids = info->nbuild_ids;
	return r;
}

static int import_records(struct import *in)
{
	struct perfdata_record record;
	int r, more;

	for (;;) {
		more = perfdata_next(in->data, &record, &in->result->error);
		if (more <= 0)
			break;
		r = import_news(in);
		if (!r && record.time_ns)
			r = post_import_unnamed(in, record.time_ns);
		if (!r)
			r = record.type == PERF_RECORD_SAMPLE ? import_sample(in, &record)
							      : import_other(in, &record);
		if (r)
			return r;
	}
	if (more == -ENOMEM)
		return more;
	in->result->damaged = more < 0;
	r = post_import_unnamed(in, UINT64_MAX);
	return r ? r : import_end_deferred(in);
}

/* Copies a string; NULL stays NULL. False: out of memory. */
static bool import_text(const char *text, char **ret_text)
{
	*ret_text = text ? strdup(text) : NULL;
	return !text || *ret_text;
}

static int import_manifest(const struct import *in, struct recording_manifest *ret_manifest)
{
	const struct perfdata_info *info = perfdata_info(in->data);
	size_t n;
	const struct perfdata_event *events = perfdata_events(in->data, &n);
	struct recording_manifest m = {
		.format = RECORDING_FORMAT,
		.freq_hz = n && events[0].attr.freq ? (uint32_t)events[0].attr.sample_freq : 0,
		.finished = !in->result->data.unfinished,
		.symbols_complete = in->result->store_complete,
	};
	/* profcpu writes "profcpu 1.0" there, perf only a number. */
	const char *prefix =
		info->perf_version && info->perf_version[0] >= '0' && info->perf_version[0] <= '9'
			? "perf "
			: "";

	if (!import_text(info->hostname, &m.host) ||
	    !import_text(info->os_release, &m.os_release) || !import_text(info->arch, &m.arch) ||
	    !import_text(n ? events[0].name : NULL, &m.event) ||
	    (info->perf_version && asprintf(&m.tool, "%s%s", prefix, info->perf_version) < 0)) {
		recording_manifest_free(&m);
		return -ENOMEM;
	}
	*ret_manifest = m;
	return 0;
}

static bool import_is_ours(const char *version)
{
	return version && !strncmp(version, "profcpu", strlen("profcpu"));
}

/* Width of the column of tids in perf script's lines: 5, and 7 since perf 6.5. */
static int import_tid_width(const char *perf_version)
{
	unsigned int major, minor;

	if (!perf_version || sscanf(perf_version, "%u.%u", &major, &minor) != 2)
		return 7;
	return major > 6 || (major == 6 && minor >= 5) ? 7 : 5;
}

static void import_offcpu(const struct offcpu_idx *idx, struct import_result *result)
{
	for (size_t i = 0; i < idx->nthreads; i++) {
		result->off_estimated_ns += idx->threads[i].estimated_ns;
		result->off_unknown_ns += idx->threads[i].unknown_ns;
	}
}

static int import_finish(struct import *in, const struct import_options *options)
{
	struct import_result *result = in->result;

	result->data = *perfdata_stats(in->data);
	result->stacks = post_stacks_summary(in->stacks);
	symbolizer_unread(in->symbols, &result->unread);
	result->refused_kernel = symbolizer_refused_kernel(in->symbols);
	result->cut_stacks = symbolizer_cut_stacks(in->symbols);
	result->left_out = symbolizer_left_out(in->symbols);
	result->dropped = tracker_dropped(symbolizer_tracker(in->symbols));
	result->store_complete = symbolizer_from_store(in->symbols);
	/* Before symbolizer_store, so that unread lines do not count as looked up. */
	int r = symbolizer_missing_lines(in->symbols, &result->lineless);

	if (r)
		return r;
	result->keeps_lines = symbolizer_can_add_lines(in->symbols);
	result->hides_lines = symbolizer_hides_lines(in->symbols);
	if ((!result->store_complete || symbolizer_has_improved(in->symbols) ||
	     symbolizer_has_new_lines(in->symbols)) &&
	    options->write_store_dir_fd >= 0 && !options->symbols.offline) {
		result->store_error = symbolizer_store(in->symbols, options->write_store_dir_fd);
		result->store_complete = !result->store_error &&
					 symbolizer_can_store_all(in->symbols) &&
					 !result->unread.sources;
	}
	if (!result->store_error && options->write_store_dir_fd >= 0) {
		result->store_error = post_stacks_keep(in->stacks, options->write_store_dir_fd,
						       &result->stacks_kept);
		result->store_complete &= !result->store_error;
	}
	r = options->ret_images ? symbolizer_images(in->symbols, options->ret_images) : 0;

	if (!r)
		r = symbolizer_close_sources(in->symbols);
	if (!r && options->ret_audit)
		r = symbolizer_audit(in->symbols, result->stacks.known, options->ret_audit);
	if (!r && options->ret_manifest)
		r = import_manifest(in, options->ret_manifest);
	/* After the audit: the stacks of wakeups repeat frames that were counted already. */
	if (!r && in->wakeups)
		r = post_wakeups_finish(in->wakeups, &in->result->wakeups);
	if (options->offcpu)
		import_offcpu(options->offcpu, result);
	if (!r && in->compare)
		r = post_import_compare_finish(in);
	if (r && options->ret_images)
		symbolizer_images_free(options->ret_images);
	if (r && options->ret_audit)
		audit_free(options->ret_audit);
	return r;
}

static int import_stacks(struct import *in, const struct import_options *options)
{
	const struct stacks_options stacks = {.recorded = options->samples,
					      .at_call_sites = options->at_call_sites,
					      .symbols_fd = options->symbols.store_dir_fd,
					      .keep = options->write_store_dir_fd >= 0,
					      .symbolizer = in->symbols,
					      .opener = options->symbols.opener,
					      .offline = options->symbols.offline,
					      .recorded_elsewhere =
						      options->symbols.recorded_elsewhere,
					      .grades = options->grades,
					      .max_stack = options->symbols.max_stack};

	return post_stacks_new(&stacks, &in->stacks);
}

int post_import_perfdata(int fd, const struct import_options *options, struct profile *profile,
			 struct import_result *ret_result)
{
	struct import_result result = {0};
	struct symbolizer_options symbols = options->symbols;
	struct import in = {.data = options->data,
			    .profile = profile,
			    .result = &result,
			    .offcpu = options->offcpu,
			    .compare = options->compare,
			    .managed = options->managed,
			    .sources = options->sources,
			    .nsources = options->nsources,
			    .compared_event = PROFILE_NONE,
			    .perf_threads = options->perf_threads};
	int r = in.data ? 0 : perfdata_open(fd, &in.data, &result.error);

	if (!r)
		perfdata_limit_memory(in.data, memory_left() / 2);

	symbols.keep_cache = options->write_store_dir_fd >= 0 || options->ret_images;
	if (!r)
		symbols.monotonic = perfdata_info(in.data)->has_clockid &&
				    perfdata_info(in.data)->clockid == CLOCK_MONOTONIC;
	if (!r)
		symbols.by_profcpu = import_is_ours(perfdata_info(in.data)->perf_version);
	if (!r)
		result.no_cpu = symbols.by_profcpu && import_has_no_cpu(in.data);
	if (!r)
		in.perf_tid_width = import_tid_width(perfdata_info(in.data)->perf_version);
	if (!r)
		r = symbolizer_new(profile, &symbols, &in.symbols);
	if (!r)
		r = import_stacks(&in, options);
	if (!r && options->offcpu)
		r = post_wakeups_new(profile, options->offcpu, WAKEUPS_NODES_MAX, &in.wakeups);
	if (!r)
		r = import_news(&in);
	if (!r)
		r = import_records(&in);
	if (!r)
		r = import_finish(&in, options);
	free(in.events);
	free(in.lbr);
	vec_free(&in.deferred);
	/* It uses the tracker of symbols. */
	post_stacks_free(in.stacks);
	post_wakeups_free(in.wakeups);
	symbolizer_free(in.symbols);
	perfdata_close(in.data);
	if (r && !result.error.code)
		parse_fail(&result.error, r, NULL, 0);
	*ret_result = result;
	return r;
}
