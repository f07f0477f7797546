/*
 * Messages of the .NET diagnostic protocol: makes requests and parses replies. Specification:
 * dotnet/diagnostics, documentation/design-docs/ipc-protocol.md. Differences from it were observed
 * on .NET 8 to 10.
 *
 * A message is "DOTNET_IPC_V1\0", u16 total size, u8 command set, u8 command, u16 0, and the
 * payload. Numbers are little-endian. A text is a u32 count of UTF-16 units with the final 0, then
 * the units. An empty text has count 0.
 */
#ifndef DOTNET_EVENTPIPE_IPC_H
#define DOTNET_EVENTPIPE_IPC_H

#include "base/error.h"
#include "base/outbuf.h"
#include "base/reader.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IPC_HEADER_BYTES 20
#define IPC_MESSAGE_MAX 65535           /* the size field has 16 bits */
#define IPC_TEXT_MAX ((size_t)32 << 10) /* UTF-16 units of one text in a reply */
/* execve() takes 128 KiB in one variable, and 6 MiB in all; UTF-16 doubles that. */
#define IPC_VARIABLE_MAX ((size_t)160 << 10)
#define IPC_ENVIRONMENT_MAX ((size_t)64 << 20)

/*
 * Commands; the upper byte is the command set. Comments: first .NET version, and what the command
 * adds.
 */
enum ipc_command {
	IPC_DUMP = 0x0101,  /* 3.0 */
	IPC_DUMP2 = 0x0102, /* 6: flags */
	IPC_DUMP3 = 0x0103, /* 7: a text in replies that report an error */
	IPC_STOP_TRACING = 0x0201,
	IPC_COLLECT_TRACING = 0x0202,  /* 3.0 */
	IPC_COLLECT_TRACING2 = 0x0203, /* 3.1: whether to send a rundown */
	IPC_COLLECT_TRACING3 = 0x0204, /* 8: whether events have stacks */
	IPC_COLLECT_TRACING4 = 0x0205, /* 9: keywords of the rundown */
	IPC_COLLECT_TRACING5 = 0x0206, /* 10: selection of events by id */
	IPC_COLLECT_TRACING6 = 0x0207, /* 11: whether the runtime waits for room in its buffer */
	IPC_ATTACH_PROFILER = 0x0301,  /* 3.0 */
	IPC_STARTUP_PROFILER = 0x0302, /* 6 */
	IPC_PROCESS_INFO = 0x0400,     /* 5 */
	IPC_RESUME = 0x0401,           /* 5 */
	IPC_ENVIRONMENT = 0x0402,      /* 5 */
	IPC_SET_ENVIRONMENT = 0x0403,  /* 6 */
	IPC_PROCESS_INFO2 = 0x0404,    /* 6 */
	IPC_STARTUP_HOOK = 0x0407,     /* 8 */
	IPC_PROCESS_INFO3 = 0x0408,    /* 8 */
};

/* Errors of runtimes (HRESULT). */
#define IPC_E_BAD_ENCODING 0x80131384u
#define IPC_E_UNKNOWN_COMMAND 0x80131385u /* the runtime is too old for the command */
#define IPC_E_UNKNOWN_MAGIC 0x80131386u
#define IPC_E_NOT_SUPPORTED 0x80131515u
#define IPC_E_FAIL 0x80004005u
#define IPC_E_INVALID_VALUES 0x80070057u

/* An HRESULT in words, as "it does not know this command". Never NULL. */
const char *ipc_hresult_text(uint32_t hresult);

/* Append to the payload of a request. text: UTF-8; invalid bytes become U+FFFD. */
void ipc_put_u8(struct outbuf *o, uint8_t x);
void ipc_put_u16(struct outbuf *o, uint16_t x);
void ipc_put_u32(struct outbuf *o, uint32_t x);
void ipc_put_u64(struct outbuf *o, uint64_t x);
void ipc_put_text(struct outbuf *o, const char *text);

/* Writes the whole message of a command. payload may be NULL if len is 0. 0; -E2BIG; -ENOMEM. */
int ipc_request(struct outbuf *o, enum ipc_command command, const void *payload, size_t len);

/*
 * Header of a reply: size of the whole message, and whether it reports success. Parsing gives 0 or
 * -EBADMSG.
 */
struct ipc_header {
	uint16_t bytes;
	bool ok;
};
int ipc_header_parse(const void *data, size_t len, struct ipc_header *ret_header,
		     struct parse_error *err);

/* Parses a reply's payload that is a single HRESULT. 0; -EBADMSG: it is shorter. */
int ipc_hresult_parse(const void *payload, size_t len, uint32_t *ret_hresult,
		      struct parse_error *err);

/*
 * The text after the HRESULT of an error, as IPC_DUMP3 gives it. On success the caller frees
 * *ret_text. 0; -EBADMSG, also if there is none; -E2BIG; -ENOMEM.
 */
int ipc_error_text_parse(const void *payload, size_t len, char **ret_text, struct parse_error *err);

struct ipc_process_info {
	uint64_t pid;                         /* in the runtime's own PID namespace */
	unsigned char cookie[16];             /* constant for the life of the runtime */
	char *command_line, *os, *arch;       /* UTF-8, never NULL; arch: "x64", "arm64" */
	char *entry_assembly, *version, *rid; /* empty if the runtime is too old to report it */
};

/*
 * Parses replies to IPC_PROCESS_INFO, _INFO2 and _INFO3. Skips data after the known fields. On
 * success free the texts by ipc_process_info_free. 0; -EBADMSG; -E2BIG: a text exceeds
 * IPC_TEXT_MAX; -ENOMEM.
 */
int ipc_process_info_parse(enum ipc_command command, const void *payload, size_t len,
			   struct ipc_process_info *ret_info, struct parse_error *err);
void ipc_process_info_free(struct ipc_process_info *info);

/* The environment of a runtime: "NAME=VALUE", UTF-8, in its order. */
struct ipc_environment {
	VEC(char *) entries;
};

/*
 * Parse the reply to IPC_ENVIRONMENT: the number of bytes that follow it on the connection, and
 * these bytes. On success free the entries by ipc_environment_free. 0; -EBADMSG; -E2BIG: a text
 * exceeds IPC_VARIABLE_MAX, or all exceed IPC_ENVIRONMENT_MAX; -ENOMEM.
 */
int ipc_environment_size(const void *payload, size_t len, size_t *ret_bytes,
			 struct parse_error *err);
int ipc_environment_parse(const void *data, size_t len, struct ipc_environment *ret_environment,
			  struct parse_error *err);
void ipc_environment_free(struct ipc_environment *environment);

/* The first number of a version, as 10 of "10.0.12"; 0 if there is none. */
unsigned ipc_version_major(const char *version);

#endif
