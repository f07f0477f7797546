/*
 * The kernel's side of a recording: where the kernel image, its modules and what it made at run time (BPF programs,
 * trampolines) lay, from records; and the running kernel's names, where it is the kernel that was recorded.
 */
#ifndef SYMBOLS_KERNEL_MAP_H
#define SYMBOLS_KERNEL_MAP_H

#include "base/intern.h"
#include "symbols/image.h"
#include "symbols/kernel_ranges.h"
#include "symbols/symbol.h"

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_MAP_NAME "[kernel.kallsyms]"

enum kernel_map_live {
	KERNEL_MAP_NOT_TRIED,
	KERNEL_MAP_NAMED,
	KERNEL_MAP_HIDDEN, /* kptr_restrict or paranoid settings show all addresses as 0, or let nobody open it */
	KERNEL_MAP_FOREIGN, /* the running kernel is not the one that was recorded */
	KERNEL_MAP_FAILED,
};

/* A zeroed struct is empty. */
struct kernel_map {
	struct intern names; /* "[kernel.kallsyms]", "[ext4]", or a KSYMBOL's name */
	struct kernel_ranges ranges; /* their names are in names */
	uint32_t generation; /* changes whenever an address may have another answer than before */
	bool has_kernel; /* a record told where the kernel image lay */
	uint64_t ref_addr; /* the address of the symbol ref_name while recording; 0: not known */
	char ref_name[16]; /* "_text" or "_stext" */
	struct image_build_id build_id; /* of the recorded kernel */
	enum kernel_map_live live;
	struct symbol_provider *kallsyms; /* of the running kernel, by running addresses; they hold where live is KERNEL_MAP_NAMED */
	struct kernel_map_loading *loading; /* private: a thread that reads them meanwhile; NULL: there is none */
	uint64_t delta; /* running address less recorded address */
};

void kernel_map_free(struct kernel_map *k);

/* A map record in kernel mode: the kernel image "[kernel.kallsyms]_text" (pgoff is that symbol's address), a module
 * "/lib/modules/.../ext4.ko.xz" or "[ext4]". 0; -E2BIG; -ENOMEM. */
int kernel_map_add(struct kernel_map *k, uint64_t addr, uint64_t len, uint64_t pgoff, const char *name);

/* A KSYMBOL record. 0; -E2BIG; -ENOMEM. */
int kernel_map_symbol(struct kernel_map *k, uint64_t addr, uint32_t len, bool unregistered, const char *name);

/* The range that covers addr, or NULL. Valid until the next change. */
const struct kernel_range *kernel_map_find(const struct kernel_map *k, uint64_t addr);

/*
 * Starts to read the running kernel's names on a thread of its own, where it can be the recorded one: that takes as long as
 * tens of thousands of samples. kernel_map_load waits for it. true: it runs; false: kernel_map_load will read them itself.
 */
bool kernel_map_begin(struct kernel_map *k);

/* Loads the running kernel's names, once, where it is the recorded one. 0 or -ENOMEM; what came of it is in k->live. */
int kernel_map_load(struct kernel_map *k);

/* Whether the kernel that runs now is the recorded one, as far as build id or the address of its first symbol tell. 1,
 * 0 or -ENOMEM. */
int kernel_map_is_running(const struct kernel_map *k);

/* Finds the GNU build id among ELF notes (the content of /sys/kernel/notes). 0 or -ENOENT. */
int kernel_map_notes_build_id(const void *notes, size_t len, struct image_build_id *ret_build_id);

#endif
