/* symbols/image_file: the file of a mapping is accepted by its build id alone, exactly. */
#include "symbols/core/image_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "container/proc.h"
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MAPPED 8192

static char dir[] = "/tmp/test_image_file.XXXXXX", path[sizeof(dir) + 8];
static struct image_key key = {.kind = IMAGE_KIND_FILE};
static struct opener *opener;
static void *mapped;
static uint64_t first, second; /* inodes: of the mapping, and of the path's file since then */

/* Two files of one build id, like all single-file programs of a .NET version: this program,
 * twice. */
static uint64_t put_file(const char *name)
{
	char *data, to[sizeof(path)];
	struct stat st;
	size_t len;

	snprintf(to, sizeof(to), "%s/%s", dir, name);
	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/exe", 64 << 20, &data, &len), 0);
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	assert_int_equal(write(fd, data, len), (ssize_t)len);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	free(data);
	return st.st_ino;
}

static int set_up(void **state)
{
	char other[sizeof(path)];

	(void)state;
	if (!mkdtemp(dir) || opener_new(&opener))
		return -1;
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(other, sizeof(other), "%s/b", dir);
	first = put_file("a");
	second = put_file("b");
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	mapped = mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapped == MAP_FAILED || elf_file_build_id_of(fd, &key.build_id) || !key.build_id.len)
		return -1;
	close(fd);
	return rename(other, path);
}

static int tear_down(void **state)
{
	(void)state;
	munmap(mapped, MAPPED);
	opener_free(opener);
	unlink(path);
	return rmdir(dir);
}

/* The inode of the found file, or -errno. */
static int64_t find(const struct image_file_place *place)
{
	struct stat st;
	int fd = -1, r = image_file_find(place, &key, path, &fd);

	if (r)
		return r;
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return (int64_t)st.st_ino;
}

static struct image_file_place living(void)
{
	uint64_t start = (uint64_t)(uintptr_t)mapped;

	return (struct image_file_place){
		.opener = opener, .pid = getpid(), .start = start, .end = start + MAPPED};
}

static void a_build_id_is_enough_for_most(void **state)
{
	struct image_file_place place = living();

	(void)state;
	assert_int_equal(find(&place), second);
}

static void a_mapped_file_is_exact(void **state)
{
	struct image_file_place place = living();
	int fd;

	(void)state;
	place.exact = true;
	if (opener_map_file(opener, getpid(), place.start, place.end, IMAGE_FILE_BYTES_MAX, &fd))
		skip(); /* readable by root only */
	close(fd);
	assert_int_equal(find(&place), first);
}

/* On some file systems a mapping has another device number than its file. */
static bool mappings_have_the_device(void)
{
	bool same = false;
	struct proc_map map;
	struct stat st;
	char *text, *cursor;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(proc_read_maps(getpid(), &text), 0);
	for (cursor = text; proc_map_next(&cursor, &map);)
		same |= map.start == (uintptr_t)mapped && makedev(map.maj, map.min) == st.st_dev;
	free(text);
	return same;
}

/* Without the right to open the mapping. Its known inode shows that the path has another file. */
static void a_file_that_differs_from_the_mapping_is_refused(void **state)
{
	struct image_file_place place = living();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE, fd, 0);

	(void)state;
	close(fd);
	assert_ptr_not_equal(at, MAP_FAILED);
	if (!mappings_have_the_device())
		skip();
	place.exact = true;
	place.start += 4096;
	assert_int_equal(find(&place), -ESTALE);
	place.start = (uint64_t)(uintptr_t)at + 4096;
	assert_int_equal(find(&place), second);
	munmap(at, MAPPED);
	/* The PID's present owner is irrelevant. */
	place.start = (uint64_t)(uintptr_t)mapped + 4096;
	place.later = true;
	assert_int_equal(find(&place), second);
}

static void a_file_newer_than_the_mapping_of_an_ended_process_is_refused(void **state)
{
	struct image_file_place place = living();
	struct stat st;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	place.pid = pid;
	place.exact = true;
	assert_int_equal(find(&place), second);
	assert_int_equal(stat(path, &st), 0);
	place.mapped_ns = clock_timespec_ns(&st.st_ctim) - 2 * NS_PER_S;
	assert_int_equal(find(&place), second);
	place.mapped_ns--;
	assert_int_equal(find(&place), -ESTALE);
	place.mapped_ns = 0;
	place.elsewhere = true;
	assert_int_equal(find(&place), -ESTALE);
	place.exact = false;
	assert_int_equal(find(&place), second);
}

/* It is in a directory of root alone, and has no build id. */
static void an_unknown_process_gets_no_private_file_but_its_own(void **state)
{
	const struct image_key before = key;
	struct image_file_place place = {.pid = 1 << 30}, known = place;
	struct stat st;

	(void)state;
	if (geteuid())
		skip(); /* profcpu can read no more than the process */
	assert_int_equal(stat(path, &st), 0);
	key.build_id.len = 0;
	assert_int_equal(find(&place), -EACCES);
	place.opener = opener;
	assert_int_equal(find(&place), -EACCES);
	/* Another device number says nothing. */
	key.ino = st.st_ino;
	key.maj = major(st.st_dev) + 1;
	assert_int_equal(find(&place), -EACCES);
	key.maj = major(st.st_dev);
	key.min = minor(st.st_dev);
	/* Device and inode are used again, so the file must be older than the mapping. */
	assert_int_equal(find(&place), -EACCES);
	place.only_rules = true;
	assert_int_equal(find(&place), st.st_ino);
	place.only_rules = false;
	place.mapped_ns = clock_timespec_ns(&st.st_ctim) - 2 * NS_PER_S - 1;
	assert_int_equal(find(&place), -EACCES);
	place.mapped_ns++;
	assert_int_equal(find(&place), st.st_ino);
	key.ino++;
	assert_int_equal(find(&place), -ESTALE);
	/* Its user is recorded, but it may have become one of another user. */
	key.ino = key.maj = key.min = 0;
	known.has_uid = true;
	assert_int_equal(find(&known), -EACCES);
	known.uid = 12345;
	assert_int_equal(find(&known), -EACCES);
	key = before;
	assert_int_equal(find(&place), st.st_ino);
}

static void a_file_over_a_limit_is_told_from_a_missing_one(void **state)
{
	struct image_file_place place = living();
	struct image_key any = {.build_id = key.build_id};
	Elf64_Ehdr header = {.e_shoff = sizeof(header), .e_shentsize = sizeof(Elf64_Shdr)};
	Elf64_Shdr sections = {.sh_size = (uint64_t)1 << 30};
	char large[PATH_MAX];
	int found, fd;

	(void)state;
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	snprintf(large, sizeof(large), "%s/large", dir);
	fd = open(large, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, &sections, sizeof(sections)), sizeof(sections));
	place.end = place.start; /* the file is not mapped */
	assert_int_equal(image_file_find(&place, &any, large, &found), -EFBIG);
	any.build_id.len = 0;
	assert_int_equal(ftruncate(fd, (off_t)IMAGE_FILE_BYTES_MAX + 1), 0);
	assert_int_equal(image_file_find(&place, &any, large, &found), -EFBIG);
	close(fd);
	unlink(large);
	assert_int_equal(image_file_find(&place, &any, large, &found), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_build_id_is_enough_for_most),
		cmocka_unit_test(a_mapped_file_is_exact),
		cmocka_unit_test(a_file_that_differs_from_the_mapping_is_refused),
		cmocka_unit_test(a_file_newer_than_the_mapping_of_an_ended_process_is_refused),
		cmocka_unit_test(an_unknown_process_gets_no_private_file_but_its_own),
		cmocka_unit_test(a_file_over_a_limit_is_told_from_a_missing_one),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
