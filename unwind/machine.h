/*
 * Architectures for whose stacks profcpu has no rules of its own: where samples and DWARF have
 * their registers. base/arch.h describes the architecture with own rules.
 *
 * Sources: Linux uapi/asm/perf_regs.h of x86 and arm64; System V ABI, Intel386 supplement, figure
 * 2.14; DWARF for the Arm 64-bit Architecture, section 4.1.
 */
#ifndef UNWIND_MACHINE_H
#define UNWIND_MACHINE_H

#include "unwind/walk_state.h"

#define MACHINES 2
#define MACHINE_REGS_MAX 32

struct machine {
	const char *arch;                  /* of the recording, as uname(2) names it */
	uint64_t abi;                      /* PERF_SAMPLE_REGS_ABI_* */
	uint16_t elf;                      /* EM_* */
	uint8_t word;                      /* bytes of an address */
	uint8_t nregs;                     /* DWARF registers that libdw needs */
	uint8_t perf_ip, perf_sp, perf_fp; /* bits of a sample's mask */
	bool ip_apart;                     /* the instruction pointer has no DWARF number */
	uint8_t dwarf_sp, dwarf_fp;
	uint8_t perf[MACHINE_REGS_MAX]; /* bit of each DWARF register in a sample's mask */
	uint64_t addr_max;              /* of user addresses */
};

/* The machine of a sample's registers. Static; NULL: unknown, or one with own rules. */
const struct machine *machine_of(const char *arch, uint64_t abi);

/* The machine of a number below MACHINES, and its number. */
const struct machine *machine_at(size_t number);
size_t machine_number(const struct machine *machine);

/* A sample's register, by its bit of the mask. False: the mask lacks it. */
bool machine_register(const uint64_t *regs, uint64_t mask, uint8_t bit, uint64_t *ret_value);

/* Makes the sampled frame, if its address is known, the only one of *walk. Returns 0 or -ENOMEM. */
int machine_walk_sampled(const struct machine *machine, const uint64_t *regs, uint64_t mask,
			 enum walk_end end, struct walk *walk);

#endif
