/*
 * Limits the memory of the contents of ELF files, all files of this process together. A target can
 * map many files that are small on disk but large in memory. Each limit is a part of the memory
 * that is left when the limit is first needed. Any thread may call this.
 */
#ifndef ELF_BUDGET_H
#define ELF_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum elf_budget {
	ELF_BUDGET_SECTIONS, /* unpacked sections of CFI and DWARF: an eighth */
	ELF_BUDGET_SYMBOLS,  /* symbols, with the memory to read them, MiniDebugInfo: a quarter */
	ELF_BUDGET_PAGES,    /* pages of CFI that can be read again: an eighth */
	ELF_BUDGET_INLINES,  /* pages and tables of DWARF: a quarter */
	ELF_BUDGET_RULES,    /* rules to unwind that can be made again: a quarter */
	ELF_BUDGET_IMAGES,   /* open images, without what the others count: a quarter */
	ELF_BUDGET_LIBDW,    /* copies of CFI for libdw, here and in its process: a quarter */
	ELF_BUDGETS,
};

/* Takes bytes. Returns 0 or -E2BIG: too few are left, and nothing is taken. */
int elf_budget_take(enum elf_budget budget, uint64_t bytes);

/*
 * The same for bytes that are soon given back. It takes up to three times the limit, but at most
 * three quarters of the memory that is left now.
 */
int elf_budget_take_briefly(enum elf_budget budget, uint64_t bytes);

/* Takes bytes even if too few are left. The caller then frees what it can. */
void elf_budget_add(enum elf_budget budget, uint64_t bytes);

/* Gives back bytes that were taken. */
void elf_budget_give(enum elf_budget budget, uint64_t bytes);

/* The bytes that can be taken. */
uint64_t elf_budget_left(enum elf_budget budget);

/* Whether more than half is taken. */
bool elf_budget_is_low(enum elf_budget budget);

/*
 * Counts bytes of work that hostile files can cause: unpacked ones, those of files that are mostly
 * holes, and those that are searched whole for CFI or the runtime's stub. Names that take long to
 * demangle count, too. All files together keep to ELF_BUDGET_WORK_MAX and ELF_BUDGET_WORK_RATE,
 * of which one takes at most half of what is left. The files of one process leave a part of what
 * they take, ELF_BUDGET_WORK_LEAVES, to others. Up to ELF_BUDGET_WORK_SMALL a process draws on a
 * reserve as large as the whole. False: do not do it; it does not count. Honest files need a few
 * hundredths.
 */
bool elf_budget_work(uint64_t bytes);
#define ELF_BUDGET_WORK_MAX ((uint64_t)1 << 30)   /* about 3 s */
#define ELF_BUDGET_WORK_RATE ((uint64_t)16 << 20) /* more for each second since the first: 5 % */
#define ELF_BUDGET_WORK_LEAVES 8 /* an eighth; so one process takes at most 8/9 of all */
#define ELF_BUDGET_WORK_SMALL ((uint64_t)4 << 20)

/*
 * Counts steps of reading DWARF (dwarf_data.h) by the same rules: ELF_BUDGET_STEPS_MAX for all
 * files, as much again from the reserve, and no more for each second. False: read no further; they
 * do not count.
 */
bool elf_budget_steps(uint64_t steps);
#define ELF_BUDGET_STEPS_MAX ((uint64_t)6 << 30) /* about 30 s */
#define ELF_BUDGET_STEPS_SMALL ((uint64_t)64 << 20)

/* Names the process for whose files this thread works from now on. 0: none; then no share. */
void elf_budget_work_for(int32_t pid);

/* Counts work that was done, because its size was not known before. */
void elf_budget_worked(uint64_t bytes);

/* Sets a limit, for tests. 0: the part of the memory that is left. */
void elf_budget_limit(enum elf_budget budget, uint64_t bytes);

/* Reset the counts, for tests. max: the new limit of steps. */
void elf_budget_reset_work(void);
void elf_budget_reset_steps(uint64_t max);

#endif
