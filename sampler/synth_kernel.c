/*
 * Locations of the kernel and its modules, as MMAP records in perf's form. The kernel is
 * "[kernel.kallsyms]_text", with the address of _text as its offset. Readers compute the relocation
 * of the kernel from that offset.
 */
#include "sampler/synth_buf.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Enough for _text and _stext, which follow the per-CPU symbols at the start. */
#define KALLSYMS_HEAD ((size_t)64 << 10)
#define KALLSYMS_MAX ((size_t)64 << 20)
#define MODULES_MAX ((size_t)4 << 20)

struct body_mmap {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
};
_Static_assert(sizeof(struct body_mmap) == 32, "record layout");

static int put_kernel_map(struct synth_buf *b, uint64_t start, uint64_t end, uint64_t pgoff,
			  const char *name)
{
	struct body_mmap body = {UINT32_MAX, 0, start, end - start, pgoff};

	return synth_buf_put(b, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &body, sizeof(body),
			     name, strlen(name));
}

/* Returns the address of a symbol in lines "ADDRESS TYPE NAME\n"; 0: missing or hidden. */
static uint64_t symbol_addr(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = text; (p = strstr(p, name)); p += len) {
		if ((p[len] != '\n' && p[len] != '\t') || p - text < 4 || p[-1] != ' ' ||
		    p[-3] != ' ')
			continue;
		const char *line = p - 3;

		while (line > text && line[-1] != '\n')
			line--;
		return strtoull(line, NULL, 16);
	}
	return 0;
}

static char *read_proc(const struct sampler *s, const char *name, size_t max, bool head_only)
{
	char path[PATH_MAX], *text = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/%s", sampler_proc(&s->options), name);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (!head_only)
		return file_read_fd(fd, max, &text, &len) ? NULL : text;
	text = malloc(max + 1);
	while (text && len < max) {
		ssize_t n = read(fd, text + len, max - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (text)
		text[len] = 0;
	return text;
}

/* Size of "Kernel code" in /proc/iomem; faster than reading all of kallsyms for _etext. 0: hidden.
 */
static uint64_t code_bytes(const struct sampler *s)
{
	AUTO_FREE char *text = read_proc(s, "iomem", MODULES_MAX, false);
	char *p = text ? strstr(text, " : Kernel code") : NULL;
	unsigned long long first, last;

	if (!p)
		return 0;
	while (p > text && p[-1] != '\n')
		p--;
	if (sscanf(p, " %llx-%llx", &first, &last) != 2 || last <= first)
		return 0;
	return last - first + 1;
}

static int put_modules(struct synth_buf *b)
{
	AUTO_FREE char *text = read_proc(b->s, "modules", MODULES_MAX, false);
	char name[64], path[72], *line, *next = text;
	unsigned long long size, addr;
	int r = 0;

	while (!r && (line = strsep(&next, "\n"))) {
		/* NAME SIZE REFERENCES USERS STATE ADDRESS */
		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &size, &addr) != 3 || !addr ||
		    !size)
			continue;
		snprintf(path, sizeof(path), "[%s]", name);
		r = put_kernel_map(b, addr, addr + size, 0, path);
	}
	return r;
}

int synth_kernel(struct synth_buf *b)
{
	AUTO_FREE char *head = read_proc(b->s, "kallsyms", KALLSYMS_HEAD, true);
	uint64_t text = head ? symbol_addr(head, "_text") : 0;
	uint64_t start = head ? symbol_addr(head, "_stext") : 0;

	if (!text || !start)
		return 0; /* hidden (kptr_restrict, CAP_SYSLOG): like perf, write nothing */
	uint64_t bytes = code_bytes(b->s), end = bytes ? text + bytes : 0;

	if (!end) {
		AUTO_FREE char *all = read_proc(b->s, "kallsyms", KALLSYMS_MAX, false);

		end = all ? symbol_addr(all, "_etext") : 0;
	}
	if (end <= start)
		return 0;
	int r = put_kernel_map(b, start, end, text, "[kernel.kallsyms]_text");

	return r ? r : put_modules(b);
}
