#include "unwind/image_code.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "elf/elf_file.h"
#include "symbols/bundle.h"
#include "unwind/bare_code.h"
#include "unwind/cfi_rules.h"
#include "unwind/cfi_table.h"
#include "unwind/clr_hijack.h"
#include "unwind/r2r_unwind.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Precompiled .NET code in the file. */
struct precompiled {
	uint64_t offset, bytes;
	struct r2r_unwind *r2r; /* NULL: not read yet, or none */
	bool tried;
};

struct image_code {
	struct code_bytes bytes;
	struct elf_segment *segments;
	size_t nsegments;
	struct cfi_table *cfi; /* NULL: none */
	struct bare_code bare;
	bool is_elf;                       /* of this architecture */
	uint64_t hijack_start, hijack_end; /* vaddrs of CoreCLR's stub; 0: none */
	/* By offset: the file itself, or the assemblies in a single-file program. */
	struct precompiled *precompiled;
	size_t nprecompiled;
	uint64_t precompiled_taken; /* of ELF_BUDGET_SECTIONS */
	bool taken;                 /* IMAGE_CODE_BYTES of ELF_BUDGET_IMAGES */
	bool bundle_tried;
	bool over_limit;
};

void image_code_free(struct image_code *c)
{
	if (!c)
		return;
	if (c->taken)
		elf_budget_give(ELF_BUDGET_IMAGES, IMAGE_CODE_BYTES);
	cfi_table_free(c->cfi);
	bare_code_free(&c->bare);
	for (size_t i = 0; i < c->nprecompiled; i++)
		r2r_unwind_free(c->precompiled[i].r2r);
	elf_budget_give(ELF_BUDGET_SECTIONS, c->precompiled_taken);
	free(c->precompiled);
	free(c->segments);
	if (c->bytes.fd >= 0)
		close(c->bytes.fd);
	free(c);
}

void image_code_forget(struct image_code *c, bool rules)
{
	if (c && c->cfi)
		cfi_table_drop(c->cfi);
	if (c && c->cfi && rules)
		cfi_table_forget(c->cfi);
	for (size_t i = 0; c && rules && i < c->nprecompiled; i++)
		if (c->precompiled[i].r2r)
			r2r_unwind_forget(c->precompiled[i].r2r);
}

/* Finds CoreCLR's stub. Its own FDE gives its end. */
static int find_hijack(struct image_code *c)
{
	uint64_t file_off, vaddr, start, end;
	int r = clr_hijack_find(&c->bytes, c->segments, c->nsegments, &file_off);

	if (!r)
		r = elf_segments_vaddr(c->segments, c->nsegments, file_off, &vaddr);
	if (!r)
		r = cfi_table_bounds(c->cfi, vaddr, &start, &end);
	if (!r && start == vaddr) {
		c->hijack_start = start;
		c->hijack_end = end;
	}
	return r == -ENOMEM || r == -E2BIG ? r : 0;
}

static int read_elf(struct image_code *c)
{
	struct parse_error err;
	struct elf_file elf;
	struct cfi_frames *frames = NULL;
	int r = elf_file_open(&elf, c->bytes.fd, c->bytes.memory, c->bytes.bytes, &err);

	if (r)
		return r;
	c->is_elf = elf.is_64 && elf.machine == ARCH_ELF_MACHINE;
	if (c->is_elf)
		r = bare_code_read(&c->bare, &elf);
	bool is_clr = c->is_elf && clr_hijack_is_runtime(&elf);

	if (c->is_elf && !r)
		r = cfi_frames_open(&elf, &frames);
	c->segments = TAKE_PTR(elf.segments);
	c->nsegments = elf.nsegments;
	elf_file_close(&elf);
	if (!r && frames)
		r = cfi_table_take(frames, &c->cfi);
	return r || !is_clr ? r : find_hijack(c);
}

/* Reads the file as ELF, or else as an assembly. */
static int read_file(struct image_code *c)
{
	struct stat st;
	int r = read_elf(c);

	if (r != -EBADMSG || c->bytes.fd < 0 || fstat(c->bytes.fd, &st))
		return r;
	c->bundle_tried = true;
	c->precompiled = calloc(1, sizeof(*c->precompiled));
	if (!c->precompiled)
		return -ENOMEM;
	c->precompiled[0].bytes = (uint64_t)st.st_size;
	c->nprecompiled = 1;
	return 0;
}

/* Reads the list of files in a single-file program, which is sorted. */
static int read_bundle(struct image_code *c)
{
	struct bundle_files files;
	struct parse_error err;
	int r = c->bundle_tried || c->bytes.fd < 0 ? -ENOENT
						   : bundle_read(c->bytes.fd, &files, &err);

	c->bundle_tried = true;
	c->over_limit |= r == -E2BIG;
	if (r)
		return r == -ENOMEM ? r : 0;
	if (elf_budget_take(ELF_BUDGET_SECTIONS, files.nfiles * sizeof(*c->precompiled))) {
		bundle_files_free(&files);
		c->over_limit = true;
		return 0;
	}
	c->precompiled_taken = files.nfiles * sizeof(*c->precompiled);
	c->precompiled = calloc(files.nfiles + 1, sizeof(*c->precompiled));
	for (size_t i = 0; c->precompiled && i < files.nfiles; i++)
		c->precompiled[c->nprecompiled++] = (struct precompiled){
			.offset = files.files[i].offset, .bytes = files.files[i].bytes};
	bundle_files_free(&files);
	return c->precompiled ? 0 : -ENOMEM;
}

/* The precompiled code at an offset; NULL: none. Returns 0 or -ENOMEM. */
static int find_precompiled(struct image_code *c, uint64_t file_off, struct r2r_unwind **ret_r2r)
{
	size_t low = 0, high;
	struct precompiled *p;
	struct parse_error err;
	int r = read_bundle(c);

	*ret_r2r = NULL;
	for (high = c->nprecompiled; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (c->precompiled[mid].offset + c->precompiled[mid].bytes <= file_off)
			low = mid + 1;
		else
			high = mid;
	}
	p = low < c->nprecompiled && c->precompiled[low].offset <= file_off ? &c->precompiled[low]
									    : NULL;
	if (r || !p)
		return r;
	if (!p->tried) {
		struct pe_file file = {c->bytes.fd, p->offset, p->bytes};

		r = r2r_unwind_open(&file, &p->r2r, &err);
		p->tried = r != -ENOMEM;
	}
	*ret_r2r = p->r2r;
	return r == -ENOMEM ? r : 0;
}

/* Reads the file. Damaged parts have no rules, and nothing has if too many images are open. */
static int finish(struct image_code *c, struct image_code **ret_code)
{
	int r = elf_budget_take(ELF_BUDGET_IMAGES, IMAGE_CODE_BYTES);

	c->taken = !r;
	c->bundle_tried = r;
	if (!r)
		r = read_file(c);
	if (r == -ENOMEM) {
		c->bytes.fd = -1;
		image_code_free(c);
		return r;
	}
	c->over_limit = r == -E2BIG;
	*ret_code = c;
	return 0;
}

int image_code_open(int fd, struct image_code **ret_code)
{
	struct image_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->bytes.fd = fd;
	return finish(c, ret_code);
}

int image_code_from_memory(const void *data, size_t len, struct image_code **ret_code)
{
	struct image_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->bytes.fd = -1;
	c->bytes.memory = data;
	c->bytes.bytes = len;
	return finish(c, ret_code);
}

bool image_code_over_limit(const struct image_code *c)
{
	return c->over_limit;
}

bool image_code_has_hijack_stub(const struct image_code *c)
{
	return c->hijack_end;
}

/* File offset of the end of the executable segment that has vaddr; 0: none. */
static uint64_t segment_end(const struct image_code *c, uint64_t vaddr, uint64_t file_off)
{
	for (size_t i = 0; i < c->nsegments; i++) {
		const struct elf_segment *s = &c->segments[i];

		if (s->flags & PF_X && vaddr - s->vaddr < s->file_bytes &&
		    file_off - s->file_off == vaddr - s->vaddr)
			return s->file_off + s->file_bytes;
	}
	return 0;
}

/* The rule of code that nothing else describes. -ENOENT; -ENOMEM. */
static int bare_rule(struct image_code *c, uint64_t vaddr, uint64_t file_off,
		     struct unwind_rule *ret_rule)
{
	uint64_t end = c->is_elf ? segment_end(c, vaddr, file_off) : 0;

	return end ? bare_code_rule(&c->bare, &c->bytes, vaddr, file_off, end, ret_rule) : -ENOENT;
}

static int elf_rule(struct image_code *c, uint64_t vaddr, uint64_t file_off, uint64_t *steps_left,
		    struct unwind_rule *ret_rule)
{
	int r = c->cfi ? cfi_table_find(c->cfi, vaddr, steps_left, ret_rule) : -ENOENT;

	c->over_limit |= r == -E2BIG;
	if (c->hijack_end && vaddr == c->hijack_start - 1) {
		*ret_rule = (struct unwind_rule){.kind = UNWIND_HIJACK_NEXT};
		return 0;
	}
	if (r == -ENOENT)
		return bare_rule(c, vaddr, file_off, ret_rule);
	if (!r && vaddr >= c->hijack_start && vaddr < c->hijack_end &&
	    ret_rule->kind == UNWIND_PLAIN && ret_rule->cfa_reg == ARCH_SP) {
		ret_rule->kind = UNWIND_HIJACK;
		ret_rule->cfa_add -= 8;
	}
	return r;
}

int image_code_rule(struct image_code *c, uint64_t file_off, uint64_t *steps_left,
		    struct unwind_rule *ret_rule)
{
	struct r2r_unwind *r2r = NULL;
	uint64_t vaddr;
	int r = elf_segments_vaddr(c->segments, c->nsegments, file_off, &vaddr);

	if (!r)
		r = elf_rule(c, vaddr, file_off, steps_left, ret_rule);
	else if (!(r = find_precompiled(c, file_off, &r2r)))
		r = r2r ? r2r_unwind_rule(r2r, file_off, steps_left, ret_rule) : -ENOENT;
	if (r == -ENOMEM)
		return r;
	if (r)
		*ret_rule = (struct unwind_rule){.kind = UNWIND_NONE};
	return 0;
}

static int elf_step(struct image_code *c, uint64_t vaddr, uint64_t file_off,
		    struct unwind_regs *regs, const struct unwind_memory *memory, bool *ret_signal)
{
	struct unwind_rule rule;
	int r = c->cfi ? cfi_table_step(c->cfi, vaddr, regs, memory, ret_signal) : -ENOENT;

	if (r != -ENOENT)
		return r;
	*ret_signal = false;
	r = bare_rule(c, vaddr, file_off, &rule);
	if (!r)
		r = cfi_rules_apply_short_rule(&rule, memory, regs);
	/* Other registers may have been saved in unknown places. */
	if (!r && rule.saves)
		regs->known &= 1u << ARCH_FP | 1u << ARCH_SP | 1u << ARCH_IP;
	return r;
}

int image_code_step(struct image_code *c, uint64_t file_off, struct unwind_regs *regs,
		    const struct unwind_memory *memory, bool *ret_signal)
{
	struct r2r_unwind *r2r = NULL;
	uint64_t vaddr;
	int r = elf_segments_vaddr(c->segments, c->nsegments, file_off, &vaddr);

	if (!r)
		return elf_step(c, vaddr, file_off, regs, memory, ret_signal);
	*ret_signal = false;
	r = find_precompiled(c, file_off, &r2r);
	return r ? r : r2r ? r2r_unwind_step(r2r, file_off, regs, memory) : -ENOENT;
}

size_t image_code_read(const struct image_code *c, uint64_t file_off, void *buf, size_t len)
{
	return code_bytes_read(&c->bytes, file_off, buf, len);
}
