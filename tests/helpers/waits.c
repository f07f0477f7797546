/*
 * Waits whose answer is known: waits KIND... SECONDS. Prints "ready" when all is there, and at the end, on stdout, for each function that
 * waits, what it measured itself: by the clock, less what its thread used of the CPU.
 *
 *   FUNCTION WAKER STATE COUNT MICROSECONDS     WAKER: the function that ends its waits, "-": a timer, or the scheduler
 *
 *   sleep   wait_sleep: 20 ms each, by a timer
 *   lock    wait_lock: a mutex that is held for 15 ms, until wake_lock
 *   pipe    wait_pipe: 25 ms, until wake_pipe writes
 *   futex   wait_futex: 10 ms, until wake_futex
 *   chain   wait_chain: 18 ms, until wake_chain of a thread that itself waits meanwhile, in wait_relay, until wake_relay of a third one
 *   fault   wait_fault: a page that comes after 12 ms, from wake_fault (userfaultfd)
 *   cpu     wait_cpu: two threads that want the same CPU
 *   pong    two threads on one CPU that wake each other through pipes, from pong_a (40 % of the waits), pong_b (30), pong_c (20)
 *           and pong_d (10); PONG_WORK in the environment is what they work in between, in ns. Measured by the clock alone, as asking
 *           for the CPU time would cost as much as a switch
 *   all     all but pong
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Called as it stands here, by its own name. */
#ifdef __clang__
#define NAMED __attribute__((noinline)) static
#else
#define NAMED __attribute__((noipa)) static
#endif
#define KEEP_FRAME __asm__ volatile("" ::: "memory")
#define PAGE 4096
#define PAGES 64

struct answer {
	const char *function, *waker, *state;
	uint64_t count, ns;
};

static uint64_t end_ns;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static bool over(void)
{
	return clock_ns(CLOCK_MONOTONIC) >= end_ns;
}

static void delay_ms(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static uint64_t off_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

#define MEASURED(answer, call)                         \
	do {                                           \
		uint64_t before_ = off_ns();           \
		call;                                  \
		(answer)->ns += off_ns() - before_;    \
		(answer)->count++;                     \
	} while (0)

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		abort();
}

static void take(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		abort();
}

/* sleep */
NAMED void wait_sleep(void)
{
	delay_ms(20);
	KEEP_FRAME;
}

static void *run_sleep(void *arg)
{
	while (!over())
		MEASURED((struct answer *)arg, wait_sleep());
	return NULL;
}

/* pipe */
static int pipe_fds[2];

NAMED void wait_pipe(void)
{
	take(pipe_fds[0]);
	KEEP_FRAME;
}

NAMED void wake_pipe(void)
{
	put(pipe_fds[1]);
	KEEP_FRAME;
}

static void *run_pipe(void *arg)
{
	while (!over())
		MEASURED((struct answer *)arg, wait_pipe());
	return NULL;
}

static void *end_pipe(void *arg)
{
	for (bool last = false; !last;) {
		last = over();
		delay_ms(25);
		wake_pipe();
	}
	return arg;
}

/* lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int lock_held[2], lock_had[2];
static volatile bool lock_over;

NAMED void wait_lock(void)
{
	pthread_mutex_lock(&lock);
	KEEP_FRAME;
}

NAMED void wake_lock(void)
{
	pthread_mutex_unlock(&lock);
	KEEP_FRAME;
}

static void *run_lock(void *arg)
{
	for (;;) {
		take(lock_held[0]);
		if (lock_over)
			return NULL;
		MEASURED((struct answer *)arg, wait_lock());
		pthread_mutex_unlock(&lock);
		put(lock_had[1]);
	}
}

static void *end_lock(void *arg)
{
	while (!over()) {
		pthread_mutex_lock(&lock);
		put(lock_held[1]);
		delay_ms(15);
		wake_lock();
		take(lock_had[0]);
	}
	lock_over = true;
	put(lock_held[1]);
	return arg;
}

/* futex */
static uint32_t futex_word;

NAMED void wait_futex(uint32_t value)
{
	syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
	KEEP_FRAME;
}

NAMED void wake_futex(void)
{
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	KEEP_FRAME;
}

static void *run_futex(void *arg)
{
	while (!over())
		MEASURED((struct answer *)arg, wait_futex(__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST)));
	return NULL;
}

static void *end_futex(void *arg)
{
	for (bool last = false; !last;) {
		last = over();
		delay_ms(10);
		__atomic_add_fetch(&futex_word, 1, __ATOMIC_SEQ_CST);
		wake_futex();
	}
	return arg;
}

/* chain */
static int chain_fds[2], relay_fds[2];

NAMED void wait_chain(void)
{
	take(chain_fds[0]);
	KEEP_FRAME;
}

NAMED void wake_chain(void)
{
	put(chain_fds[1]);
	KEEP_FRAME;
}

NAMED void wait_relay(void)
{
	take(relay_fds[0]);
	KEEP_FRAME;
}

NAMED void wake_relay(void)
{
	put(relay_fds[1]);
	KEEP_FRAME;
}

static void *run_chain(void *arg)
{
	while (!over())
		MEASURED((struct answer *)arg, wait_chain());
	return NULL;
}

/* Ends with the program, as the next. */
static void __attribute__((noreturn)) * relay_chain(void *arg)
{
	(void)arg;
	for (;;) {
		wait_relay();
		wake_chain();
	}
}

static void __attribute__((noreturn)) * end_chain(void *arg)
{
	(void)arg;
	for (;;) {
		delay_ms(18);
		wake_relay();
	}
}

/* fault */
static int fault_fd = -1;
static char *fault_pages;

NAMED void wait_fault(size_t page)
{
	sink += (uint64_t) * (volatile char *)(fault_pages + page * PAGE);
	KEEP_FRAME;
}

NAMED void wake_fault(uint64_t addr)
{
	static char filled[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = {.dst = addr & ~(uint64_t)(PAGE - 1), .src = (uintptr_t)filled, .len = PAGE};

	if (ioctl(fault_fd, UFFDIO_COPY, &copy))
		abort();
	KEEP_FRAME;
}

static bool open_fault(void)
{
	struct uffdio_api api = {.api = UFFD_API};

	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fault_fd < 0)
		fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC); /* Linux before 5.11 */
	fault_pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fault_fd < 0 || fault_pages == MAP_FAILED || ioctl(fault_fd, UFFDIO_API, &api))
		return false;
	struct uffdio_register range = {.range = {(uintptr_t)fault_pages, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	return !ioctl(fault_fd, UFFDIO_REGISTER, &range);
}

static void *run_fault(void *arg)
{
	for (size_t page = 0; !over(); page = (page + 1) % PAGES) {
		madvise(fault_pages + page * PAGE, PAGE, MADV_DONTNEED);
		MEASURED((struct answer *)arg, wait_fault(page));
	}
	return NULL;
}

/* Ends with the program. */
static void __attribute__((noreturn)) * end_fault(void *arg)
{
	struct uffd_msg msg;

	(void)arg;
	for (;;) {
		if (read(fault_fd, &msg, sizeof(msg)) != sizeof(msg))
			abort();
		if (msg.event != UFFD_EVENT_PAGEFAULT)
			continue;
		delay_ms(12);
		wake_fault(msg.arg.pagefault.address);
	}
}

/* cpu, pong */
static void pin_to_last_cpu(void)
{
	cpu_set_t set;
	int last = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		last = CPU_ISSET(cpu, &set) ? cpu : last;
	CPU_ZERO(&set);
	CPU_SET(last, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

NAMED void wait_cpu(void)
{
	while (!over())
		for (int i = 0; i < 10000; i++)
			sink += (uint64_t)i;
	KEEP_FRAME;
}

static void *run_cpu(void *arg)
{
	pin_to_last_cpu();
	MEASURED((struct answer *)arg, wait_cpu());
	return NULL;
}

static int pong_fds[2][2];
static uint64_t pong_loops;
static volatile bool pong_over;

struct pong {
	int in, out;
	struct answer answers[4]; /* of pong_a to pong_d */
};

static void work(void)
{
	for (uint64_t i = 0; i < pong_loops; i++)
		sink += i;
}

/* Its side of the work, the word to the other, and the wait for the other's. */
NAMED uint64_t swap(const struct pong *p)
{
	work();
	uint64_t before = clock_ns(CLOCK_MONOTONIC);

	put(p->out);
	take(p->in);
	return clock_ns(CLOCK_MONOTONIC) - before;
}

NAMED uint64_t pong_a(const struct pong *p)
{
	return swap(p) + 1;
}

NAMED uint64_t pong_b(const struct pong *p)
{
	return swap(p) + 2;
}

NAMED uint64_t pong_c(const struct pong *p)
{
	return swap(p) + 3;
}

NAMED uint64_t pong_d(const struct pong *p)
{
	return swap(p) + 4;
}

static void *run_pong(void *arg)
{
	static uint64_t (*const functions[])(const struct pong *) = {pong_a, pong_b, pong_c, pong_d};
	static const unsigned char order[10] = {0, 1, 0, 2, 0, 1, 3, 0, 1, 2};
	struct pong *p = arg;

	pin_to_last_cpu();
	for (unsigned i = 0; !pong_over; i++) {
		unsigned which = order[i % 10];
		uint64_t ns = functions[which](p);

		p->answers[which].ns += ns;
		p->answers[which].count++;
		if (i % 64 == 0 && over())
			pong_over = true;
	}
	put(p->out); /* the other may wait for it */
	return NULL;
}

static void calibrate(void)
{
	const char *ns = getenv("PONG_WORK");
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), used;

	pong_loops = 1000000;
	work();
	used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	pong_loops = pong_loops * (ns ? strtoull(ns, NULL, 10) : 0) / (used ? used : 1);
}

struct kind {
	const char *name;
	struct answer answer;
	void *(*run)(void *), *(*end)(void *);
};

static struct kind kinds[] = {
	{"sleep", {"wait_sleep", "-", "blocked", 0, 0}, run_sleep, NULL},
	{"lock", {"wait_lock", "wake_lock", "blocked", 0, 0}, run_lock, end_lock},
	{"pipe", {"wait_pipe", "wake_pipe", "blocked", 0, 0}, run_pipe, end_pipe},
	{"futex", {"wait_futex", "wake_futex", "blocked", 0, 0}, run_futex, end_futex},
	{"chain", {"wait_chain", "wake_chain", "blocked", 0, 0}, run_chain, end_chain},
	{"fault", {"wait_fault", "wake_fault", "blocked", 0, 0}, run_fault, end_fault},
	{"cpu", {"wait_cpu", "-", "runnable", 0, 0}, run_cpu, NULL},
	{NULL, {NULL, NULL, NULL, 0, 0}, NULL, NULL},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static pthread_t begin(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg))
		abort();
	return thread;
}

static void say(const struct answer *a)
{
	printf("%s %s %s %llu %llu\n", a->function, a->waker, a->state, (unsigned long long)a->count,
	       (unsigned long long)(a->ns / 1000));
}

static int run_pongs(void)
{
	static const char *const names[4] = {"pong_a", "pong_b", "pong_c", "pong_d"};
	struct pong sides[2];
	pthread_t threads[2];

	if (pipe(pong_fds[0]) || pipe(pong_fds[1]))
		return 1;
	calibrate();
	sides[0] = (struct pong){.in = pong_fds[0][0], .out = pong_fds[1][1]};
	sides[1] = (struct pong){.in = pong_fds[1][0], .out = pong_fds[0][1]};
	for (int i = 0; i < 2; i++)
		threads[i] = begin(run_pong, &sides[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		say(&(struct answer){names[i], "-", "blocked", sides[0].answers[i].count + sides[1].answers[i].count,
				     sides[0].answers[i].ns + sides[1].answers[i].ns});
	return 0;
}

static int run_kinds(const bool *chosen)
{
	static struct answer second; /* the other thread that wants the CPU */
	pthread_t threads[2 * KINDS];
	size_t n = 0;

	for (size_t i = 0; kinds[i].name; i++) {
		if (!chosen[i])
			continue;
		threads[n++] = begin(kinds[i].run, &kinds[i].answer);
		if (kinds[i].run == run_cpu)
			threads[n++] = begin(run_cpu, &second);
		if (kinds[i].end == end_chain)
			begin(relay_chain, NULL);
		if (kinds[i].end == end_fault || kinds[i].end == end_chain)
			begin(kinds[i].end, NULL);
		else if (kinds[i].end)
			threads[n++] = begin(kinds[i].end, NULL);
	}
	while (n--)
		pthread_join(threads[n], NULL);
	for (size_t i = 0; kinds[i].name; i++) {
		if (kinds[i].run == run_cpu) {
			kinds[i].answer.ns += second.ns;
			kinds[i].answer.count += second.count;
		}
		if (chosen[i])
			say(&kinds[i].answer);
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool chosen[KINDS] = {false}, pongs = false, known = argc > 2;

	for (int a = 1; a < argc - 1; a++) {
		bool found = !strcmp(argv[a], "pong");

		pongs = pongs || found;
		for (size_t i = 0; kinds[i].name; i++) {
			bool same = !strcmp(argv[a], kinds[i].name) || !strcmp(argv[a], "all");

			chosen[i] = chosen[i] || same;
			found = found || same;
		}
		known = known && found;
	}
	if (!known) {
		fprintf(stderr, "waits sleep|lock|pipe|futex|chain|fault|cpu|pong|all... SECONDS\n");
		return 2;
	}
	if (pipe(pipe_fds) || pipe(lock_held) || pipe(lock_had) || pipe(chain_fds) || pipe(relay_fds))
		return 1;
	for (size_t i = 0; kinds[i].name; i++)
		if (chosen[i] && kinds[i].end == end_fault && !open_fault()) {
			fprintf(stderr, "no userfaultfd: %s\n", strerror(errno));
			return 77;
		}
	puts("ready");
	fflush(stdout);
	end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(strtod(argv[argc - 1], NULL) * 1e9);
	return pongs ? run_pongs() : run_kinds(chosen);
}
