#include "unwind/unwinder_impl.h"

#include "base/hash.h"
#include "container/memory_left.h"
#include "elf/budget.h"

#include <errno.h>
#include <stdio.h>

#define RULE_CACHE 8192u     /* cached rules, a power of two */
#define CALL_END_CACHE 4096u /* cached addresses at which a call may end, a power of two */
/* While recording, all stacks share steps (struct unwind_memory). */
#define ALL_STEPS_MAX (64 * UNWIND_STEPS_MAX)
#define ALL_STEPS_NS 40   /* until there is one more; so they take a tenth of a CPU */
#define ALL_STEPS_PART 64 /* a stack takes at most this part of those that are left */

const char *unwind_grade_text(enum unwind_grade grade)
{
	static const char *const texts[UNWIND_GRADES] = {"none", "complete", "spliced", "guessed",
							 "truncated"};

	return grade < UNWIND_GRADES ? texts[grade] : "?";
}

int unwinder_new(const struct unwinder_options *options, struct unwinder **ret_unwinder)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	size_t jit_bytes = memory_left_eighth(options->memory, JIT_CODES_BYTES_MAX);
	int r = u ? jit_codes_new(jit_bytes, &u->jit) : -ENOMEM;

	if (!r && !options->tracker)
		r = tracker_new(&(struct tracker_options){.lookup_cache = &u->own_cache,
							  .opener = options->opener,
							  .recording = true,
							  .bytes = options->memory},
				&u->own_tracker);
	if (!r && (!(u->rule_cache = calloc(RULE_CACHE, sizeof(*u->rule_cache))) ||
		   !(u->call_end_cache = calloc(CALL_END_CACHE, sizeof(*u->call_end_cache)))))
		r = -ENOMEM;
	if (r) {
		unwinder_free(u);
		return r;
	}
	u->options = *options;
	u->tracker = options->tracker ? options->tracker : u->own_tracker;
	u->walk.max = options->frames_max;
	u->all_steps_left = ALL_STEPS_MAX;
	*ret_unwinder = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	unwinder_close_images(u);
	libdw_child_free(u->libdw);
	libdw_budget_free(&u->libdw_budget);
	vec_free(&u->images);
	hashmap_free(&u->held);
	vec_free(&u->words);
	tracker_free(u->own_tracker);
	lookup_cache_free(&u->own_cache);
	jit_codes_free(u->jit);
	walk_free(&u->walk);
	walk_free(&u->other);
	return_cache_free(u->returns);
	free(u->rule_cache);
	free(u->call_end_cache);
	free(u);
}

struct unwinder_stats unwinder_stats(const struct unwinder *u)
{
	return u->stats;
}

int unwinder_apply(struct unwinder *u, const struct perfdata_record *record)
{
	int r = tracker_apply(u->own_tracker, record);

	if (unwinder_forgets_code(u, record))
		jit_codes_forget(u->jit, record->pid);
	return r;
}

bool unwinder_forgets_code(const struct unwinder *u, const struct perfdata_record *record)
{
	return (record->type == PERF_RECORD_COMM && record->comm.exec) ||
	       (record->type == PERF_RECORD_EXIT &&
		(record->pid == record->tid ||
		 processes_has_ended(u->tracker->processes, record->pid)));
}

/* The image that is mapped at addr, and the offset in it. Returns 0; -ENOENT; -ENOMEM. */
static int find_code(struct unwinder *u, uint64_t addr, struct image_code **ret_code,
		     uint64_t *ret_file_off)
{
	const struct process_map *map = processes_find_map(u->tracker->processes, u->thread, addr);

	if (!map)
		return -ENOENT;
	bool under = map->under != PROCESS_NO_IMAGE;

	*ret_file_off = addr - map->start + (under ? map->under_pgoff : map->pgoff);
	return unwinder_code_of(u, under ? map->under : map->image, map, ret_code);
}

/*
 * The code that a process made at addr. Returns 0; -ENOENT: unknown; -EAGAIN: requested; -ENOMEM.
 */
static int find_jit(struct unwinder *u, uint64_t addr, const struct jit_code **ret_code)
{
	bool request = false;
	int r;

	/* Samples may follow the end of a process, whose code cannot be read any more. */
	if (!u->options.request_code || processes_has_ended(u->tracker->processes, u->thread->pid))
		return -ENOENT;
	r = jit_codes_find(u->jit, u->thread->pid, addr, u->time_ns, ret_code, &request);
	if (request && !u->options.request_code(u->options.ctx, u->thread->pid, addr) && r) {
		/* It counts as unknown for a time; else later samples would wait for it. */
		r = jit_codes_put(u->jit, u->thread->pid, addr, NULL, u->time_ns);
		return r ? r : -ENOENT;
	}
	return r == -EAGAIN && u->last ? -ENOENT : r;
}

/* *ret_keep: the rule holds until the address space changes. */
static int find_rule(struct unwinder *u, uint64_t addr, struct unwind_rule *ret_rule,
		     bool *ret_keep)
{
	const struct unwind_rule *rule = NULL;
	const struct jit_code *jit;
	struct image_code *code;
	uint64_t file_off;
	int r = find_code(u, addr, &code, &file_off);

	*ret_keep = true;
	if (r)
		return r;
	if (code) {
		r = image_code_rule(code, file_off, &u->steps_left, ret_rule);
		*ret_keep = u->steps_left > 0;
		u->has_limited |= image_code_over_limit(code);
		return r;
	}
	r = find_jit(u, addr, &jit);
	*ret_keep = !r && !jit->movable;
	if (!r)
		rule = code_rules_at(&jit->rules, addr - jit->start);
	*ret_rule = rule ? *rule : (struct unwind_rule){.kind = UNWIND_NONE};
	return r == -ENOENT ? 0 : r;
}

static int source_rule(void *ctx, uint64_t addr, struct unwind_rule *ret_rule)
{
	struct unwinder *u = ctx;
	uint32_t space = processes_generation(u->tracker->processes, u->thread);
	struct cached_rule *cached = &u->rule_cache[hash_mix(addr, space) & (RULE_CACHE - 1)];
	bool keep;

	if (cached->addr == addr && cached->space == space && space) {
		*ret_rule = cached->rule;
		return 0;
	}
	int r = find_rule(u, addr, ret_rule, &keep);

	if (!r && keep)
		*cached = (struct cached_rule){addr, space, *ret_rule};
	u->walk.temporary_rules |= !r && !keep && ret_rule->kind != UNWIND_NONE;
	return r;
}

static int source_step(void *ctx, uint64_t addr, struct unwind_regs *regs,
		       const struct unwind_memory *memory, bool *ret_signal)
{
	struct unwinder *u = ctx;
	const struct jit_code *jit;
	struct image_code *code;
	uint64_t file_off;
	int r = find_code(u, addr, &code, &file_off);

	if (!r && code)
		return image_code_step(code, file_off, regs, memory, ret_signal);
	*ret_signal = false;
	if (!r)
		r = find_jit(u, addr, &jit);
	return r ? r : code_rules_step(&jit->rules, addr - jit->start, regs, memory);
}

/* Whether a call ends at addr: 1, 0; -1: its code cannot be read; -ENOMEM: unknown. */
static int find_call_end(struct unwinder *u, uint64_t addr)
{
	struct image_code *code;
	unsigned char bytes[ARCH_CALL_MAX];
	uint64_t file_off;
	int r = addr < sizeof(bytes) ? -ENOENT : find_code(u, addr - 1, &code, &file_off);

	if (r)
		return r == -ENOMEM ? r : 0;
	if (!code)
		return -1;
	if (file_off + 1 < sizeof(bytes) || image_code_read(code, file_off + 1 - sizeof(bytes),
							    bytes, sizeof(bytes)) < sizeof(bytes))
		return 0;
	return arch_ends_in_call(bytes);
}

/*
 * Caches the results, because each is read from a file. Stacks through code without rules need some
 * for each sample, at few addresses.
 */
static int source_is_return(void *ctx, uint64_t addr)
{
	struct unwinder *u = ctx;
	uint32_t space = processes_generation(u->tracker->processes, u->thread);
	struct cached_call_end *cached =
		&u->call_end_cache[hash_mix(addr, space) & (CALL_END_CACHE - 1)];

	if (cached->addr != addr || cached->space != space || !space) {
		int ends = find_call_end(u, addr);

		if (ends == -ENOMEM)
			return 0;
		*cached = (struct cached_call_end){addr, space, (int8_t)ends};
	}
	return cached->ends;
}

static int source_hijacked(void *ctx, uint64_t at, const struct unwind_memory *memory,
			   uint64_t *ret_ip)
{
	const struct unwinder *u = ctx;

	return u->returns ? return_cache_find(u->returns, u->thread->tid, at, memory, ret_ip)
			  : -ENOENT;
}

int unwinder_add_code(struct unwinder *u, int32_t pid, uint64_t addr, struct jit_code *code,
		      uint64_t now_ns)
{
	return jit_codes_put(u->jit, pid, addr, code, now_ns);
}

size_t unwinder_kernel_words(const uint64_t *callchain, size_t n)
{
	size_t i = 0;

	while (i < n && callchain[i] != PERF_CONTEXT_USER)
		i++;
	return i;
}

static void regs_of(const struct unwinder_sample *s, struct unwind_regs *regs)
{
	const uint64_t *value = s->regs;

	*regs = (struct unwind_regs){0};
	for (uint64_t mask = s->regs_mask; mask; mask &= mask - 1, value++) {
		int reg = arch_perf_reg[__builtin_ctzll(mask)];

		if (reg < 0)
			continue;
		regs->v[reg] = *value;
		regs->known |= 1u << reg;
	}
}

static uint8_t grade_of(const struct walk *w, bool spliced, bool guessed)
{
	if (w->end != WALK_START)
		return UNWIND_TRUNCATED;
	return guessed ? UNWIND_GUESSED : spliced ? UNWIND_SPLICED : UNWIND_COMPLETE;
}

static uint16_t frame_number(size_t i)
{
	return i < UINT16_MAX ? (uint16_t)i : UINT16_MAX - 1;
}

/* Counts an incomplete stack: a limit ended its walk, or left a file of a frame without rules. */
static uint8_t count_limit(struct unwinder *u, const struct walk *w)
{
	uint8_t limit = u->walk_limit;

	for (size_t i = 0; i < w->n && limit == LIMITS; i++) {
		const struct process_map *map = processes_find_map(
			u->tracker->processes, u->thread, w->frames[i].ip - !w->frames[i].exact);
		uint32_t number = !map                             ? PROCESS_NO_IMAGE
				  : map->under != PROCESS_NO_IMAGE ? map->under
								   : map->image;

		const struct unwind_image *image =
			number < u->images.len ? &u->images.v[number] : NULL;

		if (image)
			limit = image->code && image_code_over_limit(image->code) ? LIMIT_FILE_SIZE
										  : image->limit;
	}
	if (limit < LIMITS)
		u->stats.limits.cost[limit]++;
	return limit;
}

/* Appends the frames of a walk to the kernel's part of the callchain. */
static int put_callchain(struct unwinder *u, const struct unwinder_sample *s, const struct walk *w,
			 uint64_t memory_start, size_t nkernel, struct unwound *ret_unwound)
{
	struct unwound out = {.first_spliced = UINT16_MAX,
			      .first_guess = UINT16_MAX,
			      .end = w->end,
			      .limit = LIMITS};

	u->words.len = 0;
	if (vec_reserve(&u->words, nkernel + 1 + w->n))
		return -ENOMEM;
	if (nkernel)
		memcpy(u->words.v, s->callchain, nkernel * sizeof(*u->words.v));
	u->words.len = nkernel;
	u->words.v[u->words.len++] = PERF_CONTEXT_USER;
	for (size_t i = 0; i < w->n; i++) {
		const struct walk_frame *f = &w->frames[i];

		u->stats.frames[f->how]++;
		if (f->at && f->at - memory_start < s->stack_bytes &&
		    f->at - memory_start + 8 > out.reached)
			out.reached = (uint32_t)(f->at - memory_start + 8);
		if (f->how == WALK_SPLICE && out.first_spliced == UINT16_MAX)
			out.first_spliced = frame_number(i);
		if (f->how == WALK_GUESS && out.first_guess == UINT16_MAX)
			out.first_guess = frame_number(i);
		u->words.v[u->words.len++] = f->ip - !f->exact;
	}
	out.grade = grade_of(w, out.first_spliced != UINT16_MAX, out.first_guess != UINT16_MAX);
	if (out.grade == UNWIND_SPLICED)
		out.end = w->edge;
	out.edge = w->end == WALK_COPY_END || w->edge == WALK_COPY_END;
	out.callchain = u->words.v;
	out.ncallchain = u->words.len;
	u->stats.grades[out.grade]++;
	if ((u->has_limited || u->walk_limit < LIMITS) && out.grade != UNWIND_COMPLETE)
		out.limit = count_limit(u, w);
	u->stats.ends[w->end]++;
	u->stats.steps_full += w->steps_full;
	*ret_unwound = out;
	return 0;
}

static bool has_own_rules(const struct unwinder_sample *s)
{
	return s->abi == PERF_SAMPLE_REGS_ABI_64 &&
	       (!s->libdw_arch || !strcmp(s->libdw_arch, ARCH_NAME));
}

bool unwinder_sampled_ip(const struct unwinder_sample *s, uint64_t *ret_ip)
{
	const struct machine *machine = s->libdw_arch ? machine_of(s->libdw_arch, s->abi) : NULL;
	struct unwind_regs regs;

	if (machine)
		return machine_register(s->regs, s->regs_mask, machine->perf_ip, ret_ip);
	if (!has_own_rules(s))
		return false;
	regs_of(s, &regs);
	*ret_ip = regs.v[ARCH_IP];
	return regs.known >> ARCH_IP & 1;
}

/*
 * The steps for a stack. While recording, all stacks share them, so that hostile rules neither keep
 * a CPU busy nor cost other stacks their frames. Afterwards the recording's size limits them.
 */
static uint64_t steps_for_stack(struct unwinder *u, uint64_t time_ns)
{
	uint64_t steps;

	if (!u->own_tracker)
		return UNWIND_STEPS_MAX;
	if (time_ns > u->all_steps_ns) {
		steps = u->all_steps_left + (time_ns - u->all_steps_ns) / ALL_STEPS_NS;
		u->all_steps_left = steps < ALL_STEPS_MAX ? steps : ALL_STEPS_MAX;
		u->all_steps_ns = time_ns;
	}
	steps = u->all_steps_left / ALL_STEPS_PART;
	return steps < UNWIND_STEPS_MAX ? steps : UNWIND_STEPS_MAX;
}

int unwinder_sample(struct unwinder *u, const struct unwinder_sample *s,
		    struct unwound *ret_unwound)
{
	const struct walk_source source = {u, source_rule, source_step, source_is_return,
					   source_hijacked};
	struct unwind_memory memory = {0, s->stack, s->stack ? s->stack_bytes : 0, &u->steps_left};
	size_t nkernel = unwinder_kernel_words(s->callchain, s->ncallchain), user = nkernel + 1;
	const struct machine *machine = s->libdw_arch ? machine_of(s->libdw_arch, s->abi) : NULL;
	struct process_thread *thread;
	struct unwind_regs regs;
	/* While recording, the maps of PID 0 are unknown (struct tracker_options). */
	bool is_foreign = s->regs && !s->pid && u->own_tracker && has_own_rules(s);

	/* A kernel thread, or a program without rules. */
	if (!s->regs || is_foreign || !(machine || has_own_rules(s))) {
		*ret_unwound = (struct unwound){
			.callchain = s->callchain,
			.ncallchain = s->ncallchain,
			.end = is_foreign || s->abi == PERF_SAMPLE_REGS_ABI_32 ? WALK_NO_RULE
									       : WALK_START,
			.grade = is_foreign ? UNWIND_TRUNCATED : UNWIND_NO_STACK,
			.first_spliced = UINT16_MAX,
			.first_guess = UINT16_MAX,
			.limit = LIMITS};
		u->stats.grades[ret_unwound->grade]++;
		u->stats.ends[WALK_NO_RULE] += is_foreign;
		return 0;
	}
	int r = processes_thread(u->tracker->processes, s->pid, s->tid, &thread);
	uint64_t steps = steps_for_stack(u, s->time_ns);

	if (r)
		return r;
	u->thread = thread;
	u->time_ns = s->time_ns;
	u->last = s->last;
	u->walk_limit = LIMITS;
	u->steps_left = steps;
	elf_budget_work_for(thread->pid);
	unwinder_sweep_images(u);
	if (machine) {
		r = unwinder_walk_libdw(u, s, machine);
		return r ? r : put_callchain(u, s, &u->other, 0, nkernel, ret_unwound);
	}
	regs_of(s, &regs);
	memory.start = regs.v[ARCH_SP];
	u->walk.in_kernel = s->in_kernel || nkernel > 0;
	u->walk.thread = (uint32_t)s->tid;
	u->walk.space = processes_generation(u->tracker->processes, thread);
	r = walk_stack(&u->walk, &source, &regs, &memory,
		       s->callchain + (user < s->ncallchain ? user : 0),
		       user < s->ncallchain ? s->ncallchain - user : 0);
	if (u->own_tracker)
		u->all_steps_left -= steps - u->steps_left;
	if (!u->steps_left)
		u->walk_limit = LIMIT_FILE_SIZE;
	if (r)
		return r;
	if (u->walk.end == WALK_CODE_UNKNOWN && !s->last)
		return -EAGAIN;
	if (u->returns)
		return_cache_put(u->returns, s->tid, u->walk.frames, u->walk.n);
	return put_callchain(u, s, &u->walk, memory.start, nkernel, ret_unwound);
}
