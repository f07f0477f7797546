#include "unwind/libdw_walk.h"

#include "base/clock.h"
#include "base/vec.h"
#include "unwind/libdw_image.h"
#include "unwind/walk.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKER_TID 1 /* any; libdw walks one thread */
#define NO_RANGE SIZE_MAX

/* A mapping: [start, end). */
struct range {
	uint64_t start, end;
	uint32_t number; /* of the image */
	uint64_t walk;   /* the last walk through it */
	uint64_t cpu_ns; /* of that walk */
};

/* An address space for libdw. */
struct space {
	uint32_t id; /* 0: free */
	const struct machine *machine;
	Dwfl *dwfl;
	VEC(struct range) reported; /* mappings that libdw knows, by address */
	uint64_t used;              /* number of the last walk */
};

struct libdw_walk {
	libdw_find_code_fn *find_code;
	void *ctx;
	volatile uint32_t *now_in; /* number of the image of the current range */
	struct {
		struct libdw_image *image; /* names the machine */
		Elf *elf;
	} machines[MACHINES];
	struct space spaces[LIBDW_SPACES_MAX];
	uint64_t walks;
	/* The current walk. */
	struct space *space;
	struct libdw_sample sample;
	struct walk *out;
	bool resumed;        /* from a frame that libdw could not leave */
	int jumps;           /* steps that did not lead up the stack */
	bool outside, below; /* the last step needed memory above or below the copy */
	int error;           /* -ENOMEM */
	int end;             /* enum walk_end; -1: not known yet */
	size_t range;        /* index of the mapping that is being walked; NO_RANGE */
	uint64_t since_ns;   /* CPU time that was charged so far */
	uint64_t slowest_ns; /* of cost.slowest */
	struct libdw_cost cost;
};

static bool sample_register(const struct libdw_sample *s, uint8_t bit, uint64_t *ret_value)
{
	return machine_register(s->regs, s->regs_mask, bit, ret_value);
}

int libdw_walk_new(libdw_find_code_fn *find_code, void *ctx, volatile uint32_t *now_in,
		   struct libdw_walk **ret_walk)
{
	struct libdw_walk *w = calloc(1, sizeof(*w));
	int r = w ? 0 : -ENOMEM;

	elf_version(EV_CURRENT);
	for (size_t i = 0; !r && i < MACHINES; i++) {
		r = libdw_image_empty(machine_at(i)->elf, &w->machines[i].image);
		if (r)
			break;
		size_t bytes;
		const void *file = libdw_image_file(w->machines[i].image, &bytes);

		w->machines[i].elf = elf_memory((char *)(uintptr_t)file, bytes);
		r = w->machines[i].elf ? 0 : -ENOMEM;
	}
	if (r) {
		libdw_walk_free(w);
		return r;
	}
	w->find_code = find_code;
	w->ctx = ctx;
	w->now_in = now_in;
	*ret_walk = w;
	return 0;
}

static void forget_space(struct space *s)
{
	if (s->dwfl)
		dwfl_end(s->dwfl);
	vec_free(&s->reported);
	*s = (struct space){0};
}

void libdw_walk_free(struct libdw_walk *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < LIBDW_SPACES_MAX; i++)
		forget_space(&w->spaces[i]);
	for (size_t i = 0; i < MACHINES; i++) {
		elf_end(w->machines[i].elf);
		libdw_image_free(w->machines[i].image);
	}
	free(w);
}

/* Callbacks of libdw. */

/* userdata: the ELF file; libdw ends its reference. */
static int give_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	(void)module;
	(void)name;
	(void)base;
	(void)file_name;
	*elf = *userdata ? elf_begin(-1, ELF_C_READ, *userdata) : NULL;
	return -1;
}

static int give_no_debug_file(Dwfl_Module *module, void **userdata, const char *name,
			      Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
			      char **ret_file)
{
	(void)module;
	(void)userdata;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)ret_file;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **ret_thread)
{
	(void)dwfl;
	if (*ret_thread)
		return 0;
	*ret_thread = arg;
	return WORKER_TID;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **ret_thread)
{
	(void)dwfl;
	*ret_thread = arg;
	return tid == WORKER_TID;
}

/* A signed return address (pointer authentication) has its signature above the address. */
static uint64_t unsigned_address(struct libdw_walk *w, uint64_t word)
{
	uint64_t addr = word & w->sample.machine->addr_max;
	struct libdw_code code;

	return addr != word && word >> 56 != 0xff && !w->find_code(w->ctx, addr, &code) ? addr
											: word;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret_word, void *arg)
{
	struct libdw_walk *w = arg;
	const struct unwind_memory *m = &w->sample.memory;
	size_t bytes = w->sample.machine->word;
	uint64_t off = addr - m->start, word = 0;

	(void)dwfl;
	if (m->len < bytes || off > m->len - bytes) {
		w->outside |= addr >= m->start;
		w->below |= addr < m->start;
		return false;
	}
	memcpy(&word, m->data + off, bytes);
	*ret_word = w->sample.machine->ip_apart ? unsigned_address(w, word) : word;
	return true;
}

static bool give_registers(Dwfl_Thread *thread, void *arg)
{
	struct libdw_walk *w = arg;
	const struct machine *m = w->sample.machine;
	uint64_t value;

	for (int i = 0; i < m->nregs; i++) {
		if (!sample_register(&w->sample, m->perf[i], &value))
			continue;
		value = m->ip_apart ? unsigned_address(w, value) : value;
		Dwarf_Word word = value & (m->word == 4 ? UINT32_MAX : UINT64_MAX);

		if (!dwfl_thread_state_registers(thread, i, 1, &word))
			return false;
	}
	if (m->ip_apart && sample_register(&w->sample, m->perf_ip, &value))
		dwfl_thread_state_register_pc(thread, value);
	return true;
}

static const Dwfl_Callbacks dwfl_callbacks = {.find_elf = give_elf,
					      .find_debuginfo = give_no_debug_file};
static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
						       .get_thread = get_thread,
						       .memory_read = read_memory,
						       .set_initial_registers = give_registers};

static int open_space(struct libdw_walk *w, struct space *s)
{
	size_t machine = machine_number(w->sample.machine);

	*s = (struct space){.id = w->sample.space,
			    .machine = w->sample.machine,
			    .dwfl = dwfl_begin(&dwfl_callbacks)};
	if (!s->dwfl)
		return -ENOMEM;
	dwfl_report_begin(s->dwfl);
	dwfl_report_end(s->dwfl, NULL, NULL);
	if (dwfl_attach_state(s->dwfl, w->machines[machine].elf, WORKER_TID, &thread_callbacks, w))
		return 0;
	forget_space(s);
	return -ENOMEM;
}

static bool is_of_sample(const struct libdw_walk *w, const struct space *s)
{
	return s->dwfl && s->id && s->id == w->sample.space && s->machine == w->sample.machine;
}

/* Finds the address space of the sample. The one of the oldest walk makes room. 0 or -ENOMEM. */
static int find_space(struct libdw_walk *w)
{
	struct space *found = &w->spaces[0];
	int r = 0;

	for (size_t i = 0; i < LIBDW_SPACES_MAX && !is_of_sample(w, found); i++)
		if (is_of_sample(w, &w->spaces[i]) || w->spaces[i].used < found->used)
			found = &w->spaces[i];
	if (!is_of_sample(w, found)) {
		forget_space(found);
		r = open_space(w, found);
	}
	found->used = ++w->walks;
	w->space = found;
	return r;
}

/* Ends the charge to the current mapping and begins that to another one. */
static void enter_range(struct libdw_walk *w, size_t range)
{
	uint64_t now_ns = clock_thread_ns(), ns = now_ns - w->since_ns;
	struct range *last = w->range == NO_RANGE ? NULL : &w->space->reported.v[w->range];

	w->since_ns = now_ns;
	w->cost.cpu_ns += ns;
	if (last) {
		last->cpu_ns = (last->walk == w->walks ? last->cpu_ns : 0) + ns;
		last->walk = w->walks;
	}
	if (last && last->cpu_ns >= w->slowest_ns) {
		w->slowest_ns = last->cpu_ns;
		w->cost.slowest = last->number;
	}
	w->range = range;
	*w->now_in = range == NO_RANGE ? LIBDW_NO_IMAGE : w->space->reported.v[range].number;
}

/* The index of the first mapping that ends above addr. */
static size_t range_at(const struct space *s, uint64_t addr)
{
	size_t low = 0, high = s->reported.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->reported.v[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_range(struct space *s, const struct libdw_code *code, size_t *ret_at)
{
	size_t at = range_at(s, code->start);
	struct range range = {.start = code->start, .end = code->end, .number = code->number};

	if (vec_push(&s->reported, range))
		return -ENOMEM;
	memmove(&s->reported.v[at + 1], &s->reported.v[at],
		(s->reported.len - 1 - at) * sizeof(range));
	s->reported.v[at] = range;
	*ret_at = at;
	return 0;
}

/* Reports the image that is mapped at addr to libdw, once. Returns 0; -ENOENT: no code; -ENOMEM. */
static int report_code(struct libdw_walk *w, uint64_t addr)
{
	struct space *s = w->space;
	size_t at = range_at(s, addr);
	struct libdw_code code;
	void **elf;
	char name[24];

	if (at < s->reported.len && addr >= s->reported.v[at].start) {
		if (at != w->range)
			enter_range(w, at);
		return 0;
	}
	enter_range(w, NO_RANGE);
	int r = w->find_code(w->ctx, addr, &code);

	w->since_ns = clock_thread_ns();
	if (!r)
		r = add_range(s, &code, &at);
	if (!r)
		enter_range(w, at);
	if (r || !code.elf || code.elf_start > code.start)
		return r;
	snprintf(name, sizeof(name), "%llx", (unsigned long long)code.start);
	dwfl_report_begin_add(s->dwfl);
	Dwfl_Module *module = dwfl_report_module(s->dwfl, name, code.elf_start, code.end);

	dwfl_report_end(s->dwfl, NULL, NULL);
	if (!module || !dwfl_module_info(module, &elf, NULL, NULL, NULL, NULL, NULL, NULL))
		return -ENOMEM;
	*elf = code.elf;
	return 0;
}

static int stop(struct libdw_walk *w, enum walk_end end)
{
	w->end = end;
	return DWARF_CB_ABORT;
}

static int fail(struct libdw_walk *w, int error)
{
	w->error = error;
	return stop(w, WALK_DAMAGED);
}

/*
 * Called for each frame. libdw looks for the caller when it tells whether the frame is active, so
 * report the code first.
 */
static int take_frame(Dwfl_Frame *state, void *arg)
{
	struct libdw_walk *w = arg;
	struct walk *out = w->out;
	struct walk_frame frame = {.how = WALK_RULE};
	Dwarf_Word sp, fp;

	if (!dwfl_frame_pc(state, &frame.ip, NULL))
		return stop(w, WALK_DAMAGED);
	int r = frame.ip ? report_code(w, frame.ip - (out->n > 0 && !w->resumed)) : -ENOENT;

	w->outside = w->below = false;
	dwfl_frame_pc(state, &frame.ip, &frame.exact);
	if (!dwfl_frame_reg(state, w->sample.machine->dwarf_sp, &sp))
		frame.sp = sp;
	frame.has_fp = !dwfl_frame_reg(state, w->sample.machine->dwarf_fp, &fp);
	frame.fp = frame.has_fp ? fp : 0;
	if (w->resumed) {
		frame.ip++;
		frame.exact = false;
		frame.how = WALK_FRAME_POINTER;
		w->resumed = false;
	}
	if (r == -ENOMEM)
		return fail(w, r);
	if (r && out->n)
		return stop(w, WALK_NOT_CODE);
	if (out->n == (out->max ? out->max : WALK_FRAMES_MAX))
		return stop(w, WALK_FRAME_LIMIT);
	/* The caller of a leaf may have the same stack pointer, and signals switch stacks. */
	if (out->n && frame.sp <= out->frames[out->n - 1].sp && ++w->jumps > WALK_JUMPS_MAX)
		return stop(w, WALK_NO_PROGRESS);
	if (out->n == out->cap &&
	    vec_grow((void **)&out->frames, &out->cap, sizeof(*out->frames), out->n + 1))
		return fail(w, -ENOMEM);
	out->frames[out->n++] = frame;
	return r ? stop(w, WALK_NOT_CODE) : DWARF_CB_OK;
}

/*
 * Steps from the last frame by its frame pointer, where libdw refuses: it also wants the caller to
 * have one. The next walk begins at the call. False: the frame pointer leads nowhere.
 */
static bool step_by_frame_pointer(struct libdw_walk *w, uint64_t regs[3])
{
	const struct machine *m = w->sample.machine;
	const struct walk_frame *last = &w->out->frames[w->out->n - 1];
	Dwarf_Word fp, ip;

	if (!last->has_fp || last->fp < last->sp || !read_memory(NULL, last->fp, &fp, w) ||
	    !read_memory(NULL, last->fp + m->word, &ip, w))
		return false;
	const struct {
		uint8_t bit;
		uint64_t value;
	} known[] = {{m->perf_fp, fp}, {m->perf_sp, last->fp + 2u * m->word}, {m->perf_ip, ip - 1}};

	if (!ip || report_code(w, ip - 1))
		return false;
	w->sample.regs = regs;
	w->sample.regs_mask = 0;
	for (size_t i = 0; i < 3; i++) {
		regs[i] = known[i].value;
		w->sample.regs_mask |= UINT64_C(1) << known[i].bit;
	}
	w->resumed = true;
	return true;
}

/*
 * Why the last frame has no caller. libdw also reports an end if it could not read the return
 * address. A frame pointer of 0 marks the first function.
 */
static enum walk_end end_of(const struct libdw_walk *w, bool libdw_ends)
{
	const struct walk_frame *last = w->out->n ? &w->out->frames[w->out->n - 1] : NULL;

	if (w->outside)
		return WALK_COPY_END;
	if (libdw_ends)
		return w->below ? WALK_DAMAGED : WALK_START;
	return last && w->out->n > 1 && last->has_fp && !last->fp ? WALK_START : WALK_NO_RULE;
}

int libdw_walk_stack(struct libdw_walk *w, const struct libdw_sample *sample, struct walk *out,
		     struct libdw_cost *ret_cost)
{
	uint64_t regs[3];

	w->out = out;
	w->sample = *sample;
	w->cost = *ret_cost = (struct libdw_cost){.slowest = LIBDW_NO_IMAGE};
	w->range = NO_RANGE;
	w->slowest_ns = 0;
	w->since_ns = clock_thread_ns();
	*w->now_in = LIBDW_NO_IMAGE;
	if (!sample_register(sample, sample->machine->perf_sp, &w->sample.memory.start))
		return machine_walk_sampled(sample->machine, sample->regs, sample->regs_mask,
					    WALK_DAMAGED, out);
	int r = find_space(w);

	if (r)
		return r;
	out->n = 0;
	out->edge = WALK_START;
	w->end = -1;
	w->error = 0;
	w->jumps = 0;
	w->resumed = w->outside = w->below = false;
	do
		r = dwfl_getthread_frames(w->space->dwfl, WORKER_TID, take_frame, w);
	while (r == -1 && w->end < 0 && !w->error && !w->resumed && !w->outside && out->n &&
	       step_by_frame_pointer(w, regs));
	out->end = (uint8_t)(w->end >= 0 ? w->end : (int)end_of(w, !r));
	enter_range(w, NO_RANGE);
	*ret_cost = w->cost;
	return w->error;
}
