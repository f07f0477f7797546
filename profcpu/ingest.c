#include "profcpu/ingest.h"

#include "base/vec.h"
#include "recording/perfdata_offcpu.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What one event of the file became in the profile. */
struct ingest_event {
	bool known;
	bool has_samples;
	bool has_period;
	bool waker; /* samples tell who ended waits; it is no event of the profile */
	bool lbr_callchains; /* user callchains are in the branch records: --call-graph lbr */
	uint32_t id;
};

#define INGEST_WAITING_MAX ((size_t)128 << 10) /* samples; about as many as are begun while the kernel's names are read */

/* A sample whose kernel part is not named yet, or that has one of those before it. */
struct ingest_waiting {
	struct profile_sample sample;
	uint64_t file_off;
	struct symbolizer_sample begun;
};

struct ingest {
	struct perfdata *data;
	struct symbolizer *symbols;
	struct stacks *stacks;
	struct profile *profile;
	struct ingest_event *events;
	size_t nevents;
	size_t nevents_known; /* to stacks */
	struct ingest_result *result;
	size_t build_ids; /* handed on so far: in pipe mode they come late */
	uint64_t *lbr; /* a callchain put together from branch records */
	size_t lbr_cap;
	bool kernel_seen; /* a sample with a kernel part was met */
	const struct offcpu_idx *offcpu; /* borrowed; NULL: there is none */
	struct wakeups *wakeups; /* NULL: nothing is known of waits */
	bool waits; /* samples are begun, up to INGEST_WAITING_MAX, before the first one is ended */
	VEC(struct ingest_waiting) waiting;
};

/* The profile's event for the file's event `index`, made when its first sample comes. */
static int ingest_event(struct ingest *in, uint32_t index, struct ingest_event **ret_event)
{
	const struct perfdata_event *all;
	struct profile_event event = {0};
	size_t n;
	int r;

	all = perfdata_events(in->data, &n);
	if (index >= n)
		return -EBADMSG;
	if (index >= in->nevents) {
		struct ingest_event *more = reallocarray(in->events, n, sizeof(*more));

		if (!more)
			return -ENOMEM;
		memset(more + in->nevents, 0, (n - in->nevents) * sizeof(*more));
		in->events = more;
		in->nevents = n;
	}
	*ret_event = &in->events[index];
	if (in->events[index].known)
		return 0;
	/* perf script prints a period, the event's fixed one if need be, except for tracepoints. */
	event.has_period = all[index].attr.type != PERF_TYPE_TRACEPOINT;
	event.stackless = !(all[index].attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	event.has_fields = all[index].attr.type == PERF_TYPE_TRACEPOINT && (all[index].attr.sample_type & PERF_SAMPLE_RAW);
	/* Of perf's own recordings offcpu-time is an event as others, as perf's readers have it. */
	event.off_cpu = perfdata_offcpu_kind(&all[index].attr) == PERFDATA_OFFCPU_WAIT;
	in->events[index].waker = perfdata_offcpu_kind(&all[index].attr) == PERFDATA_OFFCPU_WAKER;
	r = profile_text(in->profile, all[index].name, strlen(all[index].name), &event.name);
	in->events[index].id = PROFILE_NONE;
	if (!r && !in->events[index].waker)
		r = profile_event(in->profile, &event, &in->events[index].id);
	in->events[index].has_period = event.has_period;
	in->events[index].lbr_callchains = (all[index].attr.sample_type & PERF_SAMPLE_BRANCH_STACK) &&
					   (all[index].attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK);
	in->events[index].known = !r;
	return r;
}

static const struct perfdata_event *ingest_file_event(const struct ingest *in, uint32_t index)
{
	size_t n;

	return &perfdata_events(in->data, &n)[index];
}

/*
 * The callchain of a sample whose user part the processor kept as a stack of calls: the kernel's part as it is, then where
 * the newest call went and where all came from, as tools/perf/util/machine.c resolve_lbr_callchain_sample has it.
 */
static int ingest_lbr(struct ingest *in, struct perfdata_sample *sample)
{
	size_t kernel = 0, n;

	while (kernel < sample->ncallchain && sample->callchain[kernel] != PERF_CONTEXT_USER)
		kernel++;
	if (kernel == sample->ncallchain || !sample->branches || !sample->nbranches ||
	    sample->nbranches > PERFDATA_CALLCHAIN_MAX)
		return 0;
	n = kernel + 1;
	if (n + 1 + sample->nbranches > in->lbr_cap &&
	    vec_grow((void **)&in->lbr, &in->lbr_cap, sizeof(*in->lbr), n + 1 + (size_t)sample->nbranches))
		return -ENOMEM;
	memcpy(in->lbr, sample->callchain, n * sizeof(*in->lbr));
	in->lbr[n++] = sample->branches[1];
	for (uint64_t i = 0; i < sample->nbranches; i++)
		in->lbr[n++] = sample->branches[3 * i];
	sample->callchain = in->lbr;
	sample->ncallchain = n;
	return 0;
}

/* In all outputs a wait without a stack has one that says so. */
static int ingest_stackless_wait(struct ingest *in, struct profile_sample *sample)
{
	if (sample->stack != PROFILE_STACK_EMPTY || !profile_event_of(in->profile, sample->event)->off_cpu)
		return 0;
	return profile_label(in->profile, PROFILE_NO_STACK, FRAME_LABEL, &sample->stack);
}

/* What the recorder said of a wait that is in the data; NULL: nothing. */
static void ingest_told(struct ingest_result *result, const struct offcpu_idx_wait *wait)
{
	if (wait)
		result->off_runnable_ns += wait->runnable_ns;
	else
		result->waits_untold++;
}

static int ingest_end(struct ingest *in, struct ingest_waiting *waiting)
{
	struct profile_sample *sample = &waiting->sample;
	int r = symbolizer_end(in->symbols, &waiting->begun, sample->time_ns, &sample->thread, &sample->stack);

	if (!r && sample->event == PROFILE_NONE)
		return wakeups_waker(in->wakeups, waiting->file_off, sample->thread, sample->stack);
	if (!r)
		r = ingest_stackless_wait(in, sample);
	if (!r && in->offcpu && profile_event_of(in->profile, sample->event)->off_cpu)
		ingest_told(in->result, offcpu_idx_find(in->offcpu, waiting->file_off));
	/* Only waits are in the index. */
	if (!r && in->wakeups)
		r = wakeups_wait(in->wakeups, waiting->file_off, sample);
	return r ? r : profile_sample(in->profile, sample);
}

/* Ends all samples that wait; from now on none does. */
static int ingest_end_waiting(struct ingest *in)
{
	int r = 0;

	for (size_t i = 0; i < in->waiting.len && !r; i++)
		r = ingest_end(in, &in->waiting.v[i]);
	vec_free(&in->waiting);
	in->waits = false;
	return r;
}

static int ingest_sample(struct ingest *in, struct perfdata_record *record)
{
	struct ingest_waiting waiting = {.sample = {.time_ns = record->time_ns, .cpu = record->cpu}, .file_off = record->file_off};
	struct symbolizer_stack stack;
	struct ingest_event *event;
	int r = ingest_event(in, record->event, &event);

	if (r)
		return r == -EBADMSG ? 0 : r;
	if (event->waker && !in->wakeups)
		return 0;
	if (!event->has_samples && !event->waker)
		in->result->events_with_samples++;
	event->has_samples = true;
	waiting.sample.event = event->id;
	/* A period of 0, which perf script's readers take for 1 too. */
	waiting.sample.weight = event->has_period && record->sample.period ? record->sample.period : 1;
	if (event->lbr_callchains)
		r = ingest_lbr(in, &record->sample);
	if (!r)
		r = stacks_sample(in->stacks, ingest_file_event(in, record->event), record, &stack);
	if (!r)
		r = symbolizer_begin(in->symbols, record, &stack, &waiting.begun);
	if (r)
		return r;
	if (!in->kernel_seen && waiting.begun.half.kernel != CALLCHAINS_NO_KERNEL) {
		in->kernel_seen = true;
		in->waits = symbolizer_expect_kernel(in->symbols);
	}
	if (!in->waits)
		return ingest_end(in, &waiting);
	if (vec_push(&in->waiting, waiting))
		return -ENOMEM;
	return in->waiting.len == INGEST_WAITING_MAX || symbolizer_full(in->symbols) ? ingest_end_waiting(in) : 0;
}

/* What was lost of the rings of switches is no sample on a CPU. */
static void ingest_lost(struct ingest *in, const struct perfdata_record *record)
{
	if (perfdata_offcpu_kind(&ingest_file_event(in, record->event)->attr))
		in->result->lost_switches += record->lost.lost;
}

static int ingest_other(struct ingest *in, const struct perfdata_record *record)
{
	if (record->type == PERF_RECORD_LOST)
		ingest_lost(in, record);
	int r = in->waiting.len && symbolizer_changes_kernel(record) ? ingest_end_waiting(in) : 0;

	if (!r)
		r = stacks_apply(in->stacks, record);
	return r ? r : symbolizer_apply(in->symbols, record);
}

/* Of events and of build ids what came since the last time. */
static int ingest_news(struct ingest *in)
{
	const struct perfdata_info *info = perfdata_info(in->data);
	size_t n;
	const struct perfdata_event *events = perfdata_events(in->data, &n);
	int r = 0;

	if (n != in->nevents_known)
		r = stacks_events(in->stacks, events, n);
	in->nevents_known = n;
	if (!r && info->nbuild_ids > in->build_ids)
		r = stacks_build_ids(in->stacks, info->build_ids + in->build_ids, info->nbuild_ids - in->build_ids);
	if (!r && info->nbuild_ids > in->build_ids && in->waiting.len)
		r = ingest_end_waiting(in);
	if (!r && info->nbuild_ids > in->build_ids)
		r = symbolizer_build_ids(in->symbols, info->build_ids + in->build_ids,
					 info->nbuild_ids - in->build_ids);
	in->build_ids = info->nbuild_ids;
	return r;
}

static int ingest_records(struct ingest *in)
{
	struct perfdata_record record;
	int r, more;

	for (;;) {
		more = perfdata_next(in->data, &record, &in->result->error);
		if (more <= 0)
			break;
		r = ingest_news(in);
		if (!r)
			r = record.type == PERF_RECORD_SAMPLE ? ingest_sample(in, &record) : ingest_other(in, &record);
		if (r)
			return r;
	}
	if (more == -ENOMEM)
		return more;
	in->result->damaged = more < 0;
	return ingest_end_waiting(in);
}

/* NULL stays NULL. False: memory is out. */
static bool ingest_text(const char *text, char **ret_text)
{
	*ret_text = text ? strdup(text) : NULL;
	return !text || *ret_text;
}

static int ingest_manifest(const struct ingest *in, struct recording_manifest *ret_manifest)
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
	/* We write "profcpu 1.0" there, perf its number. */
	const char *who = info->perf_version && info->perf_version[0] >= '0' && info->perf_version[0] <= '9' ? "perf " : "";

	if (!ingest_text(info->hostname, &m.host) || !ingest_text(info->os_release, &m.os_release) ||
	    !ingest_text(info->arch, &m.arch) || !ingest_text(n ? events[0].name : NULL, &m.event) ||
	    (info->perf_version && asprintf(&m.tool, "%s%s", who, info->perf_version) < 0)) {
		recording_manifest_free(&m);
		return -ENOMEM;
	}
	*ret_manifest = m;
	return 0;
}

/* We write "profcpu 1.0" there, perf its number. */
static bool ingest_is_ours(const char *version)
{
	return version && !strncmp(version, "profcpu", strlen("profcpu"));
}

static void ingest_offcpu(const struct offcpu_idx *idx, struct ingest_result *result)
{
	for (size_t i = 0; i < idx->nthreads; i++) {
		result->off_estimated_ns += idx->threads[i].estimated_ns;
		result->off_unknown_ns += idx->threads[i].unknown_ns;
	}
}

static int ingest_finish(struct ingest *in, const struct ingest_options *options)
{
	struct ingest_result *result = in->result;

	result->data = *perfdata_stats(in->data);
	result->stacks = stacks_summary(in->stacks);
	symbolizer_unread(in->symbols, &result->unread);
	result->store_complete = symbolizer_from_store(in->symbols);
	/* What was not looked for is not to count as looked for. */
	symbolizer_lineless(in->symbols, &result->lineless);
	result->keeps_lines = symbolizer_keeps_lines(in->symbols);
	result->hides_lines = symbolizer_hides_lines(in->symbols);
	if ((!result->store_complete || symbolizer_improved(in->symbols) || symbolizer_has_new_lines(in->symbols)) &&
	    options->write_store_dir_fd >= 0 && !options->symbols.offline) {
		result->store_error = symbolizer_store(in->symbols, options->write_store_dir_fd);
		result->store_complete = !result->store_error && symbolizer_all_kept(in->symbols) && !result->unread.sources;
	}
	if (!result->store_error && options->write_store_dir_fd >= 0) {
		result->store_error = stacks_keep(in->stacks, options->write_store_dir_fd);
		result->store_complete &= !result->store_error;
	}
	int r = options->ret_images ? symbolizer_images(in->symbols, options->ret_images) : 0;

	if (!r)
		r = symbolizer_close_sources(in->symbols);
	if (!r && options->ret_audit)
		r = symbolizer_audit(in->symbols, result->stacks.known, options->ret_audit);
	if (!r && options->ret_manifest)
		r = ingest_manifest(in, options->ret_manifest);
	/* Not earlier: their stacks are of frames that were counted already. */
	if (!r && in->wakeups)
		r = wakeups_finish(in->wakeups, &in->result->wakeups);
	if (options->offcpu)
		ingest_offcpu(options->offcpu, result);
	if (r && options->ret_images)
		symbolizer_images_free(options->ret_images);
	if (r && options->ret_audit)
		audit_free(options->ret_audit);
	return r;
}

static int ingest_stacks(struct ingest *in, const struct ingest_options *options)
{
	const char *arch = perfdata_info(in->data)->arch;
	const struct stacks_options stacks = {.recorded = options->samples,
					      .symbols_fd = options->symbols.store_dir_fd,
					      .keep = options->write_store_dir_fd >= 0,
					      .opener = options->symbols.opener,
					      .offline = options->symbols.offline,
					      .recorded_elsewhere = options->symbols.recorded_elsewhere,
					      .other_arch = arch && strcmp(arch, ARCH_NAME) != 0,
					      .grades = options->grades,
					      .max_stack = options->symbols.max_stack};

	return stacks_new(&stacks, &in->stacks);
}

int ingest_perfdata(int fd, const struct ingest_options *options, struct profile *profile,
		    struct ingest_result *ret_result)
{
	struct ingest_result result = {0};
	struct symbolizer_options symbols = options->symbols;
	struct ingest in = {.profile = profile, .result = &result, .offcpu = options->offcpu};
	int r = perfdata_open(fd, &in.data, &result.error);

	symbols.keep_answers = options->write_store_dir_fd >= 0 || options->ret_images;
	if (!r)
		symbols.monotonic = perfdata_info(in.data)->has_clockid && perfdata_info(in.data)->clockid == CLOCK_MONOTONIC;
	if (!r)
		symbols.by_profcpu = ingest_is_ours(perfdata_info(in.data)->perf_version);
	if (!r)
		r = symbolizer_new(profile, &symbols, &in.symbols);
	if (!r)
		r = ingest_stacks(&in, options);
	if (!r && options->offcpu)
		r = wakeups_new(profile, options->offcpu, WAKEUPS_NODES_MAX, &in.wakeups);
	if (!r)
		r = ingest_news(&in);
	if (!r)
		r = ingest_records(&in);
	if (!r)
		r = ingest_finish(&in, options);
	free(in.events);
	free(in.lbr);
	vec_free(&in.waiting);
	stacks_free(in.stacks);
	wakeups_free(in.wakeups);
	symbolizer_free(in.symbols);
	perfdata_close(in.data);
	if (r && !result.error.code)
		parse_fail(&result.error, r, NULL, 0);
	*ret_result = result;
	return r;
}
