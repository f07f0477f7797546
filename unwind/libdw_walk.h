/*
 * Walks stacks of architectures for which profcpu has no rules of its own, by libdw: 32-bit
 * programs of x86, and programs of AArch64. Registers and stack come from a sample, the call frame
 * information from libdw_image.h. Code without it is walked by libdw's rule for frame pointers.
 * A damaged file may crash libdw or keep it busy, so libdw_child.h runs this in a process of its
 * own.
 */
#ifndef UNWIND_LIBDW_WALK_H
#define UNWIND_LIBDW_WALK_H

#include "unwind/machine.h"
#include "unwind/walk_state.h"

#include <libelf.h>

#define LIBDW_SPACES_MAX 16 /* address spaces that a walker remembers */

struct libdw_sample {
	const struct machine *machine;
	uint32_t space;       /* id of the state of the address space (struct walk); 0: none */
	const uint64_t *regs; /* registers of the sample, in the order of the mask's bits */
	uint64_t regs_mask;
	struct unwind_memory memory; /* start is set by the walk */
	bool early;                  /* libdw_child.h: end it after LIBDW_CHILD_EARLY_MS */
};

#define LIBDW_NO_IMAGE UINT32_MAX

/* The mapped code at an address. */
struct libdw_code {
	uint64_t start, end; /* of the mapping */
	uint32_t number;     /* of the image */
	Elf *elf;            /* of libdw_image.h; borrowed; NULL: no CFI */
	uint64_t elf_start;  /* libdw_image_start */
};

/* Returns 0; -ENOENT: no code there; -ENOMEM. */
typedef int libdw_find_code_fn(void *ctx, uint64_t addr, struct libdw_code *ret_code);

/* CPU time of a walk without find_code. */
struct libdw_cost {
	uint64_t cpu_ns;
	uint32_t slowest; /* number of the image that took most of it; LIBDW_NO_IMAGE */
};

struct libdw_walk;

/*
 * ELF files of find_code must outlive the walker. *now_in (borrowed) always holds the number of the
 * image whose rules are being read, or LIBDW_NO_IMAGE. Returns 0 or -ENOMEM.
 */
int libdw_walk_new(libdw_find_code_fn *find_code, void *ctx, volatile uint32_t *now_in,
		   struct libdw_walk **ret_walk);
void libdw_walk_free(struct libdw_walk *w);

/*
 * Walks a stack into *walk: its frames, n, end; the other members stay. walk->max limits frames.
 * Returns 0 or -ENOMEM.
 */
int libdw_walk_stack(struct libdw_walk *w, const struct libdw_sample *sample, struct walk *walk,
		     struct libdw_cost *ret_cost);

#endif
