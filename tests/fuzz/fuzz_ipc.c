/* Input: a reply of the diagnostic protocol, or, after a byte of 1 to 3, the payload of a
 * ProcessInfo, or after a 4 an environment. covers: dotnet/eventpipe/ipc.c */
#include "dotnet/eventpipe/ipc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void info(enum ipc_command command, const uint8_t *data, size_t size)
{
	struct ipc_process_info i;
	struct parse_error err = {0};
	struct outbuf again = outbuf_to(-1);

	if (ipc_process_info_parse(command, data, size, &i, &err)) {
		if (!err.code || !err.what)
			abort();
		return;
	}
	/* A text that we send is read back unchanged. */
	ipc_put_text(&again, i.command_line);
	if (again.len > 4) {
		struct outbuf text = outbuf_to(-1);

		outbuf_utf16(&text, again.data + 4, (again.len - 4) / 2 - 1);
		if (text.len != strlen(i.command_line) ||
		    (text.len && memcmp(text.data, i.command_line, text.len)))
			abort();
		outbuf_close(&text);
	}
	outbuf_close(&again);
	(void)ipc_version_major(i.version);
	ipc_process_info_free(&i);
}

static void environment(const uint8_t *data, size_t size)
{
	struct ipc_environment e;
	struct parse_error err = {0};
	size_t bytes;

	if (!ipc_environment_size(data, size, &bytes, &err) && bytes > IPC_ENVIRONMENT_MAX)
		abort();
	if (ipc_environment_parse(data, size, &e, &err)) {
		if (!err.code || !err.what)
			abort();
		return;
	}
	if (e.entries.len > size / 4)
		abort();
	ipc_environment_free(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum ipc_command commands[] = {IPC_PROCESS_INFO, IPC_PROCESS_INFO2,
						    IPC_PROCESS_INFO3};
	struct ipc_header header;
	uint32_t hresult;

	if (!size)
		return 0;
	if (*data >= 1 && *data <= 3) {
		info(commands[*data - 1], data + 1, size - 1);
		return 0;
	}
	if (*data == 4) {
		environment(data + 1, size - 1);
		return 0;
	}
	if (!ipc_header_parse(data, size, &header, NULL) && header.bytes < IPC_HEADER_BYTES)
		abort();
	char *text;

	if (!ipc_error_text_parse(data, size, &text, NULL)) {
		if (strlen(text) > 2 * size)
			abort();
		free(text);
	}
	if (!ipc_hresult_parse(data, size, &hresult, NULL) && !ipc_hresult_text(hresult))
		abort();
	return 0;
}
