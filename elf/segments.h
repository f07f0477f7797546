/* Loaded segments of an ELF file, and the conversion between file offsets and vaddrs. */
#ifndef ELF_SEGMENTS_H
#define ELF_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

/* One PT_LOAD segment. The byte at vaddr + n is at file_off + n. */
struct elf_segment {
	uint64_t vaddr, file_off, file_bytes, mem_bytes;
	uint32_t flags; /* PF_* */
};

/*
 * Finds the vaddr of a file offset. If several segments hold it, as in odd or hostile files, an
 * executable one wins, because samples are of executed code. Then the lowest vaddr wins. Returns 0
 * or -ENOENT.
 */
int elf_segments_vaddr(const struct elf_segment *segments, size_t n, uint64_t file_off,
		       uint64_t *ret_vaddr);

/*
 * Finds the file offset of a vaddr. If several segments cover it in memory, the first one in the
 * file wins, as in perf (symbol-elf.c elf_read_program_header). Returns 0 or -ENOENT.
 */
int elf_segments_file_off(const struct elf_segment *segments, size_t n, uint64_t vaddr,
			  uint64_t *ret_file_off);

#endif
