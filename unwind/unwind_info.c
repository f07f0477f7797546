#include "unwind/unwind_info.h"

#include "base/reader.h"
#include "unwind/x86_64_insn.h"

#include <errno.h>

#define VERSION 1
#define FLAG_CHAINED 4
#define FPREG_SCALE 16
#define FPREG_OFFSET_LARGE 15 /* in the header: the code has the offset */

enum op {
	PUSH_NONVOL,
	ALLOC_LARGE,
	ALLOC_SMALL,
	SET_FPREG,
	SAVE_NONVOL,
	SAVE_NONVOL_FAR,
	SAVE_XMM128 = 8,
	SAVE_XMM128_FAR,
	PUSH_MACHFRAME,
	SET_FPREG_LARGE, /* CoreCLR only */
};

/* Reads the second half of a code and the 16-bit values after it. */
static int read_op(struct reader *r, uint8_t kind, uint8_t bits, uint8_t fpreg,
		   struct unwind_info_op *op)
{
	uint64_t value = 0;

	op->reg = x86_64_dwarf_reg[bits];
	switch (kind) {
	case PUSH_NONVOL:
		break;
	case ALLOC_LARGE:
		if (bits > 1)
			return -EBADMSG;
		value = bits ? reader_u32(r) : (uint64_t)reader_u16(r) * 8;
		break;
	case ALLOC_SMALL:
		value = bits * 8u + 8;
		break;
	case SET_FPREG:
	case SET_FPREG_LARGE:
		op->reg = x86_64_dwarf_reg[fpreg & 15];
		value = FPREG_SCALE * (kind == SET_FPREG ? (uint64_t)(fpreg >> 4) : reader_u32(r));
		if (kind == SET_FPREG_LARGE && fpreg >> 4 != FPREG_OFFSET_LARGE)
			return -EBADMSG;
		break;
	case SAVE_NONVOL:
	case SAVE_XMM128:
		value = (uint64_t)reader_u16(r) * 8;
		break;
	case SAVE_NONVOL_FAR:
	case SAVE_XMM128_FAR:
		value = reader_u32(r);
		break;
	default:
		return -ENOTSUP;
	}
	op->kind = kind == ALLOC_LARGE       ? ALLOC_SMALL
		   : kind == SET_FPREG_LARGE ? SET_FPREG
		   : kind == SAVE_NONVOL_FAR ? SAVE_NONVOL
					     : kind;
	op->value = (int32_t)value;
	return value > UNWIND_INFO_CFA_MAX ? -EBADMSG : 0;
}

int unwind_info_add(struct unwind_info *info, const unsigned char *data, size_t len,
		    uint32_t *ret_chain)
{
	struct reader r = reader_of(data, len);
	uint8_t first = reader_u8(&r), prologue = reader_u8(&r), ncodes = reader_u8(&r),
		fpreg = reader_u8(&r);
	size_t end = 4 + 2 * (size_t)ncodes;
	bool chained = info->nchained;

	if (r.failed)
		return -EBADMSG;
	if ((first & 7) != VERSION)
		return -ENOTSUP;
	if (info->nchained++ == UNWIND_INFO_CHAIN_MAX)
		return -E2BIG;
	/* This is a part of a function whose prologue is complete. */
	if (!chained)
		info->prologue = prologue;
	while (!r.failed && r.pos < end) {
		uint8_t offset = reader_u8(&r), code = reader_u8(&r);
		struct unwind_info_op op = {.offset = chained ? 0 : offset};
		int error = read_op(&r, code & 15, code >> 4, fpreg, &op);

		if (error)
			return error;
		if (op.kind == SAVE_XMM128 || op.kind == SAVE_XMM128_FAR)
			continue;
		if (info->nops == UNWIND_INFO_OPS_MAX)
			return -E2BIG;
		info->ops[info->nops++] = op;
	}
	if (r.failed || r.pos != end)
		return -EBADMSG;
	*ret_chain = 0;
	if (!(first >> 3 & FLAG_CHAINED))
		return 0;
	reader_skip(&r, (ncodes & 1) * 2 + 8); /* padding; begin and end of the chained function */
	*ret_chain = reader_u32(&r);
	return r.failed || !*ret_chain ? -EBADMSG : 0;
}

/* A frame while it is decoded; places are offsets from the value of `base`. */
struct frame {
	uint8_t base; /* a register */
	int64_t at;   /* of the stack pointer before the remaining effects */
	int64_t fp;   /* of the caller's frame pointer */
	bool has_fp, saves;
	struct unwind_info_save *list; /* NULL: not wanted */
	size_t n;
};

static int keep(struct frame *f, const struct unwind_info_op *op, int64_t at)
{
	if (op->reg == ARCH_SP) /* the frame itself determines it */
		return -EBADMSG;
	if (op->reg == ARCH_FP) {
		f->fp = at;
		f->has_fp = true;
		return 0;
	}
	f->saves = true;
	if (!f->list)
		return 0;
	if (f->n == UNWIND_INFO_SAVES_MAX)
		return -EBADMSG;
	f->list[f->n++] = (struct unwind_info_save){op->reg, op->offset, (int32_t)at};
	return 0;
}

static int decode_frame(const struct unwind_info *info, uint64_t offset, struct frame *f)
{
	int64_t body;
	int r = 0;

	*f = (struct frame){.base = ARCH_SP, .list = f->list};
	for (int i = 0; i < info->nops; i++)
		if (info->ops[i].kind == SET_FPREG && info->ops[i].offset <= offset) {
			f->base = info->ops[i].reg;
			f->at = -(int64_t)info->ops[i].value;
			break;
		}
	body = f->at;
	for (int i = 0; i < info->nops && !r; i++) {
		const struct unwind_info_op *op = &info->ops[i];

		if (op->offset > offset)
			continue;
		switch (op->kind) {
		case PUSH_NONVOL:
			r = keep(f, op, f->at);
			f->at += 8;
			break;
		case ALLOC_SMALL:
			f->at += op->value;
			break;
		case SAVE_NONVOL:
			r = keep(f, op, body + op->value);
			break;
		default: /* the first loop has handled SET_FPREG */
			break;
		}
	}
	f->at -= ARCH_RETURN_OFF;
	return r || f->at > UNWIND_INFO_CFA_MAX || f->at < -UNWIND_INFO_CFA_MAX ? -EBADMSG : 0;
}

int unwind_info_rule(const struct unwind_info *info, uint64_t offset, struct unwind_rule *ret_rule)
{
	struct frame f = {.list = NULL};
	int r = decode_frame(info, offset >= info->prologue ? UINT8_MAX : offset, &f);

	if (r)
		return r;
	*ret_rule = (struct unwind_rule){
		.kind = UNWIND_PLAIN,
		.cfa_reg = f.base,
		.cfa_add = (int32_t)f.at,
		.fp = f.has_fp ? UNWIND_FP_AT : UNWIND_FP_SAME,
		.fp_at = f.has_fp ? (int32_t)(f.fp - f.at) : 0,
		.saves = f.saves,
	};
	return 0;
}

int unwind_info_saves(const struct unwind_info *info,
		      struct unwind_info_save ret_saves[UNWIND_INFO_SAVES_MAX], size_t *ret_n)
{
	struct frame f = {.list = ret_saves};
	int r = decode_frame(info, UINT8_MAX, &f);

	if (r)
		return r;
	for (size_t i = 0; i < f.n; i++)
		ret_saves[i].at -= (int32_t)f.at;
	*ret_n = f.n;
	return 0;
}
