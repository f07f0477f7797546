#include "unwind/unwinder.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/vec.h"
#include "symbols/answers.h"
#include "symbols/image_file.h"
#include "symbols/images.h"
#include "symbols/processes.h"
#include "unwind/image_code.h"
#include "unwind/kept_returns.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#define RULES 8192u /* kept by address, a power of two */
#define ENDS 4096u /* as RULES: whether calls end there */
#define VDSO_BYTES_MAX ((size_t)256 << 10)
#define SPARE_DESCRIPTORS 64 /* that images leave to all else */

/* An image by its number in answers. */
struct unwind_image {
	struct image_file_place place; /* the first process that mapped it */
	struct image_code *code;
	bool tried;
};

/* The rule of an address in one state of one address space. */
struct kept_rule {
	uint64_t addr;
	uint32_t space; /* a generation; 0: free */
	struct unwind_rule rule;
};

/* What walk_source.is_return says of an address, the same way. */
struct kept_end {
	uint64_t addr;
	uint32_t space;
	int8_t ends; /* a call, or -1 */
};

struct unwinder {
	struct unwinder_options options;
	struct answers answers; /* texts and images alone */
	VEC(struct unwind_image) images;
	struct hashmap build_ids; /* path -> index into ids */
	VEC(struct perfdata_build_id) ids;
	struct processes *processes;
	struct jit_codes *jit;
	struct kept_rule *kept;
	struct kept_end *ends;
	struct kept_returns *returns; /* NULL: no runtime that hijacks them was seen */
	struct walk walk;
	VEC(uint64_t) words;
	struct unwinder_stats stats;
	const struct process_thread *thread; /* of the sample at hand */
	uint64_t time_ns;
	bool last;
};

const char *unwind_grade_text(enum unwind_grade grade)
{
	static const char *const texts[UNWIND_GRADES] = {"none", "complete", "spliced", "guessed", "truncated"};

	return grade < UNWIND_GRADES ? texts[grade] : "?";
}

/* Names of threads do not matter here. */
static int unnamed(void *ctx, int32_t tid, uint32_t *ret_comm)
{
	(void)ctx;
	(void)tid;
	*ret_comm = 0;
	return 0;
}

int unwinder_new(const struct unwinder_options *options, struct unwinder **ret_unwinder)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int r = u ? processes_new(unnamed, NULL, &u->processes) : -ENOMEM;

	if (!r)
		r = jit_codes_new(&u->jit);
	if (!r && (!(u->kept = calloc(RULES, sizeof(*u->kept))) || !(u->ends = calloc(ENDS, sizeof(*u->ends)))))
		r = -ENOMEM;
	if (r) {
		unwinder_free(u);
		return r;
	}
	u->options = *options;
	u->walk.max = options->frames_max;
	*ret_unwinder = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->images.len; i++)
		image_code_free(u->images.v[i].code);
	vec_free(&u->images);
	vec_free(&u->ids);
	vec_free(&u->words);
	hashmap_free(&u->build_ids);
	answers_free(&u->answers);
	processes_free(u->processes);
	jit_codes_free(u->jit);
	walk_free(&u->walk);
	kept_returns_free(u->returns);
	free(u->kept);
	free(u->ends);
	free(u);
}

struct unwinder_stats unwinder_stats(const struct unwinder *u)
{
	return u->stats;
}

int unwinder_build_id(struct unwinder *u, const char *path, const struct perfdata_build_id *id)
{
	uint32_t text;
	int r = intern_str(&u->answers.texts, path, &text);

	if (!r)
		r = vec_push(&u->ids, *id);
	return r ? r : hashmap_put(&u->build_ids, text, (uint32_t)u->ids.len - 1);
}

static int image_of(struct unwinder *u, const struct perfdata_record *record, uint32_t *ret_image, bool *ret_anonymous)
{
	const struct perfdata_mmap *m = &record->mmap;
	enum answers_kind kind = images_kind(record, ret_anonymous);
	struct answers_image key = {.kind = (uint8_t)kind};
	int r = intern_str(&u->answers.texts, m->filename, &key.path);

	if (r)
		return r;
	if (kind == ANSWERS_FILE) {
		const uint32_t *known = m->build_id.len ? NULL : hashmap_get(&u->build_ids, key.path);
		const struct perfdata_build_id *id = known ? &u->ids.v[*known] : &m->build_id;
		struct opener_process process;

		key.build_id.len = id->len;
		memcpy(key.build_id.bytes, id->bytes, sizeof(id->bytes));
		key.maj = m->maj;
		key.min = m->min;
		key.ino = m->ino;
		key.ino_generation = m->ino_generation;
		/* Nothing else tells files of equal path in two containers apart. */
		if (!key.build_id.len && !key.ino && u->options.opener &&
		    !opener_process(u->options.opener, record->pid, &process) && process.other_root)
			key.pid = record->pid;
	} else if (kind == ANSWERS_JIT) {
		key.pid = record->pid;
	}
	r = answers_image(&u->answers, &key, ret_image);
	while (!r && u->images.len <= *ret_image)
		r = vec_push(&u->images, (struct unwind_image){0});
	if (!r && !u->images.v[*ret_image].place.end)
		u->images.v[*ret_image].place = (struct image_file_place){
			.opener = u->options.opener, .pid = record->pid, .start = m->addr, .end = m->addr + m->len};
	return r;
}

static int apply_map(struct unwinder *u, const struct perfdata_record *record)
{
	struct process_map map = {
		.start = record->mmap.addr, .end = record->mmap.addr + record->mmap.len, .pgoff = record->mmap.pgoff};
	bool anonymous;
	int r;

	if ((record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		return 0;
	r = image_of(u, record, &map.image, &anonymous);
	if (!r)
		r = processes_map(u->processes, record->pid, record->tid, &map, anonymous);
	return r == -E2BIG || r == -EINVAL ? 0 : r;
}

int unwinder_apply(struct unwinder *u, const struct perfdata_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return apply_map(u, record);
	case PERF_RECORD_COMM:
		if (record->comm.exec)
			jit_codes_forget(u->jit, record->pid);
		return processes_comm(u->processes, record->pid, record->tid, 0);
	case PERF_RECORD_FORK:
		return processes_fork(u->processes, record->pid, record->tid, record->task.ppid, record->task.ptid,
				      !(record->misc & PERF_RECORD_MISC_FORK_EXEC));
	case PERF_RECORD_EXIT:
		processes_exit(u->processes, record->tid);
		if (record->pid == record->tid)
			jit_codes_forget(u->jit, record->pid);
		return 0;
	default:
		return 0;
	}
}

/* The vdso that the running kernel maps into every process, ours among them. */
static int open_vdso(struct unwinder *u, const struct answers_image *key, struct unwind_image *image)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	size_t len;

	if (!head || u->options.recorded_elsewhere || strcmp(intern_text(&u->answers.texts, key->path), "[vdso]") != 0)
		return 0;
	len = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
	return len > VDSO_BYTES_MAX ? 0 : image_code_from_memory(head, len, &image->code);
}

static int open_file(struct unwinder *u, const struct answers_image *key, struct unwind_image *image)
{
	int fd = -1, r;

	r = image_file_find(&image->place, key, intern_text(&u->answers.texts, key->path), &fd);
	/* Each image that is sampled keeps a descriptor or two; others are needed to end the recording. */
	if (!r && file_descriptors_above(fd) < SPARE_DESCRIPTORS) {
		close(fd);
		r = -EMFILE;
	}
	if (!r && (r = image_code_open(fd, &image->code)))
		close(fd);
	u->stats.images++;
	u->stats.images_missing += !image->code;
	return r == -ENOMEM ? r : 0;
}

/* The code of an image, NULL where it cannot be had. 0 or -ENOMEM. */
static int code_of(struct unwinder *u, uint32_t number, struct image_code **ret_code)
{
	struct unwind_image *image = &u->images.v[number];
	const struct answers_image *key = &u->answers.images.v[number];
	int r = 0;

	if (!image->tried && key->kind == ANSWERS_FILE)
		r = open_file(u, key, image);
	else if (!image->tried && key->kind == ANSWERS_VDSO)
		r = open_vdso(u, key, image);
	if (r == -ENOMEM)
		return r;
	if (!image->tried && image->code && image_code_hijacks(image->code) && !u->returns)
		r = kept_returns_new(&u->returns);
	image->tried = true;
	*ret_code = image->code;
	return r;
}

/* What is mapped at addr: its image, and the offset in it. 0; -ENOENT; -ENOMEM. */
static int find_code(struct unwinder *u, uint64_t addr, struct image_code **ret_code, uint64_t *ret_file_off)
{
	const struct process_map *map = processes_find_map(u->processes, u->thread, addr);

	if (!map)
		return -ENOENT;
	bool under = map->under != PROCESS_NO_IMAGE;

	*ret_file_off = addr - map->start + (under ? map->under_pgoff : map->pgoff);
	return code_of(u, under ? map->under : map->image, ret_code);
}

/* What a process made at addr. 0; -ENOENT: nobody knows it; -EAGAIN: it was asked for; -ENOMEM. */
static int find_jit(struct unwinder *u, uint64_t addr, const struct jit_code **ret_code)
{
	bool ask = false;
	int r;

	if (!u->options.ask)
		return -ENOENT;
	r = jit_codes_find(u->jit, u->thread->pid, addr, u->time_ns, ret_code, &ask);
	if (ask && !u->options.ask(u->options.ctx, u->thread->pid, addr) && r)
		return -ENOENT;
	return r == -EAGAIN && u->last ? -ENOENT : r;
}

/* *ret_keep: the answer holds as long as the address space stays what it is. */
static int find_rule(struct unwinder *u, uint64_t addr, struct unwind_rule *ret_rule, bool *ret_keep)
{
	const struct unwind_rule *rule = NULL;
	const struct jit_code *jit;
	struct image_code *code;
	uint64_t file_off;
	int r = find_code(u, addr, &code, &file_off);

	*ret_keep = true;
	if (r)
		return r;
	if (code)
		return image_code_rule(code, file_off, ret_rule);
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
	uint32_t space = processes_generation(u->processes, u->thread);
	struct kept_rule *kept = &u->kept[hash_mix(addr, space) & (RULES - 1)];
	bool keep;

	if (kept->addr == addr && kept->space == space && space) {
		*ret_rule = kept->rule;
		return 0;
	}
	int r = find_rule(u, addr, ret_rule, &keep);

	if (!r && keep)
		*kept = (struct kept_rule){addr, space, *ret_rule};
	u->walk.passing |= !r && !keep && ret_rule->kind != UNWIND_NONE;
	return r;
}

static int source_step(void *ctx, uint64_t addr, struct unwind_regs *regs, const struct unwind_memory *memory, bool *ret_signal)
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

/* Whether a call ends at addr: 1, 0; -1: its code cannot be read. -ENOMEM: it is not known either. */
static int find_end(struct unwinder *u, uint64_t addr)
{
	struct image_code *code;
	unsigned char bytes[ARCH_CALL_MAX];
	uint64_t file_off;
	int r = addr < sizeof(bytes) ? -ENOENT : find_code(u, addr - 1, &code, &file_off);

	if (r)
		return r == -ENOMEM ? r : 0;
	if (!code)
		return -1;
	if (file_off + 1 < sizeof(bytes) ||
	    image_code_read(code, file_off + 1 - sizeof(bytes), bytes, sizeof(bytes)) < sizeof(bytes))
		return 0;
	return arch_ends_in_call(bytes);
}

/* The bytes are read from the file: where stacks lead through code without rules, some for each sample, of few places. */
static int source_is_return(void *ctx, uint64_t addr)
{
	struct unwinder *u = ctx;
	uint32_t space = processes_generation(u->processes, u->thread);
	struct kept_end *kept = &u->ends[hash_mix(addr, space) & (ENDS - 1)];

	if (kept->addr != addr || kept->space != space || !space) {
		int ends = find_end(u, addr);

		if (ends == -ENOMEM)
			return 0;
		*kept = (struct kept_end){addr, space, (int8_t)ends};
	}
	return kept->ends;
}

static int source_hijacked(void *ctx, uint64_t at, const struct unwind_memory *memory, uint64_t *ret_ip)
{
	const struct unwinder *u = ctx;

	return u->returns ? kept_returns_find(u->returns, u->thread->tid, at, memory, ret_ip) : -ENOENT;
}

int unwinder_code(struct unwinder *u, int32_t pid, uint64_t addr, struct jit_code *code, uint64_t now_ns)
{
	return jit_codes_put(u->jit, pid, addr, code, now_ns);
}

/* The kernel's part of a callchain with its mark for what follows, and where the user part begins. */
static size_t kernel_words(const struct unwinder_sample *s)
{
	size_t i = 0;

	while (i < s->ncallchain && s->callchain[i] != PERF_CONTEXT_USER)
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

/* The callchain of a walk, behind the kernel's part. */
static int put_callchain(struct unwinder *u, const struct unwinder_sample *s, uint64_t memory_start, size_t nkernel,
			 struct unwound *ret_unwound)
{
	const struct walk *w = &u->walk;
	struct unwound out = {.first_spliced = UINT16_MAX, .first_guess = UINT16_MAX, .end = w->end};

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
		if (f->at - memory_start < s->stack_bytes && f->at - memory_start + 8 > out.reached)
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
	out.edge = w->end == WALK_EDGE || w->edge == WALK_EDGE;
	out.callchain = u->words.v;
	out.ncallchain = u->words.len;
	u->stats.grades[out.grade]++;
	u->stats.ends[w->end]++;
	u->stats.steps_full += w->steps_full;
	*ret_unwound = out;
	return 0;
}

int unwinder_sample(struct unwinder *u, const struct unwinder_sample *s, struct unwound *ret_unwound)
{
	const struct walk_source source = {u, source_rule, source_step, source_is_return, source_hijacked};
	struct unwind_memory memory = {.data = s->stack, .len = s->stack ? s->stack_bytes : 0};
	size_t nkernel = kernel_words(s), user = nkernel + 1;
	struct process_thread *thread;
	struct unwind_regs regs;
	int r;

	/* A thread of the kernel, or a 32-bit program, for whose registers there are no rules here. */
	if (!s->regs || s->abi != PERF_SAMPLE_REGS_ABI_64) {
		*ret_unwound = (struct unwound){.callchain = s->callchain,
						.ncallchain = s->ncallchain,
						.end = s->abi == PERF_SAMPLE_REGS_ABI_32 ? WALK_NO_RULE : WALK_START,
						.first_spliced = UINT16_MAX,
						.first_guess = UINT16_MAX};
		u->stats.grades[UNWIND_NO_STACK]++;
		return 0;
	}
	r = processes_thread(u->processes, s->pid, s->tid, &thread);
	if (r)
		return r;
	regs_of(s, &regs);
	memory.start = regs.v[ARCH_SP];
	u->thread = thread;
	u->time_ns = s->time_ns;
	u->last = s->last;
	u->walk.in_kernel = s->in_kernel || nkernel > 0;
	u->walk.thread = (uint32_t)s->tid;
	u->walk.space = processes_generation(u->processes, thread);
	r = walk_stack(&u->walk, &source, &regs, &memory, s->callchain + (user < s->ncallchain ? user : 0),
		       user < s->ncallchain ? s->ncallchain - user : 0);
	if (r)
		return r;
	if (u->walk.end == WALK_LATER && !s->last)
		return -EAGAIN;
	if (u->returns)
		kept_returns_put(u->returns, s->tid, u->walk.frames, u->walk.n);
	return put_callchain(u, s, memory.start, nkernel, ret_unwound);
}
