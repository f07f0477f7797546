#include "symbols/callchains.h"

#include "base/hash.h"
#include "profile/stack_room.h"
#include "symbols/frames.h"
#include "symbols/core/symbol.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Frames are named after their lookup: address, kind, and state of the address space. */
struct fixture {
	struct profile *profile;
	struct processes *processes;
	struct callchains chains;
	unsigned int nlookups;
	int fail_at;                       /* number of the lookup that fails; 0: none */
	struct symbol_provider *rewritten; /* called too, if not NULL */
	uint64_t time_ns;                  /* of check */
	bool inlines; /* inlined_at gives the number of inlined frames of each user address */
};

static uint32_t inlined_at(const struct fixture *f, enum callchain_mode mode, uint64_t ip)
{
	return f->inlines && mode == CALLCHAIN_USER ? (uint32_t)(ip / 3 % 3) : 0;
}

#define ENTRY_CODE                                                                    \
	0xffffffff81000e00ULL /* of interrupts: the interrupted function is no caller \
			       */
#define IDLE_LOOP 0xffffffff81000d00ULL

/* A provider whose code changes at REWRITTEN_NS. Then each second address has another function, or
 * none. */
#define REWRITTEN_NS 100

static int rewritten_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
			  struct symbol *ret_symbol)
{
	bool late = time_ns >= REWRITTEN_NS, changes = addr & 16;

	(void)p;
	if (late && changes && addr & 32)
		return -ENOENT;
	*ret_symbol = (struct symbol){.name = late && changes ? "late" : "early",
				      .name_len = late && changes ? 4 : 5,
				      .start = addr,
				      .end = addr + 1,
				      .base = addr,
				      .from_ns = late && changes ? REWRITTEN_NS : 0,
				      .until_ns = late || !changes ? UINT64_MAX : REWRITTEN_NS};
	return 0;
}

static const struct symbol_provider_ops rewritten_ops = {
	.name = "rewritten", .timed = true, .find = rewritten_find};
static struct symbol_provider rewritten = {&rewritten_ops};

/* Its result, and whether that may differ at another time. */
static const char *rewritten_name(struct symbol_provider *p, uint64_t ip, uint64_t time_ns,
				  bool *ret_timed)
{
	struct symbol s;

	*ret_timed = false;
	if (!p)
		return "";
	if (symbol_provider_find(p, ip, time_ns, &s)) {
		*ret_timed = p->ops->timed;
		return "none";
	}
	*ret_timed = s.from_ns || s.until_ns != UINT64_MAX;
	return s.name;
}

static void text_of(const struct fixture *f, const struct process_thread *t,
		    enum callchain_mode mode, uint64_t ip, bool exact, uint64_t time_ns, char *buf,
		    size_t n)
{
	static const char modes[] = "ukn";
	uint32_t generation = mode == CALLCHAIN_KERNEL ? f->chains.kernel_generation
						       : processes_generation(f->processes, t);

	/* The idle task stands for processes of other PID namespaces. Mappings there are not its
	 * own. */
	bool timed;

	snprintf(buf, n, "%c%s%u%s%llx%s", modes[mode],
		 mode != CALLCHAIN_KERNEL && !t->tid ? "i" : "", generation, exact ? "=" : "-",
		 (unsigned long long)ip, rewritten_name(f->rewritten, ip, time_ns, &timed));
}

static int look_up(void *ctx, const struct callchain_key *place, struct callchain_frame *ret_frame)
{
	struct fixture *f = ctx;
	struct profile_frame frame = {
		.perf_name = PROFILE_NONE, .module = PROFILE_NONE, .srcline = PROFILE_NONE};
	char buf[64];

	if (++f->nlookups == (unsigned int)f->fail_at)
		return -ENOMEM;
	text_of(f, place->thread, place->mode, place->ip, place->exact, place->time_ns, buf,
		sizeof(buf));
	strcat(buf, place->grade == FRAME_SPLICED   ? "/s"
		    : place->grade == FRAME_GUESSED ? "/g"
						    : "");
	rewritten_name(f->rewritten, place->ip, place->time_ns, &ret_frame->timed);
	ret_frame->ninlined = inlined_at(f, place->mode, place->ip);
	for (uint32_t i = 0; i < ret_frame->ninlined; i++) {
		char inlined[80];

		snprintf(inlined, sizeof(inlined), "%s/%u", buf, i + 1);
		assert_int_equal(profile_text(f->profile, inlined, strlen(inlined), &frame.name),
				 0);
		assert_int_equal(profile_frame(f->profile, &frame, &ret_frame->inlined[i]), 0);
	}
	assert_int_equal(profile_text(f->profile, buf, strlen(buf), &frame.name), 0);
	ret_frame->flags = place->ip == ENTRY_CODE  ? CALLCHAIN_FRAME_INTERRUPTED
			   : place->ip == IDLE_LOOP ? CALLCHAIN_FRAME_IDLE
						    : 0;
	return profile_frame(f->profile, &frame, &ret_frame->frame);
}

static void set_up(struct fixture *f)
{
	*f = (struct fixture){.time_ns = 1};
	assert_int_equal(profile_new(&f->profile), 0);
	assert_int_equal(
		processes_new(&(struct processes_options){.maps_bytes = PROCESSES_MAPS_BYTES_MAX},
			      &f->processes),
		0);
	f->chains = (struct callchains){
		.profile = f->profile, .processes = f->processes, .frame = look_up, .ctx = f};
}

static void tear_down(struct fixture *f)
{
	callchains_free(&f->chains);
	processes_free(f->processes);
	profile_free(f->profile);
}

static struct process_thread *thread(struct fixture *f, int32_t pid)
{
	struct process_thread *t;

	assert_int_equal(processes_thread(f->processes, pid, pid, &t), 0);
	return t;
}

/* Changes the state of a process's address space. */
static void change(struct fixture *f, int32_t pid, uint32_t image)
{
	struct process_map map = {.start = 0x1000, .end = 0x100000, .image = image};

	assert_int_equal(processes_map(f->processes, pid, pid, &map, false), 0);
}

static int begin(struct fixture *f, int32_t pid, enum callchain_mode mode, const uint64_t *words,
		 size_t n, uint64_t time_ns, struct callchain_half *ret_half)
{
	struct callchain chain = {.words = words,
				  .n = n,
				  .mode = mode,
				  .first_spliced = CALLCHAIN_NO_FRAME,
				  .first_guess = CALLCHAIN_NO_FRAME};

	return callchains_begin(&f->chains, thread(f, pid), &chain, time_ns, ret_half);
}

/* Stack of a callchain by definition, leaf first. Returns false if there is none. */
static void expect(const struct fixture *f, const struct process_thread *t,
		   enum callchain_mode mode, const uint64_t *words, size_t n, char *out, size_t cap)
{
	size_t max = f->chains.frames_max ? f->chains.frames_max : CALLCHAINS_FRAMES_MAX;
	bool exact = true;
	size_t frames = 0, len = 0;

	*out = '\0';
	for (size_t i = 0; i < n; i++) {
		if (words[i] >= PERF_CONTEXT_MAX) {
			exact = true;
			if (words[i] == PERF_CONTEXT_KERNEL)
				mode = CALLCHAIN_KERNEL;
			else if (words[i] == PERF_CONTEXT_USER)
				mode = CALLCHAIN_USER;
			else if (words[i] == PERF_CONTEXT_HV)
				mode = CALLCHAIN_NEITHER;
			else {
				*out = '\0';
				return;
			}
			continue;
		}
		if (frames == max) {
			strcat(out, PROFILE_TRUNCATED " ");
			return;
		}
		for (uint32_t k = inlined_at(f, mode, words[i]); k > 0; k--) {
			text_of(f, t, mode, words[i], exact, f->time_ns, out + len, cap - len);
			len = strlen(out);
			len += (size_t)snprintf(out + len, cap - len, "/%u ", k);
		}
		text_of(f, t, mode, words[i], exact, f->time_ns, out + len, cap - len);
		strcat(out, " ");
		len = strlen(out);
		exact = words[i] == ENTRY_CODE;
		frames++;
	}
}

static void stack_text(const struct fixture *f, uint32_t stack, char *out, size_t cap)
{
	size_t len = 0;

	*out = '\0';
	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(f->profile, stack)) {
		uint32_t name =
			profile_frame_of(f->profile, profile_stack_frame(f->profile, stack))->name;

		snprintf(out + len, cap - len, "%s ", profile_text_of(f->profile, name, NULL));
		len = strlen(out);
	}
}

static struct callchain_stack check(struct fixture *f, int32_t pid, enum callchain_mode mode,
				    const uint64_t *words, size_t n)
{
	char expected[16384], got[16384];
	struct callchain_stack stack;
	struct callchain_half half;

	assert_int_equal(begin(f, pid, mode, words, n, f->time_ns, &half), 0);
	assert_int_equal(callchains_end(&f->chains, &half, f->time_ns, &stack), 0);
	expect(f, thread(f, pid), mode, words, n, expected, sizeof(expected));
	stack_text(f, stack.stack, got, sizeof(got));
	assert_string_equal(got, expected);
	return stack;
}

static void recent_code_is_not_requested_again(void **state)
{
	const uint64_t a[] = {PERF_CONTEXT_KERNEL,
			      0xffffffff81000100,
			      0xffffffff81000200,
			      PERF_CONTEXT_USER,
			      0x1010,
			      0x1020,
			      0x1030};
	const uint64_t b[] = {PERF_CONTEXT_USER, 0x1015, 0x1020, 0x1030};
	struct fixture f;

	(void)state;
	set_up(&f);
	check(&f, 7, CALLCHAIN_USER, a, 7);
	assert_int_equal(f.nlookups, 5);
	check(&f, 7, CALLCHAIN_USER, a, 7);
	assert_int_equal(f.nlookups, 5);
	check(&f, 7, CALLCHAIN_USER, b, 4);
	assert_int_equal(f.nlookups, 6);
	change(&f, 7, 1); /* now the same addresses have another meaning */
	check(&f, 7, CALLCHAIN_USER, a, 7);
	assert_int_equal(f.nlookups, 9);
	f.chains.kernel_generation++;
	check(&f, 7, CALLCHAIN_USER, a, 7);
	assert_int_equal(f.nlookups, 11);
	tear_down(&f);
}

static void one_address_can_be_several_frames(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, 0x1005, 0x1001, 0x1003},
		       again[] = {PERF_CONTEXT_USER, 0x1006, 0x1001, 0x1003};
	struct fixture f;
	char got[256];

	(void)state;
	set_up(&f);
	f.inlines = true;
	stack_text(&f, check(&f, 7, CALLCHAIN_USER, words, 4).stack, got, sizeof(got));
	assert_string_equal(got, "u0=1005/2 u0=1005/1 u0=1005 u0-1001 u0-1003/1 u0-1003 ");
	check(&f, 7, CALLCHAIN_USER, again, 4);
	assert_int_equal(f.nlookups, 4);
	check(&f, 7, CALLCHAIN_NEITHER, words + 1, 3);
	tear_down(&f);
}

static void lookups_of_the_idle_task_are_not_shared(void **state)
{
	const uint64_t user[] = {PERF_CONTEXT_USER, 0x1010, 0x1020},
		       odd[] = {PERF_CONTEXT_USER, 0x1010, PERF_CONTEXT_KERNEL};
	struct fixture f;

	(void)state;
	for (int32_t first = 0; first <= 64; first += 64) {
		set_up(&f);
		assert_int_equal(processes_generation(f.processes, thread(&f, 0)),
				 processes_generation(f.processes, thread(&f, 64)));
		check(&f, first, CALLCHAIN_USER, user, 3);
		check(&f, 64 - first, CALLCHAIN_USER, user, 3);
		check(&f, first, CALLCHAIN_USER, odd, 3);
		check(&f, 64 - first, CALLCHAIN_USER, odd, 3);
		tear_down(&f);
	}
}

static void kernel_parts_can_be_ended_later(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100, IDLE_LOOP,
				  PERF_CONTEXT_USER, 0x1010};
	struct callchain_half half[3];
	struct callchain_stack stack;
	struct fixture f;

	(void)state;
	set_up(&f);
	for (int i = 0; i < 3; i++)
		assert_int_equal(begin(&f, 1 + i, CALLCHAIN_USER, words, 5, 1, &half[i]), 0);
	assert_int_equal(f.nlookups,
			 1); /* the user part: three spaces without maps have one state */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(callchains_end(&f.chains, &half[i], f.time_ns, &stack), 0);
		assert_true(stack.idle);
		assert_true(stack.user);
	}
	assert_int_equal(f.nlookups, 3);
	tear_down(&f);
}

static void begun_samples_are_completed(void **state)
{
	uint64_t words[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100, 0xffffffff81000200};
	char expected[256], got[256];
	struct callchain_half half[20];
	struct callchain_stack stack;
	struct fixture f;

	(void)state;
	set_up(&f);
	f.chains.kept_max = 4;
	for (uint64_t i = 0; i < 20; i++) {
		words[2] = 0xffffffff81000200 + i;
		assert_int_equal(begin(&f, 1, CALLCHAIN_USER, words, 3, 1, &half[i]), 0);
		assert_int_equal(callchains_full(&f.chains), i > 0);
	}
	assert_int_equal(f.chains.kernels.len, 20);
	for (uint64_t i = 0; i < 20; i++) {
		words[2] = 0xffffffff81000200 + i;
		assert_int_equal(callchains_end(&f.chains, &half[i], 1, &stack), 0);
		expect(&f, thread(&f, 1), CALLCHAIN_USER, words, 3, expected, sizeof(expected));
		stack_text(&f, stack.stack, got, sizeof(got));
		assert_string_equal(got, expected);
	}
	words[2]++;
	check(&f, 1, CALLCHAIN_USER, words, 3);
	assert_int_equal(f.chains.kernels.len, 1);
	tear_down(&f);
}

static void equal_hashes_do_not_mix_callchains(void **state)
{
	const uint64_t secret = hash_secret[0];
	struct fixture f;

	(void)state;
	set_up(&f);
	/* hash_mix gives 0 for every first word. */
	hash_secret[0] = f.chains.kernel_generation ^ 1;
	for (uint64_t i = 1; i <= 3; i++) {
		const uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100 + i};
		const uint64_t bare = 0xffffffff81000200 + i;

		for (int again = 0; again < 2; again++) {
			check(&f, 1, CALLCHAIN_USER, kernel, 2);
			check(&f, 1, CALLCHAIN_KERNEL, &bare, 1);
		}
	}
	/* The same words in another state of the kernel. */
	for (uint32_t i = 1; i <= 3; i++) {
		const uint64_t word = 0xffffffff81000100;

		f.chains.kernel_generation = i;
		hash_secret[0] = i ^ 1;
		check(&f, 1, CALLCHAIN_KERNEL, &word, 1);
	}
	hash_secret[0] = secret;
	tear_down(&f);
}

static void interrupted_code_is_exact(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100, ENTRY_CODE,
				  0xffffffff81000300, 0xffffffff81000400};
	struct fixture f;
	char got[256];

	(void)state;
	set_up(&f);
	stack_text(&f, check(&f, 1, CALLCHAIN_USER, words, 5).stack, got, sizeof(got));
	assert_string_equal(
		got,
		"k0=ffffffff81000100 k0-ffffffff81000e00 k0=ffffffff81000300 k0-ffffffff81000400 ");
	tear_down(&f);
}

static void odd_callchains_are_as_defined(void **state)
{
	const uint64_t none[] = {PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER}, ip[] = {0x1010};
	const uint64_t unknown_mark[] = {PERF_CONTEXT_USER, 0x1010, PERF_CONTEXT_GUEST, 0x1020};
	const uint64_t swapped[] = {PERF_CONTEXT_USER, 0x1010,          PERF_CONTEXT_KERNEL,
				    IDLE_LOOP,         PERF_CONTEXT_HV, 0x5};
	uint64_t deep[127 + 10];
	struct fixture f;

	(void)state;
	set_up(&f);
	check(&f, 1, CALLCHAIN_USER, NULL, 0);
	check(&f, 1, CALLCHAIN_USER, none, 2);
	check(&f, 1, CALLCHAIN_USER, ip, 1);
	assert_false(check(&f, 1, CALLCHAIN_KERNEL, ip, 1).user);
	check(&f, 1, CALLCHAIN_NEITHER, ip, 1);
	assert_int_equal(check(&f, 1, CALLCHAIN_USER, unknown_mark, 4).stack, PROFILE_STACK_EMPTY);
	assert_true(check(&f, 1, CALLCHAIN_USER, swapped, 6).idle);
	deep[0] = PERF_CONTEXT_USER;
	for (size_t i = 1; i < sizeof(deep) / sizeof(*deep); i++)
		deep[i] = 0x1000 + i;
	check(&f, 1, CALLCHAIN_USER, deep, sizeof(deep) / sizeof(*deep));
	f.chains.frames_max = 127;
	check(&f, 1, CALLCHAIN_USER, deep, sizeof(deep) / sizeof(*deep));
	check(&f, 1, CALLCHAIN_USER, deep, 127 + 1);
	check(&f, 1, CALLCHAIN_NEITHER, deep + 1, 127 + 1);
	check(&f, 1, CALLCHAIN_NEITHER, deep + 1, 127);
	f.chains.frames_max = 2; /* no user frame remains */
	check(&f, 1, CALLCHAIN_USER,
	      (const uint64_t[]){PERF_CONTEXT_KERNEL, 0xffffffff81000100, 0xffffffff81000200,
				 PERF_CONTEXT_USER, 0x1010},
	      5);
	tear_down(&f);
}

/* Stack of an unwound user part. */
static void check_unwound(struct fixture *f, const struct callchain *chain, const char *expected)
{
	struct callchain_stack stack;
	struct callchain_half half;
	char got[512];

	assert_int_equal(callchains_begin(&f->chains, thread(f, 7), chain, 1, &half), 0);
	assert_int_equal(callchains_end(&f->chains, &half, 1, &stack), 0);
	stack_text(f, stack.stack, got, sizeof(got));
	assert_string_equal(got, expected);
}

static void stacks_with_other_facts_differ(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, 0x1010, 0x1020, 0x1030, 0x1040};
	struct callchain chain = {.words = words,
				  .n = 5,
				  .first_spliced = CALLCHAIN_NO_FRAME,
				  .first_guess = CALLCHAIN_NO_FRAME};
	struct fixture f;

	(void)state;
	set_up(&f);
	check_unwound(&f, &chain, "u0=1010 u0-1020 u0-1030 u0-1040 ");
	chain.truncated = true;
	check_unwound(&f, &chain, "u0=1010 u0-1020 u0-1030 u0-1040 [truncated] ");
	assert_int_equal(f.nlookups, 4);
	chain.truncated = false;
	check_unwound(&f, &chain, "u0=1010 u0-1020 u0-1030 u0-1040 ");
	assert_int_equal(f.nlookups, 4);
	chain.at_call_sites = true;
	check_unwound(&f, &chain, "u0=1010 u0=1020 u0=1030 u0=1040 ");
	chain.first_guess = 1;
	check_unwound(&f, &chain, "u0=1010 u0=1020/g u0=1030/g u0=1040/g ");
	chain.first_spliced = 2;
	check_unwound(&f, &chain, "u0=1010 u0=1020/g u0=1030/s u0=1040/s ");
	chain.first_guess = CALLCHAIN_NO_FRAME;
	check_unwound(&f, &chain, "u0=1010 u0=1020 u0=1030/s u0=1040/s ");
	/* The same from the root on, because only the leaf differs. */
	uint64_t longer[] = {PERF_CONTEXT_USER, 0x1011, 0x1010, 0x1020, 0x1030, 0x1040};
	unsigned int nlookups = f.nlookups;

	chain.words = longer;
	chain.n = 6;
	chain.first_spliced = 3;
	check_unwound(&f, &chain, "u0=1011 u0=1010 u0=1020 u0=1030/s u0=1040/s ");
	assert_int_equal(f.nlookups, nlookups + 1);
	/* Without frames no caller is missing. */
	chain.truncated = true;
	chain.n = 1;
	check_unwound(&f, &chain, "");
	tear_down(&f);
}

/* Stacks of maximal depth in sequence cost only their new frames. */
static void deep_stacks_keep_their_callers(void **state)
{
	enum { DEPTH = CALLCHAINS_FRAMES_MAX };
	uint64_t *words = malloc((DEPTH + 2) * sizeof(*words));
	struct callchain_stack stack;
	struct callchain_half half;
	struct fixture f;

	(void)state;
	assert_non_null(words);
	set_up(&f);
	words[0] = PERF_CONTEXT_USER;
	for (size_t i = 1; i < DEPTH + 2; i++)
		words[i] = 0x1000 + i;
	for (uint64_t leaf = 0; leaf < 100; leaf++) {
		words[1] = 0x90000 + leaf;
		assert_int_equal(begin(&f, 7, CALLCHAIN_USER, words, DEPTH + 1, 1, &half), 0);
		assert_int_equal(callchains_end(&f.chains, &half, 1, &stack), 0);
	}
	assert_int_equal(profile_nstacks(f.profile), DEPTH + 100);
	assert_int_equal(profile_nframes(f.profile), DEPTH + 99);
	assert_in_range(f.nlookups, DEPTH + 99, DEPTH + 99);
	assert_int_equal(begin(&f, 7, CALLCHAIN_USER, words, DEPTH + 2, 1, &half), 0);
	uint32_t depth = 0, root = half.stack;

	for (uint32_t s = half.stack; s != PROFILE_STACK_EMPTY;
	     s = profile_stack_parent(f.profile, s), depth++)
		root = s;
	assert_int_equal(depth, DEPTH + 1);
	assert_true(profile_frame_of(f.profile, profile_stack_frame(f.profile, root))->is_mark);
	tear_down(&f);
	free(words);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* More distinct addresses than the cache has places, changing spaces, all shapes, and a provider
 * whose results change. */
static void check_random_callchains(struct symbol_provider *provider, size_t kept_max)
{
	uint32_t seed = 1;
	struct fixture f;
	uint64_t words[40];

	set_up(&f);
	f.rewritten = provider;
	f.inlines = true;
	f.chains.kept_max = kept_max;
	for (int round = 0; round < 20000; round++) {
		int32_t pid = (int32_t)(next_random(&seed) % 6);
		uint32_t shape = next_random(&seed) % 16;
		size_t n = 0, user = next_random(&seed) % 20;

		if (next_random(&seed) % 64 == 0)
			change(&f, pid, next_random(&seed) % 3);
		if (next_random(&seed) % 256 == 0)
			f.chains.kernel_generation++;
		if (shape > 8) {
			words[n++] = PERF_CONTEXT_KERNEL;
			for (size_t k = next_random(&seed) % 6; k > 0; k--)
				words[n++] = 0xffffffff81000000 + next_random(&seed) % 16 * 0x100;
		}
		if (shape != 1 && shape != 9)
			words[n++] = PERF_CONTEXT_USER;
		for (size_t k = 0; k < user; k++)
			words[n++] = 0x1000 + (next_random(&seed) % (k ? 40 : 60000)) * 3;
		if (shape == 2)
			words[n++] = PERF_CONTEXT_KERNEL;
		if (provider && next_random(&seed) % 8 == 0)
			f.time_ns = next_random(&seed) % (2 * REWRITTEN_NS);
		check(&f, pid, CALLCHAIN_USER, words, n);
		if (kept_max) {
			assert_true(f.chains.kernel_words.len <
				    kept_max + sizeof(words) / sizeof(*words));
			assert_true(f.chains.under_ids.len <= kept_max);
		}
	}
	assert_true(f.nlookups > CALLCHAINS_CACHE);
	tear_down(&f);
}

static void random_callchains_are_as_defined(void **state)
{
	(void)state;
	check_random_callchains(NULL, 0);
	check_random_callchains(&rewritten, 0);
	check_random_callchains(NULL, 50);
}

static void a_cached_lookup_is_kept_while_it_is_valid(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL,
				  0xffffffff81000101,
				  0xffffffff81000110,
				  PERF_CONTEXT_USER,
				  0x1001,
				  0x1010,
				  0x1002};
	const uint64_t odd[] = {PERF_CONTEXT_USER, 0x1030, PERF_CONTEXT_KERNEL};
	struct fixture f;

	(void)state;
	set_up(&f);
	f.rewritten = &rewritten;
	for (int i = 0; i < 6; i++) {
		f.time_ns = i % 2 ? REWRITTEN_NS : REWRITTEN_NS - 1;
		check(&f, 7, CALLCHAIN_USER, words, 7);
		check(&f, 7, CALLCHAIN_USER, odd, 3);
		/* Only changed addresses are looked up again: one in each callchain. */
		assert_int_equal(f.nlookups, 6 + i * 3);
	}
	tear_down(&f);
}

/* Callers of a thread's last callchain are reused up to a changed one. The last reused one is no
 * leaf. */
static void a_kept_callchain_ends_with_a_caller(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, 0x1001, 0x1002, 0x1003},
		       changes[] = {PERF_CONTEXT_USER, 0x1010, 0x1002, 0x1003};
	struct fixture f;

	(void)state;
	set_up(&f);
	f.rewritten = &rewritten;
	check(&f, 7, CALLCHAIN_USER, words, 4);
	check(&f, 7, CALLCHAIN_USER, changes, 4);
	check(&f, 7, CALLCHAIN_USER, (const uint64_t[]){PERF_CONTEXT_USER, 0x1002, 0x1003}, 3);
	tear_down(&f);
}

static void kernel_parts_ended_later_have_their_own_times(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000110, 0xffffffff81000120};
	char expected[256], got[256];
	struct callchain_half half[3];
	struct callchain_stack stack;
	struct fixture f;

	(void)state;
	set_up(&f);
	f.rewritten = &rewritten;
	for (int i = 0; i < 3; i++)
		assert_int_equal(begin(&f, 1, CALLCHAIN_USER, words, 3, (uint64_t)i * REWRITTEN_NS,
				       &half[i]),
				 0);
	for (int i = 0; i < 3; i++) {
		f.time_ns = (uint64_t)i * REWRITTEN_NS;
		assert_int_equal(callchains_end(&f.chains, &half[i], f.time_ns, &stack), 0);
		expect(&f, thread(&f, 1), CALLCHAIN_USER, words, 3, expected, sizeof(expected));
		stack_text(&f, stack.stack, got, sizeof(got));
		assert_string_equal(got, expected);
	}
	tear_down(&f);
}

static void a_failed_lookup_is_repeated(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100, PERF_CONTEXT_USER,
				  0x1010, 0x1020};
	struct callchain_half half;
	struct callchain_stack stack;
	struct fixture f;

	(void)state;
	for (int at = 1; at <= 3; at++) {
		set_up(&f);
		f.fail_at = at;
		int r = begin(&f, 1, CALLCHAIN_USER, words, 5, 1, &half);

		assert_int_equal(r, at < 3 ? -ENOMEM : 0);
		if (!r)
			assert_int_equal(callchains_end(&f.chains, &half, 1, &stack), -ENOMEM);
		check(&f, 1, CALLCHAIN_USER, words, 5);
		tear_down(&f);
	}
}

static uint64_t little_memory(void)
{
	return 8 << 20;
}

/* The n innermost frames of a text of check, and the mark for missing callers. */
static bool is_cut(const char *whole, const char *got)
{
	size_t len = strlen(got), mark = strlen(PROFILE_TRUNCATED " ");

	return len >= mark && !strcmp(got + len - mark, PROFILE_TRUNCATED " ") &&
	       !strncmp(got, whole, len - mark);
}

/* Each stack is whole, or has innermost frames and the mark. All addresses are looked up. */
static void short_memory_cuts_stacks(void **state)
{
	enum { DEPTH = 300, CHAINS = 3000, KERNEL = 4 };
	char whole[16384], got[16384];
	uint64_t words[DEPTH];
	uint32_t seed = 1;
	struct callchain_stack stack;
	struct callchain_half half;
	uint64_t wholes = 0, leaves = 0;
	struct fixture f;

	(void)state;
	set_up(&f);
	profile_limit_memory(f.profile, little_memory);
	for (int i = 0; i < CHAINS; i++) {
		size_t n = 0, kernel = i % 3 ? KERNEL : 0;

		words[n++] = PERF_CONTEXT_KERNEL;
		while (n <= kernel)
			words[n++] = 0xffffffff81000000 + next_random(&seed) % 4;
		n = kernel ? n : 0;
		words[n++] = PERF_CONTEXT_USER;
		while (n < DEPTH)
			words[n++] = 0x1000 + next_random(&seed) % 2;
		assert_int_equal(begin(&f, 7, CALLCHAIN_USER, words, n, 1, &half), 0);
		assert_int_equal(callchains_end(&f.chains, &half, 1, &stack), 0);
		expect(&f, thread(&f, 7), CALLCHAIN_USER, words, n, whole, sizeof(whole));
		stack_text(&f, stack.stack, got, sizeof(got));
		wholes += !strcmp(got, whole);
		leaves += strchr(strchr(got, ' ') + 1, ' ') == strrchr(got, ' ');
		assert_true(!strcmp(got, whole) || is_cut(whole, got));
	}
	assert_true(wholes > 0);
	assert_true(leaves > 0);
	assert_int_equal(f.chains.cut, CHAINS - wholes);
	assert_int_equal(f.nlookups, 2 * (2 + 4)); /* leaves are looked up exactly */
	assert_true(profile_nstacks(f.profile) * (STACK_ROOM_BYTES_HERE + STACK_ROOM_BYTES_LATER) <
		    little_memory() / 2);
	tear_down(&f);
}

/* A stack that fits is not cut after others were. */
static void known_stacks_stay_whole(void **state)
{
	uint64_t words[302];
	uint32_t seed = 1;
	struct callchain_half half;
	struct fixture f;

	(void)state;
	set_up(&f);
	profile_limit_memory(f.profile, little_memory);
	words[0] = PERF_CONTEXT_USER;
	for (int i = 0; i < 1000; i++) {
		for (size_t k = 1; k < 302; k++)
			words[k] = 0x1000 + next_random(&seed) % 2;
		assert_int_equal(begin(&f, 7, CALLCHAIN_USER, words, 302, 1, &half), 0);
	}
	assert_true(half.cut);
	seed = 1;
	for (size_t k = 1; k < 302; k++)
		words[k] = 0x1000 + next_random(&seed) % 2;
	check(&f, 7, CALLCHAIN_USER, words, 302);
	assert_int_equal(f.chains.cut, 0); /* counted at the end of a callchain */
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recent_code_is_not_requested_again),
		cmocka_unit_test(one_address_can_be_several_frames),
		cmocka_unit_test(lookups_of_the_idle_task_are_not_shared),
		cmocka_unit_test(kernel_parts_can_be_ended_later),
		cmocka_unit_test(begun_samples_are_completed),
		cmocka_unit_test(equal_hashes_do_not_mix_callchains),
		cmocka_unit_test(interrupted_code_is_exact),
		cmocka_unit_test(odd_callchains_are_as_defined),
		cmocka_unit_test(stacks_with_other_facts_differ),
		cmocka_unit_test(deep_stacks_keep_their_callers),
		cmocka_unit_test(random_callchains_are_as_defined),
		cmocka_unit_test(a_cached_lookup_is_kept_while_it_is_valid),
		cmocka_unit_test(a_kept_callchain_ends_with_a_caller),
		cmocka_unit_test(kernel_parts_ended_later_have_their_own_times),
		cmocka_unit_test(a_failed_lookup_is_repeated),
		cmocka_unit_test(short_memory_cuts_stacks),
		cmocka_unit_test(known_stacks_stay_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
