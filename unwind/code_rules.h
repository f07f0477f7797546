/*
 * The rules of one function, made once of its code and what is known of it, so that neither is needed any more. Rules are rows by
 * offset, as in tables of CFI; a row holds up to the next one.
 */
#ifndef UNWIND_CODE_RULES_H
#define UNWIND_CODE_RULES_H

#include "unwind/unwind_info.h"

#define CODE_RULES_BYTES_MAX ((size_t)4 << 20) /* of one function's code */
#define CODE_RULES_ROWS_MAX 65536

struct code_row {
	uint32_t offset;
	struct unwind_rule rule;
};

/* Zeroed has no rules. */
struct code_rules {
	struct code_row *rows; /* by offset */
	uint32_t nrows;
	uint8_t nsaves;
	bool doubtful; /* not all of the code could be read: epilogues may be missing */
	uint16_t changes; /* a bit for each register that it ought to save and does not: funclets of handlers leave that to whom they return to */
	struct unwind_info_save saves[UNWIND_INFO_SAVES_MAX];
};

/* The rules of a function or funclet of .NET, whose code is len bytes. 0; -EBADMSG; -E2BIG; -ENOMEM. */
int code_rules_make(const struct unwind_info *info, const unsigned char *code, size_t len, struct code_rules *ret_rules);

/* Those of code of which nothing else is known, by following it from its start; stubs: of a row of stubs, which leave all registers as they are
 * that a function would have to save, but for the frame pointer. Errors of x86_64_follow. */
int code_rules_follow(const unsigned char *code, size_t len, bool stubs, struct code_rules *ret_rules);

/* Those of a stub from the instruction on that code begins with, as far as it goes straight on and what comes tells (x86_64_ahead); *ret_len bytes
 * of it. 0; -ENOENT: it does not tell; -ENOMEM. */
int code_rules_ahead(const unsigned char *code, size_t len, struct code_rules *ret_rules, size_t *ret_len);

void code_rules_free(struct code_rules *rules);

/* Memory that the rules take beside the struct. */
static inline size_t code_rules_bytes(const struct code_rules *rules)
{
	return rules->nrows * sizeof(*rules->rows);
}

/* The rule at an offset, or NULL: none. One of kind UNWIND_NONE: it is not known. */
const struct unwind_rule *code_rules_at(const struct code_rules *rules, uint64_t offset);

/*
 * From the registers of a frame at an offset to its caller's. Registers that nothing tells of are not known then. 0; -ENODATA: the copy of the
 * stack lacks what it takes, or a register is not known; -EBADMSG: there is no rule.
 */
int code_rules_step(const struct code_rules *rules, uint64_t offset, struct unwind_regs *regs, const struct unwind_memory *mem);

#endif
