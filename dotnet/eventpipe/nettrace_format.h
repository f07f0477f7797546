/* Numbers of the nettrace format, for its reader and its writer. Specification: nettrace_blob.h. */
#ifndef DOTNET_EVENTPIPE_NETTRACE_FORMAT_H
#define DOTNET_EVENTPIPE_NETTRACE_FORMAT_H

/* Stream headers: of version 3, of 4 and 5, and of 6 up to its version, with the NUL. */
#define NETTRACE_HEAD_V3 "\x14\0\0\0!FastSerialization.1"
#define NETTRACE_HEAD_V4 "Nettrace\x14\0\0\0!FastSerialization.1"
#define NETTRACE_HEAD_V6 "Nettrace\0\0\0"

/* Tags of objects, up to version 5. */
enum {
	NETTRACE_TAG_NULL = 1,
	NETTRACE_TAG_BEGIN_SHARED = 4, /* version 3 */
	NETTRACE_TAG_BEGIN = 5,
	NETTRACE_TAG_END = 6,
};

#define NETTRACE_BLOCK_COMPRESSED 1 /* flag in the header of a block of events */

/* Flags of a compressed header: the fields that follow. */
enum {
	NETTRACE_BLOB_METADATA = 0x01,
	NETTRACE_BLOB_CAPTURE = 0x02,
	NETTRACE_BLOB_THREAD = 0x04,
	NETTRACE_BLOB_STACK = 0x08,
	NETTRACE_BLOB_ACTIVITY = 0x10, /* 6: the list of labels */
	NETTRACE_BLOB_RELATED = 0x20,
	NETTRACE_BLOB_IS_SORTED = 0x40,
	NETTRACE_BLOB_PAYLOAD = 0x80,
};

/* Tags behind the fields of a kind, up to version 5. */
enum { NETTRACE_KIND_TAG_OPCODE = 1, NETTRACE_KIND_TAG_FIELDS = 2 };

/* Optional parts of the row of a kind. */
enum {
	NETTRACE_KIND_V6_OPCODE = 1,
	NETTRACE_KIND_V6_KEYWORDS = 3,
	NETTRACE_KIND_V6_TEMPLATE = 4,
	NETTRACE_KIND_V6_DESCRIPTION = 5,
	NETTRACE_KIND_V6_KEY_VALUE = 6,
	NETTRACE_KIND_V6_GUID = 7,
	NETTRACE_KIND_V6_LEVEL = 8,
	NETTRACE_KIND_V6_VERSION = 9,
};

/* Kinds of blocks of version 6. */
enum nettrace_v6_block {
	NETTRACE_V6_END = 0,
	NETTRACE_V6_TRACE = 1,
	NETTRACE_V6_EVENTS = 2,
	NETTRACE_V6_METADATA = 3,
	NETTRACE_V6_SEQUENCE_POINT = 4,
	NETTRACE_V6_STACKS = 5,
	NETTRACE_V6_THREADS = 6,
	NETTRACE_V6_REMOVE_THREADS = 7,
	NETTRACE_V6_LABELS = 8,
};

/* Entries of a thread. */
enum {
	NETTRACE_V6_THREAD_NAME = 1,
	NETTRACE_V6_THREAD_PID = 2,
	NETTRACE_V6_THREAD_ID = 3,
	NETTRACE_V6_THREAD_KEY_VALUE = 4,
};

#endif
