/* Records of this test, named from a store. Results do not depend on the machine. */
#include "base/file.h"
#include "profile/profile.h"
#include "symbols/jit/methods_file.h"
#include "symbols/store/store.h"
#include "symbols/symbolizer_impl.h"
#include "tests/unit/cpu_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL 0xffffffff81000000ULL
#define ARRAY_LEN(a) (sizeof(a) / sizeof(*(a)))

/* /bin/app: f [0x1000, 0x1010), g [0x1010, 0x1020), __restore_rt [0x1030, 0x1040), no symbol at
 * 0x1050. */
static const char store_text[] =
	"profcpu-symbols 1\n"
	"image kernel - 0 0 0 0 0 [kernel.kallsyms]\n"
	"symbol ffffffff81000000 100 kallsyms [kernel.kallsyms] do_idle\n"
	"at 10 f\n"
	"symbol ffffffff81000100 100 kallsyms [kernel.kallsyms] asm_exc_page_fault\n"
	"at 22 21\n"
	"symbol ffffffff81000200 100 kallsyms [kernel.kallsyms] copy_user\n"
	"at 0 10 f\n"
	"symbol ffffffff81000180 80 kallsyms [kernel.kallsyms] neighbour\n"
	"at 7f\n"
	"image file - 0 0 7 0 0 /bin/app\n"
	"symbol 1000 10 symtab - _ZN3app1fEv\n"
	"at 4 3 f\n"
	"symbol 1010 10 symtab - g\n"
	"at 0 8 7\n"
	"symbol 1020 10 symtab - handler\n"
	"at 4 f\n"
	"symbol 1030 10 symtab - __restore_rt\n"
	"at 0\n"
	"symbol 1060 20 bounds - 0x2060\n"
	"at 4 3\n"
	"nothing 104f 1\n"
	"image file - 0 0 0 0 0 /lib/libcoreclr.so\n"
	"symbol 0 10 dynsym - coreclr_execute_assembly\n"
	"at 1 0\n"
	"image jit - 0 0 0 0 5 /memfd:doublemapper (deleted)\n"
	"symbol 7f0000000000 100 perf-map - void [app] A::B()[Tier0]\n"
	"at 10 f\n"
	"image jit - 0 0 0 0 5 //anon\n"
	"symbol 7f1000000000 100 perf-map - Interpreter\n"
	"at 10 f\n"
	"end 1b\n";

struct fixture {
	char dir[32];
	int dir_fd;
	struct profile *profile;
	struct symbolizer *s;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct symbolizer_options options = {.offline = true};
	char *text = strdup(store_text);
	int fd;

	strcpy(f->dir, "/tmp/test_symbolizer.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	fd = openat(f->dir_fd, STORE_FILE, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	close(fd);
	free(text);
	options.store_dir_fd = f->dir_fd;
	assert_int_equal(profile_new(&f->profile), 0);
	assert_int_equal(symbolizer_new(f->profile, &options, &f->s), 0);
	assert_true(symbolizer_from_store(f->s));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	symbolizer_free(f->s);
	profile_free(f->profile);
	unlinkat(f->dir_fd, STORE_FILE, 0);
	close(f->dir_fd);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void map(struct fixture *f, int32_t pid, uint64_t addr, uint64_t pgoff, uint64_t ino,
		const char *path)
{
	struct perfdata_record r = {
		.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER, .pid = pid, .tid = pid};

	r.mmap.addr = addr;
	r.mmap.len = 0x10000;
	r.mmap.pgoff = pgoff;
	r.mmap.prot = PROT_READ | PROT_EXEC;
	r.mmap.ino = ino;
	r.mmap.filename = path;
	assert_int_equal(symbolizer_apply(f->s, &r), 0);
}

static void comm(struct fixture *f, int32_t pid, int32_t tid, const char *name)
{
	struct perfdata_record r = {.type = PERF_RECORD_COMM, .pid = pid, .tid = tid};

	r.comm.name = name;
	assert_int_equal(symbolizer_apply(f->s, &r), 0);
}

static void fork_of(struct fixture *f, int32_t pid, int32_t tid, int32_t ppid)
{
	struct perfdata_record r = {.type = PERF_RECORD_FORK, .pid = pid, .tid = tid};

	r.task.ppid = r.task.ptid = ppid;
	assert_int_equal(symbolizer_apply(f->s, &r), 0);
}

static uint32_t sample_at(struct fixture *f, uint64_t time_ns, int32_t pid, int32_t tid,
			  const uint64_t *chain, size_t n, uint32_t *ret_thread)
{
	struct perfdata_record r = {
		.type = PERF_RECORD_SAMPLE, .pid = pid, .tid = tid, .time_ns = time_ns};
	struct symbolizer_sample begun;
	uint32_t thread, stack;

	r.sample.callchain = chain;
	r.sample.ncallchain = n;
	assert_int_equal(symbolizer_begin(f->s, &r, &SYMBOLIZER_STACK_PLAIN, &begun), 0);
	assert_int_equal(symbolizer_end(f->s, &begun, r.time_ns, &thread, &stack), 0);
	if (ret_thread)
		*ret_thread = thread;
	return stack;
}

static uint32_t sample(struct fixture *f, int32_t pid, int32_t tid, const uint64_t *chain, size_t n,
		       uint32_t *ret_thread)
{
	return sample_at(f, 1, pid, tid, chain, n, ret_thread);
}

/* "leaf<caller<root" in either form. */
static void check_stack(struct fixture *f, uint32_t stack, bool full, const char *expected)
{
	char buf[1024] = "";

	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(f->profile, stack)) {
		const struct profile_frame *frame =
			profile_frame_of(f->profile, profile_stack_frame(f->profile, stack));
		uint32_t name = full ? frame->name : frame->perf_name;

		if (buf[0])
			strcat(buf, "<");
		strcat(buf, name == PROFILE_NONE ? "-" : profile_text_of(f->profile, name, NULL));
	}
	assert_string_equal(buf, expected);
}

static void a_return_address_belongs_to_the_call_before_it(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401018, 0x401010, 0x401004};
	struct fixture *f = *state;
	uint32_t stack;

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	stack = sample(f, 5, 5, chain, ARRAY_LEN(chain), NULL);
	check_stack(f, stack, false, "g<g<app::f");
	check_stack(f, stack, true, "g<app::f<app::f");
}

static void signal_returns_and_interrupted_code_are_where_they_are(void **state)
{
	const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, KERNEL + 0x122, KERNEL + 0x200, KERNEL + 0x210,
		PERF_CONTEXT_USER,   0x401024,       0x401030,       0x401010};
	const uint64_t without[] = {PERF_CONTEXT_KERNEL, KERNEL + 0x210, KERNEL + 0x200};
	struct fixture *f = *state;
	uint32_t stack;

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	stack = sample(f, 5, 5, chain, ARRAY_LEN(chain), NULL);
	check_stack(f, stack, true,
		    "asm_exc_page_fault<copy_user<copy_user<handler<__restore_rt<app::f");
	stack = sample(f, 5, 5, without, ARRAY_LEN(without), NULL);
	check_stack(f, stack, true, "copy_user<neighbour");
}

static void unknown_and_placed_code_is_marked(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401050, 0x401064, 0x999999};
	struct fixture *f = *state;
	const struct profile_frame *frame;
	uint32_t stack;

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	stack = sample(f, 5, 5, chain, ARRAY_LEN(chain), NULL);
	check_stack(f, stack, false, "-<-<-");
	check_stack(f, stack, true, "[app]<[app+0x2060]<[unknown]");
	frame = profile_frame_of(
		f->profile,
		profile_stack_frame(f->profile, profile_stack_parent(f->profile, stack)));
	assert_int_equal(frame->status, FRAME_IS_PLACED);
	assert_string_equal(profile_text_of(f->profile, frame->module, NULL), "/bin/app");
	frame = profile_frame_of(f->profile, profile_stack_frame(f->profile, stack));
	assert_int_equal(frame->addr, 0x1050);
	assert_int_equal(frame->status, FRAME_IS_UNKNOWN);
	assert_int_equal(frame->kind, FRAME_NATIVE);
}

static void jit_code_is_named_by_the_perf_map(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x7f0000000010, 0x7f1000000010, 0x500001};
	struct fixture *f = *state;
	const struct profile_frame *frame;
	uint32_t stack;

	map(f, 5, 0x7f0000000000, 0x5000, 9, "/memfd:doublemapper (deleted)");
	map(f, 5, 0x7f1000000000, 0, 0, "//anon");
	map(f, 5, 0x500000, 0, 0, "/lib/libcoreclr.so");
	stack = sample(f, 5, 5, chain, ARRAY_LEN(chain), NULL);
	check_stack(f, stack, false,
		    "void [app] A::B()[Tier0]<Interpreter<coreclr_execute_assembly");
	frame = profile_frame_of(f->profile, profile_stack_frame(f->profile, stack));
	assert_int_equal(frame->kind, FRAME_MANAGED);
	assert_int_equal(frame->addr, 0x5010);
	assert_int_equal(frame->sym_off, 0x10);
	assert_string_equal(profile_text_of(f->profile, frame->module, NULL),
			    "/memfd:doublemapper (deleted)");
	stack = profile_stack_parent(f->profile, stack);
	frame = profile_frame_of(f->profile, profile_stack_frame(f->profile, stack));
	assert_int_equal(frame->addr, 0x7f1000000010);
	assert_string_equal(profile_text_of(f->profile, frame->module, NULL), "/tmp/perf-5.map");
	stack = profile_stack_parent(f->profile, stack);
	frame = profile_frame_of(f->profile, profile_stack_frame(f->profile, stack));
	assert_int_equal(frame->kind, FRAME_RUNTIME);
}

static void equal_callchains_are_one_stack_also_after_fork(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401018, 0x401004};
	struct fixture *f = *state;
	uint32_t before, after, t1, t2;

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	comm(f, 5, 5, "app");
	before = sample(f, 5, 5, chain, ARRAY_LEN(chain), &t1);
	fork_of(f, 6, 6, 5);
	after = sample(f, 6, 6, chain, ARRAY_LEN(chain), &t2);
	assert_int_equal(before, after);
	assert_int_not_equal(t1, t2);
	assert_string_equal(
		profile_text_of(f->profile, profile_thread_of(f->profile, t2)->comm, NULL), "app");
	comm(f, 6, 6, "child");
	sample(f, 6, 6, chain, ARRAY_LEN(chain), &t2);
	assert_string_equal(
		profile_text_of(f->profile, profile_thread_of(f->profile, t2)->comm, NULL),
		"child");
	/* Another program at the same addresses: the same words give another stack. */
	map(f, 6, 0x400000, 0x8000, 7, "/bin/app");
	after = sample(f, 6, 6, chain, ARRAY_LEN(chain), NULL);
	assert_int_not_equal(before, after);
	check_stack(f, after, false, "-<-");
}

/* A file's frames are shared between processes: by file, place, and whether it is a call. */
static void frames_of_a_file_are_the_same_in_all_processes(void **state)
{
	const uint64_t leaf[] = {PERF_CONTEXT_USER, 0x401010},
		       caller[] = {PERF_CONTEXT_USER, 0x401018, 0x401010},
		       moved[] = {PERF_CONTEXT_USER, 0x7f0000001018, 0x7f0000001010},
		       first[] = {PERF_CONTEXT_USER, 0x401018, 0x401018},
		       split[] = {PERF_CONTEXT_USER, 0x501018, 0x501018};
	struct fixture *f = *state;
	uint32_t stack;

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	check_stack(f, sample(f, 5, 5, leaf, ARRAY_LEN(leaf), NULL), true, "g");
	stack = sample(f, 5, 5, caller, ARRAY_LEN(caller), NULL);
	check_stack(f, stack, true, "g<app::f");
	map(f, 6, 0x7f0000000000, 0, 7, "/bin/app");
	assert_int_equal(sample(f, 6, 6, moved, ARRAY_LEN(moved), NULL), stack);
	map(f, 7, 0x400000, 0, 8, "/bin/app");
	check_stack(f, sample(f, 7, 7, caller, ARRAY_LEN(caller), NULL), true, "[app]<[app]");
	/* Nothing is mapped at the byte before the second map, where the call would be. */
	check_stack(f, sample(f, 5, 5, first, ARRAY_LEN(first), NULL), true, "g<g");
	map(f, 8, 0x501018, 0x1018, 7, "/bin/app");
	check_stack(f, sample(f, 8, 8, split, ARRAY_LEN(split), NULL), true, "g<[unknown]");
}

static void pid_0_with_user_code_is_never_swapper(void **state)
{
	const uint64_t user[] = {PERF_CONTEXT_KERNEL, KERNEL + 0x210, PERF_CONTEXT_USER, 0x401018};
	const uint64_t idle[] = {PERF_CONTEXT_KERNEL, KERNEL + 0x10};
	const uint64_t kernel[] = {PERF_CONTEXT_KERNEL, KERNEL + 0x210};
	struct fixture *f = *state;
	uint32_t t;

	sample(f, 0, 0, kernel, ARRAY_LEN(kernel), &t);
	assert_int_equal(profile_thread_of(f->profile, t)->other_pid_ns, 0);
	sample(f, 0, 0, user, ARRAY_LEN(user), &t);
	assert_int_equal(profile_thread_of(f->profile, t)->other_pid_ns, 1);
	sample(f, 0, 0, idle, ARRAY_LEN(idle), &t);
	assert_int_equal(profile_thread_of(f->profile, t)->other_pid_ns, 0);
	assert_string_equal(
		profile_text_of(f->profile, profile_thread_of(f->profile, t)->comm, NULL),
		"swapper");
	sample(f, 0, 0, kernel, ARRAY_LEN(kernel), &t);
	assert_int_equal(profile_thread_of(f->profile, t)->other_pid_ns, 1);
}

static void damaged_callchains_have_no_stack(void **state)
{
	const uint64_t bad[] = {PERF_CONTEXT_KERNEL, KERNEL + 0x10, PERF_CONTEXT_GUEST, 0x401018};
	uint64_t deep[500];
	struct fixture *f = *state;
	uint32_t stack, depth = 0;

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	assert_int_equal(sample(f, 5, 5, bad, ARRAY_LEN(bad), NULL), PROFILE_STACK_EMPTY);
	assert_int_equal(sample(f, 5, 5, bad, 0, NULL), PROFILE_STACK_EMPTY);
	for (size_t i = 0; i < ARRAY_LEN(deep); i++)
		deep[i] = i ? 0x401004 : PERF_CONTEXT_USER;
	for (stack = sample(f, 5, 5, deep, ARRAY_LEN(deep), NULL); stack; depth++)
		stack = profile_stack_parent(f->profile, stack);
	assert_int_equal(depth, ARRAY_LEN(deep) - 1);
}

static void code_that_the_kernel_makes_has_its_record_s_name(void **state)
{
	struct perfdata_record r = {.type = PERF_RECORD_KSYMBOL, .pid = -1, .tid = -1};
	struct perfdata_record k = {
		.type = PERF_RECORD_MMAP, .misc = PERF_RECORD_MISC_KERNEL, .pid = -1, .tid = 0};
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffffc0001010};
	struct fixture *f = *state;
	uint32_t stack;

	k.mmap.addr = KERNEL;
	k.mmap.len = 0x200000;
	k.mmap.filename = "[kernel.kallsyms]_text";
	assert_int_equal(symbolizer_apply(f->s, &k), 0);
	r.ksymbol.addr = 0xffffffffc0001000;
	r.ksymbol.len = 0x100;
	r.ksymbol.name = "bpf_prog_1234_count";
	assert_int_equal(symbolizer_apply(f->s, &r), 0);
	stack = sample(f, 5, 5, chain, ARRAY_LEN(chain), NULL);
	check_stack(f, stack, false, "bpf_prog_1234_count");
	check_stack(f, stack, true, "bpf_prog_1234_count");
	r.ksymbol.flags = PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	assert_int_equal(symbolizer_apply(f->s, &r), 0);
	stack = sample(f, 5, 5, chain, ARRAY_LEN(chain), NULL);
	check_stack(f, stack, false, "-");
}

static void write_text(int dir_fd, const char *path, const char *text)
{
	int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

/* Symbolizes a sample in JIT code of an ended process with this fixture's store. */
static void retry(struct fixture *f, bool offline, const char *expected, uint64_t unread)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401018, 0x7f1000000010};
	struct symbolizer_options options = {.store_dir_fd = f->dir_fd,
					     .offline = offline,
					     .recorded_here = true,
					     .keep_cache = true};
	struct symbolizer_unread left;

	symbolizer_free(f->s);
	f->s = NULL;
	assert_int_equal(symbolizer_new(f->profile, &options, &f->s), 0);
	map(f, 99999999, 0x400000, 0, 7, "/bin/app");
	map(f, 99999999, 0x7f1000000000, 0, 0, "//anon");
	check_stack(f, sample(f, 99999999, 99999999, chain, ARRAY_LEN(chain), NULL), false,
		    expected);
	symbolizer_unread(f->s, &left);
	assert_int_equal(left.sources, unread);
	if (unread)
		assert_string_equal(left.first, "/tmp/perf-99999999.map");
	if (!offline && !symbolizer_from_store(f->s))
		assert_int_equal(symbolizer_store(f->s, f->dir_fd), 0);
}

static void an_unreadable_perf_map_is_retried_until_it_is_read(void **state)
{
	static const char perfmap[] = "/tmp/perf-99999999.map";
	struct fixture *f = *state;

	unlink(perfmap);
	write_text(f->dir_fd, STORE_FILE,
		   "profcpu-symbols 1\nimage file - 0 0 7 0 0 /bin/app\nsymbol 1010 10 symtab - "
		   "kept\nat 8\n"
		   "image jit - 0 0 0 0 99999999 //anon\nunread\nend 1\n");
	retry(f, false, "kept<-", 1);
	write_text(AT_FDCWD, perfmap, "7f1000000000 100 jitted\n");
	assert_int_equal(chmod(perfmap, 0644), 0);
	retry(f, true, "kept<-", 1);
	retry(f, false, "kept<jitted", 0);
	assert_false(symbolizer_from_store(f->s));
	unlink(perfmap);
	retry(f, false, "kept<jitted", 0);
	assert_true(symbolizer_from_store(f->s));
}

static void a_process_that_began_after_the_recording_names_nothing_in_it(void **state)
{
	static const uint64_t ends[] = {1, UINT64_MAX, 0};
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x7f1000000010};
	struct fixture *f = *state;
	struct opener *opener;
	char perfmap[64];

	snprintf(perfmap, sizeof(perfmap), "/tmp/perf-%d.map", getpid());
	write_text(AT_FDCWD, perfmap, "7f1000000000 100 ours\n");
	assert_int_equal(opener_new(&opener), 0);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct symbolizer_options options = {
			.store_dir_fd = -1, .opener = opener, .recorded_until_ns = ends[i]};
		struct symbolizer_unread left;

		symbolizer_free(f->s);
		f->s = NULL;
		assert_int_equal(symbolizer_new(f->profile, &options, &f->s), 0);
		map(f, getpid(), 0x7f1000000000, 0, 0, "//anon");
		check_stack(f, sample(f, getpid(), getpid(), chain, ARRAY_LEN(chain), NULL), false,
			    i ? "ours" : "-");
		symbolizer_unread(f->s, &left);
		assert_int_equal(left.sources, !i);
	}
	opener_free(opener);
	unlink(perfmap);
}

/* An ended process with data in the recording itself: JITTED is its code. */
#define CAPTURED 99999998
#define JITTED 0x7f1000000000ULL

static void capture(const struct fixture *f, const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "%d.methods", CAPTURED);
	write_text(f->dir_fd, name, text);
}

static void name_again(struct fixture *f, bool offline)
{
	struct symbolizer_options options = {.store_dir_fd = f->dir_fd,
					     .offline = offline,
					     .recorded_here = true,
					     .monotonic = true,
					     .keep_cache = true};

	symbolizer_free(f->s);
	f->s = NULL;
	assert_int_equal(symbolizer_new(f->profile, &options, &f->s), 0);
	map(f, CAPTURED, JITTED, 0, 0, "//anon");
}

static int teardown_captured(void **state)
{
	assert_int_equal(jit_methods_remove(((struct fixture *)*state)->dir_fd), 0);
	return teardown(state);
}

/* Code that is compiled and freed repeatedly at one place has more names than a store keeps. */
static void lookups_that_the_store_dropped_are_repeated(void **state)
{
	enum { TIMES = LOOKUP_TIMES_MAX + 100 };
	const uint64_t chain[] = {PERF_CONTEXT_USER, JITTED + 0x10};
	struct outbuf text = outbuf_to(-1);
	struct fixture *f = *state;
	char expected[32];

	outbuf_str(&text, "profcpu-methods 1\nway memory\n");
	for (int i = 1; i <= TIMES; i++)
		outbuf_printf(&text, "add %x %llx 100 rundown method%d\n", i * 16, JITTED, i);
	outbuf_char(&text, 0);
	capture(f, text.data);
	outbuf_close(&text);
	unlinkat(f->dir_fd, STORE_FILE, 0);
	for (int pass = 0; pass < 4; pass++) {
		bool offline = pass == 2;

		name_again(f, offline);
		assert_false(symbolizer_from_store(f->s));
		for (int i = 1; i <= TIMES; i++) {
			snprintf(expected, sizeof(expected), "method%d", i);
			check_stack(f,
				    sample_at(f, (uint64_t)i * 16 + 8, CAPTURED, CAPTURED, chain,
					      ARRAY_LEN(chain), NULL),
				    false, expected);
		}
		assert_false(symbolizer_can_store_all(f->s));
		if (!offline)
			assert_int_equal(symbolizer_store(f->s, f->dir_fd), 0);
	}
	/* A symbolizer without access remembers that a lookup is pending. */
	assert_int_equal(jit_methods_remove(f->dir_fd), 0);
	name_again(f, true);
	check_stack(f,
		    sample_at(f, TIMES * 16 + 8, CAPTURED, CAPTURED, chain, ARRAY_LEN(chain), NULL),
		    false, "-");
	assert_false(symbolizer_can_store_all(f->s));
}

static struct store_notes notes_of(struct fixture *f)
{
	struct store_notes notes;
	struct audit audit;

	assert_int_equal(symbolizer_audit(f->s, false, &audit), 0);
	notes = audit.notes;
	audit_free(&audit);
	return notes;
}

static void damage_is_counted_once_and_offline_too(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, JITTED + 0x10};
	struct fixture *f = *state;
	struct store_notes notes;

	capture(f, "profcpu-methods 1\nwhat is this\nadd 0 7f10000");
	for (int stored = 0; stored < 2; stored++) {
		if (stored)
			write_text(f->dir_fd, STORE_FILE,
				   "profcpu-symbols 2\nnote images_missing 5\nnote images_replaced "
				   "6\nnote captures_cut 7\n"
				   "image jit - 0 0 0 0 99999998 //anon\nunread\nend 0\n");
		else
			unlinkat(f->dir_fd, STORE_FILE, 0);
		for (int pass = 0; pass < 5; pass++) {
			bool offline = !(pass & 1);

			name_again(f, offline);
			check_stack(f, sample(f, CAPTURED, CAPTURED, chain, ARRAY_LEN(chain), NULL),
				    false, "-");
			notes = notes_of(f);
			assert_int_equal(notes.damage.n[JIT_CAPTURES_CUT], stored ? 8 : 1);
			assert_int_equal(notes.damage.n[JIT_CAPTURE_BAD_LINES], 1);
			if (stored && offline && !pass) {
				assert_int_equal(notes.images_missing, 5);
				assert_int_equal(notes.images_replaced, 6);
			}
			if (!offline)
				assert_int_equal(symbolizer_store(f->s, f->dir_fd), 0);
			assert_int_equal(notes_of(f).damage.n[JIT_CAPTURES_CUT],
					 notes.damage.n[JIT_CAPTURES_CUT]);
			assert_int_equal(symbolizer_close_sources(f->s), 0);
			assert_int_equal(notes_of(f).damage.n[JIT_CAPTURES_CUT],
					 notes.damage.n[JIT_CAPTURES_CUT]);
		}
	}
}

/* A failed lookup of lines is cached; these lines do not exist. */
static void missing_lines_are_not_reported_as_hidden(void **state)
{
	static const char *const lines[] = {"lines\nof 4\n", "text a.c\nlines - 0 7\nof 4\n"};
	struct fixture *f = *state;
	char text[256];

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		snprintf(text, sizeof(text),
			 "profcpu-symbols 2\nimage file - 0 0 7 0 0 /bin/app\n"
			 "symbol 1000 10 symtab - f\nat 4\n%send 1\n",
			 lines[i]);
		write_text(f->dir_fd, STORE_FILE, text);
		name_again(f, true);
		assert_true(symbolizer_from_store(f->s));
		assert_int_equal(symbolizer_hides_lines(f->s), i);
	}
}

/* Each process with JIT-compiled code without lines counts once, in linear time. */
static void missing_lines_of_many_processes_are_counted(void **state)
{
	const int32_t n = 40000;
	struct fixture *f = *state;
	struct lookup_cache *cache = &f->s->lookup_cache;
	struct symbolizer_missing_lines missing;
	uint32_t image;

	f->s->options.lines = true;
	for (int32_t i = 0; i < n; i++) {
		struct image_key key = {.kind = IMAGE_KIND_JIT, .pid = 100 + i % (n - 1)};

		assert_int_equal(
			intern_str(&cache->texts, i == n - 1 ? "/memfd:x" : "//anon", &key.path),
			0);
		assert_int_equal(lookup_cache_image(cache, &key, &image), 0);
		cache->images.v[image].lineless = true;
	}
	clock_t begin = clock();

	assert_int_equal(symbolizer_missing_lines(f->s, &missing), 0);
	assert_true(clock() - begin < cpu_limit(1) / 4);
	assert_int_equal(missing.jits, n - 1);
	assert_int_equal(missing.jit_pid, 100);
}

/* A process with an image has that callchain in this many samples. */
static struct profile_sample mapped_and_sampled(struct fixture *f, const uint64_t *chain,
						uint32_t n, int times)
{
	struct profile_sample s = {.weight = 1, .cpu = -1};
	struct profile_event event = {0};

	map(f, 5, 0x400000, 0, 7, "/bin/app");
	s.stack = sample(f, 5, 5, chain, n, &s.thread);
	assert_int_equal(profile_text(f->profile, "cycles", 6, &event.name), 0);
	assert_int_equal(profile_event(f->profile, &event, &s.event), 0);
	for (int i = 0; i < times; i++)
		assert_int_equal(profile_sample(f->profile, &s), 0);
	return s;
}

static void the_audit_weighs_frames_by_samples(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401018, 0x401064};
	struct audit_group sum = {0};
	struct audit audit;
	struct fixture *f = *state;
	struct profile_sample s = mapped_and_sampled(f, chain, ARRAY_LEN(chain), 3);

	assert_int_equal(symbolizer_audit(f->s, false, &audit), 0);
	assert_int_equal(audit.samples, 3);
	assert_int_equal(audit.stacks_truncated, 3);
	assert_int_equal(audit.groups.len, 1);
	assert_int_equal(audit.groups.v[0].kind, AUDIT_NATIVE);
	assert_string_equal(audit.groups.v[0].path, "/bin/app");
	assert_int_equal(audit.groups.v[0].frames[FRAME_IS_NAMED], 3);
	assert_int_equal(audit.groups.v[0].frames[FRAME_IS_PLACED], 3);
	assert_int_equal(audit.groups.v[0].sources[SYMBOL_SYMTAB], 3);
	assert_int_equal(audit.groups.v[0].reason, AUDIT_NOT_COVERED);
	audit_free(&audit);
	map(f, 6, 0x400000, 0, 9, "/app/System.Private.CoreLib.dll");
	s.stack = sample(f, 6, 6, chain, ARRAY_LEN(chain), &s.thread);
	assert_int_equal(profile_sample(f->profile, &s), 0);
	assert_int_equal(symbolizer_audit(f->s, false, &audit), 0);
	audit_sum(&audit, AUDIT_R2R, &sum);
	assert_int_equal(sum.frames[FRAME_IS_UNKNOWN], 2);
	assert_int_equal(audit_frames(&sum), 2);
	/* Its images identify it as .NET. */
	assert_int_equal(audit.processes.len, 1);
	assert_int_equal(audit.processes.v[0].pid, 6);
	assert_true(audit.processes.v[0].is_dotnet);
	audit_free(&audit);
}

/* The compiler flag for frame pointers is no remedy for stacks that were unwound. */
static void the_remedy_for_unmapped_frames_is_another_unwinding(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x500018};
	struct fixture *f = *state;

	(void)mapped_and_sampled(f, chain, ARRAY_LEN(chain), 1);
	for (int unwound = 0; unwound < 2; unwound++) {
		struct audit audit;

		assert_int_equal(symbolizer_audit(f->s, unwound, &audit), 0);
		assert_int_equal(audit.groups.len, 1);
		assert_int_equal(audit.groups.v[0].kind, AUDIT_UNMAPPED);
		const char *remedy = audit_remedy(&audit.groups.v[0]);

		assert_int_equal(strstr(remedy, "-fno-omit-frame-pointer") == NULL, unwound);
		assert_string_equal(audit_reason_word(audit.groups.v[0].reason), "not-mapped");
		audit_free(&audit);
	}
}

/* The kernel shows the recorder of a PID namespace all processes outside of it as PID 0. */
static void user_code_of_pid_0_is_of_other_pid_namespaces(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x500018};
	struct profile_event event = {0};
	struct profile_sample s = {.weight = 1, .cpu = -1};
	struct fixture *f = *state;
	struct audit audit;

	s.stack = sample(f, 0, 0, chain, ARRAY_LEN(chain), &s.thread);
	assert_int_equal(profile_text(f->profile, "cycles", 6, &event.name), 0);
	assert_int_equal(profile_event(f->profile, &event, &s.event), 0);
	assert_int_equal(profile_sample(f->profile, &s), 0);
	assert_int_equal(symbolizer_audit(f->s, true, &audit), 0);
	assert_int_equal(audit.groups.len, 1);
	assert_string_equal(audit_reason_word(audit.groups.v[0].reason), "other-pid-namespace");
	assert_non_null(strstr(audit_remedy(&audit.groups.v[0]), "on the host"));
	audit_free(&audit);
}

/* The runtime is known by what a process or its parent maps, also if none of that was sampled. */
static void the_remedy_for_jit_code_is_that_of_its_runtime(void **state)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x7f2000000010};
	static const struct {
		const char *path, *remedy, *word;
	} runtimes[] = {
		{"/usr/lib/libjvm.so",
		 "`jcmd 60 Compiler.perfmap` before it ends, then `profcpu "
		 "postprocess 'my DIR'`; or start java",
		 "jit-no-map"},
		{"/usr/bin/node", "start it with `node --perf-basic-prof`", "jit-no-map"},
		{"/usr/lib/llvmjit.so", "set jit_profiling_support = on", "jit-no-map"},
		{"/usr/lib/libcoreclr.so", "`profcpu collect`", "jit-other-recorder"},
		{"/usr/bin/app", "switch one of them on", "jit-no-map"},
	};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(runtimes); i++) {
		int32_t pid = 60 + (int32_t)i, parent = pid + 100;
		struct profile_sample s = {.weight = 1, .cpu = -1};
		struct profile_event event = {0};
		struct outbuf out = outbuf_to(-1);
		struct audit audit;

		map(f, parent, 0x400000, 0, 100 + i, runtimes[i].path);
		map(f, parent, 0x7f2000000000, 0, 0, "//anon");
		fork_of(f, pid, pid, parent);
		s.stack = sample(f, pid, pid, chain, ARRAY_LEN(chain), &s.thread);
		assert_int_equal(profile_text(f->profile, "cycles", 6, &event.name), 0);
		assert_int_equal(profile_event(f->profile, &event, &s.event), 0);
		assert_int_equal(profile_sample(f->profile, &s), 0);
		assert_int_equal(symbolizer_audit(f->s, false, &audit), 0);
		assert_int_equal(audit.groups.len, i + 1);
		const struct audit_group *g = &audit.groups.v[i];

		assert_int_equal(g->pid, pid);
		assert_string_equal(audit_reason_word(g->reason), runtimes[i].word);
		audit_put_remedy(g, "my DIR", &out);
		outbuf_char(&out, '\0');
		assert_non_null(strstr(out.data, runtimes[i].remedy));
		assert_int_equal(outbuf_close(&out), 0);
		audit_free(&audit);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_CAPTURED(name) cmocka_unit_test_setup_teardown(name, setup, teardown_captured)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_return_address_belongs_to_the_call_before_it),
		TEST(signal_returns_and_interrupted_code_are_where_they_are),
		TEST(unknown_and_placed_code_is_marked),
		TEST(jit_code_is_named_by_the_perf_map),
		TEST(equal_callchains_are_one_stack_also_after_fork),
		TEST(frames_of_a_file_are_the_same_in_all_processes),
		TEST(pid_0_with_user_code_is_never_swapper),
		TEST(damaged_callchains_have_no_stack),
		TEST(code_that_the_kernel_makes_has_its_record_s_name),
		TEST(an_unreadable_perf_map_is_retried_until_it_is_read),
		TEST(a_process_that_began_after_the_recording_names_nothing_in_it),
		TEST_CAPTURED(lookups_that_the_store_dropped_are_repeated),
		TEST_CAPTURED(damage_is_counted_once_and_offline_too),
		TEST(missing_lines_are_not_reported_as_hidden),
		TEST(missing_lines_of_many_processes_are_counted),
		TEST(the_audit_weighs_frames_by_samples),
		TEST(the_remedy_for_unmapped_frames_is_another_unwinding),
		TEST(user_code_of_pid_0_is_of_other_pid_namespaces),
		TEST(the_remedy_for_jit_code_is_that_of_its_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
