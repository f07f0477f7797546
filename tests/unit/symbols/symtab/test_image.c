#include "container/opener.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "elf/debug_file.h"
#include "elf/budget.h"
#include "elf/elf_file.h"
#include "symbols/symtab/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

/* A small library of our own, its stripped form with a debug link, and both in one file after a
 * length. */
static struct blob {
	char *data;
	size_t len;
} elf64, elf64_link, elf32, pair, stripped, debug; /* the last two are in the pair */

static char root[] = "/tmp/test_image.XXXXXX";

static int read_blob(const char *name, struct blob *b)
{
	const char *tests = getenv("TESTS");
	char path[4096];

	snprintf(path, sizeof(path), "%s/fuzz/corpus/image/%s", tests ? tests : "tests", name);
	return file_read_at(AT_FDCWD, path, 1 << 20, &b->data, &b->len);
}

static int load_blobs(void **state)
{
	uint32_t first;

	(void)state;
	if (read_blob("elf64", &elf64) || read_blob("elf64-link", &elf64_link) ||
	    read_blob("elf32", &elf32) || read_blob("pair", &pair))
		return -1;
	memcpy(&first, pair.data, 4);
	stripped = (struct blob){pair.data + 4, first};
	debug = (struct blob){pair.data + 4 + first, pair.len - 4 - first};
	return 0;
}

static int free_blobs(void **state)
{
	(void)state;
	free(elf64.data);
	free(elf64_link.data);
	free(elf32.data);
	free(pair.data);
	return 0;
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/test_image.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void put_file(const char *path, const struct blob *b)
{
	char full[4096], *slash;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	slash = strrchr(full, '/');
	*slash = 0;
	assert_int_equal(file_mkdirs(full), 0);
	*slash = '/';
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, b->data, b->len), 0);
	close(fd);
}

/* Opens ROOT/opt/lib.so as if ROOT were the target's root, with our rights or those of nobody. */
static struct image *open_in_root_by(bool nobody)
{
	struct image *image = NULL;
	AUTO_CLOSE int root_fd = open(root, O_PATH | O_DIRECTORY);
	AUTO_CLOSE int fd = openat(root_fd, "opt/lib.so", O_RDONLY);
	struct opener_place place = {.own = true, .by_uid = nobody, .uid = OPENER_NOBODY};
	struct elf_file file;

	assert_true(fd >= 0);
	assert_int_equal(opener_new_in(root_fd, &place.opener), 0);
	assert_int_equal(elf_file_open(&file, fd, NULL, 0, NULL), 0);
	assert_int_equal(image_open(&file, "/opt/lib.so", &place, 1, &image), 0);
	elf_file_close(&file);
	opener_free(place.opener);
	return image;
}

static struct image *open_in_root(void)
{
	return open_in_root_by(false);
}

static struct image *from_memory(const struct blob *b)
{
	struct image *image = NULL;

	assert_int_equal(image_from_memory(b->data, b->len, SYMBOL_NONE, &image, NULL), 0);
	return image;
}

static void assert_name(struct image *image, uint64_t file_off, const char *name, int source)
{
	struct symbol s;

	if (!name) {
		assert_int_equal(symbol_provider_find(image->symbols, file_off, 0, &s), -ENOENT);
		return;
	}
	assert_int_equal(symbol_provider_find(image->symbols, file_off, 0, &s), 0);
	assert_string_equal(s.name, name);
	assert_int_equal(s.source, source);
	assert_true(s.base <= s.start && s.start <= file_off && file_off < s.end);
}

/* lld does not state the size of a slot. */
static void slots_have_names_without_a_stated_size(void **state)
{
	struct blob copy = {malloc(elf64.len), elf64.len};
	Elf64_Ehdr head;
	Elf64_Shdr section;
	size_t changed = 0;

	(void)state;
	assert_non_null(copy.data);
	memcpy(copy.data, elf64.data, elf64.len);
	memcpy(&head, copy.data, sizeof(head));
	for (size_t i = 0; i < head.e_shnum; i++) {
		char *at = copy.data + head.e_shoff + i * sizeof(section);

		memcpy(&section, at, sizeof(section));
		if (section.sh_type == SHT_PROGBITS && section.sh_flags & SHF_EXECINSTR &&
		    section.sh_entsize == 16) {
			section.sh_entsize = 0;
			memcpy(at, &section, sizeof(section));
			changed++;
		}
	}
	assert_true(changed > 0);
	struct image *image = from_memory(&copy);

	assert_name(image, 0x400, "puts@plt", SYMBOL_PLT);
	assert_name(image, 0x410, "weak_one@plt", SYMBOL_PLT);
	image_free(image);
	free(copy.data);
}

/* Results of nm and readelf for the library; perf script decided the choices. */
static void the_symbols_equal_perfs(void **state)
{
	struct image *image = from_memory(&elf64);
	uint64_t vaddr;

	(void)state;
	assert_true(image->is_elf);
	assert_int_equal(image->debug_place, 0);
	assert_int_equal(image->build_id.len, 20);
	assert_name(image, 0x400, "puts@plt", SYMBOL_PLT);
	assert_name(image, 0x410, "weak_one@plt", SYMBOL_PLT);
	assert_name(image, 0x420, "label_a", SYMBOL_SYMTAB);
	assert_name(image, 0x422, "nosize", SYMBOL_SYMTAB);
	assert_name(image, 0x421, "label_b", SYMBOL_SYMTAB);
	assert_name(image, 0x423, "hid",
		    SYMBOL_SYMTAB); /* hidden in the object file, local after linking */
	assert_name(image, 0x424, "_ZN1aC1Ev", SYMBOL_SYMTAB);
	assert_name(image, 0x425, "plain", SYMBOL_SYMTAB);
	assert_name(image, 0x426, "alias_one", SYMBOL_SYMTAB);
	assert_name(image, 0x429, "outer", SYMBOL_SYMTAB);
	assert_name(image, 0x5e8, "data_word", SYMBOL_SYMTAB);
	assert_name(image, 0x900000, NULL, 0);
	assert_int_equal(image_vaddr(image, 0x429, &vaddr), 0);
	assert_int_equal(vaddr, 0x429);
	assert_int_equal(image_vaddr(image, 0x5e8, &vaddr), 0);
	assert_int_equal(vaddr, 0x15e8);
	assert_int_equal(image_vaddr(image, 0x900000, &vaddr), -ENOENT);
	image_free(image);
}

/* The library with other PT_LOAD segments. */
static struct image *with_segments(const struct elf_segment *segments, size_t n)
{
	struct blob copy = {malloc(elf64.len), elf64.len};
	Elf64_Ehdr head;
	struct image *image;

	assert_non_null(copy.data);
	memcpy(copy.data, elf64.data, elf64.len);
	memcpy(&head, copy.data, sizeof(head));
	assert_true(n <= head.e_phnum);
	for (size_t i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr p = {.p_type = PT_NULL};

		if (i < n)
			p = (Elf64_Phdr){.p_type = PT_LOAD,
					 .p_flags = segments[i].flags,
					 .p_offset = segments[i].file_off,
					 .p_vaddr = segments[i].vaddr,
					 .p_filesz = segments[i].file_bytes,
					 .p_memsz = segments[i].mem_bytes};
		memcpy(copy.data + head.e_phoff + i * sizeof(p), &p, sizeof(p));
	}
	image = from_memory(&copy);
	free(copy.data);
	return image;
}

static void assert_vaddr(const struct image *image, uint64_t file_off, uint64_t expected)
{
	uint64_t vaddr;

	assert_int_equal(image_vaddr(image, file_off, &vaddr), 0);
	assert_true(vaddr == expected);
}

/* Overlapping segments in each order: one name and one vaddr for each file offset. For code the
 * executable segment decides. */
static void overlapping_segments_give_one_result_in_any_order(void **state)
{
	static const struct elf_segment all[] = {
		{.vaddr = 0,
		 .file_off = 0,
		 .file_bytes = 0x458,
		 .mem_bytes = 0x458,
		 .flags = PF_R | PF_X},
		{.vaddr = 0x1458,
		 .file_off = 0x458,
		 .file_bytes = 0x194,
		 .mem_bytes = 0x194,
		 .flags = PF_R | PF_W},
		/* the same bytes twice: data below, code above */
		{.vaddr = 0x100200,
		 .file_off = 0x200,
		 .file_bytes = 0x300,
		 .mem_bytes = 0x300,
		 .flags = PF_R},
		{.vaddr = 0x200200,
		 .file_off = 0x200,
		 .file_bytes = 0x300,
		 .mem_bytes = 0x300,
		 .flags = PF_R | PF_X},
	};
	static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};

	(void)state;
	for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
		struct elf_segment segments[4];

		for (size_t i = 0; i < 4; i++)
			segments[i] = all[orders[o][i]];
		struct image *image = with_segments(segments, 4);

		assert_int_equal(image->nsegments, 4);
		assert_vaddr(image, 0x429, 0x429);
		assert_vaddr(image, 0x460, 0x200460);
		assert_vaddr(image, 0x5e8, 0x15e8);
		assert_name(image, 0x421, "label_b", SYMBOL_SYMTAB);
		assert_name(image, 0x429, "outer", SYMBOL_SYMTAB);
		assert_name(image, 0x410, "weak_one@plt", SYMBOL_PLT);
		assert_name(image, 0x5e8, "data_word", SYMBOL_SYMTAB);
		image_free(image);
	}
}

/* A segment that overlaps others in memory: symbols are placed by the first segment, as in perf. */
static void the_first_of_overlapping_segments_places_symbols(void **state)
{
	static const struct elf_segment code = {.file_bytes = 0x458,
						.mem_bytes = 0x458,
						.flags = PF_R | PF_X},
					over = {.vaddr = 0x400,
						.file_off = 0x500,
						.file_bytes = 0x58,
						.mem_bytes = 0x1000,
						.flags = PF_R | PF_W};
	struct image *image = with_segments((struct elf_segment[]){code, over}, 2);

	(void)state;
	assert_name(image, 0x429, "outer", SYMBOL_SYMTAB);
	assert_vaddr(image, 0x429, 0x429);
	image_free(image);
	image = with_segments((struct elf_segment[]){over, code}, 2);
	assert_name(image, 0x429, NULL, 0);
	assert_name(image, 0x529, "outer", SYMBOL_SYMTAB);
	assert_vaddr(image, 0x429, 0x429);
	assert_vaddr(image, 0x529, 0x429);
	image_free(image);
}

static void segments_at_the_end_of_the_address_space_are_harmless(void **state)
{
	static const struct elf_segment end = {.vaddr = UINT64_MAX - 0xf,
					       .file_off = UINT64_MAX - 0xf,
					       .file_bytes = UINT64_MAX,
					       .mem_bytes = UINT64_MAX,
					       .flags = PF_R | PF_X};
	struct image *image = with_segments(&end, 1);
	uint64_t at;

	(void)state;
	assert_int_equal(image_vaddr(image, 0x429, &at), -ENOENT);
	assert_vaddr(image, UINT64_MAX, UINT64_MAX);
	assert_int_equal(elf_segments_file_off(image->segments, 1, 0x429, &at), -ENOENT);
	assert_int_equal(elf_segments_file_off(image->segments, 1, UINT64_MAX, &at), 0);
	assert_true(at == UINT64_MAX);
	image_free(image);
	image = with_segments(&(struct elf_segment){.vaddr = UINT64_MAX - 0xf,
						    .file_bytes = 0x458,
						    .mem_bytes = 0x458},
			      1);
	assert_vaddr(image, 0xf, UINT64_MAX);
	assert_int_equal(image_vaddr(image, 0x10, &at), -ENOENT);
	image_free(image);
}

static void images_of_32_bits_are_read_too(void **state)
{
	struct image *image = from_memory(&elf32);
	struct symbol s;
	bool found = false;

	(void)state;
	for (uint64_t a = 0; a < 0x2000 && !found; a++)
		found = !symbol_provider_find(image->symbols, a, 0, &s) &&
			!strcmp(s.name, "puts@plt");
	assert_true(found);
	image_free(image);
}

static void the_source_of_an_image_from_memory_tags_its_symbols(void **state)
{
	struct image *image = NULL;

	(void)state;
	assert_int_equal(image_from_memory(elf64.data, elf64.len, SYMBOL_VDSO, &image, NULL), 0);
	assert_name(image, 0x429, "outer", SYMBOL_VDSO);
	image_free(image);
}

static void a_stripped_file_has_its_exports_only(void **state)
{
	struct image *image = from_memory(&stripped);

	(void)state;
	assert_name(image, 0x429, "outer", SYMBOL_DYNSYM);
	assert_name(image, 0x400, "puts@plt", SYMBOL_PLT);
	image_free(image);
}

static void assert_debug_file(bool expected)
{
	struct image *image = open_in_root();

	assert_int_equal(image->debug_place != 0, expected);
	assert_name(image, 0x421, expected ? "label_b" : "label_a",
		    expected ? SYMBOL_DEBUG_FILE : SYMBOL_DYNSYM);
	assert_name(image, 0x429, "outer", expected ? SYMBOL_DEBUG_FILE : SYMBOL_DYNSYM);
	assert_name(image, 0x400, "puts@plt", SYMBOL_PLT);
	image_free(image);
}

static void debug_files_are_found_in_all_usual_places(void **state)
{
	static const char *const places[] = {
		"opt/lib.debug",
		"opt/.debug/lib.debug",
		"usr/lib/debug/opt/lib.debug",
		"usr/lib/debug/opt/lib.so.debug",
		"usr/lib/debug/opt/lib.so",
		"opt/.debug/lib.so",
	};
	char by_id[128] = "usr/lib/debug/.build-id/", hex[2 * BUILD_ID_MAX + 1];
	struct image *image = from_memory(&stripped);

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		put_file("opt/lib.so", &elf64_link);
		assert_debug_file(false);
		put_file(places[i], &debug);
		assert_debug_file(true);
		remove_root(NULL);
		make_root(NULL);
	}
	build_id_hex(&image->build_id, hex);
	image_free(image);
	snprintf(by_id + strlen(by_id), sizeof(by_id) - strlen(by_id), "%.2s/%s.debug", hex,
		 hex + 2);
	put_file("opt/lib.so", &stripped);
	put_file(by_id, &debug);
	assert_debug_file(true);
}

/* A copy with another build id, or, if its note has no owner, with none. */
static struct blob other_build_id(const struct blob *b, bool none)
{
	struct blob copy = {malloc(b->len), b->len};
	static const char owner[] = "\x03\x00\x00\x00GNU";

	assert_non_null(copy.data);
	memcpy(copy.data, b->data, b->len);
	char *note = memmem(copy.data, copy.len, owner, sizeof(owner));

	assert_non_null(note);
	note[none ? 4 : sizeof(owner)] ^= 1;
	return copy;
}

static void a_debug_file_of_another_build_is_not_used(void **state)
{
	struct blob other = other_build_id(&debug, false), none = other_build_id(&debug, true);

	(void)state;
	put_file("opt/lib.so", &elf64_link);
	put_file("opt/lib.debug", &other);
	assert_debug_file(false);
	put_file("opt/lib.debug", &none);
	assert_debug_file(false);
	put_file("opt/.debug/lib.debug", &debug); /* the next place is searched */
	assert_debug_file(true);
	free(other.data);
	free(none.data);
}

static void assert_denied(bool expected)
{
	struct image *image = open_in_root_by(true);

	assert_int_equal(image->debug_place, 0);
	assert_int_equal(image->debug_denied, expected);
	image_free(image);
}

static void a_debug_file_that_was_refused_is_reported(void **state)
{
	struct blob other = other_build_id(&debug, false);
	char path[128];

	(void)state;
	assert_int_equal(chmod(root, 0755), 0);
	put_file("opt/lib.so", &elf64_link);
	assert_denied(false);
	put_file("opt/lib.debug", &other);
	snprintf(path, sizeof(path), "%s/opt/lib.debug", root);
	assert_int_equal(chmod(path, 0600), 0);
	assert_denied(false); /* It is of another build. */
	put_file("opt/lib.debug", &debug);
	assert_denied(true);
	assert_int_equal(chmod(path, 0644), 0);
	snprintf(path, sizeof(path), "%s/opt", root);
	assert_int_equal(chmod(path, 0700), 0);
	assert_denied(true);
	assert_int_equal(chmod(path, 0755), 0);
	struct image *image = open_in_root_by(true);

	assert_int_equal(image->debug_place, DEBUG_FILE_INSTALLED);
	assert_false(image->debug_denied);
	image_free(image);
	free(other.data);
}

static void without_a_build_id_the_checksum_decides(void **state)
{
	struct blob image = other_build_id(&elf64_link, true),
		    other = other_build_id(&debug, false);

	(void)state;
	put_file("opt/lib.so", &image);
	put_file("opt/lib.debug", &other);
	assert_debug_file(false);
	put_file("opt/lib.debug", &debug);
	assert_debug_file(true);
	free(image.data);
	free(other.data);
}

static void checksums_of_all_images_share_a_limit(void **state)
{
	struct blob image = other_build_id(&elf64_link, true);

	(void)state;
	put_file("opt/lib.so", &image);
	put_file("opt/lib.debug", &debug);
	(void)debug_file_take_uncompared();
	debug_file_limit_crc_total(debug.len);
	assert_debug_file(true);
	assert_int_equal(debug_file_take_uncompared(), 0);
	assert_debug_file(false);
	assert_debug_file(false);
	assert_int_equal(debug_file_take_uncompared(), 2);
	assert_int_equal(debug_file_take_uncompared(), 0);
	debug_file_limit_crc_total(DEBUG_FILE_CRC_TOTAL_MAX);
	assert_debug_file(true);
	free(image.data);
}

static void links_do_not_lead_out_of_the_root(void **state)
{
	char outside[] = "/tmp/test_image_out.XXXXXX", path[256], inside[256], command[512];

	(void)state;
	assert_non_null(mkdtemp(outside));
	put_file("opt/lib.so", &elf64_link);
	put_file("linked.debug", &debug);
	/* The root of an absolute link inside the root is that root. */
	snprintf(inside, sizeof(inside), "%s/opt/lib.debug", root);
	assert_int_equal(symlink("/linked.debug", inside), 0);
	assert_debug_file(true);
	assert_int_equal(unlink(inside), 0);
	/* The same path outside it is not visible. */
	snprintf(command, sizeof(command), "mv %s/linked.debug %s/lib.debug", root, outside);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/lib.debug", outside);
	assert_int_equal(symlink(path, inside), 0);
	assert_debug_file(false);
	assert_int_equal(unlink(inside), 0);
	snprintf(path, sizeof(path), "../../../../../..%s/lib.debug", outside);
	assert_int_equal(symlink(path, inside), 0);
	assert_debug_file(false);
	/* Files that are not regular do not block. */
	assert_int_equal(unlink(inside), 0);
	assert_int_equal(mkfifo(inside, 0600), 0);
	assert_debug_file(false);
	snprintf(command, sizeof(command), "rm -rf %s", outside);
	assert_int_equal(system(command), 0);
}

static void a_build_id_is_read_alone(void **state)
{
	struct build_id id;
	char hex[2 * BUILD_ID_MAX + 1];

	(void)state;
	put_file("opt/lib.so", &stripped);
	put_file("opt/text", &(struct blob){(char *)(uintptr_t) "text", 4});
	AUTO_CLOSE int root_fd = open(root, O_PATH | O_DIRECTORY);
	AUTO_CLOSE int fd = openat(root_fd, "opt/lib.so", O_RDONLY);
	AUTO_CLOSE int text = openat(root_fd, "opt/text", O_RDONLY);
	AUTO_CLOSE int dir = openat(root_fd, "opt", O_RDONLY);

	assert_int_equal(elf_file_build_id_of(fd, &id), 0);
	build_id_hex(&id, hex);
	assert_int_equal(strlen(hex), 40);
	assert_int_equal(strspn(hex, "0123456789abcdef"), 40);
	assert_int_equal(elf_file_build_id_of(text, &id), -EBADMSG);
	assert_int_equal(elf_file_build_id_of(dir, &id), -EBADMSG);
	assert_int_equal(elf_file_build_id_of(-1, &id), -EBADMSG);
}

/* Cut at each length and changed at each byte: any result, but no crash. */
static void damaged_files_are_harmless(void **state)
{
	struct image *image;
	struct parse_error err;
	struct symbol s;

	(void)state;
	for (size_t len = 0; len < elf64.len; len++) {
		char *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy, elf64.data, len);
		if (!image_from_memory(copy, len, SYMBOL_NONE, &image, &err))
			image_free(image);
		free(copy);
	}
	for (size_t i = 0; i < elf64.len; i++) {
		char was = elf64.data[i];

		elf64.data[i] = (char)~was;
		if (!image_from_memory(elf64.data, elf64.len, SYMBOL_NONE, &image, &err)) {
			for (uint64_t a = 0x3f0; image->symbols && a < 0x460; a++)
				symbol_provider_find(image->symbols, a, 0, &s);
			image_free(image);
		}
		elf64.data[i] = was;
	}
}

static void symbols_of_all_images_share_a_limit(void **state)
{
	const uint64_t limit = 64 << 10, before = elf_budget_left(ELF_BUDGET_SYMBOLS);
	struct image *images[100] = {0}, *again;
	size_t n = 0, named = 0;

	(void)state;
	assert_true(before > limit);
	elf_budget_limit(ELF_BUDGET_SYMBOLS, limit);
	for (; n < 100; n++) {
		assert_int_equal(
			image_from_memory(elf64.data, elf64.len, SYMBOL_NONE, &images[n], NULL), 0);
		assert_true(!images[n]->symbols_error || images[n]->symbols_error == -E2BIG);
		if (images[n]->symbols_error)
			break;
		named++;
	}
	assert_true(n < 100 && named > 10);
	/* There is room again after other images were closed. */
	for (size_t i = 0; i < n / 2; i++)
		image_free(images[i]);
	assert_int_equal(image_from_memory(elf64.data, elf64.len, SYMBOL_NONE, &again, NULL), 0);
	assert_int_equal(again->symbols_error, 0);
	image_free(again);
	for (size_t i = n / 2; i <= n; i++)
		image_free(images[i]);
	assert_int_equal(elf_budget_left(ELF_BUDGET_SYMBOLS), limit);
	elf_budget_limit(ELF_BUDGET_SYMBOLS, before);
}

/* libelf allocates memory for each section that the header states. */
static void too_many_sections_cost_no_memory(void **state)
{
	const uint64_t n = (uint64_t)1 << 22;
	const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT},
				   .e_type = ET_DYN,
				   .e_machine = EM_X86_64,
				   .e_version = EV_CURRENT,
				   .e_shoff = sizeof(header),
				   .e_ehsize = sizeof(header),
				   .e_shentsize = sizeof(Elf64_Shdr)};
	const Elf64_Shdr first = {.sh_size = n};
	int fd = memfd_create("sections", MFD_CLOEXEC);
	struct rusage before, after;
	struct elf_file f;

	(void)state;
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, &first, sizeof(first)), sizeof(first));
	assert_int_equal(ftruncate(fd, (off_t)(sizeof(header) + n * sizeof(first))), 0);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(elf_file_open(&f, fd, NULL, 0, NULL), -E2BIG);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 16 << 10);
	close(fd);
}

#define ROOT_TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_symbols_equal_perfs),
		cmocka_unit_test(slots_have_names_without_a_stated_size),
		cmocka_unit_test(overlapping_segments_give_one_result_in_any_order),
		cmocka_unit_test(the_first_of_overlapping_segments_places_symbols),
		cmocka_unit_test(segments_at_the_end_of_the_address_space_are_harmless),
		cmocka_unit_test(images_of_32_bits_are_read_too),
		cmocka_unit_test(the_source_of_an_image_from_memory_tags_its_symbols),
		cmocka_unit_test(a_stripped_file_has_its_exports_only),
		ROOT_TEST(debug_files_are_found_in_all_usual_places),
		ROOT_TEST(a_debug_file_of_another_build_is_not_used),
		ROOT_TEST(a_debug_file_that_was_refused_is_reported),
		ROOT_TEST(without_a_build_id_the_checksum_decides),
		ROOT_TEST(checksums_of_all_images_share_a_limit),
		ROOT_TEST(links_do_not_lead_out_of_the_root),
		ROOT_TEST(a_build_id_is_read_alone),
		cmocka_unit_test(damaged_files_are_harmless),
		cmocka_unit_test(symbols_of_all_images_share_a_limit),
		cmocka_unit_test(too_many_sections_cost_no_memory),
	};

	return cmocka_run_group_tests(tests, load_blobs, free_blobs);
}
