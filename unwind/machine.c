#include "unwind/machine.h"

#include "base/vec.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

static const struct machine machines[MACHINES] = {
	{.arch = "x86_64",
	 .abi = PERF_SAMPLE_REGS_ABI_32,
	 .elf = EM_386,
	 .word = 4,
	 .nregs = 9,
	 .perf_ip = 8,
	 .perf_sp = 7,
	 .perf_fp = 6,
	 .dwarf_sp = 4,
	 .dwarf_fp = 5,
	 .perf = {0, 2, 3, 1, 7, 6, 5, 4, 8},
	 .addr_max = UINT32_MAX},
	{.arch = "aarch64",
	 .abi = PERF_SAMPLE_REGS_ABI_64,
	 .elf = EM_AARCH64,
	 .word = 8,
	 .nregs = 32,
	 .perf_ip = 32,
	 .perf_sp = 31,
	 .perf_fp = 29,
	 .ip_apart = true,
	 .dwarf_sp = 31,
	 .dwarf_fp = 29,
	 .perf = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
		  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
	 .addr_max = UINT64_MAX >> 16},
};

const struct machine *machine_of(const char *arch, uint64_t abi)
{
	for (size_t i = 0; i < MACHINES; i++)
		if (!strcmp(machines[i].arch, arch) && machines[i].abi == abi)
			return &machines[i];
	return NULL;
}

const struct machine *machine_at(size_t number)
{
	return &machines[number];
}

size_t machine_number(const struct machine *machine)
{
	return (size_t)(machine - machines);
}

bool machine_register(const uint64_t *regs, uint64_t mask, uint8_t bit, uint64_t *ret_value)
{
	if (!(mask >> bit & 1))
		return false;
	*ret_value = regs[__builtin_popcountll(mask & ((UINT64_C(1) << bit) - 1))];
	return true;
}

int machine_walk_sampled(const struct machine *machine, const uint64_t *regs, uint64_t mask,
			 enum walk_end end, struct walk *walk)
{
	struct walk_frame frame = {.how = WALK_RULE, .exact = true};

	walk->n = 0;
	walk->end = (uint8_t)end;
	walk->edge = WALK_START;
	if (!machine_register(regs, mask, machine->perf_ip, &frame.ip))
		return 0;
	if (!walk->cap && vec_grow((void **)&walk->frames, &walk->cap, sizeof(frame), 1))
		return -ENOMEM;
	walk->frames[walk->n++] = frame;
	return 0;
}
