/*
 * A miniature JIT: writes machine code into memory, describes it in ./jit-PID.dump like perf's
 * agents, and burns CPU time in it.
 *
 * usage: jit_writer SECONDS [NAME]   NAME replaces jit_first
 *
 *   30 %  jit_first at A           20 %  jit_second at A, over it
 *   10 %  jit_moving at B          15 %  jit_moving at C, moved there
 *   25 %  jit_third at B, the former place of jit_moving
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CODE_BYTES 4096
#define PLACE_BYTES 256

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rcx; 1: dec %rcx; jnz 1b; pop %rbp; ret */
static const unsigned char burn[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9,
				     0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};

static FILE *dump;
static unsigned char *code;
static uint64_t codes;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void put(const void *data, size_t len)
{
	if (fwrite(data, 1, len, dump) != len) {
		perror("jit_writer: the jitdump");
		exit(1);
	}
}

static void u32(uint32_t x)
{
	put(&x, sizeof(x));
}

static void u64(uint64_t x)
{
	put(&x, sizeof(x));
}

static void record(uint32_t type, size_t bytes)
{
	u32(type);
	u32((uint32_t)(16 + bytes));
	u64(now(CLOCK_MONOTONIC));
}

static void begin(void)
{
	char name[32];

	snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
	dump = fopen(name, "w+");
	code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!dump || code == MAP_FAILED ||
	    mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump),
		 0) == MAP_FAILED) {
		perror("jit_writer");
		exit(1);
	}
	u32(0x4A695444);
	u32(1);
	u32(40);
	u32(EM_X86_64);
	u32(0);
	u32((uint32_t)getpid());
	u64(now(CLOCK_MONOTONIC));
	u64(0);
}

static void lines(const unsigned char *at)
{
	static const char file[] = "made.jit", same[] = "\xff";

	record(2, 16 + 16 + sizeof(file) + 16 + sizeof(same));
	u64((uintptr_t)at);
	u64(2);
	u64((uintptr_t)at);
	u32((uint32_t)codes * 100 + 1);
	u32(0);
	put(file, sizeof(file));
	u64((uintptr_t)at + 7);
	u32((uint32_t)codes * 100 + 2);
	u32(3);
	put(same, sizeof(same));
}

static uint64_t load(unsigned char *at, const char *name)
{
	memcpy(at, burn, sizeof(burn));
	codes++;
	lines(at);
	record(0, 40 + strlen(name) + 1 + sizeof(burn));
	u32((uint32_t)getpid());
	u32((uint32_t)getpid());
	u64((uintptr_t)at);
	u64((uintptr_t)at);
	u64(sizeof(burn));
	u64(codes);
	put(name, strlen(name) + 1);
	put(burn, sizeof(burn));
	fflush(dump);
	return codes;
}

static void move(unsigned char *from, unsigned char *to, uint64_t index)
{
	memcpy(to, from, sizeof(burn));
	record(1, 48);
	u32((uint32_t)getpid());
	u32((uint32_t)getpid());
	u64((uintptr_t)to);
	u64((uintptr_t)from);
	u64((uintptr_t)to);
	u64(sizeof(burn));
	u64(index);
	fflush(dump);
}

static void run(unsigned char *at, double seconds)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(seconds * 1e9);
	void (*function)(uint64_t);

	memcpy(&function, &at, sizeof(function));
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		function(100000);
}

int main(int argc, char **argv)
{
	double seconds = argc == 2 || argc == 3 ? strtod(argv[1], NULL) : 0;

	if (seconds <= 0) {
		fprintf(stderr, "usage: jit_writer SECONDS [NAME]\n");
		return 2;
	}
	begin();
	unsigned char *a = code, *b = code + PLACE_BYTES, *c = code + 2 * PLACE_BYTES;

	load(a, argc == 3 ? argv[2] : "jit_first");
	run(a, 0.3 * seconds);
	load(a, "jit_second");
	run(a, 0.2 * seconds);
	uint64_t moving = load(b, "jit_moving");

	run(b, 0.1 * seconds);
	move(b, c, moving);
	run(c, 0.15 * seconds);
	load(b, "jit_third");
	run(b, 0.25 * seconds);
	record(3, 0);
	return fclose(dump) ? 1 : 0;
}
