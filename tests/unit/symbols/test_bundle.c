/* symbols/bundle: of a single-file .NET program only the list of files is kept, within the memory
 * that is left. */
#include "symbols/bundle.h"

#include "elf/budget.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH "a.dll"
#define FILE_AT 4096
#define FILE_BYTES 100

struct host {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint64_t manifest_at;
	unsigned char signature[32]; /* SHA-256 of ".net core bundle" and a newline */
};

struct __attribute__((packed)) manifest {
	uint32_t major, minor, files;
	char id[4]; /* with its length in front */
	uint64_t others[5];
	uint64_t offset, bytes, compressed_bytes;
	uint8_t type;
	char path[sizeof(PATH)]; /* likewise, without a NUL */
};

static const struct host host = {
	.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			       EV_CURRENT},
		   .e_type = ET_DYN,
		   .e_machine = EM_X86_64,
		   .e_version = EV_CURRENT,
		   .e_phoff = offsetof(struct host, segment),
		   .e_ehsize = sizeof(Elf64_Ehdr),
		   .e_phentsize = sizeof(Elf64_Phdr),
		   .e_phnum = 1},
	.segment = {.p_type = PT_LOAD, .p_filesz = sizeof(struct host)},
	.manifest_at = sizeof(struct host),
	.signature = {0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
		      0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
		      0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae},
};

/* A program with one file in its bundle, and then `more` bytes. */
static int make_program(uint64_t more)
{
	const struct manifest manifest = {.major = 6,
					  .files = 1,
					  .id = "\3abc",
					  .offset = FILE_AT,
					  .bytes = FILE_BYTES,
					  .type = 1,
					  .path = {sizeof(PATH) - 1, 'a', '.', 'd', 'l', 'l'}};
	int fd = memfd_create("program", MFD_CLOEXEC);

	assert_int_equal(write(fd, &host, sizeof(host)), sizeof(host));
	assert_int_equal(write(fd, &manifest, sizeof(manifest)), sizeof(manifest));
	assert_int_equal(ftruncate(fd, (off_t)(FILE_AT + FILE_BYTES + more)), 0);
	return fd;
}

static void files_are_found(void **state)
{
	struct parse_error err = {.what = NULL};
	struct bundle_files files;
	int fd = make_program(0);

	(void)state;
	assert_int_equal(bundle_read(fd, &files, &err), 0);
	assert_int_equal(files.nfiles, 1);
	assert_int_equal(files.files[0].offset, FILE_AT);
	assert_int_equal(files.files[0].bytes, FILE_BYTES);
	assert_int_equal(files.files[0].path_len, strlen(PATH));
	assert_memory_equal(files.files[0].path, PATH, strlen(PATH));
	bundle_files_free(&files);
	/* A target can map many hosts. */
	while (elf_budget_work(0))
		elf_budget_worked(UINT64_MAX);
	assert_int_equal(bundle_read(fd, &files, &err), -E2BIG);
	elf_budget_reset_work();
	assert_int_equal(bundle_read(fd, &files, &err), 0);
	bundle_files_free(&files);
	close(fd);
}

static void manifests_share_a_limit(void **state)
{
	struct parse_error err = {.what = NULL};
	struct bundle_files files, other;
	/* The bytes behind the manifest do not count. */
	int fd = make_program((uint64_t)64 << 20);
	const uint64_t bytes = sizeof(struct manifest) + sizeof(struct bundle_file);

	(void)state;
	elf_budget_limit(ELF_BUDGET_SECTIONS, 2 * bytes - 1);
	assert_int_equal(bundle_read(fd, &files, &err), 0);
	assert_int_equal(bundle_read(fd, &other, &err), -E2BIG);
	assert_string_equal(err.what, "a .NET bundle needs more memory than is left");
	bundle_files_free(&files);
	assert_int_equal(bundle_read(fd, &other, &err), 0);
	bundle_files_free(&other);
	assert_int_equal(elf_budget_left(ELF_BUDGET_SECTIONS), 2 * bytes - 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_found),
		cmocka_unit_test(manifests_share_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
