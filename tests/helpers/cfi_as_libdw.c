/*
 * Compares the steps of unwind/cfi_table with libdw's, for each row of the CFI of ELF files.
 * Prints a line for each file. Exit status: 1 if any step differs, 2 if a file has no CFI or cannot
 * be read.
 *
 * usage: cfi_as_libdw FILE...
 */
#include "tests/unit/cfi_image.h"
#include "unwind/cfi_table.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (256 << 10)
#define STACK_AT UINT64_C(0x7ffc00001000)
#define DEPTH 64
#define SHOWN 10

struct comparison {
	const char *path;
	struct cfi_table *table;
	Dwarf_CFI *eh_frame, *debug_frame;
	struct unwind_memory memory;
	struct unwind_regs regs;
	uint64_t fdes, rows, plain, full, plt, ends, undecided, more, differ;
};

/* Invented values, the same each time. */
static uint64_t made_up(uint64_t seed)
{
	seed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return seed ^ seed >> 29;
}

/* Applies a libdw operation. False: it is unknown here, or it fails. */
static bool operate(const struct comparison *c, const Dwarf_Op *op, uint64_t cfa, uint64_t *s,
		    size_t *n)
{
	uint8_t a = op->atom;

	if (a >= DW_OP_breg0 && a <= DW_OP_breg16)
		s[(*n)++] = c->regs.v[a - DW_OP_breg0] + op->number;
	else if (a == DW_OP_bregx && op->number < ARCH_REGS)
		s[(*n)++] = c->regs.v[op->number] + op->number2;
	else if (a >= DW_OP_lit0 && a <= DW_OP_lit31)
		s[(*n)++] = (uint64_t)(a - DW_OP_lit0);
	else if (a >= DW_OP_const1u && a <= DW_OP_consts)
		s[(*n)++] = op->number;
	else if (a == DW_OP_call_frame_cfa)
		s[(*n)++] = cfa;
	else if (a == DW_OP_plus_uconst && *n)
		s[*n - 1] += op->number;
	else if (a == DW_OP_deref && *n)
		return unwind_memory_word(&c->memory, s[*n - 1], &s[*n - 1]);
	else if (a == DW_OP_dup && *n)
		s[*n] = s[*n - 1], (*n)++;
	else if (a == DW_OP_drop && *n)
		(*n)--;
	else if (*n < 2)
		return false;
	else if (a == DW_OP_plus)
		(*n)--, s[*n - 1] += s[*n];
	else if (a == DW_OP_minus)
		(*n)--, s[*n - 1] -= s[*n];
	else if (a == DW_OP_and)
		(*n)--, s[*n - 1] &= s[*n];
	else if (a == DW_OP_shl)
		(*n)--, s[*n - 1] <<= s[*n];
	else if (a == DW_OP_ge)
		(*n)--, s[*n - 1] = (int64_t)s[*n - 1] >= (int64_t)s[*n];
	else
		return false;
	return true;
}

/* *ret_is_value: the result is the value itself, not its place. */
static bool value_of(const struct comparison *c, const Dwarf_Op *ops, size_t n, uint64_t cfa,
		     uint64_t *ret_value, bool *ret_is_value)
{
	uint64_t stack[DEPTH + 1];
	size_t depth = 0;

	*ret_is_value = false;
	for (size_t i = 0; i < n; i++) {
		uint8_t a = ops[i].atom;

		if ((a >= DW_OP_reg0 && a <= DW_OP_reg16) || a == DW_OP_regx) {
			uint64_t reg = a == DW_OP_regx ? ops[i].number : (uint64_t)(a - DW_OP_reg0);

			*ret_is_value = true;
			*ret_value = reg < ARCH_REGS ? c->regs.v[reg] : 0;
			return reg < ARCH_REGS && n == 1;
		}
		if (a == DW_OP_stack_value)
			*ret_is_value = true;
		else if (depth == DEPTH || !operate(c, &ops[i], cfa, stack, &depth))
			return false;
	}
	if (!depth)
		return false;
	*ret_value = stack[depth - 1];
	return true;
}

enum libdw_value { UNDECIDED, UNDEFINED, SAME, VALUE };

static enum libdw_value register_by_libdw(const struct comparison *c, Dwarf_Frame *frame, int reg,
					  uint64_t cfa, uint64_t *ret_value)
{
	Dwarf_Op mem[3], *ops;
	bool is_value;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n))
		return UNDECIDED;
	if (!n)
		return ops ? UNDEFINED : SAME;
	if (!value_of(c, ops, n, cfa, ret_value, &is_value))
		return UNDECIDED;
	/* Memory below the stack pointer is not read here (unwind_saved). */
	if (!is_value && reg != ARCH_IP && *ret_value < c->regs.v[ARCH_SP])
		return SAME;
	return is_value || unwind_memory_word(&c->memory, *ret_value, ret_value) ? VALUE
										 : UNDECIDED;
}

static void differs(struct comparison *c, uint64_t vaddr, const char *what, int reg, uint64_t libdw,
		    uint64_t ours)
{
	if (c->differ++ < SHOWN)
		printf("%s: at 0x%" PRIx64 " %s %d: libdw 0x%" PRIx64 ", here 0x%" PRIx64 "\n",
		       c->path, vaddr, what, reg, libdw, ours);
}

static Dwarf_Frame *frame_at(const struct comparison *c, uint64_t vaddr)
{
	Dwarf_Frame *frame;

	if (c->eh_frame && !dwarf_cfi_addrframe(c->eh_frame, vaddr, &frame))
		return frame;
	return c->debug_frame && !dwarf_cfi_addrframe(c->debug_frame, vaddr, &frame) ? frame : NULL;
}

/* The short rule must lead to the same frame as the full step. */
static void compare_rule(struct comparison *c, uint64_t vaddr, const struct unwind_regs *caller)
{
	struct unwind_rule rule;

	if (cfi_table_find(c->table, vaddr, NULL, &rule) || rule.kind == UNWIND_NONE) {
		differs(c, vaddr, "no rule", 0, 0, 0);
		return;
	}
	c->full += rule.kind == UNWIND_FULL;
	c->plain += rule.kind == UNWIND_PLAIN;
	c->plt += rule.kind == UNWIND_PLT;
	c->ends += rule.kind == UNWIND_END;
	if (rule.kind == UNWIND_END && caller->known)
		differs(c, vaddr, "an end before libdw's", 0, 0, caller->known);
	if (rule.kind != UNWIND_PLAIN && rule.kind != UNWIND_PLT)
		return;
	uint64_t cfa = c->regs.v[rule.cfa_reg] + (uint64_t)rule.cfa_add, fp = 0;

	cfa += rule.kind == UNWIND_PLT && (vaddr & 15) >= 11 ? 8 : 0;
	if (caller->v[ARCH_SP] != cfa)
		differs(c, vaddr, "another CFA by the rule:", 0, caller->v[ARCH_SP], cfa);
	bool known = rule.fp == UNWIND_FP_SAME ||
		     (rule.fp == UNWIND_FP_AT &&
		      unwind_saved(&c->memory, &c->regs, ARCH_FP, cfa + (uint64_t)rule.fp_at, &fp));

	fp = rule.fp == UNWIND_FP_SAME ? c->regs.v[ARCH_FP] : fp;
	if (known != (caller->known >> ARCH_FP & 1) || (known && fp != caller->v[ARCH_FP]))
		differs(c, vaddr, "another frame pointer by the rule:", ARCH_FP, caller->v[ARCH_FP],
			fp);
	for (int i = 0; i < ARCH_REGS && !rule.saves; i++)
		if (i != ARCH_FP && i != ARCH_SP && i != ARCH_IP &&
		    (!(caller->known >> i & 1) || caller->v[i] != c->regs.v[i]))
			differs(c, vaddr, "not reported as saved, register", i, caller->v[i],
				c->regs.v[i]);
}

static void compare_register(struct comparison *c, uint64_t vaddr, Dwarf_Frame *frame, int reg,
			     uint64_t cfa, const struct unwind_regs *caller)
{
	uint64_t value = 0;
	bool known = caller->known >> reg & 1;

	switch (register_by_libdw(c, frame, reg, cfa, &value)) {
	case UNDECIDED:
		c->undecided++;
		if (known)
			differs(c, vaddr, "a register unknown to libdw:", reg, 0, caller->v[reg]);
		break;
	case UNDEFINED:
		/* libdw treats registers without a rule as undefined; here they keep their
		 * values. */
		if (known && caller->v[reg] != c->regs.v[reg])
			differs(c, vaddr, "undefined register", reg, 0, caller->v[reg]);
		break;
	case SAME:
		value = c->regs.v[reg];
		/* fall through */
	case VALUE:
		if (!known || caller->v[reg] != value)
			differs(c, vaddr, known ? "register" : "an unknown register:", reg, value,
				caller->v[reg]);
	}
}

static void compare_at(struct comparison *c, uint64_t vaddr, Dwarf_Frame *frame, bool signal)
{
	uint64_t cfa = 0, ip;
	Dwarf_Op *ops;
	bool is_value, ours_signal = false;
	size_t n;

	c->regs.v[ARCH_IP] = vaddr;
	struct unwind_regs caller = c->regs;
	int r = cfi_table_step(c->table, vaddr, &caller, &c->memory, &ours_signal);
	bool has_cfa =
		!dwarf_frame_cfa(frame, &ops, &n) && n && value_of(c, ops, n, 0, &cfa, &is_value);
	enum libdw_value ra = register_by_libdw(c, frame, ARCH_IP, cfa, &ip);

	if (ra == UNDEFINED) {
		if (r || caller.known)
			differs(c, vaddr, "the end", r, 0, caller.known);
		else
			compare_rule(c, vaddr, &caller);
		return;
	}
	if (!has_cfa || ra != VALUE) {
		/* libdw refuses some hand-written CFI. */
		c->undecided += r != 0;
		c->more += !r;
		return;
	}
	if (r) {
		differs(c, vaddr, "no step", r, cfa, 0);
		return;
	}
	if (signal != ours_signal)
		differs(c, vaddr, "signal", 0, signal, ours_signal);
	for (int i = 0; i < ARCH_REGS; i++)
		compare_register(c, vaddr, frame, i, cfa, &caller);
	compare_rule(c, vaddr, &caller);
}

static void compare_fde(struct comparison *c, uint64_t start, uint64_t end)
{
	struct unwind_rule rule;

	c->fdes++;
	for (uint64_t at = start; at < end;) {
		Dwarf_Frame *frame = frame_at(c, at);
		Dwarf_Addr row_start, row_end;
		bool signal;

		if (!frame || dwarf_frame_info(frame, &row_start, &row_end, &signal) < 0 ||
		    row_end <= at) {
			if (!cfi_table_find(c->table, at, NULL, &rule))
				differs(c, at, "a row unknown to libdw: kind", rule.kind, 0, 0);
			free(frame);
			return;
		}
		row_end = row_end < end ? row_end : end;
		compare_at(c, at, frame, signal);
		if (row_end - at > 1)
			compare_at(c, row_end - 1, frame, signal);
		if (row_end - at > 12)
			compare_at(c, at + 11, frame, signal);
		c->rows++;
		at = row_end;
		free(frame);
	}
}

/* FDEs as libdw's reader of entries finds them. */
static uint64_t count_fdes(Elf *elf, const char *wanted, bool eh)
{
	size_t names;
	uint64_t n = 0;
	Elf_Scn *scn = NULL;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr h;
		const char *name = gelf_getshdr(scn, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;

		if (!name || strcmp(name, wanted) != 0 || h.sh_type == SHT_NOBITS)
			continue;
		if (h.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		Dwarf_CFI_Entry entry;
		Dwarf_Off off = 0, next;

		while (data && !dwarf_next_cfi((const unsigned char *)elf_getident(elf, NULL), data,
					       eh, off, &next, &entry)) {
			n += !dwarf_cfi_cie_p(&entry);
			off = next;
		}
	}
	return n;
}

static void compare_section(struct comparison *c, struct cfi_section *section, bool eh, Elf *elf)
{
	struct cfi_place place;
	struct cfi_index x;

	cfi_index_open(&x, section, NULL, eh);
	if (!cfi_index_find(&x, 0, &place)) {
		uint64_t theirs = section->open_end
					  ? x.entries.len
					  : count_fdes(elf, eh ? ".eh_frame" : ".debug_frame", eh);

		if (x.error || x.entries.len != theirs)
			differs(c, 0, "FDEs", x.error, theirs, x.entries.len);
		for (size_t i = 0; i < x.entries.len; i++)
			compare_fde(c, x.entries.v[i].start,
				    x.entries.v[i].start + x.entries.v[i].bytes);
	}
	cfi_index_close(&x);
}

static int compare_file(const char *path)
{
	struct comparison c = {.path = path, .regs.known = (UINT32_C(1) << ARCH_REGS) - 1};
	uint64_t *stack = malloc(STACK_BYTES);
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = -errno;
	struct cfi_sections sections;
	struct parse_error err = {0};
	struct elf_file elf_file;

	if (!stack || fd < 0 || (r = elf_file_open(&elf_file, fd, NULL, 0, &err)) ||
	    (r = cfi_table_of(fd, NULL, 0, &c.table)) ||
	    (r = cfi_sections_of(&elf_file, &sections))) {
		printf("%s: %s (%s)\n", path, err.what ? err.what : "no CFI", strerror(-r));
		return 2;
	}
	for (size_t i = 0; i < STACK_BYTES / sizeof(*stack); i++)
		stack[i] = STACK_AT + made_up(i) % STACK_BYTES;
	c.memory =
		(struct unwind_memory){STACK_AT, (const unsigned char *)stack, STACK_BYTES, NULL};
	for (uint64_t i = 0; i < ARCH_REGS; i++)
		c.regs.v[i] = STACK_AT + STACK_BYTES / 4 + i * 0x400 + (made_up(i) & 0x3f8);
	c.regs.v[ARCH_SP] =
		STACK_AT +
		STACK_BYTES / 8; /* below all other memory, because the frame pointer is above it */
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

	c.eh_frame = dwarf_getcfi_elf(elf);
	c.debug_frame = dwarf ? dwarf_getcfi(dwarf) : NULL;
	compare_section(&c, &sections.eh_frame, true, elf);
	compare_section(&c, &sections.debug_frame, false, elf);
	printf("%s: %" PRIu64 " FDEs, %" PRIu64 " rows; of the places in them %" PRIu64
	       " plain, %" PRIu64 " full, %" PRIu64 " plt, %" PRIu64 " ends, %" PRIu64
	       " values neither has, %" PRIu64 " only here; %" PRIu64 " differ\n",
	       path, c.fdes, c.rows, c.plain, c.full, c.plt, c.ends, c.undecided, c.more, c.differ);
	cfi_sections_close(&sections);
	elf_file_close(&elf_file);
	cfi_table_free(c.table);
	dwarf_cfi_end(c.eh_frame);
	dwarf_end(dwarf);
	elf_end(elf);
	close(fd);
	free(stack);
	return c.differ > 0;
}

int main(int argc, char **argv)
{
	int status = argc > 1 ? 0 : 2;

	setvbuf(stdout, NULL, _IOLBF, 0);
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		int r = compare_file(argv[i]);

		status = r > status ? r : status;
	}
	return status;
}
