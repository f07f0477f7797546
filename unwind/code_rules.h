/*
 * The unwinding rules of one function, computed once from its code and its unwind information.
 * Neither is needed afterwards. Rules are rows by offset; each holds up to the next one.
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
	bool doubtful; /* some code could not be decoded: epilogues may be missing */
	/*
	 * A bit for each preserved register that the code changes but does not save. Handler
	 * funclets leave the saving to the code they return to.
	 */
	uint16_t changes;
	struct unwind_info_save saves[UNWIND_INFO_SAVES_MAX];
};

/*
 * Makes the rules of a .NET function or funclet from its unwind information and its code, len
 * bytes. Takes from *steps_left (struct unwind_memory). Returns 0; -EBADMSG; -E2BIG; -ENOMEM.
 */
int code_rules_make(const struct unwind_info *info, const unsigned char *code, size_t len,
		    uint64_t *steps_left, struct code_rules *ret_rules);

/*
 * Makes the rules of code without unwind information, by following it from its start.
 *   stubs: the code is a row of stubs, which change no preserved register except the frame pointer
 * Returns 0 or errors of x86_64_follow.
 */
int code_rules_follow(const unsigned char *code, size_t len, bool stubs,
		      struct code_rules *ret_rules);

/*
 * Makes rules for a part of a stub: from the instruction at code to the first jump or return, or
 * until x86_64_ahead fails. *ret_len: bytes covered. Returns 0; -ENOENT: no rule; -ENOMEM.
 */
int code_rules_ahead(const unsigned char *code, size_t len, struct code_rules *ret_rules,
		     size_t *ret_len);

void code_rules_free(struct code_rules *rules);

/* Memory of the rules in bytes, without the struct. */
static inline size_t code_rules_bytes(const struct code_rules *rules)
{
	return rules->nrows * sizeof(*rules->rows);
}

/* The rule at an offset. NULL: none; kind UNWIND_NONE: unknown. */
const struct unwind_rule *code_rules_at(const struct code_rules *rules, uint64_t offset);

/*
 * Replaces the registers of a frame at an offset with its caller's. Registers without a rule become
 * unknown. Returns 0; -ENODATA: the copy lacks the needed bytes, or a register is unknown;
 * -EBADMSG: no rule.
 */
int code_rules_step(const struct code_rules *rules, uint64_t offset, struct unwind_regs *regs,
		    const struct unwind_memory *mem);

#endif
