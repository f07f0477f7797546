/*
 * Maps and forks as fast as it can, to fill the memory of a recorder:
 * map_storm KIND SECONDS [MAPS]. Each process burns CPU in its newest map, so that it is sampled.
 *
 *   chain   a process with MAPS maps begins chains of forks; each child maps 32 files more, at
 *           random places, and forks the next one; 16 of them live at a time
 *   names   one process maps files of ever new long names
 *   paths   one process has MAPS maps of a file with a path of nearly 4 kB
 *   lines   the same of newlines, which /proc/PID/maps shows as 4 bytes each; only one map is
 *           code, and it mostly sleeps
 *   comms   MAPS threads, or one, change their own names; nothing is mapped
 *   threads a process starts threads, each with a new name, and forks; nothing is mapped
 *   stacks  one thread calls itself 3,000 times deep, on an ever new way; nothing is mapped
 *   places  one thread runs at ever new addresses of anonymous memory, below 2,000 frames of such
 *           addresses; then that memory is mapped elsewhere; MAPS: it sleeps so many times between
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define FIRST UINT64_C(0x100000000000)
#define LIVING 16
#define CHILD_MAPS 32
#define DEEP_CALLS 3000
#define PLACES 2000
#define PLACE_BYTES ((size_t)4 << 20) /* of code; mapped at once */
#define DEEP_NAME 240                 /* bytes of a folder's name and its slash */

static double end_s;
static int program = -1;
static uint64_t state = 88172645463325252u;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* xorl %eax, %eax; then dec and jnz back: about 2^20 rounds; ret */
static const unsigned char spin[] = {0xb8, 0, 0, 4, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3};

/* A file with that code, without a name in a file system. */
static int code_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || write(fd, spin, sizeof(spin)) != sizeof(spin))
		err(1, "memfd_create");
	return fd;
}

/* The same in a file with a long path of such bytes, which is removed at once. */
static int deep_file(char fill)
{
	char path[4000] = "/tmp/map-storm-XXXXXX";
	size_t top = strlen(path), len = top;

	if (!mkdtemp(path))
		err(1, "mkdtemp");
	for (; len + DEEP_NAME < sizeof(path) - 1; len += DEEP_NAME) {
		path[len] = '/';
		memset(path + len + 1, fill, DEEP_NAME - 1);
		path[len + DEEP_NAME] = 0;
		if (mkdir(path, 0700))
			err(1, "mkdir");
	}
	snprintf(path + len, sizeof(path) - len, "/f");
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	if (fd < 0 || write(fd, spin, sizeof(spin)) != sizeof(spin) || unlink(path))
		err(1, "a file with a long path");
	for (;; len -= DEEP_NAME) {
		path[len] = 0;
		if (rmdir(path))
			err(1, "rmdir");
		if (len == top)
			break;
	}
	return fd;
}

static void *map_with(int fd, uint64_t page, int prot)
{
	void *at = mmap((void *)(FIRST + page * PAGE), PAGE, prot, MAP_PRIVATE | MAP_FIXED, fd, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	return at;
}

static void *map_at(int fd, uint64_t page)
{
	return map_with(fd, page, PROT_READ | PROT_EXEC);
}

static void run(void *code)
{
	void (*f)(void);

	memcpy(&f, &code, sizeof(f));
	f();
}

static void map_some(size_t maps)
{
	void *at = NULL;

	for (int i = 0; i < CHILD_MAPS; i++)
		at = map_at(program, next_random() % (2 * maps) * 2);
	run(at);
}

/* Each process ends when its descendants have. */
static void chain(size_t maps)
{
	while (now_s() < end_s) {
		int living = 0;
		pid_t pid = 0;

		while (!pid && living++ < LIVING && now_s() < end_s) {
			pid = fork();
			state += (uint64_t)pid;
			if (!pid)
				map_some(maps);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
		if (living > 1)
			_exit(0);
	}
}

static void names(void)
{
	char name[240];
	uint64_t n = 0;

	for (; now_s() < end_s; n++) {
		snprintf(name, sizeof(name), "%0*llu", (int)sizeof(name) - 1,
			 (unsigned long long)n);
		int fd = code_file(name);
		void *at = map_at(fd, n % 1024 * 2);

		close(fd);
		if (!(n % 64))
			run(at);
	}
	printf("%llu names\n", (unsigned long long)n);
}

static void *rename_self(void *unused)
{
	char name[16];
	uint64_t n = 0;

	while (now_s() < end_s)
		for (int i = 0; i < 64; i++) {
			snprintf(name, sizeof(name), "%015llu", (unsigned long long)n++);
			prctl(PR_SET_NAME, name);
		}
	return unused;
}

static void comms(size_t threads)
{
	pthread_t t;

	for (size_t i = 1; i < threads; i++)
		if (pthread_create(&t, NULL, rename_self, NULL))
			errx(1, "pthread_create");
	rename_self(NULL);
}

static void *thread(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "t%zu", (size_t)arg);
	prctl(PR_SET_NAME, name);
	return NULL;
}

static void threads(void)
{
	pthread_t t;
	size_t n = 0;

	for (; now_s() < end_s; n++) {
		if (!(n % 8) && !fork())
			_exit(0);
		if (!pthread_create(&t, NULL, thread, (void *)n))
			pthread_join(t, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	printf("%zu threads\n", n);
}

static volatile uint64_t steps;

static void call_right(unsigned depth);

/* Chooses the next function by chance; the last call burns CPU. */
__attribute__((noinline)) static void call_left(unsigned depth)
{
	if (depth && next_random() & 1)
		call_left(depth - 1);
	else if (depth)
		call_right(depth - 1);
	else
		for (int i = 0; i < 1 << 18; i++)
			steps++;
	steps++; /* no tail call */
}

__attribute__((noinline)) static void call_right(unsigned depth)
{
	if (depth && next_random() & 1)
		call_right(depth - 1);
	else
		call_left(depth ? depth - 1 : 0);
	steps += 2;
}

#define NOP 0x90

/* mov %r12, %rsp; ret */
static const unsigned char leave[] = {0x4c, 0x89, 0xe4, 0xc3};

/* Runs code that ends with `leave`, on a stack with only frames of other places. */
__attribute__((noinline)) static void run_below(void *code, const unsigned char *from)
{
	uint64_t frames[2 * PLACES];

	for (size_t i = 0; i < PLACES; i++) {
		frames[2 * i] = i + 1 < PLACES ? (uint64_t)&frames[2 * i + 2] : 0;
		frames[2 * i + 1] = (uint64_t)from + next_random() % PLACE_BYTES;
	}
	__asm__ volatile("sub $128, %%rsp; push %%rbp; lea 1f(%%rip), %%rax; push %%rax\n"
			 "mov %%rsp, %%r12; mov %0, %%rbp; mov %0, %%rsp; jmp *%1\n"
			 "1: pop %%rbp; add $128, %%rsp"
			 :
			 : "r"(frames), "r"(code)
			 : "rax", "r12", "memory", "cc");
}

static void places(size_t sleeps)
{
	while (now_s() < end_s) {
		unsigned char *at = mmap((void *)(FIRST + next_random() % (1 << 30) * PAGE),
					 PLACE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			err(1, "mmap");
		memset(at, NOP, PLACE_BYTES);
		memcpy(at + PLACE_BYTES - sizeof(leave), leave, sizeof(leave));
		for (size_t i = 0; i < 16; i++) {
			run_below(at, at);
			for (size_t k = 0; k < sleeps; k++)
				usleep(100);
		}
		munmap(at, PLACE_BYTES);
	}
}

int main(int argc, char **argv)
{
	size_t maps = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	if (argc < 3)
		return 2;
	bool lines = !strcmp(argv[1], "lines"), paths = lines || !strcmp(argv[1], "paths");

	program = paths ? deep_file(lines ? '\n' : '0') : code_file("storm");
	for (size_t i = 0; i < maps && strcmp(argv[1], "places") && strcmp(argv[1], "comms"); i++)
		map_with(program, i * 2, lines ? PROT_READ : PROT_READ | PROT_EXEC);
	end_s = now_s() + atof(argv[2]);
	if (!strcmp(argv[1], "chain") && maps)
		chain(maps);
	else if (!strcmp(argv[1], "names"))
		names();
	else if (!strcmp(argv[1], "comms"))
		comms(maps);
	else if (!strcmp(argv[1], "threads"))
		threads();
	else if (!strcmp(argv[1], "places"))
		places(maps);
	else if (!strcmp(argv[1], "stacks"))
		while (now_s() < end_s)
			call_left(DEEP_CALLS);
	else if (paths)
		while (now_s() < end_s && !usleep(lines ? 10000 : 0))
			run(map_at(program, maps * 2));
	else
		return 2;
	return 0;
}
