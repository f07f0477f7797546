#include "profcpu/post/stacks.h"

#include "base/log.h"
#include "base/vec.h"
#include "container/memory_left.h"
#include "recording/kept_stacks.h"
#include "unwind/libdw_child.h"

#include <errno.h>
#include <string.h>

_Static_assert(SAMPLES_IDX_GRADES == UNWIND_GRADES && SAMPLES_IDX_ENDS == WALK_ENDS,
	       "samples.idx holds these grades and ends");

/*
 * Stacks to keep may take this part of the memory that is left; kept ones that are read, the rest.
 */
#define STACKS_PART_OF_MEMORY 4

struct stacks {
	struct stacks_options options;
	const char *arch;          /* of the recording */
	struct unwinder *unwinder; /* NULL: no event's samples can be unwound */
	VEC(uint64_t) words;       /* a changed callchain */
	bool has_kept;             /* kept was read: an earlier run unwound it */
	struct kept_stacks kept;   /* else stacks to write */
	int keep_error;            /* why they are not kept: -E2BIG, -EAGAIN, -ENOMEM */
	struct post_stacks_summary summary;
};

static int stacks_read_kept(struct stacks *s)
{
	struct parse_error err = {0};
	uint64_t left = memory_left();
	int r = kept_stacks_read(s->options.symbols_fd, left - left / STACKS_PART_OF_MEMORY + 1,
				 &s->kept, &err);

	/* The copies of our recorder were blanked: without kept stacks, callers are lost. */
	if (r == -ENOSPC && s->options.recorded)
		r = -ENOMEM;
	s->has_kept = !r;
	s->kept.memory_max = left / STACKS_PART_OF_MEMORY + 1; /* 0: no limit */
	if (r && r != -ENOENT && r != -ENOMEM)
		log_warn(
			"unwound stacks of the recording: cannot be used: %s; unwinding them again "
			"with the files of this machine",
			err.what);
	return r;
}

int post_stacks_keep(struct stacks *s, int symbols_fd, bool *ret_kept)
{
	bool unknown = s->summary.by_libdw && !libdw_child_works();
	int r = s->has_kept || unknown ? 0 : s->keep_error;

	if (!s->has_kept && !unknown && !r && s->kept.rows.len)
		r = kept_stacks_write(&s->kept, symbols_fd);
	*ret_kept = !r && (s->has_kept || !unknown);
	return r;
}

int post_stacks_new(const struct stacks_options *options, struct stacks **ret_stacks)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->arch = ARCH_NAME;
	s->summary.known = options->recorded;
	if (options->symbols_fd >= 0 && stacks_read_kept(s) == -ENOMEM) {
		post_stacks_free(s);
		return -ENOMEM;
	}
	*ret_stacks = s;
	return 0;
}

void post_stacks_free(struct stacks *s)
{
	if (!s)
		return;
	unwinder_free(s->unwinder);
	kept_stacks_free(&s->kept);
	vec_free(&s->words);
	free(s);
}

struct post_stacks_summary post_stacks_summary(const struct stacks *s)
{
	struct post_stacks_summary summary = s->summary;

	if (s->unwinder)
		for (int i = 0; i < LIMITS; i++)
			summary.limits.cost[i] += unwinder_stats(s->unwinder).limits.cost[i];
	return summary;
}

static bool stacks_has_copies(const struct perfdata_event *event)
{
	const uint64_t needs =
		PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	return (event->attr.sample_type & needs) == needs;
}

static bool stacks_can_unwind(const struct stacks *s, const struct perfdata_event *event)
{
	return s->unwinder && stacks_has_copies(event) &&
	       (!strcmp(s->arch, ARCH_NAME) || machine_of(s->arch, PERF_SAMPLE_REGS_ABI_64));
}

void post_stacks_arch(struct stacks *s, const char *arch)
{
	s->arch = arch;
}

int post_stacks_events(struct stacks *s, const struct perfdata_event *events, size_t n)
{
	struct unwinder_options options = {.opener = s->options.opener,
					   .recorded_elsewhere = s->options.recorded_elsewhere,
					   .frames_max = s->options.max_stack > WALK_FRAMES_MAX
								 ? s->options.max_stack
								 : WALK_FRAMES_MAX};
	int r = 0;

	if (s->options.symbolizer) {
		options.tracker = symbolizer_tracker(s->options.symbolizer);
		options.open_file = symbolizer_open_file;
		options.ctx = s->options.symbolizer;
	}
	for (size_t i = 0; i < n && !r && !s->unwinder; i++)
		if (stacks_has_copies(&events[i]))
			r = unwinder_new(&options, &s->unwinder);
	return r;
}

/* Number of words after the mark of the user part. */
static size_t stacks_user_words(const uint64_t *words, size_t n)
{
	size_t kernel = unwinder_kernel_words(words, n);

	return kernel < n ? n - kernel - 1 : 0;
}

static struct unwound stacks_as_recorded(const uint64_t *callchain, size_t n,
					 enum unwind_grade grade)
{
	return (struct unwound){.callchain = callchain,
				.ncallchain = n,
				.grade = (uint8_t)grade,
				.first_spliced = UINT16_MAX,
				.first_guess = UINT16_MAX,
				.limit = LIMITS};
}

/* Unwinds without files: only the sampled frame is known. */
static int stacks_unwind_offline(struct stacks *s, const struct unwinder_sample *sample,
				 struct unwound *ret_unwound)
{
	size_t kernel = unwinder_kernel_words(sample->callchain, sample->ncallchain);
	uint64_t ip = 0;

	*ret_unwound = stacks_as_recorded(sample->callchain, sample->ncallchain, UNWIND_NO_STACK);
	if (!sample->regs || !unwinder_sampled_ip(sample, &ip))
		return 0;
	s->words.len = 0;
	if (vec_reserve(&s->words, kernel + 2))
		return -ENOMEM;
	if (kernel)
		memcpy(s->words.v, sample->callchain, kernel * sizeof(*s->words.v));
	s->words.len = kernel;
	s->words.v[s->words.len++] = PERF_CONTEXT_USER;
	s->words.v[s->words.len++] = ip;
	*ret_unwound = stacks_as_recorded(s->words.v, s->words.len, UNWIND_TRUNCATED);
	ret_unwound->end = WALK_NO_RULE;
	return 0;
}

/* Takes the kept stack of a record. 0; -ENOENT; -ENOMEM. */
static int stacks_take_kept(struct stacks *s, const struct perfdata_record *record,
			    const struct unwinder_sample *sample, struct unwound *ret_unwound)
{
	const struct kept_stack *row =
		s->has_kept ? kept_stacks_find(&s->kept, record->file_off) : NULL;
	size_t kernel = unwinder_kernel_words(sample->callchain, sample->ncallchain);

	if (!row)
		return -ENOENT;
	if (row->limit)
		s->summary.limits.cost[row->limit - 1]++;
	if (!row->node) {
		*ret_unwound = stacks_as_recorded(sample->callchain, sample->ncallchain,
						  (enum unwind_grade)row->grade);
		return 0;
	}
	s->words.len = 0;
	if (vec_reserve(&s->words, kernel + 1 + s->kept.nodes.v[row->node - 1].depth))
		return -ENOMEM;
	if (kernel)
		memcpy(s->words.v, sample->callchain, kernel * sizeof(*s->words.v));
	s->words.v[kernel] = PERF_CONTEXT_USER;
	s->words.len = kernel + 1;
	kept_stacks_append_words(&s->kept, row, s->words.v, &s->words.len);
	*ret_unwound = stacks_as_recorded(s->words.v, s->words.len, (enum unwind_grade)row->grade);
	ret_unwound->end = row->end;
	ret_unwound->first_spliced = row->first_spliced;
	ret_unwound->first_guess = row->first_guess;
	return 0;
}

static int stacks_keep_one(struct stacks *s, const struct perfdata_record *record,
			   const struct unwound *u)
{
	struct kept_stack row = {.file_off = record->file_off,
				 .grade = u->grade,
				 .end = u->end,
				 .first_spliced = u->first_spliced,
				 .first_guess = u->first_guess,
				 .limit = u->limit < LIMITS ? u->limit + 1 : 0};
	size_t n = stacks_user_words(u->callchain, u->ncallchain);

	if (!s->options.keep || s->has_kept || s->keep_error)
		return 0;
	/* The next run may have better luck. */
	int r = u->limit == LIMIT_LIBDW_PROCESS
			? -EAGAIN
			: kept_stacks_add(&s->kept, &row, u->callchain + u->ncallchain - n, n);

	if (r == -ENOMEM)
		return r;
	s->keep_error = r == -ENOSPC ? -ENOMEM : r;
	if (r)
		kept_stacks_free(&s->kept);
	return 0;
}

/* Unwinds a stack that was not kept, with the files of this machine unless offline. */
static int stacks_unwind_here(struct stacks *s, const struct perfdata_record *record,
			      const struct unwinder_sample *sample, struct unwound *ret_unwound)
{
	int r = s->options.offline ? stacks_unwind_offline(s, sample, ret_unwound)
				   : unwinder_sample(s->unwinder, sample, ret_unwound);

	return r || s->options.offline ? r : stacks_keep_one(s, record, ret_unwound);
}

static int stacks_unwind(struct stacks *s, const struct perfdata_event *event,
			 const struct perfdata_record *record, struct unwound *ret_unwound)
{
	const struct perfdata_sample *p = &record->sample;
	struct unwinder_sample sample = {
		.pid = record->pid,
		.tid = record->tid,
		.time_ns = record->time_ns,
		.regs = p->user_regs,
		.regs_mask = event->attr.sample_regs_user,
		.abi = p->user_abi,
		.stack = p->user_stack,
		.stack_bytes = p->user_stack_bytes,
		.callchain = p->callchain,
		/* profcpu as recorder put an unwound stack there, no chain of frame pointers. */
		.ncallchain = s->options.recorded
				      ? unwinder_kernel_words(p->callchain, p->ncallchain)
				      : p->ncallchain,
		.libdw_arch = s->arch,
		.last = true,
	};

	s->summary.by_libdw += sample.regs && machine_of(s->arch, sample.abi);
	int r = stacks_take_kept(s, record, &sample, ret_unwound);

	return r == -ENOENT ? stacks_unwind_here(s, record, &sample, ret_unwound) : r;
}

/* Rank of a grade, from worst to best. */
static int stacks_rank(uint8_t grade)
{
	static const uint8_t order[] = {UNWIND_NO_STACK, UNWIND_TRUNCATED, UNWIND_GUESSED,
					UNWIND_SPLICED, UNWIND_COMPLETE};
	int i = 0;

	while (order[i] != grade && i < UNWIND_GRADES - 1)
		i++;
	return i;
}

/*
 * The recorder's stack. If the recorder kept a copy of an unfinished one, unwinds it again, and
 * takes the better result: more methods may be known now.
 */
static int stacks_recorded(struct stacks *s, const struct perfdata_event *event,
			   struct perfdata_record *record, struct unwound *unwound)
{
	const struct samples_idx_row *row = samples_idx_find(s->options.recorded, record->file_off);
	struct perfdata_sample *p = &record->sample;
	struct unwound better;
	/* A blanked copy has registers, all 0. */
	bool kept = s->has_kept && p->user_regs && kept_stacks_find(&s->kept, record->file_off);

	*unwound = stacks_as_recorded(
		p->callchain, p->ncallchain,
		stacks_user_words(p->callchain, p->ncallchain) ? UNWIND_COMPLETE : UNWIND_NO_STACK);
	if (!row)
		return 0;
	unwound->grade = row->grade;
	unwound->end = row->end;
	unwound->first_spliced = row->first_spliced;
	unwound->first_guess = row->first_guess;
	if (!p->user_regs || !(p->user_stack || kept) || !stacks_can_unwind(s, event) ||
	    stacks_rank(row->grade) >= stacks_rank(UNWIND_SPLICED))
		return 0;
	int r = stacks_unwind(s, event, record, &better);

	if (!r && stacks_rank(better.grade) > stacks_rank(row->grade)) {
		*unwound = better;
		p->callchain = better.callchain;
		p->ncallchain = better.ncallchain;
	}
	return r;
}

static void stacks_count(struct stacks *s, const struct unwound *u,
			 const struct perfdata_sample *sample)
{
	size_t n = stacks_user_words(sample->callchain, sample->ncallchain);
	size_t spliced = u->first_spliced < n ? n - u->first_spliced : 0;
	size_t guessed = u->first_guess < n - spliced ? n - spliced - u->first_guess : 0;

	s->summary.grades[u->grade]++;
	if (u->grade == UNWIND_TRUNCATED)
		s->summary.ends[u->end]++;
	s->summary.spliced += spliced;
	s->summary.guessed += guessed;
	s->summary.found += n - spliced - guessed;
}

/* Counts a callchain of the kernel's largest size: callers may be missing. */
static void stacks_count_depth(struct stacks *s, const struct perfdata_event *event,
			       const struct perfdata_sample *sample)
{
	size_t frames = 0;

	for (size_t i = 0; i < sample->ncallchain; i++)
		frames += sample->callchain[i] < PERF_CONTEXT_MAX;
	s->summary.limits.cost[LIMIT_MAX_STACK] +=
		event->attr.sample_max_stack && frames >= event->attr.sample_max_stack;
}

static uint32_t stacks_from_frame(uint16_t first)
{
	return first == UINT16_MAX ? CALLCHAIN_NO_FRAME : first;
}

int post_stacks_sample(struct stacks *s, const struct perfdata_event *event,
		       struct perfdata_record *record, struct symbolizer_stack *ret_stack)
{
	struct symbolizer_stack stack = SYMBOLIZER_STACK_PLAIN;
	struct unwound unwound = {0};
	int r = 0;

	stack.at_call_sites =
		s->options.at_call_sites &&
		stacks_user_words(record->sample.callchain, record->sample.ncallchain);
	*ret_stack = stack;
	if (!record->sample.callchain)
		return 0;
	if (!s->options.recorded && !stacks_can_unwind(s, event)) {
		stacks_count_depth(s, event, &record->sample);
		return 0;
	}
	s->summary.known = true;
	if (s->options.recorded) {
		r = stacks_recorded(s, event, record, &unwound);
	} else {
		r = stacks_unwind(s, event, record, &unwound);
		record->sample.callchain = unwound.callchain;
		record->sample.ncallchain = unwound.ncallchain;
	}
	if (r)
		return r;
	stack.at_call_sites = unwound.grade != UNWIND_NO_STACK;
	stacks_count(s, &unwound, &record->sample);
	stack.truncated = unwound.grade == UNWIND_TRUNCATED;
	if (s->options.grades) {
		stack.first_spliced = stacks_from_frame(unwound.first_spliced);
		stack.first_guess = stacks_from_frame(unwound.first_guess);
	}
	*ret_stack = stack;
	return 0;
}
