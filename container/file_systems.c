#include "container/file_systems.h"

#include "base/hash.h"
#include "base/hashmap.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Types of disks and memory. None of them asks another process or machine. */
static const char *const file_systems_local[] = {
	"bcachefs", "btrfs",  "cramfs", "devtmpfs", "erofs",     "exfat",   "ext2",   "ext3",
	"ext4",     "f2fs",   "hfs",    "hfsplus",  "hugetlbfs", "iso9660", "jffs2",  "jfs",
	"msdos",    "nilfs2", "ntfs3",  "ramfs",    "reiserfs",  "romfs",   "rootfs", "squashfs",
	"tmpfs",    "ubifs",  "udf",    "vfat",     "xfs",       "zfs",
};

static const char *const file_systems_kernel[] = {
	"binfmt_misc", "bpf",        "cgroup",     "cgroup2",   "configfs", "cpuset",  "debugfs",
	"devpts",      "efivarfs",   "fusectl",    "mqueue",    "nsfs",     "proc",    "pstore",
	"resctrl",     "rpc_pipefs", "securityfs", "selinuxfs", "sysfs",    "tracefs",
};

static char file_systems_permitted[FILE_SYSTEMS_MAX][FILE_SYSTEMS_TYPE_BYTES];
static size_t file_systems_npermitted;

static pthread_mutex_t file_systems_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file_system_skipped file_systems_counts[FILE_SYSTEMS_SKIPPED_MAX - 1];
static size_t file_systems_ncounts, file_systems_nsubtypes;
static uint64_t file_systems_others;
static struct hashmap file_systems_seen;

static bool file_systems_has(const char *const *list, size_t n, const char *type)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], type))
			return true;
	return false;
}

#define FILE_SYSTEMS_HAS(list, type) file_systems_has(list, sizeof(list) / sizeof((list)[0]), type)

enum file_system_kind file_system_kind(const char *type)
{
	for (size_t i = 0; i < file_systems_npermitted; i++)
		if (!strcmp(file_systems_permitted[i], type))
			return FILE_SYSTEM_PERMITTED;
	if (FILE_SYSTEMS_HAS(file_systems_local, type))
		return FILE_SYSTEM_PERMITTED;
	if (!strcmp(type, "overlay"))
		return FILE_SYSTEM_OVERLAY;
	return FILE_SYSTEMS_HAS(file_systems_kernel, type) ? FILE_SYSTEM_KERNEL : FILE_SYSTEM_OTHER;
}

static bool file_systems_may_permit(const char *type)
{
	static const char usual[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *type && strlen(type) < FILE_SYSTEMS_TYPE_BYTES &&
	       strspn(type, usual) == strlen(type) && file_system_kind(type) != FILE_SYSTEM_KERNEL;
}

int file_systems_permit(const char *type)
{
	if (!file_systems_may_permit(type))
		return -EINVAL;
	if (file_systems_npermitted == FILE_SYSTEMS_MAX)
		return -E2BIG;
	strcpy(file_systems_permitted[file_systems_npermitted++], type);
	return 0;
}

/* Returns the count of a type, or the one of all types that find no room. */
static uint64_t *file_systems_count(const char *type)
{
	struct file_system_skipped *c = file_systems_counts;
	/* The server of a FUSE file system chooses the part after the point. */
	bool subtype = strchr(type, '.');
	char text[FILE_SYSTEMS_TYPE_BYTES];

	snprintf(text, sizeof(text), "%s", *type ? type : FILE_SYSTEMS_UNKNOWN);
	for (char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~')
			*p = '?';
	for (size_t i = 0; i < file_systems_ncounts; i++, c++)
		if (!strcmp(c->type, text))
			return &c->files;
	if (file_systems_ncounts == FILE_SYSTEMS_SKIPPED_MAX - 1 ||
	    (subtype && file_systems_nsubtypes == FILE_SYSTEMS_SUBTYPES_MAX))
		return &file_systems_others;
	file_systems_ncounts++;
	file_systems_nsubtypes += subtype;
	strcpy(c->type, text);
	c->may_permit = file_systems_may_permit(type);
	return &c->files;
}

void file_systems_note_skipped(const char *type, uint64_t key)
{
	int is_new = 1;
	uint32_t *value;

	pthread_mutex_lock(&file_systems_lock);
	if (file_systems_seen.len < FILE_SYSTEMS_FILES_MAX)
		(void)hashmap_entry(&file_systems_seen,
				    hash_mix(key, hash_bytes(type, strlen(type))), 1, &value,
				    &is_new);
	if (is_new)
		++*file_systems_count(type);
	pthread_mutex_unlock(&file_systems_lock);
}

size_t file_systems_skipped(struct file_system_skipped *ret_skipped)
{
	pthread_mutex_lock(&file_systems_lock);
	size_t n = file_systems_ncounts;

	memcpy(ret_skipped, file_systems_counts, n * sizeof(*ret_skipped));
	if (file_systems_others)
		ret_skipped[n++] = (struct file_system_skipped){.type = "others",
								.files = file_systems_others};
	pthread_mutex_unlock(&file_systems_lock);
	return n;
}
