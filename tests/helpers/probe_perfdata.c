/*
 * Writes a perf.data with one sample at each given address. So `perf script` prints the name of any
 * address of any file.
 *
 * usage: probe_perfdata OUT FILE          < file offsets, one in hexadecimal per line
 *        probe_perfdata -k START END OUT  < kernel addresses
 *
 * Samples of FILE are at PROBE_BASE + offset. Format: Linux tools/perf/Documentation/perf.data-
 * file-format.txt.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_BASE 0x100000000000ULL
#define PROBE_PID 4242

struct section {
	uint64_t offset, bytes;
};

struct file_header {
	char magic[8];
	uint64_t bytes, attr_bytes;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

struct file_attr {
	struct perf_event_attr attr;
	struct section ids;
};

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
};

struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char name[4096];
};

struct kernel_mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	char name[32];
};

static FILE *out;

static void put(const void *data, size_t len)
{
	if (fwrite(data, 1, len, out) != len) {
		perror("write");
		exit(1);
	}
}

static void put_file_map(const char *path)
{
	struct mmap_record m = {
		.header = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER},
		.pid = PROBE_PID,
		.tid = PROBE_PID,
		.addr = PROBE_BASE,
		.len = 1ULL << 40,
		.prot = 5,
		.flags = 2,
	};
	size_t name = strnlen(path, sizeof(m.name) - 1);

	memcpy(m.name, path, name);
	m.header.size = (uint16_t)(sizeof(m) - sizeof(m.name) + ((name + 8) & ~(size_t)7));
	put(&m, m.header.size);
}

static void put_kernel_map(uint64_t start, uint64_t end)
{
	struct kernel_mmap_record m = {
		.header = {.type = PERF_RECORD_MMAP,
			   .misc = PERF_RECORD_MISC_KERNEL,
			   .size = sizeof(m)},
		.pid = UINT32_MAX,
		.addr = start,
		.len = end - start,
		.pgoff = start,
		.name = "[kernel.kallsyms]_text",
	};

	put(&m, sizeof(m));
}

int main(int argc, char **argv)
{
	int kernel = argc == 5 && !strcmp(argv[1], "-k");
	const char *path = kernel ? argv[4] : argc == 3 ? argv[1] : NULL;
	struct file_header h = {
		.magic = "PERFILE2", .bytes = sizeof(h), .attr_bytes = sizeof(struct file_attr)};
	struct file_attr attr = {
		.attr = {.type = PERF_TYPE_SOFTWARE,
			 .size = sizeof(attr.attr),
			 .config = PERF_COUNT_SW_CPU_CLOCK,
			 .sample_period = 1,
			 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME}};
	char line[64];
	uint64_t time = 1;

	out = path ? fopen(path, "wb") : NULL;
	if (!out) {
		fprintf(stderr, "usage: probe_perfdata OUT FILE | -k START END OUT\n");
		return 2;
	}
	h.attrs = (struct section){sizeof(h), sizeof(attr)};
	h.data.offset = sizeof(h) + sizeof(attr);
	put(&h, sizeof(h));
	put(&attr, sizeof(attr));
	if (kernel)
		put_kernel_map(strtoull(argv[2], NULL, 16), strtoull(argv[3], NULL, 16));
	else
		put_file_map(argv[2]);
	while (fgets(line, sizeof(line), stdin)) {
		struct sample s = {
			.header = {.type = PERF_RECORD_SAMPLE,
				   .misc = kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
				   .size = sizeof(s)},
			.ip = strtoull(line, NULL, 16) + (kernel ? 0 : PROBE_BASE),
			.pid = PROBE_PID,
			.tid = PROBE_PID,
			.time = time++,
		};

		put(&s, sizeof(s));
	}
	h.data.bytes = (uint64_t)ftell(out) - h.data.offset;
	if (fseek(out, 0, SEEK_SET))
		return 1;
	put(&h, sizeof(h));
	return fclose(out) ? 1 : 0;
}
