/*
 * A program with stacks of DEPTH frames in code that it makes. Its perf map names the FUNCTIONS
 * functions, with NAME_BYTES bytes each. Recursion through them keeps frame pointers.
 *
 * usage: deep_names SECONDS NAME_BYTES DEPTH
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS 50
#define PLACE_BYTES 64

/*
 * push %rbp; mov %rsp,%rbp; dec %edi; jz 1f; call NEXT; pop %rbp; ret;
 * 1: mov $0x400000,%ecx; 2: dec %ecx; jnz 2b; pop %rbp; ret
 */
static const unsigned char recurse[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x74, 0x07, 0xe8,
					0,    0,    0,    0,    0x5d, 0xc3, 0xb9, 0,    0,
					0x40, 0,    0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
#define CALL_TARGET 9

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void put_function(unsigned char *code, int i, FILE *map, int name_bytes)
{
	unsigned char *at = code + i * PLACE_BYTES,
		      *next = code + (i + 1) % FUNCTIONS * PLACE_BYTES;
	int32_t rel = (int32_t)(next - (at + CALL_TARGET + 4));

	memcpy(at, recurse, sizeof(recurse));
	memcpy(at + CALL_TARGET, &rel, sizeof(rel));
	fprintf(map, "%llx %x f%02d_", (unsigned long long)(uintptr_t)at, PLACE_BYTES, i);
	for (int k = 4; k < name_bytes; k++)
		fputc('a' + i % 26, map);
	fputc('\n', map);
}

int main(int argc, char **argv)
{
	double seconds = argc == 4 ? strtod(argv[1], NULL) : 0;
	unsigned char *code =
		mmap(NULL, FUNCTIONS * PLACE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");

	if (seconds <= 0 || !map || code == MAP_FAILED) {
		fprintf(stderr, "usage: deep_names SECONDS NAME_BYTES DEPTH, with room in /tmp\n");
		return 2;
	}
	for (int i = 0; i < FUNCTIONS; i++)
		put_function(code, i, map, atoi(argv[2]));
	if (fclose(map))
		return 1;
	for (int i = 0; used() < seconds; i++) {
		unsigned char *at = code + i % FUNCTIONS * PLACE_BYTES;
		void (*function)(int);

		memcpy(&function, &at, sizeof(function));
		function(atoi(argv[3]));
	}
	return 0;
}
