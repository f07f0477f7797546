#include "symbols/symtab/kernel_map.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "base/reader.h"
#include "base/thread.h"
#include "symbols/symtab/kallsyms.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL_MAP_NOTES_MAX ((size_t)1 << 20)

/* The thread that reads kallsyms, and its result. */
struct kernel_map_loading {
	pthread_t thread;
	struct symbol_provider *kallsyms;
	int error; /* of kallsyms_load */
};

static void kernel_map_wait(struct kernel_map *k, struct kernel_map_loading *ret_loading)
{
	pthread_join(k->loading->thread, NULL);
	*ret_loading = *k->loading;
	free(TAKE_PTR(k->loading));
}

void kernel_map_free(struct kernel_map *k)
{
	struct kernel_map_loading left = {0};

	if (k->loading)
		kernel_map_wait(k, &left);
	symbol_provider_free(left.kallsyms);
	intern_free(&k->names);
	kernel_ranges_free(&k->ranges);
	symbol_provider_free(k->kallsyms);
	*k = (struct kernel_map){0};
}

const struct kernel_range *kernel_map_find(const struct kernel_map *k, uint64_t addr)
{
	return kernel_ranges_find(&k->ranges, addr);
}

static int kernel_map_add_range(struct kernel_map *k, const struct kernel_range *range)
{
	int r = kernel_ranges_add(&k->ranges, range);

	k->generation += !r;
	k->refused += r == -E2BIG;
	return r == -E2BIG ? 0 : r;
}

/*
 * Intern perf's name of a module: "[name]" for "…/name.ko" or "name.ko.xz", with "_" for "-".
 * "[name]" stays.
 */
static int kernel_map_module_name(struct kernel_map *k, const char *path, uint32_t *ret_name)
{
	const char *base = path_base(path);
	char buf[256];
	size_t n;

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

int kernel_map_add(struct kernel_map *k, uint64_t addr, uint64_t len, uint64_t pgoff,
		   const char *name)
{
	struct kernel_range range = {.start = addr, .end = addr + len};
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
	/* A recorder that cannot see the kernel's addresses writes 0. */
	if (r || !addr || range.end <= range.start)
		return r;
	return kernel_map_add_range(k, &range);
}

int kernel_map_symbol(struct kernel_map *k, uint64_t addr, uint32_t len, bool unregistered,
		      const char *name)
{
	struct kernel_range range = {.start = addr, .end = addr + len, .is_symbol = true};
	const struct kernel_range *known = kernel_map_find(k, addr);
	int r;

	if (unregistered) {
		if (known && known->is_symbol && known->start == addr) {
			kernel_ranges_remove(&k->ranges, known);
			k->generation++;
		}
		return 0;
	}
	if (range.end <= range.start)
		return 0;
	r = intern_str(&k->names, name, &range.name);
	return r ? r : kernel_map_add_range(k, &range);
}

int kernel_map_notes_build_id(const void *notes, size_t len, struct build_id *ret_build_id)
{
	struct reader r = reader_of(notes, len);

	while (reader_left(&r) >= 12 && !r.failed) {
		uint32_t name_len = reader_u32(&r), desc_len = reader_u32(&r),
			 type = reader_u32(&r);
		const char *name = reader_bytes(&r, (name_len + 3ULL) & ~3ULL);
		const void *desc = reader_bytes(&r, (desc_len + 3ULL) & ~3ULL);

		if (!name || !desc || type != NT_GNU_BUILD_ID || name_len != 4 ||
		    memcmp(name, "GNU", 4) || !desc_len || desc_len > BUILD_ID_MAX)
			continue;
		*ret_build_id = (struct build_id){.len = (uint8_t)desc_len};
		memcpy(ret_build_id->bytes, desc, desc_len);
		return 0;
	}
	return -ENOENT;
}

/* Reads the running kernel's build id, once. */
static void kernel_map_read_running(struct kernel_map *k)
{
	AUTO_FREE char *notes = NULL;
	size_t len;

	if (k->has_running)
		return;
	k->has_running = true;
	if (!file_read_at(AT_FDCWD, "/sys/kernel/notes", KERNEL_MAP_NOTES_MAX, &notes, &len))
		kernel_map_notes_build_id(notes, len, &k->running);
}

/*
 * Returns 1 if the running kernel has the recorded build id, 0 if it has another, -ENOENT if one of
 * them is unknown.
 */
static int kernel_map_same_build(struct kernel_map *k)
{
	if (!k->build_id.len)
		return -ENOENT;
	kernel_map_read_running(k);
	if (!k->running.len)
		return -ENOENT;
	return k->running.len == k->build_id.len &&
	       !memcmp(k->running.bytes, k->build_id.bytes, k->running.len);
}

int kernel_map_is_running(struct kernel_map *k)
{
	int same = kernel_map_same_build(k), r;
	uint64_t running = 0;

	if (same >= 0)
		return same;
	if (!k->ref_addr || k->secret)
		return !access("/proc/kallsyms", R_OK);
	r = kallsyms_find_live(k->ref_name, &running);
	if (r && r != -ENOENT)
		return r == -ENOMEM ? r : 0;
	return !running || running == k->ref_addr;
}

static void *kernel_map_thread(void *arg)
{
	struct kernel_map_loading *l = arg;

	l->error = kallsyms_load(&l->kallsyms, NULL);
	return NULL;
}

bool kernel_map_start_loading(struct kernel_map *k)
{
	sigset_t all, before;
	int r;

	if (k->live != KERNEL_MAP_NOT_TRIED || k->loading || k->secret || !kernel_map_same_build(k))
		return false;
	k->loading = calloc(1, sizeof(*k->loading));
	if (!k->loading)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the main thread handles signals */
	r = thread_start(&k->loading->thread, "kernel-map", kernel_map_thread, k->loading);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		free(TAKE_PTR(k->loading));
	return !r;
}

int kernel_map_load(struct kernel_map *k)
{
	struct kernel_map_loading loaded = {0};
	uint64_t running;
	int same;

	if (k->live != KERNEL_MAP_NOT_TRIED)
		return 0;
	same = kernel_map_same_build(k);
	k->live = KERNEL_MAP_FAILED;
	if (!same) {
		k->live = KERNEL_MAP_FOREIGN;
		return 0;
	}
	if (k->secret) {
		k->live = KERNEL_MAP_HIDDEN;
		return 0;
	}
	if (k->loading)
		kernel_map_wait(k, &loaded);
	else
		kernel_map_thread(&loaded);
	if (loaded.error == -EACCES)
		k->live = KERNEL_MAP_HIDDEN;
	if (loaded.error)
		return loaded.error == -ENOMEM ? -ENOMEM : 0;
	k->kallsyms = loaded.kallsyms;
	k->live = KERNEL_MAP_NAMED;
	running = k->ref_addr ? kallsyms_addr_of(k->kallsyms, k->ref_name) : 0;
	if (!running)
		return 0;
	k->delta = running - k->ref_addr;
	if (k->delta && same < 0)
		k->live = KERNEL_MAP_FOREIGN;
	return 0;
}
