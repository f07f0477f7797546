#include "symbols/kernel_map.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/reader.h"
#include "symbols/kallsyms.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define KERNEL_MAP_KALLSYMS_MAX ((size_t)1 << 30)
#define KERNEL_MAP_NOTES_MAX ((size_t)1 << 20)

void kernel_map_free(struct kernel_map *k)
{
	intern_free(&k->names);
	vec_free(&k->ranges);
	symbol_provider_free(k->kallsyms);
	*k = (struct kernel_map){0};
}

/* The index of the first range that ends after addr. */
static size_t kernel_map_at(const struct kernel_map *k, uint64_t addr)
{
	size_t low = 0, high = k->ranges.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->ranges.v[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

const struct kernel_map_range *kernel_map_find(const struct kernel_map *k, uint64_t addr)
{
	size_t i = kernel_map_at(k, addr);

	return i < k->ranges.len && k->ranges.v[i].start <= addr ? &k->ranges.v[i] : NULL;
}

static void kernel_map_remove(struct kernel_map *k, size_t i)
{
	memmove(&k->ranges.v[i], &k->ranges.v[i + 1], (k->ranges.len - i - 1) * sizeof(*k->ranges.v));
	k->ranges.len--;
	k->generation++;
}

/* Lays a range over what is there; what sticks out of it on either side is kept. */
static int kernel_map_lay(struct kernel_map *k, const struct kernel_map_range *range)
{
	size_t i = kernel_map_at(k, range->start);

	if (k->ranges.len >= KERNEL_MAP_RANGES_MAX)
		return -E2BIG;
	if (vec_reserve(&k->ranges, 2))
		return -ENOMEM;
	if (i < k->ranges.len && k->ranges.v[i].start < range->start) {
		struct kernel_map_range before = k->ranges.v[i];

		before.end = range->start;
		memmove(&k->ranges.v[i + 1], &k->ranges.v[i], (k->ranges.len - i) * sizeof(*k->ranges.v));
		k->ranges.len++;
		k->ranges.v[i++] = before;
		k->ranges.v[i].start = range->start;
	}
	while (i < k->ranges.len && k->ranges.v[i].end <= range->end)
		kernel_map_remove(k, i);
	if (i < k->ranges.len && k->ranges.v[i].start < range->end)
		k->ranges.v[i].start = range->end;
	memmove(&k->ranges.v[i + 1], &k->ranges.v[i], (k->ranges.len - i) * sizeof(*k->ranges.v));
	k->ranges.v[i] = *range;
	k->ranges.len++;
	k->generation++;
	return 0;
}

/* perf's name of a module: "[name]" from a path "…/name.ko", "name.ko.xz", with "-" as "_"; "[name]" stays. */
static int kernel_map_module_name(struct kernel_map *k, const char *path, uint32_t *ret_name)
{
	const char *base = strrchr(path, '/');
	char buf[256];
	size_t n;

	base = base ? base + 1 : path;
	if (base[0] == '[')
		return intern_str(&k->names, base, ret_name);
	for (n = 0; base[n] && n < sizeof(buf) - 3; n++) {
		if (!strcmp(base + n, ".ko") || !strncmp(base + n, ".ko.", 4))
			break;
		buf[n + 1] = base[n] == '-' ? '_' : base[n];
	}
	buf[0] = '[';
	buf[n + 1] = ']';
	return intern_put(&k->names, buf, n + 2, ret_name);
}

int kernel_map_add(struct kernel_map *k, uint64_t addr, uint64_t len, uint64_t pgoff, const char *name)
{
	struct kernel_map_range range = {.start = addr, .end = addr + len};
	size_t prefix = strlen(KERNEL_MAP_NAME);
	int r;

	if (!strncmp(name, KERNEL_MAP_NAME, prefix)) {
		if (pgoff && strlen(name + prefix) < sizeof(k->ref_name)) {
			k->ref_addr = pgoff;
			strcpy(k->ref_name, name + prefix);
		}
		k->has_kernel = true;
		r = intern_str(&k->names, KERNEL_MAP_NAME, &range.name);
	} else if (name[0] == '/' || name[0] == '[') {
		r = kernel_map_module_name(k, name, &range.name);
	} else {
		return 0;
	}
	/* A recorder that may not see the kernel's addresses writes none. */
	if (r || !addr || range.end <= range.start)
		return r;
	return kernel_map_lay(k, &range);
}

int kernel_map_symbol(struct kernel_map *k, uint64_t addr, uint32_t len, bool unregistered, const char *name)
{
	struct kernel_map_range range = {.start = addr, .end = addr + len, .is_symbol = true};
	const struct kernel_map_range *known = kernel_map_find(k, addr);
	int r;

	if (unregistered) {
		if (known && known->is_symbol && known->start == addr)
			kernel_map_remove(k, (size_t)(known - k->ranges.v));
		return 0;
	}
	if (range.end <= range.start)
		return 0;
	r = intern_str(&k->names, name, &range.name);
	return r ? r : kernel_map_lay(k, &range);
}

int kernel_map_notes_build_id(const void *notes, size_t len, struct image_build_id *ret_build_id)
{
	struct reader r = reader_of(notes, len);

	while (reader_left(&r) >= 12 && !r.failed) {
		uint32_t name_len = reader_u32(&r), desc_len = reader_u32(&r), type = reader_u32(&r);
		const char *name = reader_bytes(&r, (name_len + 3ULL) & ~3ULL);
		const void *desc = reader_bytes(&r, (desc_len + 3ULL) & ~3ULL);

		if (!name || !desc || type != NT_GNU_BUILD_ID || name_len != 4 || memcmp(name, "GNU", 4) ||
		    !desc_len || desc_len > IMAGE_BUILD_ID_MAX)
			continue;
		*ret_build_id = (struct image_build_id){.len = (uint8_t)desc_len};
		memcpy(ret_build_id->bytes, desc, desc_len);
		return 0;
	}
	return -ENOENT;
}

/* 1: the running kernel has the recorded build id; 0: it has another; -ENOENT: one of both is not known. */
static int kernel_map_same_build(const struct kernel_map *k)
{
	struct image_build_id running;
	AUTO_FREE char *notes = NULL;
	size_t len;

	if (!k->build_id.len || file_read_at(AT_FDCWD, "/sys/kernel/notes", KERNEL_MAP_NOTES_MAX, &notes, &len) ||
	    kernel_map_notes_build_id(notes, len, &running))
		return -ENOENT;
	return running.len == k->build_id.len && !memcmp(running.bytes, k->build_id.bytes, running.len);
}

/* The address of a symbol by its name; text is kallsyms', NUL-terminated. 0: not there. */
static uint64_t kernel_map_addr_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; len && (at = strstr(at, name)); at += len) {
		const char *line = at;

		if (at == text || at[-1] != ' ' || (at[len] != '\n' && at[len]))
			continue;
		while (line > text && line[-1] != '\n')
			line--;
		return strtoull(line, NULL, 16);
	}
	return 0;
}

bool kernel_map_is_running(const struct kernel_map *k)
{
	int same = kernel_map_same_build(k);

	if (same >= 0)
		return same;
	return k->live == KERNEL_MAP_NAMED || k->live == KERNEL_MAP_HIDDEN;
}

int kernel_map_load(struct kernel_map *k)
{
	AUTO_FREE char *text = NULL;
	struct parse_error err;
	uint64_t running;
	size_t len;
	int r, same;

	if (k->live != KERNEL_MAP_NOT_TRIED)
		return 0;
	k->live = KERNEL_MAP_FAILED;
	same = kernel_map_same_build(k);
	if (!same) {
		k->live = KERNEL_MAP_FOREIGN;
		return 0;
	}
	r = file_read_at(AT_FDCWD, "/proc/kallsyms", KERNEL_MAP_KALLSYMS_MAX, &text, &len);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = kallsyms_parse(text, len, &k->kallsyms, &err);
	if (r == -EACCES)
		k->live = KERNEL_MAP_HIDDEN;
	if (r)
		return r == -ENOMEM ? r : 0;
	k->live = KERNEL_MAP_NAMED;
	running = k->ref_addr ? kernel_map_addr_of(text, k->ref_name) : 0;
	if (!running)
		return 0;
	k->delta = running - k->ref_addr;
	if (k->delta && same < 0)
		k->live = KERNEL_MAP_FOREIGN;
	return 0;
}

int kernel_map_ask(struct kernel_map *k, uint64_t addr, uint64_t time_ns, struct symbol *ret_symbol,
		   const char **ret_module)
{
	struct symbol s;
	int r;

	if (k->live != KERNEL_MAP_NAMED)
		return -ENOENT;
	r = symbol_provider_find(k->kallsyms, addr + k->delta, time_ns, &s);
	if (r)
		return r;
	*ret_module = kallsyms_module(k->kallsyms, addr + k->delta);
	s.base -= k->delta;
	s.start -= k->delta;
	s.end -= k->delta;
	*ret_symbol = s;
	return 0;
}
