#include "profcpu/stacks.h"

#include "base/log.h"
#include "base/vec.h"
#include "recording/kept_stacks.h"

#include <errno.h>
#include <string.h>

_Static_assert(SAMPLES_IDX_GRADES == UNWIND_GRADES && SAMPLES_IDX_ENDS == WALK_ENDS, "what samples.idx may hold");

struct stacks {
	struct stacks_options options;
	struct unwinder *unwinder; /* NULL: no event's samples can be unwound */
	VEC(uint64_t) words; /* a callchain that was changed */
	bool has_kept; /* kept is what an earlier run unwound */
	struct kept_stacks kept; /* else what is to be kept */
	size_t next; /* row of kept */
	bool kept_whole; /* nothing had to be left out */
	struct stacks_summary summary;
};

static int read_kept(struct stacks *s)
{
	struct parse_error err = {0};
	int r = kept_stacks_read(s->options.symbols_fd, &s->kept, &err);

	s->has_kept = !r;
	if (r && r != -ENOENT && r != -ENOMEM)
		log_warn("the recording's unwound stacks cannot be used: %s; they are unwound again, as far as the files for it are here", err.what);
	return r;
}

int stacks_keep(struct stacks *s, int symbols_fd)
{
	return s->has_kept || !s->kept.rows.len ? 0 : !s->kept_whole ? -E2BIG : kept_stacks_write(&s->kept, symbols_fd);
}

int stacks_new(const struct stacks_options *options, struct stacks **ret_stacks)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->summary.known = options->recorded;
	s->kept_whole = true;
	if (options->symbols_fd >= 0 && read_kept(s) == -ENOMEM) {
		stacks_free(s);
		return -ENOMEM;
	}
	*ret_stacks = s;
	return 0;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	unwinder_free(s->unwinder);
	kept_stacks_free(&s->kept);
	vec_free(&s->words);
	free(s);
}

struct stacks_summary stacks_summary(const struct stacks *s)
{
	return s->summary;
}

static bool can_be_unwound(const struct perfdata_event *event)
{
	const uint64_t needs = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	return (event->attr.sample_type & needs) == needs;
}

int stacks_events(struct stacks *s, const struct perfdata_event *events, size_t n)
{
	struct unwinder_options options = {.opener = s->options.opener,
					   .recorded_elsewhere = s->options.recorded_elsewhere,
					   .frames_max = s->options.max_stack > WALK_FRAMES_MAX ? s->options.max_stack : WALK_FRAMES_MAX};
	int r = 0;

	for (size_t i = 0; i < n && !r && !s->unwinder && !s->options.other_arch; i++)
		if (can_be_unwound(&events[i])) {
			s->summary.known = true;
			r = unwinder_new(&options, &s->unwinder);
		}
	return r;
}

int stacks_build_ids(struct stacks *s, const struct perfdata_build_id_entry *ids, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && s->unwinder && !r; i++)
		r = unwinder_build_id(s->unwinder, ids[i].filename, &ids[i].build_id);
	return r;
}

int stacks_apply(struct stacks *s, const struct perfdata_record *record)
{
	return s->unwinder ? unwinder_apply(s->unwinder, record) : 0;
}

/* How many words of a callchain are before the mark of its user part. */
static size_t kernel_words(const uint64_t *words, size_t n)
{
	size_t i = 0;

	while (i < n && words[i] != PERF_CONTEXT_USER)
		i++;
	return i;
}

/* How many are behind it. */
static size_t user_words(const uint64_t *words, size_t n)
{
	size_t kernel = kernel_words(words, n);

	return kernel < n ? n - kernel - 1 : 0;
}

static struct unwound as_recorded(const uint64_t *callchain, size_t n, enum unwind_grade grade)
{
	return (struct unwound){
		.callchain = callchain, .ncallchain = n, .grade = (uint8_t)grade, .first_spliced = UINT16_MAX, .first_guess = UINT16_MAX};
}

/* Of all that is known of a machine without its files: where it was. */
static int without_files(struct stacks *s, const struct unwinder_sample *sample, struct unwound *ret_unwound)
{
	size_t kernel = kernel_words(sample->callchain, sample->ncallchain), reg = 0;
	uint64_t ip = 0;

	*ret_unwound = as_recorded(sample->callchain, sample->ncallchain, UNWIND_NO_STACK);
	for (unsigned bit = 0; sample->regs && bit < 64; bit++)
		if (sample->regs_mask >> bit & 1) {
			if (arch_perf_reg[bit] == ARCH_IP)
				ip = sample->regs[reg];
			reg++;
		}
	if (!ip || sample->abi != PERF_SAMPLE_REGS_ABI_64)
		return 0;
	s->words.len = 0;
	if (vec_reserve(&s->words, kernel + 2))
		return -ENOMEM;
	if (kernel)
		memcpy(s->words.v, sample->callchain, kernel * sizeof(*s->words.v));
	s->words.len = kernel;
	s->words.v[s->words.len++] = PERF_CONTEXT_USER;
	s->words.v[s->words.len++] = ip;
	*ret_unwound = as_recorded(s->words.v, s->words.len, UNWIND_TRUNCATED);
	ret_unwound->end = WALK_NO_RULE;
	return 0;
}

/* Takes the next stack that was kept. 0; -ENOENT: it is not this record's, or there is none; -ENOMEM. */
static int take_kept(struct stacks *s, const struct perfdata_record *record, const struct unwinder_sample *sample,
		     struct unwound *ret_unwound)
{
	const struct kept_stack *row = s->has_kept && s->next < s->kept.rows.len ? &s->kept.rows.v[s->next++] : NULL;
	size_t kernel = kernel_words(sample->callchain, sample->ncallchain);

	if (!row || row->file_off != record->file_off)
		return -ENOENT;
	if (!row->node) {
		*ret_unwound = as_recorded(sample->callchain, sample->ncallchain, (enum unwind_grade)row->grade);
		return 0;
	}
	s->words.len = 0;
	if (vec_reserve(&s->words, kernel + 1 + s->kept.nodes.v[row->node - 1].depth))
		return -ENOMEM;
	if (kernel)
		memcpy(s->words.v, sample->callchain, kernel * sizeof(*s->words.v));
	s->words.v[kernel] = PERF_CONTEXT_USER;
	s->words.len = kernel + 1;
	kept_stacks_words(&s->kept, row, s->words.v, &s->words.len);
	*ret_unwound = as_recorded(s->words.v, s->words.len, (enum unwind_grade)row->grade);
	ret_unwound->end = row->end;
	ret_unwound->first_spliced = row->first_spliced;
	ret_unwound->first_guess = row->first_guess;
	return 0;
}

static int keep(struct stacks *s, const struct perfdata_record *record, const struct unwound *u)
{
	struct kept_stack row = {.file_off = record->file_off,
				 .grade = u->grade,
				 .end = u->end,
				 .first_spliced = u->first_spliced,
				 .first_guess = u->first_guess};
	size_t n = user_words(u->callchain, u->ncallchain);

	if (!s->options.keep || s->has_kept || !s->kept_whole)
		return 0;
	int r = kept_stacks_add(&s->kept, &row, u->callchain + u->ncallchain - n, n);

	s->kept_whole = r != -E2BIG;
	return r == -E2BIG ? 0 : r;
}

/* With the files of this machine. */
static int unwind_here(struct stacks *s, const struct perfdata_record *record, const struct unwinder_sample *sample,
		       struct unwound *ret_unwound)
{
	int r = s->options.offline ? without_files(s, sample, ret_unwound) : unwinder_sample(s->unwinder, sample, ret_unwound);

	return r || s->options.offline ? r : keep(s, record, ret_unwound);
}

static int unwind(struct stacks *s, const struct perfdata_event *event, const struct perfdata_record *record, struct unwound *ret_unwound)
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
		/* What a recorder of ours has put there is no chain of frame pointers. */
		.ncallchain = s->options.recorded ? kernel_words(p->callchain, p->ncallchain) : p->ncallchain,
		.last = true,
	};

	int r = take_kept(s, record, &sample, ret_unwound);

	return r == -ENOENT ? unwind_here(s, record, &sample, ret_unwound) : r;
}

/* From worst to best. */
static int rank(uint8_t grade)
{
	static const uint8_t order[] = {UNWIND_NO_STACK, UNWIND_TRUNCATED, UNWIND_GUESSED, UNWIND_SPLICED, UNWIND_COMPLETE};
	int i = 0;

	while (order[i] != grade && i < UNWIND_GRADES - 1)
		i++;
	return i;
}

/* What the recorder said, or better where it kept what it could not finish, and more is known by now. */
static int recorded(struct stacks *s, const struct perfdata_event *event, struct perfdata_record *record, struct unwound *unwound)
{
	const struct samples_idx_row *row = samples_idx_find(s->options.recorded, record->file_off);
	struct perfdata_sample *p = &record->sample;
	struct unwound better;

	*unwound = as_recorded(p->callchain, p->ncallchain,
			       user_words(p->callchain, p->ncallchain) ? UNWIND_COMPLETE : UNWIND_NO_STACK);
	if (!row)
		return 0;
	unwound->grade = row->grade;
	unwound->end = row->end;
	unwound->first_spliced = row->first_spliced;
	unwound->first_guess = row->first_guess;
	if (!p->user_regs || !p->user_stack || !can_be_unwound(event) || rank(row->grade) >= rank(UNWIND_SPLICED))
		return 0;
	int r = unwind(s, event, record, &better);

	if (!r && rank(better.grade) > rank(row->grade)) {
		*unwound = better;
		p->callchain = better.callchain;
		p->ncallchain = better.ncallchain;
	}
	return r;
}

static void count(struct stacks *s, const struct unwound *u, const struct perfdata_sample *sample)
{
	size_t n = user_words(sample->callchain, sample->ncallchain);
	size_t spliced = u->first_spliced < n ? n - u->first_spliced : 0;
	size_t guessed = u->first_guess < n - spliced ? n - spliced - u->first_guess : 0;

	s->summary.grades[u->grade]++;
	if (u->grade == UNWIND_TRUNCATED)
		s->summary.ends[u->end]++;
	s->summary.spliced += spliced;
	s->summary.guessed += guessed;
	s->summary.found += n - spliced - guessed;
}

static uint32_t from_frame(uint16_t first)
{
	return first == UINT16_MAX ? CALLCHAIN_NO_FRAME : first;
}

int stacks_sample(struct stacks *s, const struct perfdata_event *event, struct perfdata_record *record, struct symbolizer_stack *ret_stack)
{
	struct symbolizer_stack stack = SYMBOLIZER_STACK_PLAIN;
	struct unwound unwound = {0};
	int r = 0;

	*ret_stack = stack;
	if (!record->sample.callchain || (!s->options.recorded && !(s->unwinder && can_be_unwound(event))))
		return 0;
	if (s->options.recorded) {
		r = recorded(s, event, record, &unwound);
	} else {
		r = unwind(s, event, record, &unwound);
		record->sample.callchain = unwound.callchain;
		record->sample.ncallchain = unwound.ncallchain;
	}
	if (r)
		return r;
	stack.at_calls = unwound.grade != UNWIND_NO_STACK;
	count(s, &unwound, &record->sample);
	stack.truncated = unwound.grade == UNWIND_TRUNCATED;
	if (s->options.grades) {
		stack.first_spliced = from_frame(unwound.first_spliced);
		stack.first_guess = from_frame(unwound.first_guess);
	}
	*ret_stack = stack;
	return 0;
}
