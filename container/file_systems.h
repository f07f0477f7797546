/*
 * Types of file systems, as /proc/PID/mountinfo names them, and whether a target's files on them
 * are opened. A request to a network or FUSE file system may never return, so only file systems of
 * disks and memory are permitted, and types that the user permits.
 *
 * The permitted types and the counts are those of the whole program.
 */
#ifndef CONTAINER_FILE_SYSTEMS_H
#define CONTAINER_FILE_SYSTEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_SYSTEMS_TYPE_BYTES 32
#define FILE_SYSTEMS_MAX 32          /* types that the user permits */
#define FILE_SYSTEMS_SKIPPED_MAX 128 /* types that are counted; more than any kernel has */
/* FUSE subtypes among them. Users choose them, so they must leave room for the kernel's types. */
#define FILE_SYSTEMS_SUBTYPES_MAX 24
#define FILE_SYSTEMS_UNKNOWN "unknown"   /* of mounts that were not read; see mounts.h */
#define FILE_SYSTEMS_FILES_MAX (1 << 16) /* files that are told apart; others count each time */

enum file_system_kind {
	FILE_SYSTEM_PERMITTED,
	FILE_SYSTEM_OVERLAY, /* as its layers */
	FILE_SYSTEM_KERNEL,  /* /proc and the like: reading may block or have side effects */
	FILE_SYSTEM_OTHER,
};
enum file_system_kind file_system_kind(const char *type);

/*
 * Permits a type. Call it before other threads run. 0; -EINVAL: not a possible type, or one of the
 * kernel's; -E2BIG: more than FILE_SYSTEMS_MAX.
 */
int file_systems_permit(const char *type);

/*
 * Notes that a file was skipped. type: "" if not known. key identifies the file. Any thread may
 * call it.
 */
void file_systems_note_skipped(const char *type, uint64_t key);

struct file_system_skipped {
	/* Printable; FILE_SYSTEMS_UNKNOWN; or "others": types without an entry of their own */
	char type[FILE_SYSTEMS_TYPE_BYTES];
	bool may_permit; /* file_systems_permit accepts it */
	uint64_t files;
};
/* Fills at most FILE_SYSTEMS_SKIPPED_MAX entries. Returns their number. */
size_t file_systems_skipped(struct file_system_skipped *ret_skipped);

#endif
