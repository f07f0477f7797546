/*
 * Waits of known length: waits KIND... SECONDS. Prints "ready" when all threads run. At the end
 * prints the measured time of each waiting function: elapsed time without the thread's CPU time.
 * The CPU time is the task clock of perf_event_open. Unlike CPU clocks it includes time that a
 * hypervisor takes away, so the result also holds on a busy machine.
 *
 * Output lines:
 *   - FUNCTION WAKER STATE COUNT MICROSECONDS RUNNABLE
 *     WAKER ends its waits; "-": a timer or the scheduler. RUNNABLE: microseconds of them in which
 *     the thread was runnable (schedstat).
 *   - threads RUNNABLE: the same of all threads (not with pong)
 *   - ran WAIT_CPU ALL: CPU time in microseconds of wait_cpu and of the process
 *
 * Kinds:
 *   - sleep: wait_sleep, 20 ms each, by a timer
 *   - lock: wait_lock, a mutex that wake_lock releases after 15 ms
 *   - pipe: wait_pipe, 25 ms, until wake_pipe writes
 *   - futex: wait_futex, 10 ms, until wake_futex
 *   - chain: wait_chain, 18 ms, until wake_chain. The thread of wake_chain itself waits
 *     meanwhile, in wait_relay, until wake_relay of a third thread
 *   - fault: wait_fault, a page that wake_fault provides after 12 ms (userfaultfd)
 *   - cpu: wait_cpu, two threads that compete for one CPU
 *   - pong: two threads on one CPU that wake each other through pipes, from pong_a (40 % of the
 *     waits), pong_b (30), pong_c (20) and pong_d (10). Environment: PONG_WORK is their work in
 *     between, in ns. PONG_LOG names a file for the begin of each wait of one of them: times of
 *     CLOCK_MONOTONIC in ns, uint64_t each, written at the end; SIGTERM ends it. Only elapsed
 *     time is measured, because reading the CPU time would cost as much as a switch.
 *   - all: all except pong
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
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

/* Not inlined or cloned, so that it keeps its own name. */
#ifdef __clang__
#define NAMED __attribute__((noinline)) static
#else
#define NAMED __attribute__((noipa)) static
#endif
#define KEEP_FRAME __asm__ volatile("" ::: "memory")
#define PAGE 4096
#define PAGES 64

struct measured {
	const char *function, *waker, *state;
	uint64_t count, ns, runnable_ns, ran_ns;
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

/* Time of this thread off its CPU since some moment, and the runnable part of it. */
struct off {
	uint64_t ns, runnable_ns, ran_ns;
};

#define TOGETHER_NS 20000 /* maximal distance of two readings that count as one moment */
#define TOGETHER_TRIES 100

static __thread int task_clock_fd = -1, schedstat_fd = -1;
static uint64_t ended_runnable_ns; /* of ended threads */

static void open_counts(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	task_clock_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

static uint64_t on_ns(void)
{
	uint64_t ns;

	/* Some containers forbid it. */
	return read(task_clock_fd, &ns, sizeof(ns)) == sizeof(ns)
		       ? ns
		       : clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t runnable_ns_of(int fd)
{
	unsigned long long ns = 0;
	char text[128] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && sscanf(text, "%*u %llu", &ns) == 1 ? ns
											      : 0;
}

static struct off off_now(void)
{
	struct off off = {.runnable_ns = runnable_ns_of(schedstat_fd)};
	uint64_t before, after;
	int tries = 0;

	do {
		before = clock_ns(CLOCK_MONOTONIC);
		off.ns = before - on_ns();
		after = clock_ns(CLOCK_MONOTONIC);
	} while (after - before > TOGETHER_NS && ++tries < TOGETHER_TRIES);
	off.ran_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return off;
}

#define MEASURED(measured, call)                                                     \
	do {                                                                         \
		struct off before_ = off_now(), after_;                              \
		call;                                                                \
		after_ = off_now();                                                  \
		(measured)->ns += after_.ns - before_.ns;                            \
		(measured)->runnable_ns += after_.runnable_ns - before_.runnable_ns; \
		(measured)->ran_ns += after_.ran_ns - before_.ran_ns;                \
		(measured)->count++;                                                 \
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
		MEASURED((struct measured *)arg, wait_sleep());
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
		MEASURED((struct measured *)arg, wait_pipe());
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
		MEASURED((struct measured *)arg, wait_lock());
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
		MEASURED((struct measured *)arg,
			 wait_futex(__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST)));
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
		MEASURED((struct measured *)arg, wait_chain());
	return NULL;
}

/* Ends with the program, like the next function. */
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
	struct uffdio_copy copy = {
		.dst = addr & ~(uint64_t)(PAGE - 1), .src = (uintptr_t)filled, .len = PAGE};

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
	fault_pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (fault_fd < 0 || fault_pages == MAP_FAILED || ioctl(fault_fd, UFFDIO_API, &api))
		return false;
	struct uffdio_register range = {.range = {(uintptr_t)fault_pages, PAGES * PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	return !ioctl(fault_fd, UFFDIO_REGISTER, &range);
}

static void *run_fault(void *arg)
{
	for (size_t page = 0; !over(); page = (page + 1) % PAGES) {
		madvise(fault_pages + page * PAGE, PAGE, MADV_DONTNEED);
		MEASURED((struct measured *)arg, wait_fault(page));
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
	MEASURED((struct measured *)arg, wait_cpu());
	return NULL;
}

static int pong_fds[2][2];
static uint64_t pong_loops;
static volatile bool pong_over;

struct pong {
	int in, out;
	struct measured measured[4]; /* of pong_a to pong_d */
	uint64_t *log;               /* room for log_max times; the other side has NULL */
	size_t logged, log_max;
};

static void work(void)
{
	for (uint64_t i = 0; i < pong_loops; i++)
		sink += i;
}

/* Does its work, wakes the other side, and waits for it. */
NAMED uint64_t swap(struct pong *p)
{
	work();
	uint64_t before = clock_ns(CLOCK_MONOTONIC);

	if (p->logged < p->log_max)
		p->log[p->logged++] = before;

	put(p->out);
	take(p->in);
	return clock_ns(CLOCK_MONOTONIC) - before;
}

NAMED uint64_t pong_a(struct pong *p)
{
	return swap(p) + 1;
}

NAMED uint64_t pong_b(struct pong *p)
{
	return swap(p) + 2;
}

NAMED uint64_t pong_c(struct pong *p)
{
	return swap(p) + 3;
}

NAMED uint64_t pong_d(struct pong *p)
{
	return swap(p) + 4;
}

static void *run_pong(void *arg)
{
	static uint64_t (*const functions[])(struct pong *) = {pong_a, pong_b, pong_c, pong_d};
	static const unsigned char order[10] = {0, 1, 0, 2, 0, 1, 3, 0, 1, 2};
	struct pong *p = arg;

	pin_to_last_cpu();
	for (unsigned i = 0; !pong_over; i++) {
		unsigned which = order[i % 10];
		uint64_t ns = functions[which](p);

		p->measured[which].ns += ns;
		p->measured[which].count++;
		if (i % 64 == 0 && over())
			pong_over = true;
	}
	put(p->out); /* the other side may be waiting for it */
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
	struct measured measured;
	void *(*run)(void *), *(*end)(void *);
};

static struct kind kinds[] = {
	{"sleep", {"wait_sleep", "-", "blocked", 0, 0, 0, 0}, run_sleep, NULL},
	{"lock", {"wait_lock", "wake_lock", "blocked", 0, 0, 0, 0}, run_lock, end_lock},
	{"pipe", {"wait_pipe", "wake_pipe", "blocked", 0, 0, 0, 0}, run_pipe, end_pipe},
	{"futex", {"wait_futex", "wake_futex", "blocked", 0, 0, 0, 0}, run_futex, end_futex},
	{"chain", {"wait_chain", "wake_chain", "blocked", 0, 0, 0, 0}, run_chain, end_chain},
	{"fault", {"wait_fault", "wake_fault", "blocked", 0, 0, 0, 0}, run_fault, end_fault},
	{"cpu", {"wait_cpu", "-", "runnable", 0, 0, 0, 0}, run_cpu, NULL},
	{NULL, {NULL, NULL, NULL, 0, 0, 0, 0}, NULL, NULL},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct thread {
	void *(*fn)(void *);
	void *arg;
};

/* Keeps its count when the thread ends; the descriptors end with the program. */
static void *run_counted(void *arg)
{
	struct thread t = *(struct thread *)arg;

	free(arg);
	open_counts();
	t.fn(t.arg);
	__atomic_add_fetch(&ended_runnable_ns, runnable_ns_of(schedstat_fd), __ATOMIC_SEQ_CST);
	return NULL;
}

static pthread_t begin(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg))
		abort();
	return thread;
}

/* Not for pong, because counting would slow down its switches. */
static pthread_t begin_counted(void *(*fn)(void *), void *arg)
{
	struct thread *t = malloc(sizeof(*t));

	if (!t)
		abort();
	*t = (struct thread){fn, arg};
	return begin(run_counted, t);
}

static void print_measured(const struct measured *a)
{
	printf("%s %s %s %llu %llu %llu\n", a->function, a->waker, a->state,
	       (unsigned long long)a->count, (unsigned long long)(a->ns / 1000),
	       (unsigned long long)(a->runnable_ns / 1000));
}

/* Includes running threads. */
static void print_threads(void)
{
	uint64_t ns = ended_runnable_ns;
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", task->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		ns += fd < 0 ? 0 : runnable_ns_of(fd);
		if (fd >= 0)
			close(fd);
	}
	if (tasks)
		closedir(tasks);
	printf("threads %llu\n", (unsigned long long)(ns / 1000));
}

#define PONG_LOG_RATE 100000 /* waits of one side in a second that fit */

static void end_pong(int signal_number)
{
	(void)signal_number;
	pong_over = true;
}

static bool begin_log(struct pong *p, double seconds)
{
	const struct sigaction act = {.sa_handler = end_pong, .sa_flags = SA_RESTART};

	if (sigaction(SIGTERM, &act, NULL))
		return false;
	p->log_max = (size_t)(seconds * PONG_LOG_RATE);
	p->log = mmap(NULL, p->log_max * sizeof(*p->log), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p->log != MAP_FAILED;
}

static bool write_log(const struct pong *p, const char *path)
{
	FILE *f = fopen(path, "wbe");
	bool good = f && fwrite(p->log, sizeof(*p->log), p->logged, f) == p->logged;

	return f && !fclose(f) && good;
}

static int run_pongs(double seconds)
{
	const char *log = getenv("PONG_LOG");
	static const char *const names[4] = {"pong_a", "pong_b", "pong_c", "pong_d"};
	struct pong sides[2];
	pthread_t threads[2];

	if (pipe(pong_fds[0]) || pipe(pong_fds[1]))
		return 1;
	calibrate();
	sides[0] = (struct pong){.in = pong_fds[0][0], .out = pong_fds[1][1]};
	sides[1] = (struct pong){.in = pong_fds[1][0], .out = pong_fds[0][1]};
	if (log && !begin_log(&sides[0], seconds))
		return 1;
	end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	for (int i = 0; i < 2; i++)
		threads[i] = begin(run_pong, &sides[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		print_measured(&(struct measured){
			names[i], "-", "blocked",
			sides[0].measured[i].count + sides[1].measured[i].count,
			sides[0].measured[i].ns + sides[1].measured[i].ns, 0, 0});
	return log && !write_log(&sides[0], log);
}

static int run_kinds(const bool *chosen)
{
	static struct measured second; /* the other thread that competes for the CPU */
	pthread_t threads[2 * KINDS];
	size_t n = 0;

	for (size_t i = 0; kinds[i].name; i++) {
		if (!chosen[i])
			continue;
		threads[n++] = begin_counted(kinds[i].run, &kinds[i].measured);
		if (kinds[i].run == run_cpu)
			threads[n++] = begin_counted(run_cpu, &second);
		if (kinds[i].end == end_chain)
			begin_counted(relay_chain, NULL);
		if (kinds[i].end == end_fault || kinds[i].end == end_chain)
			begin_counted(kinds[i].end, NULL);
		else if (kinds[i].end)
			threads[n++] = begin_counted(kinds[i].end, NULL);
	}
	while (n--)
		pthread_join(threads[n], NULL);
	for (size_t i = 0; kinds[i].name; i++) {
		if (kinds[i].run == run_cpu && chosen[i]) {
			kinds[i].measured.ns += second.ns;
			kinds[i].measured.runnable_ns += second.runnable_ns;
			kinds[i].measured.ran_ns += second.ran_ns;
			printf("ran %llu %llu\n",
			       (unsigned long long)(kinds[i].measured.ran_ns / 1000),
			       (unsigned long long)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000));
			kinds[i].measured.count += second.count;
		}
		if (chosen[i])
			print_measured(&kinds[i].measured);
	}
	print_threads();
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
		fprintf(stderr,
			"waits sleep|lock|pipe|futex|chain|fault|cpu|pong|all... SECONDS\n");
		return 2;
	}
	if (pipe(pipe_fds) || pipe(lock_held) || pipe(lock_had) || pipe(chain_fds) ||
	    pipe(relay_fds))
		return 1;
	for (size_t i = 0; kinds[i].name; i++)
		if (chosen[i] && kinds[i].end == end_fault && !open_fault()) {
			fprintf(stderr, "no userfaultfd: %s\n", strerror(errno));
			return 77;
		}
	puts("ready");
	fflush(stdout);
	double seconds = strtod(argv[argc - 1], NULL);

	end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	return pongs ? run_pongs(seconds) : run_kinds(chosen);
}
