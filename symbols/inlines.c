#include "symbols/inlines.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "symbols/debug_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* The code of one compilation unit, or a part of it. */
struct unit_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct inlines {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	VEC(struct unit_range) units; /* by start, once any address was asked for */
	bool units_known;
};

/* The descriptor of the file to read DWARF from: the debug file's, or another one of the image's own. */
static int open_source(int fd, const char *path, const int *roots, size_t nroots, struct parse_error *err)
{
	struct debug_file debug;
	struct elf_file image;
	int found = -1, error = elf_file_open(&image, fd, NULL, 0, err);

	if (error)
		return error;
	error = debug_file_find(&(struct debug_file_query){.image = &image,
							   .path = path,
							   .roots = roots,
							   .nroots = nroots,
							   .want = DEBUG_FILE_LINES},
				&debug);
	if (!error) {
		found = TAKE_FD(debug.fd);
		debug_file_close(&debug);
	}
	elf_file_close(&image);
	if (error == -ENOMEM)
		return error;
	if (found < 0)
		found = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return found < 0 ? -errno : found;
}

static bool is_texts(const char *name)
{
	static const char *const names[] = {".debug_str", ".zdebug_str", ".debug_line_str", ".zdebug_line_str"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Whether all sections of texts end with one: of names of files libdw takes what is there without looking for its end. */
static bool texts_end(Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr h;
		const char *name = gelf_getshdr(scn, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
		const Elf_Data *data = name && is_texts(name) ? elf_getdata(scn, NULL) : NULL;

		if (data && data->d_size && ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

int inlines_open(int fd, const char *path, const int *roots, size_t nroots, struct inlines **ret_inlines,
		 struct parse_error *err)
{
	struct inlines *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->fd = open_source(fd, path, roots, nroots, err);
	int error = in->fd < 0 ? in->fd : 0;
	off_t bytes = error ? 0 : lseek(in->fd, 0, SEEK_END);

	if (!error && (uint64_t)bytes > INLINES_FILE_BYTES_MAX)
		error = parse_fail(err, -E2BIG, "debug file too large", 0);
	if (!error && !(in->elf = elf_begin(in->fd, ELF_C_READ, NULL)))
		error = parse_fail(err, -EBADMSG, "not an ELF file", 0);
	if (!error && !(in->dwarf = dwarf_begin_elf(in->elf, DWARF_C_READ, NULL)))
		error = -ENOENT;
	if (!error && !texts_end(in->elf))
		error = parse_fail(err, -EBADMSG, "its DWARF has texts without an end", 0);
	if (error) {
		inlines_free(in);
		return error;
	}
	*ret_inlines = in;
	return 0;
}

void inlines_free(struct inlines *in)
{
	if (!in)
		return;
	dwarf_end(in->dwarf);
	elf_end(in->elf);
	if (in->fd >= 0)
		close(in->fd);
	vec_free(&in->units);
	free(in);
}

static int add_unit(struct inlines *in, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct unit_range r = {start, end, dwarf_dieoffset(die)};

		if (start < end && vec_push(&in->units, r))
			return -ENOMEM;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* .debug_aranges would be quicker, but clang writes none. */
static int find_units(struct inlines *in)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	while (!dwarf_get_units(in->dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		if (dwarf_tag(&die) == DW_TAG_compile_unit && add_unit(in, &die))
			return -ENOMEM;
	}
	if (in->units.len)
		qsort(in->units.v, in->units.len, sizeof(*in->units.v), by_start);
	in->units_known = true;
	return 0;
}

static int find_unit(struct inlines *in, uint64_t vaddr, Dwarf_Die *ret_die)
{
	size_t lo = 0, hi = in->units.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (in->units.v[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr >= in->units.v[lo - 1].end)
		return -ENOENT;
	return dwarf_offdie(in->dwarf, in->units.v[lo - 1].die, ret_die) ? 0 : -ENOENT;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Languages whose names the linker sees as they are written. */
static bool is_unmangled(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return true;
	default:
		return false;
	}
}

static void name_function(Dwarf_Die *unit, Dwarf_Die *die, struct inline_frame *frame)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		frame->function = dwarf_formstring(&attr);
	if (frame->function)
		return;
	frame->function = dwarf_diename(die);
	frame->only_plain = frame->function && !is_unmangled(unit);
}

static Dwarf_Word number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, &value) ? value : 0;
}

/* Where the function that die is was called, for the frame around it. */
static void call_site(Dwarf_Die *unit, Dwarf_Die *die, struct inline_frame *frame)
{
	Dwarf_Files *files;
	size_t nfiles;
	Dwarf_Word file = number(die, DW_AT_call_file);

	if (file && !dwarf_getsrcfiles(unit, &files, &nfiles) && file < nfiles)
		frame->file = base_name(dwarf_filesrc(files, file, NULL, NULL));
	frame->line = (unsigned int)number(die, DW_AT_call_line);
}

static void own_line(Dwarf_Die *unit, uint64_t vaddr, struct inline_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, vaddr);
	int number_of = 0;

	if (!line)
		return;
	frame->file = base_name(dwarf_linesrc(line, NULL, NULL));
	if (!dwarf_lineno(line, &number_of) && number_of > 0)
		frame->line = (unsigned int)number_of;
}

/* From the innermost block outwards; what is passed are lexical blocks, inlined bodies and at last the function. */
static size_t walk_out(Dwarf_Die *unit, Dwarf_Die *scopes, int nscopes, struct inline_frame *frames)
{
	size_t n = 0;

	for (int i = 0; i < nscopes && n + 1 < INLINES_DEPTH_MAX; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		name_function(unit, &scopes[i], &frames[n++]);
		if (tag == DW_TAG_subprogram)
			break;
		frames[n] = (struct inline_frame){0};
		call_site(unit, &scopes[i], &frames[n]);
	}
	return n ? n : 1;
}

int inlines_find(struct inlines *in, uint64_t vaddr, struct inline_frame *frames, size_t *ret_n)
{
	AUTO_FREE Dwarf_Die *around = NULL;
	AUTO_FREE Dwarf_Die *scopes = NULL;
	Dwarf_Die unit;
	int error = in->units_known ? 0 : find_units(in);

	if (!error)
		error = find_unit(in, vaddr, &unit);
	if (error)
		return error;
	frames[0] = (struct inline_frame){0};
	own_line(&unit, vaddr, &frames[0]);
	/* The first gives the block that holds the address, the second what that one lies in, where it was inlined to. */
	int n = dwarf_getscopes(&unit, vaddr, &around);

	if (n > 0)
		n = dwarf_getscopes_die(&around[0], &scopes);
	*ret_n = walk_out(&unit, scopes, n > 0 ? n : 0, frames);
	return 0;
}
