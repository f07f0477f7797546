/*
 * Writes a perf.data with many processes.
 *
 * many_processes FILE PROCESSES SAMPLES_OF_EACH: short processes, as a build makes them. Each maps
 * this program and libc, a missing file, the vdso and memory with code of no file. It is sampled in
 * all of them and in the kernel.
 *
 * many_processes FILE chain FORKS MAPS: a process with that many maps, and a chain of forks, each
 * from the one before. Each child maps one more file and is sampled there, in the newest map of its
 * parent, and in the first map. Samples carry registers and a stack, so they are unwound too.
 *
 * many_processes FILE overlap MAPS: a process whose maps overlap one another in many ways.
 */
#include "tests/unit/perfdata_builder.h"

#include <err.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define FIRST_PID 3000000 /* above kernel.pid_max of most machines, so no process has one */
#define KERNEL_START 0xffffffff81000000ULL
#define KERNEL_BYTES 0x1000000ULL
#define MAP_BYTES 0x1000ULL
#define STACK_START 0x7ffd00000000ULL
#define STACK_BYTES 32ULL

struct mapped {
	const char *path;
	uint64_t start, bytes;
	struct stat st;
};

static uint64_t now_ns = 1000000;

/* Ends a record with PID, TID and time: sample_id_all with PERF_SAMPLE_TID and PERF_SAMPLE_TIME. */
static void end_record(struct build *b, uint32_t pid)
{
	build_u32(b, pid);
	build_u32(b, pid);
	build_u64(b, now_ns++);
	build_record_end(b);
}

static void put_kernel(struct build *b)
{
	build_record(b, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	build_u32(b, UINT32_MAX);
	build_u32(b, 0);
	build_u64(b, KERNEL_START);
	build_u64(b, KERNEL_BYTES);
	build_u64(b, KERNEL_START);
	build_text(b, "[kernel.kallsyms]_text");
	end_record(b, 0);
}

static void put_map(struct build *b, uint32_t pid, const struct mapped *m, uint64_t pgoff)
{
	build_record(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	build_u32(b, pid);
	build_u32(b, pid);
	build_u64(b, m->start);
	build_u64(b, m->bytes);
	build_u64(b, pgoff);
	build_u32(b, major(m->st.st_dev));
	build_u32(b, minor(m->st.st_dev));
	build_u64(b, m->st.st_ino);
	build_u64(b, 0);
	build_u32(b, PROT_READ | PROT_EXEC);
	build_u32(b, MAP_PRIVATE);
	build_text(b, m->path);
	end_record(b, pid);
}

static void put_fork(struct build *b, uint32_t pid, uint32_t parent)
{
	build_record(b, PERF_RECORD_FORK, 0);
	build_u32(b, pid);
	build_u32(b, parent);
	build_u32(b, pid);
	build_u32(b, parent);
	build_u64(b, now_ns);
	end_record(b, pid);
}

static void put_comm(struct build *b, uint32_t pid)
{
	build_record(b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	build_u32(b, pid);
	build_u32(b, pid);
	build_text(b, "many");
	end_record(b, pid);
}

static void put_exit(struct build *b, uint32_t pid)
{
	build_record(b, PERF_RECORD_EXIT, 0);
	build_u32(b, pid);
	build_u32(b, 1);
	build_u32(b, pid);
	build_u32(b, 1);
	build_u64(b, now_ns);
	end_record(b, pid);
}

/*
 * A sample with these user frames, the registers of the first one, and a stack of zeros. The
 * registers are bp, sp and ip of x86-64.
 */
static void put_unwindable(struct build *b, uint32_t pid, const uint64_t *ips, size_t n)
{
	build_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	build_u64(b, ips[0]);
	build_u32(b, pid);
	build_u32(b, pid);
	build_u64(b, now_ns++);
	build_u64(b, 1);
	build_u64(b, 1 + n);
	build_u64(b, PERF_CONTEXT_USER);
	for (size_t i = 0; i < n; i++)
		build_u64(b, ips[i]);
	build_u64(b, PERF_SAMPLE_REGS_ABI_64);
	build_u64(b, STACK_START + 8);
	build_u64(b, STACK_START);
	build_u64(b, ips[0]);
	build_u64(b, STACK_BYTES);
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		build_u64(b, 0);
	build_u64(b, STACK_BYTES);
	build_record_end(b);
}

/* A sample with a kernel part and one frame in each map. */
static void put_sample(struct build *b, uint32_t pid, const struct mapped *maps, size_t n,
		       uint64_t nth)
{
	build_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	build_u64(b, KERNEL_START + 64 + nth % 1000 * 16);
	build_u32(b, pid);
	build_u32(b, pid);
	build_u64(b, now_ns++);
	build_u64(b, 1);
	build_u64(b, 3 + n);
	build_u64(b, PERF_CONTEXT_KERNEL);
	build_u64(b, KERNEL_START + 64 + nth % 1000 * 16);
	build_u64(b, PERF_CONTEXT_USER);
	for (size_t i = 0; i < n; i++)
		build_u64(b, maps[i].start + (0x1000 + nth % 1000 * 8) % maps[i].bytes);
	build_record_end(b);
}

/* The kernel's build id, which no kernel has: HEADER_BUILD_ID of perf. */
static void put_features(struct build *b)
{
	static const unsigned char id[24] = {0xfe, 0xed};
	const unsigned int feature = PERFDATA_BUILD_ID;
	struct build content = {0};

	build_record(&content, 0, PERF_RECORD_MISC_KERNEL);
	build_u32(&content, UINT32_MAX);
	build_put(&content, id, sizeof(id));
	build_text(&content, "[kernel.kallsyms]");
	build_record_end(&content);
	build_features(b, &feature, &content, 1);
	build_free(&content);
}

static const char *libc_path(void)
{
	static char path[4096];
	char line[4096];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "libc.so") &&
		    sscanf(line, "%*s %*s %*s %*s %*s %4095s", path) == 1)
			break;
	if (f)
		fclose(f);
	return path[0] ? path : "/proc/self/exe";
}

static void write_file(const char *path, const struct build *b)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t at = 0; at < b->len;) {
		ssize_t n = fd < 0 ? -1 : write(fd, b->bytes + at, b->len - at);

		if (n <= 0)
			err(1, "%s", path);
		at += (size_t)n;
	}
	close(fd);
}

/* Map `nth` of the chain: pages of one file, with a gap after each. */
static void put_chain_map(struct build *b, uint32_t pid, uint64_t nth)
{
	struct mapped m = {"/nowhere/missing.so", (1 + nth) * 2 * MAP_BYTES, MAP_BYTES, {0}};

	put_map(b, pid, &m, nth * MAP_BYTES);
}

static void put_chain(struct build *b, uint32_t forks, uint32_t maps)
{
	put_comm(b, FIRST_PID);
	for (uint32_t i = 0; i < maps; i++)
		put_chain_map(b, FIRST_PID, i);
	for (uint32_t i = 1; i <= forks; i++) {
		uint64_t newest = (uint64_t)(maps + i) * 2 * MAP_BYTES;
		const uint64_t ips[] = {newest + 8, newest - 2 * MAP_BYTES + 8, 2 * MAP_BYTES + 8};

		put_fork(b, FIRST_PID + i, FIRST_PID + i - 1);
		put_chain_map(b, FIRST_PID + i, maps + i - 1);
		put_unwindable(b, FIRST_PID + i, ips, sizeof(ips) / sizeof(ips[0]));
	}
}

/* Short and long maps, each at a place that its number determines. */
static void put_overlapping(struct build *b, uint32_t maps)
{
	put_comm(b, FIRST_PID);
	for (uint32_t i = 0; i < maps; i++) {
		uint64_t place = (i * 2654435761u) >> 8, pages = 1 + i % 7 * (i % 1024 ? 1 : 4096);
		struct mapped m = {
			"/nowhere/missing.so", (1 + place) * MAP_BYTES, pages * MAP_BYTES, {0}};
		const uint64_t ips[] = {m.start + 8, m.start + m.bytes - 8, m.start + m.bytes + 8};

		put_map(b, FIRST_PID, &m, i * MAP_BYTES);
		if (!(i % 100))
			put_unwindable(b, FIRST_PID, ips, sizeof(ips) / sizeof(ips[0]));
	}
}

static void put_short_processes(struct build *b, uint32_t processes, uint32_t samples)
{
	static char self[4096];
	struct mapped maps[] = {{self, 0x400000, 0x100000, {0}},
				{libc_path(), 0x7f0000000000, 0x100000, {0}},
				{"/nowhere/missing.so", 0x7f1000000000, 0x100000, {0}},
				{"[vdso]", 0x7f2000000000, 0x2000, {0}},
				{"//anon", 0x7f3000000000, 0x100000, {0}}};
	size_t n = sizeof(maps) / sizeof(maps[0]);

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		err(1, "/proc/self/exe");
	for (size_t i = 0; i < 2; i++)
		if (stat(maps[i].path, &maps[i].st))
			err(1, "%s", maps[i].path);
	put_kernel(b);
	for (uint32_t i = 0; i < processes; i++) {
		put_fork(b, FIRST_PID + i, 1);
		put_comm(b, FIRST_PID + i);
		for (size_t m = 0; m < n; m++)
			put_map(b, FIRST_PID + i, &maps[m], 0);
		for (uint32_t s = 0; s < samples; s++)
			put_sample(b, FIRST_PID + i, maps, n, i + s);
		put_exit(b, FIRST_PID + i);
	}
	put_features(b);
}

int main(int argc, char **argv)
{
	struct build_event event = {.attr = {.type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_CPU_CLOCK,
					     .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
							    PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
							    PERF_SAMPLE_CALLCHAIN,
					     .sample_id_all = 1}};
	bool chain = argc == 5 && !strcmp(argv[2], "chain"),
	     overlap = argc == 4 && !strcmp(argv[2], "overlap");
	struct build b = {0};

	if (!chain && argc != 4)
		errx(2, "usage: many_processes FILE PROCESSES SAMPLES_OF_EACH, "
			"many_processes FILE chain FORKS MAPS or many_processes FILE overlap MAPS");
	if (chain || overlap) {
		event.attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		event.attr.sample_regs_user = 7 << 6;
		event.attr.sample_stack_user = STACK_BYTES;
	}
	build_file(&b, &event, 1);
	if (chain)
		put_chain(&b, (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]));
	else if (overlap)
		put_overlapping(&b, (uint32_t)atoi(argv[3]));
	else
		put_short_processes(&b, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
	if (chain || overlap)
		build_data_end(&b);
	write_file(argv[1], &b);
	build_free(&b);
	return 0;
}
