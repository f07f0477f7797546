#include "base/cleanup.h"
#include "base/file.h"
#include "base/outbuf.h"
#include "elf/budget.h"
#include "elf/dwarf_data.h"
#include "elf/inlines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define START 0x1000
#define BYTES 0x100
#define FIRST_ID 77
#define INDEX_AT 8192
#define INDEX_SLOTS ((uint64_t)4 << 20)

struct part {
	const char *name;
	struct outbuf bytes;
	uint64_t hole_at, hole_bytes; /* the section is this place of the file, not bytes */
};

static char dir[] = "/tmp/test_split.XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_split.XXXXXX");
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void put(struct outbuf *out, uint64_t value, size_t bytes)
{
	outbuf_put(out, (const char *)&value, bytes);
}

/* Writes an ELF file with sections, after `empty` empty ones. Frees the sections. */
static void write_elf(const char *name, struct part *parts, size_t n, size_t empty)
{
	Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = (uint16_t)(n + empty + 2),
			   .e_shstrndx = 1};
	AUTO_FREE Elf64_Shdr *headers = calloc(n + empty + 2, sizeof(*headers));
	struct outbuf file = outbuf_to(-1), texts = outbuf_to(-1);
	char path[256];
	uint64_t end = 0;

	assert_non_null(headers);
	outbuf_put(&file, (const char *)&head, sizeof(head)); /* replaced below */
	outbuf_char(&texts, 0);
	for (size_t i = 0; i < n; i++) {
		struct part *p = &parts[i];

		headers[empty + 2 + i] =
			(Elf64_Shdr){.sh_name = (uint32_t)texts.len,
				     .sh_type = SHT_PROGBITS,
				     .sh_offset = p->hole_bytes ? p->hole_at : file.len,
				     .sh_size = p->hole_bytes ? p->hole_bytes : p->bytes.len};
		end = p->hole_bytes ? p->hole_at + p->hole_bytes : end;
		outbuf_put(&file, p->bytes.data, p->bytes.len);
		outbuf_put(&texts, p->name, strlen(p->name) + 1);
		outbuf_close(&p->bytes);
	}
	headers[1] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = file.len, .sh_size = texts.len};
	outbuf_put(&file, texts.data, texts.len);
	head.e_shoff = file.len;
	outbuf_put(&file, (const char *)headers, (n + empty + 2) * sizeof(*headers));
	memcpy(file.data, &head, sizeof(head));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, file.data, file.len), 0);
	assert_true(!end || !ftruncate(fd, (off_t)end));
	outbuf_close(&file);
	outbuf_close(&texts);
}

static void put_unit_header(struct outbuf *info, size_t bytes, int type, uint64_t id)
{
	put(info, 2 + 1 + 1 + 4 + 8 + bytes, 4);
	put(info, 5, 2);
	put(info, (uint64_t)type, 1);
	put(info, 8, 1);
	put(info, 0, 4);
	put(info, id, 8);
}

/* An image with skeleton units at START and after it. Unit i names links[i % nlinks]. */
static void write_image(size_t units, const char *const *links, size_t nlinks)
{
	static const unsigned char abbrevs[] = {1,
						DW_TAG_skeleton_unit,
						DW_CHILDREN_no,
						DW_AT_dwo_name,
						DW_FORM_string,
						DW_AT_comp_dir,
						DW_FORM_string,
						DW_AT_low_pc,
						DW_FORM_addr,
						DW_AT_high_pc,
						DW_FORM_data8,
						0,
						0,
						0};
	struct part parts[] = {{.name = ".debug_info", .bytes = outbuf_to(-1)},
			       {.name = ".debug_abbrev", .bytes = outbuf_to(-1)}};
	struct outbuf *info = &parts[0].bytes;

	outbuf_put(&parts[1].bytes, (const char *)abbrevs, sizeof(abbrevs));
	for (size_t i = 0; i < units; i++) {
		const char *link = links[i % nlinks];

		put_unit_header(info, 1 + strlen(link) + 1 + strlen(dir) + 1 + 8 + 8,
				DW_UT_skeleton, FIRST_ID + i);
		put(info, 1, 1);
		outbuf_put(info, link, strlen(link) + 1);
		outbuf_put(info, dir, strlen(dir) + 1);
		put(info, START + i * BYTES, 8);
		put(info, BYTES, 8);
	}
	write_elf("image", parts, 2, 0);
}

/* A file with one split unit, which has a function at START; index: and an index that is a hole. */
static void write_split(const char *name, uint64_t id, bool index, size_t empty)
{
	static const unsigned char abbrevs[] = {1,
						DW_TAG_compile_unit,
						DW_CHILDREN_yes,
						0,
						0,
						2,
						DW_TAG_subprogram,
						DW_CHILDREN_no,
						DW_AT_name,
						DW_FORM_string,
						DW_AT_low_pc,
						DW_FORM_addr,
						DW_AT_high_pc,
						DW_FORM_data8,
						0,
						0,
						0};
	struct part parts[] = {
		{.name = ".debug_info.dwo", .bytes = outbuf_to(-1)},
		{.name = ".debug_abbrev.dwo", .bytes = outbuf_to(-1)},
		{.name = ".debug_cu_index",
		 .hole_at = INDEX_AT,
		 .hole_bytes = 16 + INDEX_SLOTS * 12 + 64},
	};
	struct outbuf *info = &parts[0].bytes;

	put_unit_header(info, 1 + 1 + sizeof("found") + 8 + 8 + 1, DW_UT_split_compile, id);
	put(info, 1, 1);
	put(info, 2, 1);
	outbuf_put(info, "found", sizeof("found"));
	put(info, START, 8);
	put(info, BYTES, 8);
	put(info, 0, 1);
	outbuf_put(&parts[1].bytes, (const char *)abbrevs, sizeof(abbrevs));
	write_elf(name, parts, index ? 3 : 2, empty);
}

struct opened {
	struct opener *opener;
	struct inlines *in;
};

static struct opened open_image(void)
{
	struct opened o = {NULL, NULL};
	struct opener_place place = {.own = true};
	struct elf_file file;
	char path[256];

	snprintf(path, sizeof(path), "%s/image", dir);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(opener_new(&o.opener), 0);
	place.opener = o.opener;
	assert_int_equal(elf_file_open(&file, fd, NULL, 0, NULL), 0);
	assert_int_equal(inlines_open(&file, path, &place, 1, &o.in, NULL), 0);
	elf_file_close(&file);
	return o;
}

static void close_image(struct opened *o)
{
	inlines_free(o->in);
	opener_free(o->opener);
}

static int look_up(struct opened *o, size_t unit, struct inline_frame *frames)
{
	size_t n;

	return inlines_find(o->in, START + unit * BYTES + 8, frames, &n);
}

/* A package of 60 MiB that is a hole is searched with a budget that is far smaller. */
static void only_the_slots_of_an_id_are_read(void **state)
{
	static const char *const name = "none.dwo";
	const uint32_t head[] = {5, 2, 1, INDEX_SLOTS}, row = 1,
		       table[] = {DW_SECT_INFO, DW_SECT_ABBREV, 0, 0};
	struct inline_frame frames[INLINES_DEPTH_MAX];
	uint64_t id = FIRST_ID, ids = INDEX_AT + sizeof(head), rows = ids + INDEX_SLOTS * 8;
	char path[256];

	(void)state;
	write_image(2, &name, 1);
	write_split("image.dwp", FIRST_ID, true, 0);
	snprintf(path, sizeof(path), "%s/image.dwp", dir);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, head, sizeof(head), INDEX_AT), sizeof(head));
	assert_int_equal(pwrite(fd, &id, sizeof(id), (off_t)(ids + id * 8)), sizeof(id));
	assert_int_equal(pwrite(fd, &row, sizeof(row), (off_t)(rows + id * 4)), sizeof(row));
	assert_int_equal(pwrite(fd, table, sizeof(table), (off_t)(rows + INDEX_SLOTS * 4)),
			 sizeof(table));
	elf_budget_limit(ELF_BUDGET_INLINES, 4 << 20);
	struct opened o = open_image();

	assert_int_equal(look_up(&o, 0, frames), 0);
	assert_non_null(frames[0].function);
	assert_string_equal(frames[0].function, "found");
	assert_int_equal(look_up(&o, 1, frames), 0);
	assert_null(frames[0].function);
	close_image(&o);
	elf_budget_limit(ELF_BUDGET_INLINES, 0);
	unlink(path);
}

/* Each unit names the same hostile file by another path. */
static void steps_count_the_headers_of_opened_files(void **state)
{
	char names[16][64] = {{0}};
	const char *links[16];
	struct inline_frame frames[INLINES_DEPTH_MAX];
	int r = 0;

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		for (size_t n = 0; n < i; n++)
			strcat(names[i], "./");
		links[i] = strcat(names[i], "bomb.dwo");
	}
	write_image(16, links, 16);
	write_split("bomb.dwo", FIRST_ID + 100, false, 16000);
	elf_budget_reset_steps(8 << 20);
	struct opened o = open_image();

	assert_int_equal(look_up(&o, 0, frames), 0);
	for (size_t i = 1; i < 16 && !r; i++)
		r = look_up(&o, i, frames);
	assert_int_equal(r, -ENOENT);
	close_image(&o);
	elf_budget_reset_steps(ELF_BUDGET_STEPS_MAX);
}

/* Whether the file was opened since the last call. */
static bool was_opened(int watch_fd)
{
	char events[4096];

	return read(watch_fd, events, sizeof(events)) > 0;
}

static void a_file_that_lacks_a_unit_is_opened_once(void **state)
{
	static const char *const names[] = {"good.dwo", "stale.dwo", "stale.dwo"};
	struct inline_frame frames[INLINES_DEPTH_MAX];
	AUTO_CLOSE int watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[256];

	(void)state;
	write_image(3, names, 3);
	write_split("good.dwo", FIRST_ID, false, 0);
	write_split("stale.dwo", FIRST_ID + 100, false, 0);
	snprintf(path, sizeof(path), "%s/stale.dwo", dir);
	assert_true(inotify_add_watch(watch_fd, path, IN_OPEN) >= 0);
	struct opened o = open_image();

	assert_int_equal(look_up(&o, 0, frames), 0);
	assert_string_equal(frames[0].function, "found");
	assert_false(was_opened(watch_fd));
	assert_int_equal(look_up(&o, 1, frames), 0);
	assert_null(frames[0].function);
	assert_true(was_opened(watch_fd));
	assert_int_equal(look_up(&o, 2, frames), 0);
	assert_null(frames[0].function);
	assert_false(was_opened(watch_fd));
	close_image(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_slots_of_an_id_are_read),
		cmocka_unit_test(steps_count_the_headers_of_opened_files),
		cmocka_unit_test(a_file_that_lacks_a_unit_is_opened_once),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
