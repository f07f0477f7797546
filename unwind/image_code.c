#include "unwind/image_code.h"

#include "base/cleanup.h"
#include "symbols/bundle.h"
#include "symbols/elf_file.h"
#include "unwind/cfi_table.h"
#include "unwind/r2r_unwind.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Precompiled .NET code in the file. */
struct precompiled {
	uint64_t offset, bytes;
	struct r2r_unwind *r2r; /* NULL: not read yet, or it has none */
	bool tried;
};

struct image_code {
	int fd; /* -1: memory */
	const unsigned char *memory;
	size_t bytes;
	struct image_segment *segments;
	size_t nsegments;
	struct cfi_table *cfi; /* NULL: none */
	struct precompiled *precompiled; /* by offset: the file itself, or what a single-file program carries */
	size_t nprecompiled;
	bool bundle_tried;
};

void image_code_free(struct image_code *c)
{
	if (!c)
		return;
	cfi_table_free(c->cfi);
	for (size_t i = 0; i < c->nprecompiled; i++)
		r2r_unwind_free(c->precompiled[i].r2r);
	free(c->precompiled);
	free(c->segments);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static int read_elf(struct image_code *c)
{
	struct parse_error err;
	struct elf_file elf;
	int r = elf_file_open(&elf, c->fd, c->memory, c->bytes, &err);

	if (r)
		return r;
	c->segments = TAKE_PTR(elf.segments);
	c->nsegments = elf.nsegments;
	bool here = elf.is_64 && elf.machine == ARCH_ELF_MACHINE;

	elf_file_close(&elf);
	if (!here)
		return 0;
	return c->memory ? cfi_table_from_memory(c->memory, c->bytes, &c->cfi, &err) : cfi_table_open(c->fd, &c->cfi, &err);
}

/* A file that is no ELF file may be an assembly. */
static int read_file(struct image_code *c)
{
	struct stat st;
	int r = read_elf(c);

	if (r != -EBADMSG || c->fd < 0 || fstat(c->fd, &st))
		return r;
	c->bundle_tried = true;
	c->precompiled = calloc(1, sizeof(*c->precompiled));
	if (!c->precompiled)
		return -ENOMEM;
	c->precompiled[0].bytes = (uint64_t)st.st_size;
	c->nprecompiled = 1;
	return 0;
}

/* The files of a program's bundle, which are in order. */
static int read_bundle(struct image_code *c)
{
	struct bundle_files files;
	struct parse_error err;
	int r = c->bundle_tried || c->fd < 0 ? -ENOENT : bundle_read(c->fd, &files, &err);

	c->bundle_tried = true;
	if (r)
		return r == -ENOMEM ? r : 0;
	c->precompiled = calloc(files.nfiles + 1, sizeof(*c->precompiled));
	for (size_t i = 0; c->precompiled && i < files.nfiles; i++)
		c->precompiled[c->nprecompiled++] =
			(struct precompiled){.offset = files.files[i].offset, .bytes = files.files[i].bytes};
	bundle_files_free(&files);
	return c->precompiled ? 0 : -ENOMEM;
}

/* The precompiled code at an offset, or NULL. 0 or -ENOMEM. */
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
	p = low < c->nprecompiled && c->precompiled[low].offset <= file_off ? &c->precompiled[low] : NULL;
	if (r || !p)
		return r;
	if (!p->tried) {
		struct pe_file file = {c->fd, p->offset, p->bytes};

		r = r2r_unwind_open(&file, &p->r2r, &err);
		p->tried = r != -ENOMEM;
	}
	*ret_r2r = p->r2r;
	return r == -ENOMEM ? r : 0;
}

/* What is damaged has no rules. */
static int finish(struct image_code *c, struct image_code **ret_code)
{
	int r = read_file(c);

	if (r == -ENOMEM) {
		c->fd = -1;
		image_code_free(c);
		return r;
	}
	*ret_code = c;
	return 0;
}

int image_code_open(int fd, struct image_code **ret_code)
{
	struct image_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = fd;
	return finish(c, ret_code);
}

int image_code_from_memory(const void *data, size_t len, struct image_code **ret_code)
{
	struct image_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = -1;
	c->memory = data;
	c->bytes = len;
	return finish(c, ret_code);
}

int image_code_rule(struct image_code *c, uint64_t file_off, struct unwind_rule *ret_rule)
{
	struct r2r_unwind *r2r = NULL;
	uint64_t vaddr;
	int r = image_segments_vaddr(c->segments, c->nsegments, file_off, &vaddr);

	if (!r)
		r = c->cfi ? cfi_table_find(c->cfi, vaddr, ret_rule) : -ENOENT;
	else if (!(r = find_precompiled(c, file_off, &r2r)))
		r = r2r ? r2r_unwind_rule(r2r, file_off, ret_rule) : -ENOENT;
	if (r == -ENOMEM)
		return r;
	if (r)
		*ret_rule = (struct unwind_rule){.kind = UNWIND_NONE};
	return 0;
}

int image_code_step(struct image_code *c, uint64_t file_off, struct unwind_regs *regs, const struct unwind_memory *memory,
		    bool *ret_signal)
{
	struct r2r_unwind *r2r = NULL;
	uint64_t vaddr;
	int r = image_segments_vaddr(c->segments, c->nsegments, file_off, &vaddr);

	if (!r)
		return c->cfi ? cfi_table_step(c->cfi, vaddr, regs, memory, ret_signal) : -ENOENT;
	*ret_signal = false;
	r = find_precompiled(c, file_off, &r2r);
	return r ? r : r2r ? r2r_unwind_step(r2r, file_off, regs, memory) : -ENOENT;
}

size_t image_code_read(const struct image_code *c, uint64_t file_off, void *buf, size_t len)
{
	if (c->memory) {
		size_t there = file_off < c->bytes ? c->bytes - file_off : 0;

		len = len < there ? len : there;
		memcpy(buf, c->memory + (there ? file_off : 0), len);
		return len;
	}
	ssize_t n = pread(c->fd, buf, len, (off_t)file_off);

	return n < 0 ? 0 : (size_t)n;
}
