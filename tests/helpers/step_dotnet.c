/*
 * Steps threads of a .NET process. At each instruction in JIT-compiled code, precompiled code and
 * stubs it compares the rules of the code with the true return address.
 *
 * usage: step_dotnet PID STEPS [ROUNDS [NAME]]
 *
 * Each of the ROUNDS (1) takes STEPS steps of the next running thread whose name begins with NAME.
 * Prints for each kind of place the number of right and wrong instructions and those without a
 * rule, and the errors. Exit status 1 if any is wrong.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "symbols/bundle.h"
#include "dotnet/coreclr/runtime.h"
#include "tests/helpers/stepper.h"
#include "unwind/clr_code.h"
#include "unwind/r2r_unwind.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define EXAMPLES 12
#define MAPPINGS_MAX 8192
#define STACK_BYTES 65536

enum place {
	JIT_BODY,
	JIT_EDGE,
	IMAGE_BODY,
	IMAGE_EDGE,
	THUNK,
	STUB,
	PLACES,
};

static const char *const place_names[] = {"jit body", "jit edge",  "r2r body",
					  "r2r edge", "r2r thunk", "stub"};

struct mapping {
	uint64_t start, end, offset;
	bool is_image, is_native;
	struct r2r_unwind *image; /* NULL: not opened */
	bool tried;
	char path[512];
};

struct known_code {
	struct clr_code code;
	int error;
};

struct stepping {
	pid_t pid;
	struct mapping *maps;
	size_t nmaps;
	struct clr_code_reader *reader;
	VEC(struct known_code) codes;
	struct hashmap by_ip;   /* indices into codes */
	struct hashmap printed; /* addresses of printed examples */
	unsigned long right[PLACES], wrong[PLACES], none[PLACES], native, reads, moved, hijacked;
	uint64_t read_ns;
	int examples;
};

static void read_maps(struct stepping *s)
{
	char name[64], line[1024];

	snprintf(name, sizeof(name), "/proc/%d/maps", s->pid);
	AUTO_FCLOSE FILE *f = fopen(name, "re");

	for (size_t i = 0; i < s->nmaps; i++)
		r2r_unwind_free(s->maps[i].image);
	s->nmaps = 0;
	while (f && fgets(line, sizeof(line), f) && s->nmaps < MAPPINGS_MAX) {
		struct mapping *m = &s->maps[s->nmaps];
		unsigned long long start, end, offset;
		char prot[8], path[512] = "";

		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %511[^\n]", &start, &end, prot,
			   &offset, path) < 4 ||
		    prot[2] != 'x')
			continue;
		*m = (struct mapping){.start = start, .end = end, .offset = offset};
		snprintf(m->path, sizeof(m->path), "%s", path);
		bool is_memory = !strncmp(path, "/memfd:doublemapper", 19) || !*path;
		size_t len = strlen(path);

		m->is_image = !is_memory && len > 4 && !strcmp(path + len - 4, ".dll");
		m->is_native = !is_memory && !m->is_image;
		s->nmaps++;
	}
}

static struct mapping *mapping_of(struct stepping *s, uint64_t ip)
{
	for (size_t i = 0; i < s->nmaps; i++)
		if (ip - s->maps[i].start < s->maps[i].end - s->maps[i].start)
			return &s->maps[i];
	return NULL;
}

static struct r2r_unwind *image_of(struct mapping *m)
{
	if (m->tried)
		return m->image;
	m->tried = true;
	AUTO_CLOSE int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	struct pe_file file = {.fd = fd, .bytes = fd < 0 ? 0 : (uint64_t)lseek(fd, 0, SEEK_END)};

	if (fd >= 0)
		(void)r2r_unwind_open(&file, &m->image, NULL);
	return m->image;
}

/* Whether an offset has the rule that most of the code has. */
static bool is_body(const struct code_rules *rules, uint64_t offset, uint64_t len)
{
	const struct unwind_rule *rule = code_rules_at(rules, offset);
	uint64_t most = 0;
	size_t at = 0;

	for (size_t i = 0; i < rules->nrows; i++) {
		uint64_t end = i + 1 < rules->nrows ? rules->rows[i + 1].offset : len;

		if (end - rules->rows[i].offset > most) {
			most = end - rules->rows[i].offset;
			at = i;
		}
	}
	return rule == &rules->rows[at].rule;
}

static const struct known_code *code_at(struct stepping *s, uint64_t ip)
{
	uint32_t *index = hashmap_get(&s->by_ip, ip);
	struct known_code known;

	if (index)
		return &s->codes.v[*index];
	struct clr_code_query query = {ip, clock_monotonic_ns()};

	for (int try = 0; try < 2; try++) {
		uint64_t began = clock_monotonic_ns();

		if (clr_code_read(s->reader, &query, 1, &known.code, &known.error))
			return NULL;
		s->read_ns += clock_monotonic_ns() - began;
		s->reads++;
		if (known.error != -EAGAIN)
			break;
		usleep(CLR_CODE_REFRESH_NS / 1000); /* newer than the map of ranges */
	}
	if (vec_push(&s->codes, known) || hashmap_put(&s->by_ip, ip, (uint32_t)s->codes.len - 1))
		return NULL;
	return &s->codes.v[s->codes.len - 1];
}

/* Whether to print an address: each only once. */
static bool is_example(struct stepping *s, uint64_t ip)
{
	int fresh = 0;

	if (hashmap_entry(&s->printed, ip, 0, &(uint32_t *){NULL}, &fresh) || !fresh)
		return false;
	return s->examples++ < EXAMPLES;
}

static void print_code(pid_t pid, uint64_t addr)
{
	unsigned char code[16] = {0};

	(void)memory_read_pages(pid, addr, code, sizeof(code), NULL);
	for (size_t i = 0; i < sizeof(code); i++)
		printf(" %02x", code[i]);
	printf("\n");
}

/* The rule at this place. False: native code, which is not checked. */
static bool look_up(struct stepping *s, uint64_t ip, enum place *ret_place,
		    const struct code_rules **ret_rules, uint64_t *ret_offset)
{
	struct r2r_unwind_function f;
	const struct known_code *known;
	struct mapping *m = mapping_of(s, ip);

	if (!m) {
		read_maps(s);
		m = mapping_of(s, ip);
	}
	*ret_rules = NULL;
	*ret_place = STUB;
	if (!m || m->is_native)
		return false;
	if (m->is_image) {
		uint64_t off = ip - m->start + m->offset;

		*ret_place = IMAGE_BODY;
		if (!image_of(m) || r2r_unwind_find(m->image, off, NULL, &f))
			return true;
		*ret_rules = f.rules;
		*ret_offset = off - f.start;
		*ret_place = f.is_thunks                                        ? THUNK
			     : is_body(f.rules, off - f.start, f.end - f.start) ? IMAGE_BODY
										: IMAGE_EDGE;
		return true;
	}
	known = code_at(s, ip);
	if (!known || known->error) {
		if (is_example(s, ip)) {
			printf("  no rule: error %d at 0x%llx:", known ? -known->error : ENOMEM,
			       (unsigned long long)ip);
			print_code(s->pid, ip);
		}
		return true;
	}
	*ret_rules = &known->code.rules;
	*ret_offset = ip - known->code.start;
	if (known->code.kind == CLR_CODE_OF_METHOD)
		*ret_place = is_body(*ret_rules, *ret_offset, known->code.end - known->code.start)
				     ? JIT_BODY
				     : JIT_EDGE;
	return true;
}

static void print_wrong(const struct stepper *t, enum place place, const struct code_rules *rules,
			uint64_t offset, const struct unwind_regs *regs, int error)
{
	const struct stepper_frame *frame = &t->frames.v[t->frames.len - 1];
	const struct unwind_rule *rule = code_rules_at(rules, offset);

	printf("  wrong: %s at 0x%llx + 0x%llx, error %d: reg%u %+d fp %u %+d; CFA 0x%llx, is "
	       "0x%llx, rsp 0x%llx rbp 0x%llx;",
	       place_names[place], (unsigned long long)(t->regs.v[ARCH_IP] - offset),
	       (unsigned long long)offset, -error, rule->cfa_reg, rule->cfa_add, rule->fp,
	       rule->fp_at, (unsigned long long)regs->v[ARCH_SP], (unsigned long long)frame->cfa,
	       (unsigned long long)t->regs.v[ARCH_SP], (unsigned long long)t->regs.v[ARCH_FP]);
	for (int i = 0; i < ARCH_REGS; i++)
		if (regs->known & frame->caller.known & 1u << i && regs->v[i] != frame->caller.v[i])
			printf(" reg%d 0x%llx is 0x%llx;", i, (unsigned long long)regs->v[i],
			       (unsigned long long)frame->caller.v[i]);
	print_code(t->pid, t->regs.v[ARCH_IP]);
}

enum verdict {
	RIGHT,
	WRONG,
	MOVED, /* a saved register differs from its value at the call: the garbage collector updates
		  references in frames */
	HIJACKED, /* the return address changed too: the runtime redirects the thread when it
		     returns (vm/threadsuspend.cpp, HijackThread) */
};

static enum verdict verdict_of(const struct unwind_regs *regs, const struct stepper_frame *frame)
{
	const uint32_t needed =
		1u << ARCH_SP | 1u << ARCH_IP | (frame->is_signal ? 0 : 1u << ARCH_FP);

	if (~regs->known & needed || regs->v[ARCH_SP] != frame->cfa ||
	    (!frame->is_signal && regs->v[ARCH_FP] != frame->caller.v[ARCH_FP]))
		return WRONG;
	if (regs->v[ARCH_IP] != frame->ret)
		return HIJACKED;
	for (int i = 0; i < ARCH_REGS; i++)
		if (regs->known & frame->caller.known & 1u << i && regs->v[i] != frame->caller.v[i])
			return MOVED;
	return RIGHT;
}

static int check_step(void *ctx, const struct stepper *t)
{
	static unsigned char stack[STACK_BYTES];
	const struct stepper_frame *frame = &t->frames.v[t->frames.len - 1];
	struct unwind_regs regs = t->regs;
	struct unwind_memory memory = {regs.v[ARCH_SP], stack, 0, NULL};
	struct stepping *s = ctx;
	const struct code_rules *rules;
	enum place place;
	uint64_t offset = 0;
	int r;

	if (!look_up(s, regs.v[ARCH_IP], &place, &rules, &offset)) {
		s->native++;
		return 0;
	}
	const struct unwind_rule *rule = rules ? code_rules_at(rules, offset) : NULL;

	if (!rule || rule->kind == UNWIND_NONE) {
		s->none[place]++;
		return 0;
	}
	memory.len = frame->cfa - memory.start < STACK_BYTES ? (size_t)(frame->cfa - memory.start)
							     : STACK_BYTES;
	if (memory_read(t->pid, memory.start, stack, memory.len))
		return 0;
	r = code_rules_step(rules, offset, &regs, &memory);
	enum verdict verdict = r ? WRONG : verdict_of(&regs, frame);

	s->moved += verdict == MOVED;
	s->hijacked += verdict == HIJACKED;
	if (verdict != WRONG) {
		s->right[place]++;
		return 0;
	}
	s->wrong[place]++;
	if (is_example(s, t->regs.v[ARCH_IP]))
		print_wrong(t, place, rules, offset, &regs, r);
	return 0;
}

/* The next running thread, in turn. */
static pid_t find_thread(pid_t pid, const char *name, pid_t after)
{
	pid_t first = 0, next = 0;
	char path[300], line[512];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		pid_t tid = (pid_t)atoi(e->d_name);

		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
		AUTO_FCLOSE FILE *f = tid ? fopen(path, "re") : NULL;
		const char *begin = f && fgets(line, sizeof(line), f) ? strchr(line, '(') : NULL,
			   *end = begin ? strrchr(line, ')') : NULL;

		if (!end || end[2] != 'R' || (name && strncmp(begin + 1, name, strlen(name)) != 0))
			continue;
		if (!first || tid < first)
			first = tid;
		if (tid > after && (!next || tid < next))
			next = tid;
	}
	if (dir)
		closedir(dir);
	return next ? next : first;
}

static int open_reader(struct stepping *s)
{
	struct clr_io io = clr_runtime_io(s->pid);
	struct clr_anchors anchors;
	struct clr_contract contract;
	struct parse_error err = {.what = "no runtime"};
	AUTO_FREE char *maps = NULL;
	int r = io.maps(io.ctx, &maps);

	if (!r)
		r = clr_locate_in_process(&io, maps, &anchors);
	if (!r)
		r = clr_contract_load(&io, &anchors, &contract, &err);
	if (!r)
		r = clr_code_reader_new(&io, &contract, &s->reader);
	if (r)
		printf("%s\n", err.what);
	return r;
}

int main(int argc, char **argv)
{
	static struct stepping s; /* in use until the end */
	static struct stepper t;
	int rounds = argc > 3 ? atoi(argv[3]) : 1, bad = 0;

	s.pid = t.pid = argc > 2 ? (pid_t)atoi(argv[1]) : 0;
	if (!s.pid)
		return 2;
	s.maps = calloc(MAPPINGS_MAX, sizeof(*s.maps));
	read_maps(&s);
	if (!s.maps || open_reader(&s))
		return 2;
	uint64_t began = clock_monotonic_ns();

	for (int i = 0; i < rounds; i++) {
		t.tid = find_thread(s.pid, argc > 4 ? argv[4] : NULL, t.tid);
		if (t.tid)
			(void)stepper_run(&t, (uint64_t)atoll(argv[2]), check_step, &s);
		usleep(20000);
	}
	printf("%llu steps, %llu calls, %llu signals, %llu methods replaced, %llu not read; %lu of "
	       "native code; %.1f us a step; %lu reads of %.1f us; return addresses "
	       "changed at %lu, registers at %lu\n",
	       (unsigned long long)t.steps, (unsigned long long)t.calls,
	       (unsigned long long)t.signals, (unsigned long long)t.replaced,
	       (unsigned long long)t.unreadable, s.native,
	       t.steps ? (double)(clock_monotonic_ns() - began) / 1e3 / (double)t.steps : 0.0,
	       s.reads, s.reads ? (double)s.read_ns / 1e3 / (double)s.reads : 0.0, s.hijacked,
	       s.moved);
	for (int i = 0; i < PLACES; i++) {
		printf("%-9s %8lu right, %lu wrong, %lu without a rule\n", place_names[i],
		       s.right[i], s.wrong[i], s.none[i]);
		bad |= s.wrong[i] || s.none[i];
	}
	return bad;
}
