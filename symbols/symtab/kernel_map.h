/*
 * The kernel in a recording: the places of its image, its modules and its run-time code (BPF
 * programs, trampolines), from records. Also the names of the running kernel, if it is the recorded
 * one.
 */
#ifndef SYMBOLS_SYMTAB_KERNEL_MAP_H
#define SYMBOLS_SYMTAB_KERNEL_MAP_H

#include "base/intern.h"
#include "symbols/core/symbol.h"
#include "symbols/symtab/image.h"
#include "symbols/symtab/kernel_ranges.h"

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_MAP_NAME "[kernel.kallsyms]"

enum kernel_map_live {
	KERNEL_MAP_NOT_TRIED,
	KERNEL_MAP_NAMED,
	/* kptr_restrict or perf_event_paranoid shows all addresses as 0 or denies access */
	KERNEL_MAP_HIDDEN,
	KERNEL_MAP_FOREIGN, /* the running kernel is not the recorded one */
	KERNEL_MAP_FAILED,
};

/* A zeroed struct is empty. */
struct kernel_map {
	struct intern names;         /* "[kernel.kallsyms]", "[ext4]", or a KSYMBOL's name */
	struct kernel_ranges ranges; /* their names are in names */
	uint64_t refused;            /* ranges that were not added: over KERNEL_RANGES_MAX */
	uint32_t generation;         /* changes whenever an address may get another symbol */
	bool has_kernel;             /* a record gave the place of the kernel image */
	uint64_t ref_addr;           /* recorded address of the symbol ref_name; 0: unknown */
	char ref_name[16];           /* "_text" or "_stext" */
	struct build_id build_id;    /* of the recorded kernel */
	/* The author of the addresses may not know where the running kernel is: do not name them.
	 */
	bool secret;
	enum kernel_map_live live;
	/* The running kernel's symbols by running addresses; valid if live is KERNEL_MAP_NAMED */
	struct symbol_provider *kallsyms;
	/* Private: a thread that reads kallsyms; NULL: none */
	struct kernel_map_loading *loading;
	/* Private: the running kernel's; valid if has_running. Its len is 0 if it is unknown. */
	struct build_id running;
	bool has_running;
	uint64_t delta; /* running address less recorded address */
};

void kernel_map_free(struct kernel_map *k);

/*
 * Adds a map record of kernel mode. name is "[kernel.kallsyms]_text" for the kernel image (pgoff is
 * that symbol's address), or "/lib/modules/.../ext4.ko.xz" or "[ext4]" for a module. Ranges over
 * KERNEL_RANGES_MAX are refused and counted. Returns 0, -E2BIG (the name is too long) or -ENOMEM.
 */
int kernel_map_add(struct kernel_map *k, uint64_t addr, uint64_t len, uint64_t pgoff,
		   const char *name);

/* Adds a KSYMBOL record. As kernel_map_add. */
int kernel_map_symbol(struct kernel_map *k, uint64_t addr, uint32_t len, bool unregistered,
		      const char *name);

/* The range that covers addr, or NULL. Valid until the next change. */
const struct kernel_range *kernel_map_find(const struct kernel_map *k, uint64_t addr);

/*
 * Starts a thread that reads the running kernel's names, if that may be the recorded kernel.
 * Reading takes as long as tens of thousands of samples. kernel_map_load waits for the thread.
 * Returns true if the thread runs; otherwise kernel_map_load reads the names itself.
 */
bool kernel_map_start_loading(struct kernel_map *k);

/*
 * Loads the running kernel's names once, if it is the recorded kernel. Sets k->live to the result.
 * Returns 0 or -ENOMEM.
 */
int kernel_map_load(struct kernel_map *k);

/*
 * Whether the running kernel is the recorded one, by build id or by the address of its first
 * symbol. Returns 1, 0 or -ENOMEM.
 */
int kernel_map_is_running(struct kernel_map *k);

/* Finds the GNU build id in ELF notes (the content of /sys/kernel/notes). Returns 0 or -ENOENT. */
int kernel_map_notes_build_id(const void *notes, size_t len, struct build_id *ret_build_id);

#endif
