/*
 * A program whose names control terminals: that of its thread, those of its perf map, and one of
 * LONG_BYTES. Burns CPU time in the functions of the map and in plain_name, which the test renames.
 *
 * usage: hostile_names SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CODE_BYTES 4096
#define PLACE_BYTES 256
#define LONG_BYTES 60000

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rcx; 1: dec %rcx; jnz 1b; pop %rbp; ret */
static const unsigned char burn[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9,
				     0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile uint64_t sink;

/* Has external linkage, so that its symbol can be renamed. */
void plain_name(uint64_t n);

__attribute__((noinline)) void plain_name(uint64_t n)
{
	while (n--)
		sink += n;
}

static void run(void (*function)(uint64_t), double seconds)
{
	double end = used() + seconds;

	while (used() < end)
		function(100000);
}

int main(int argc, char **argv)
{
	static char long_name[LONG_BYTES + 1];
	static const char *const names[] = {"map\033[2J\033]0;title\007",
					    "c1\xc2\x9b"
					    "2J\x9b",
					    "order\xe2\x80\xae\r", long_name};
	enum { N = sizeof(names) / sizeof(*names) };
	double seconds = argc == 2 ? strtod(argv[1], NULL) : 0;
	unsigned char *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];

	memset(long_name, 'L', LONG_BYTES);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");

	if (seconds <= 0 || !map || code == MAP_FAILED || prctl(PR_SET_NAME, "co\033[2Jmm\n\xff")) {
		fprintf(stderr, "usage: hostile_names SECONDS, with room in /tmp\n");
		return 2;
	}
	for (int i = 0; i < N; i++) {
		memcpy(code + i * PLACE_BYTES, burn, sizeof(burn));
		fprintf(map, "%llx %zx %s\n",
			(unsigned long long)(uintptr_t)(code + i * PLACE_BYTES), sizeof(burn),
			names[i]);
	}
	if (fclose(map))
		return 1;
	run(plain_name, seconds / (N + 1));
	for (int i = 0; i < N; i++) {
		unsigned char *at = code + i * PLACE_BYTES;
		void (*function)(uint64_t);

		memcpy(&function, &at, sizeof(function));
		run(function, seconds / (N + 1));
	}
	return 0;
}
