#include "base/file.h"
#include "base/outbuf.h"
#include "elf/budget.h"
#include "elf/dwarf_data.h"
#include "elf/dwarf_lines.h"
#include "elf/dwarf_unit.h"
#include "elf/inlines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define START 0x1000
#define BYTES 0x100
#define SECTIONS 4
#define UNITS 8000 /* the smaller number of time_is_linear_in_units */

static const char *const names[SECTIONS] = {".debug_info", ".debug_abbrev", ".debug_line",
					    ".debug_rnglists"};

static void put(struct outbuf *out, uint64_t value, size_t bytes)
{
	outbuf_put(out, (const char *)&value, bytes);
}

/* An ELF file with only these sections. */
static int elf_of(struct outbuf sections[SECTIONS])
{
	Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = SECTIONS + 2,
			   .e_shstrndx = SECTIONS + 1};
	Elf64_Shdr headers[SECTIONS + 2] = {0};
	struct outbuf file = outbuf_to(-1), texts = outbuf_to(-1);
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	outbuf_put(&file, (const char *)&head, sizeof(head)); /* the section's place */
	outbuf_char(&texts, 0);
	for (int i = 0; i < SECTIONS; i++) {
		headers[i + 1] = (Elf64_Shdr){.sh_name = (uint32_t)texts.len,
					      .sh_type = SHT_PROGBITS,
					      .sh_offset = file.len,
					      .sh_size = sections[i].len};
		outbuf_put(&file, sections[i].data, sections[i].len);
		outbuf_put(&texts, names[i], strlen(names[i]) + 1);
		outbuf_close(&sections[i]);
	}
	headers[SECTIONS + 1] = (Elf64_Shdr){
		.sh_name = 0, .sh_type = SHT_STRTAB, .sh_offset = file.len, .sh_size = texts.len};
	outbuf_put(&file, texts.data, texts.len);
	head.e_shoff = file.len;
	outbuf_put(&file, (const char *)headers, sizeof(headers));
	memcpy(file.data, &head, sizeof(head));
	assert_int_equal(file_write_all(fd, file.data, file.len), 0);
	outbuf_close(&file);
	outbuf_close(&texts);
	return fd;
}

/* A unit for the code at an address. */
static void put_unit(struct outbuf sections[SECTIONS], uint64_t start)
{
	static const unsigned char abbrevs[] = {1,
						DW_TAG_compile_unit,
						DW_CHILDREN_no,
						DW_AT_low_pc,
						DW_FORM_addr,
						DW_AT_high_pc,
						DW_FORM_data8,
						DW_AT_stmt_list,
						DW_FORM_sec_offset,
						0,
						0,
						0};
	struct outbuf *info = &sections[0];

	put(info, 8 + 1 + 8 + 8 + 4, 4);
	put(info, 5, 2);
	put(info, DW_UT_compile, 1);
	put(info, 8, 1);
	put(info, 0, 4);
	put(info, 1, 1);
	put(info, start, 8);
	put(info, BYTES, 8);
	put(info, 0, 4);
	if (!sections[1].len)
		outbuf_put(&sections[1], (const char *)abbrevs, sizeof(abbrevs));
}

static void begin(struct outbuf sections[SECTIONS])
{
	for (int i = 0; i < SECTIONS; i++)
		sections[i] = outbuf_to(-1);
}

static int open_inlines(int fd, struct inlines **ret_inlines)
{
	struct elf_file file;
	int r = elf_file_open(&file, fd, NULL, 0, NULL);

	if (r)
		return r;
	r = inlines_open(&file, NULL, NULL, 0, ret_inlines, NULL);
	elf_file_close(&file);
	return r;
}

/* The result for the code at START. */
static int look_up(struct outbuf sections[SECTIONS], struct inline_frame *frames, size_t *ret_n)
{
	int fd = elf_of(sections), r;
	struct inlines *in = NULL;

	assert_int_equal(open_inlines(fd, &in), 0);
	r = inlines_find(in, START + 8, frames, ret_n);
	inlines_free(in);
	close(fd);
	return r;
}

/* Folders in a form that takes no bytes. Only a count bounds the table. */
static void folders_of_zero_bytes_are_bounded(void **state)
{
	static const unsigned char table[] = {
		5,
		0,
		8,
		0,
		30,
		0,
		0,
		0,
		1,
		1,
		1,
		0xfb,
		14,
		13,
		0,
		1,
		1,
		1,
		1,
		0,
		0,
		0,
		1,
		0,
		0,
		1, /* the bytes before the folders */
		1,
		DW_LNCT_path,
		DW_FORM_flag_present,
		0xff,
		0xff,
		0xff,
		0xff,
		0xff,
		0xff,
		0xff,
		0xff,
		0x7f,
		0,
		0,
	};
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];
	size_t n = 0;

	(void)state;
	begin(sections);
	put_unit(sections, START);
	put(&sections[2], sizeof(table), 4);
	outbuf_put(&sections[2], (const char *)table, sizeof(table));
	alarm(60);
	assert_int_equal(look_up(sections, frames, &n), 0);
	alarm(0);
	assert_int_equal(n, 1);
	assert_int_equal(frames[0].line, 0);
}

/* The listed units are good. */
static void units_without_an_address_table_are_found(void **state)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];
	size_t n = 0;

	(void)state;
	begin(sections);
	put_unit(sections, START);
	for (size_t i = 0; i < DWARF_UNITS_MAX; i++) {
		put(&sections[0], 9, 4);
		put(&sections[0], 5, 2);
		put(&sections[0], DW_UT_compile, 1);
		put(&sections[0], 8, 1);
		put(&sections[0], 0, 4);
		put(&sections[0], 0, 1);
	}
	assert_int_equal(look_up(sections, frames, &n), 0);
	assert_int_equal(n, 1);
}

/* A unit at START with that many rows of lines. */
static void put_rows(struct outbuf sections[SECTIONS], size_t rows)
{
	static const char header[] = "\5\0\10\0\12\0\0\0\1\1\1\1\1\1" /* version 5 */
				     "\0\0\0\0"                       /* no folders, no files */
				     "\0\11\2";                       /* DW_LNE_set_address */
	static const char end[] = "\0\1\1";                           /* DW_LNE_end_sequence */
	struct outbuf *line = &sections[2];

	put_unit(sections, START);
	put(line, sizeof(header) - 1 + 8 + rows + sizeof(end) - 1, 4);
	outbuf_put(line, header, sizeof(header) - 1);
	put(line, START, 8);
	for (size_t i = 0; i < rows; i++)
		outbuf_char(line, 2); /* the next address and line */
	outbuf_put(line, end, sizeof(end) - 1);
}

static int look_up_rows(size_t rows, struct inline_frame *frames)
{
	struct outbuf sections[SECTIONS];
	size_t n = 0;

	begin(sections);
	put_rows(sections, rows);
	return look_up(sections, frames, &n);
}

/* A row counts more than the byte that makes it. A small file is read even after that. */
static void all_files_share_the_steps(void **state)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];

	(void)state;
	elf_budget_reset_steps(2 << 20);
	assert_int_equal(look_up_rows(300000, frames), 0);
	assert_int_equal(frames[0].line, 9);
	assert_int_equal(look_up_rows(300000, frames), -ENOENT);
	assert_int_equal(look_up_rows(1000, frames), 0);
	assert_int_equal(frames[0].line, 9);
	elf_budget_reset_steps(ELF_BUDGET_STEPS_MAX);
	assert_int_equal(look_up_rows(300000, frames), 0);
}

/* A list of that many ranges, and the range of START + 8. */
static void put_ranges(struct outbuf sections[SECTIONS], size_t nranges)
{
	struct outbuf *ranges = &sections[3];

	put(ranges, 8 + 9 + 3 * (nranges + 1) + 1, 4);
	put(ranges, 5, 2);
	put(ranges, 8, 2); /* bytes of an address, of a segment */
	put(ranges, 0, 4);
	put(ranges, DW_RLE_base_address, 1);
	put(ranges, START, 8);
	for (size_t i = 0; i < nranges; i++)
		outbuf_put(ranges, "\4\1\2", 3); /* DW_RLE_offset_pair */
	outbuf_put(ranges, "\4\10\11", 4);
}

/*
 * A unit with a function that has an inlined one. Its list has that many ranges, of which only the
 * last holds START + 8.
 */
static void put_inlined(struct outbuf sections[SECTIONS], size_t nranges)
{
	static const char abbrevs[] = "\1\21\1\21\1\22\7\0\0" /* DW_TAG_compile_unit: low, high */
				      "\2\56\1\21\1\22\7\0\0" /* DW_TAG_subprogram: the same */
				      "\3\35\0\125\27\0\0"    /* inlined_subroutine: ranges */
				      "\0";
	struct outbuf *info = &sections[0];
	uint64_t bytes = 8 + 2 * (1 + 8 + 8) + 1 + 4 + 2;

	put(info, bytes, 4);
	put(info, 5, 2);
	put(info, DW_UT_compile, 1);
	put(info, 8, 1);
	put(info, 0, 4);
	for (unsigned abbrev = 1; abbrev <= 2; abbrev++) {
		put(info, abbrev, 1);
		put(info, START, 8);
		put(info, BYTES, 8);
	}
	put(info, 3, 1);
	put(info, 12, 4); /* behind the header of the ranges */
	put(info, 0, 2);
	outbuf_put(&sections[1], abbrevs, sizeof(abbrevs) - 1);
	put_ranges(sections, nranges);
}

/* A list of ranges is searched for each address. */
static void searches_in_ranges_are_bounded(void **state)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];
	struct inlines *in = NULL;
	size_t depth = 0, n = 0;

	(void)state;
	begin(sections);
	put_inlined(sections, 100000);
	int fd = elf_of(sections);

	elf_budget_reset_steps(4 << 20);
	assert_int_equal(open_inlines(fd, &in), 0);
	assert_int_equal(inlines_find(in, START + 8, frames, &depth), 0);
	assert_int_equal(depth, 2);
	while (depth == 2 && n++ < 1000)
		assert_int_equal(inlines_find(in, START + 8, frames, &depth), 0);
	assert_int_equal(depth, 1);
	elf_budget_reset_steps(ELF_BUDGET_STEPS_MAX);
	inlines_free(in);
	close(fd);
}

static size_t allocated(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* Each unit has the same large table of abbreviations. */
static void memory_of_all_units_is_bounded(void **state)
{
	const uint64_t limit = (uint64_t)8 << 20;
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];
	struct inlines *in = NULL;
	size_t depth, had, most = 0;

	(void)state;
	begin(sections);
	for (uint64_t i = 0; i < 100; i++)
		put_unit(sections, START + i * BYTES);
	sections[1].len--; /* the end of the table */
	for (int i = 0; i < 10000; i++)
		outbuf_put(&sections[1], "\377\1\64\0\3\10\0", 8); /* a sparse code */
	put(&sections[1], 0, 1);
	int fd = elf_of(sections);

	elf_budget_limit(ELF_BUDGET_INLINES, limit);
	assert_int_equal(open_inlines(fd, &in), 0);
	had = allocated();
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(inlines_find(in, START + i * BYTES, frames, &depth), 0);
		size_t now = allocated() - had;

		most = now > most ? now : most;
	}
	print_message("%zu KiB at most\n", most >> 10);
	assert_true(most < 12 << 20);
	inlines_free(in);
	close(fd);
	assert_int_equal(elf_budget_left(ELF_BUDGET_INLINES), limit);
	elf_budget_limit(ELF_BUDGET_INLINES, 0);
}

/* Looks up START + 8 in MIB of memory, and checks that no more than that is kept. */
static int look_up_within(struct outbuf sections[SECTIONS], size_t mib, struct inline_frame *frames)
{
	int fd = elf_of(sections);
	size_t had = allocated(), depth;
	struct inlines *in = NULL;

	elf_budget_limit(ELF_BUDGET_INLINES, mib << 20);
	assert_int_equal(open_inlines(fd, &in), 0);
	int r = inlines_find(in, START + 8, frames, &depth);

	print_message("%zu KiB of %zu MiB\n", (allocated() - had) >> 10, mib);
	assert_true(allocated() - had < mib << 20);
	inlines_free(in);
	close(fd);
	assert_int_equal(elf_budget_left(ELF_BUDGET_INLINES), mib << 20);
	elf_budget_limit(ELF_BUDGET_INLINES, 0);
	return r;
}

static void memory_of_lines_is_bounded(void **state)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];

	(void)state;
	begin(sections);
	put_rows(sections, DWARF_ROWS_MAX - 1);
	assert_int_equal(look_up_within(sections, 32, frames), 0);
	assert_int_equal(frames[0].line, 0);
	begin(sections);
	put_rows(sections, DWARF_ROWS_MAX / 8);
	assert_int_equal(look_up_within(sections, 32, frames), 0);
	assert_int_equal(frames[0].line, 9);
}

/* Units without code, and units that share a list of ranges, all at START. */
static void put_units(struct outbuf sections[SECTIONS], size_t empty, size_t shared, size_t nranges)
{
	for (size_t i = 0; i < empty + shared; i++) {
		put(&sections[0], i < empty ? 9 : 13, 4);
		put(&sections[0], 5, 2);
		put(&sections[0], DW_UT_compile, 1);
		put(&sections[0], 8, 1);
		put(&sections[0], 0, 4);
		put(&sections[0], i >= empty, 1);
		if (i >= empty)
			put(&sections[0], 12, 4); /* behind the header of the ranges */
	}
	outbuf_put(&sections[1], "\1\21\0\125\27\0\0", 8); /* DW_TAG_compile_unit: ranges */
	put_ranges(sections, nranges);
}

static void memory_of_lists_is_bounded(void **state)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];

	(void)state;
	for (int few = 0; few < 2; few++) {
		size_t mib = few ? 8 : 400;

		begin(sections);
		put_units(sections, DWARF_UNITS_MAX - 1, 1, 1);
		assert_int_equal(look_up_within(sections, mib, frames), few ? -ENOENT : 0);
		begin(sections);
		put_units(sections, 0, 4, 500000);
		assert_int_equal(look_up_within(sections, mib, frames), few ? -ENOENT : 0);
	}
}

/* Read one file after the other. Each drops the memory of those before. */
static void all_files_share_the_memory(void **state)
{
	enum { FILES = 20 };
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];
	struct inlines *in[FILES];
	size_t had = 0, most = 0, depth;
	int fds[FILES];

	(void)state;
	elf_budget_limit(ELF_BUDGET_INLINES, 8 << 20);
	for (int i = 0; i < FILES; i++) {
		begin(sections);
		put_rows(sections, 100000);
		fds[i] = elf_of(sections);
		assert_int_equal(open_inlines(fds[i], &in[i]), 0);
	}
	had = allocated();
	for (int i = 0; i < 2 * FILES; i++) {
		assert_int_equal(inlines_find(in[i % FILES], START + 8, frames, &depth), 0);
		assert_int_equal(frames[0].line, 9);
		most = allocated() - had > most ? allocated() - had : most;
	}
	print_message("%zu KiB at most\n", most >> 10);
	assert_true(most < 8 << 20);
	for (int i = 0; i < FILES; i++) {
		inlines_free(in[i]);
		close(fds[i]);
	}
	assert_int_equal(elf_budget_left(ELF_BUDGET_INLINES), 8 << 20);
	elf_budget_limit(ELF_BUDGET_INLINES, 0);
}

/* CPU seconds to look up one address of each of n units. */
static double look_up_all(size_t n)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	struct outbuf sections[SECTIONS];
	struct inlines *in = NULL;
	double began;
	size_t depth;
	int fd;

	begin(sections);
	for (size_t i = 0; i < n; i++)
		put_unit(sections, START + i * BYTES);
	fd = elf_of(sections);
	malloc_trim(0); /* so that each size pays for new pages */
	began = (double)clock() / CLOCKS_PER_SEC;
	assert_int_equal(open_inlines(fd, &in), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(inlines_find(in, START + i * BYTES, frames, &depth), 0);
	began = (double)clock() / CLOCKS_PER_SEC - began;
	inlines_free(in);
	close(fd);
	return began;
}

/* Eight times the units take about eight times as long. */
static void time_is_linear_in_units(void **state)
{
	double few, many;

	(void)state;
	few = look_up_all(UNITS);
	many = look_up_all(8 * UNITS);
	print_message("%d units: %.3f s; %d units: %.3f s\n", UNITS, few, 8 * UNITS, many);
	assert_true(many < 20 * few + 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_of_zero_bytes_are_bounded),
		cmocka_unit_test(units_without_an_address_table_are_found),
		cmocka_unit_test(all_files_share_the_steps),
		cmocka_unit_test(searches_in_ranges_are_bounded),
		cmocka_unit_test(memory_of_all_units_is_bounded),
		cmocka_unit_test(memory_of_lines_is_bounded),
		cmocka_unit_test(memory_of_lists_is_bounded),
		cmocka_unit_test(all_files_share_the_memory),
		cmocka_unit_test(time_is_linear_in_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
