/*
 * Messages of the .NET diagnostic protocol: requests as bytes, replies taken apart.
 * dotnet/diagnostics documentation/design-docs/ipc-protocol.md; what it says otherwise than
 * runtimes do was seen on .NET 8 to 10.
 *
 * A message is "DOTNET_IPC_V1\0", u16 size of all, u8 command set, u8 command, u16 0, and the
 * payload; little-endian. Texts are a u32 count of UTF-16 units with the final 0, then these; an
 * empty text is a count of 0.
 */
#ifndef EVENTPIPE_IPC_H
#define EVENTPIPE_IPC_H

#include "base/error.h"
#include "base/outbuf.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IPC_HEADER_BYTES 20
#define IPC_MESSAGE_MAX 65535           /* its size is 16 bits */
#define IPC_TEXT_MAX ((size_t)32 << 10) /* UTF-16 units in one text of a reply */

/* The command set in the upper byte. */
enum ipc_command {
	IPC_STOP_TRACING = 0x0201,
	IPC_COLLECT_TRACING2 = 0x0203, /* 3.0: whether there is a rundown */
	IPC_COLLECT_TRACING3 = 0x0204, /* 8: whether events have stacks */
	IPC_COLLECT_TRACING4 = 0x0205, /* 9: the rundown's keywords */
	IPC_COLLECT_TRACING5 = 0x0206, /* 10: events by id */
	IPC_PROCESS_INFO = 0x0400,     /* 5 */
	IPC_PROCESS_INFO2 = 0x0404,    /* 6 */
	IPC_ENABLE_PERF_MAP = 0x0405,  /* 8 */
	IPC_DISABLE_PERF_MAP = 0x0406, /* 8 */
	IPC_PROCESS_INFO3 = 0x0408,    /* 8 */
};

#define IPC_PERF_MAP_ONLY 3 /* EnablePerfMap's type: perf-PID.map and no jitdump */

/* What a runtime says is wrong (HRESULT). */
#define IPC_E_BAD_ENCODING 0x80131384u
#define IPC_E_UNKNOWN_COMMAND 0x80131385u /* this runtime is too old for it */
#define IPC_E_UNKNOWN_MAGIC 0x80131386u
#define IPC_E_NOT_SUPPORTED 0x80131515u
#define IPC_E_FAIL 0x80004005u

/* An HRESULT in words: "it does not know this command". Never NULL. */
const char *ipc_hresult_text(uint32_t hresult);

/* Appends to a request's payload. text is UTF-8; what is no valid UTF-8 becomes U+FFFD. */
void ipc_put_u8(struct outbuf *o, uint8_t x);
void ipc_put_u32(struct outbuf *o, uint32_t x);
void ipc_put_u64(struct outbuf *o, uint64_t x);
void ipc_put_text(struct outbuf *o, const char *text);

/* Writes the whole message of a command with this payload (may be NULL with 0 bytes). 0; -E2BIG;
 * -ENOMEM. */
int ipc_request(struct outbuf *o, enum ipc_command command, const void *payload, size_t len);

/* A reply's header: the whole message's size, and whether it says OK. 0; -EBADMSG. */
struct ipc_header {
	uint16_t bytes;
	bool ok;
};
int ipc_header_parse(const void *data, size_t len, struct ipc_header *ret_header,
		     struct parse_error *err);

/* A reply's payload that is one number: an HRESULT. 0; -EBADMSG where it is shorter. */
int ipc_hresult_parse(const void *payload, size_t len, uint32_t *ret_hresult,
		      struct parse_error *err);

struct ipc_process_info {
	uint64_t pid;                         /* in the runtime's own PID namespace */
	unsigned char cookie[16];             /* the same as long as this runtime lives */
	char *command_line, *os, *arch;       /* UTF-8, never NULL; arch: "x64", "arm64" */
	char *entry_assembly, *version, *rid; /* empty where the runtime is too old to say */
};

/* Replies to IPC_PROCESS_INFO, _INFO2 and _INFO3; with 0 it owns its texts (ipc_process_info_free).
 * What follows the known fields is skipped. 0; -EBADMSG; -E2BIG a text over IPC_TEXT_MAX; -ENOMEM.
 */
int ipc_process_info_parse(enum ipc_command command, const void *payload, size_t len,
			   struct ipc_process_info *ret_info, struct parse_error *err);
void ipc_process_info_free(struct ipc_process_info *info);

/* UTF-16LE units as UTF-8; unpaired surrogates become U+FFFD. */
void ipc_utf8(struct outbuf *o, const void *units, size_t count);

/* The first number of a version ("10.0.12"): 10. 0 where there is none. */
unsigned ipc_version_major(const char *version);

#endif
