#include "dotnet/eventpipe/ipc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char ipc_magic[14] = "DOTNET_IPC_V1";

#define IPC_REPLY_OK 0xff00
#define IPC_REPLY_ERROR 0xffff
#define IPC_VERSION_MAJOR_MAX 1000

const char *ipc_hresult_text(uint32_t hresult)
{
	static const struct {
		uint32_t hresult;
		const char *text;
	} known[] = {
		{IPC_E_BAD_ENCODING, "it rejected the request as damaged"},
		{IPC_E_UNKNOWN_COMMAND, "it does not know this command"},
		{IPC_E_UNKNOWN_MAGIC, "it does not know this protocol"},
		{IPC_E_NOT_SUPPORTED, "it does not support this"},
		{IPC_E_FAIL, "it failed"},
		{0x8013135bu, "it is not ready for this yet"},
		{0x80131371u, "it has not started yet"},
		{IPC_E_INVALID_VALUES, "it rejected the values"},
		{0x8007000eu, "it has no memory left"},
		{0x8007007eu, "it cannot load this file"},
		{0x800700cbu, "it has no such environment variable"},
		{0x800000cbu, "it has no such environment variable"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].hresult == hresult)
			return known[i].text;
	return "it failed for an unknown reason";
}

void ipc_put_u8(struct outbuf *o, uint8_t x)
{
	outbuf_put(o, &x, 1);
}

void ipc_put_u16(struct outbuf *o, uint16_t x)
{
	ipc_put_u8(o, (uint8_t)x);
	ipc_put_u8(o, (uint8_t)(x >> 8));
}

void ipc_put_u32(struct outbuf *o, uint32_t x)
{
	unsigned char bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(x >> (8 * i));
	outbuf_put(o, bytes, sizeof(bytes));
}

void ipc_put_u64(struct outbuf *o, uint64_t x)
{
	ipc_put_u32(o, (uint32_t)x);
	ipc_put_u32(o, (uint32_t)(x >> 32));
}

void ipc_put_text(struct outbuf *o, const char *text)
{
	struct outbuf units = outbuf_to(-1);

	outbuf_utf8_units(&units, text, strlen(text));
	if (units.len)
		ipc_put_u16(&units, 0);
	ipc_put_u32(o, (uint32_t)(units.len / 2));
	if (units.len)
		outbuf_put(o, units.data, units.len);
	o->error = o->error ? o->error : units.error;
	outbuf_close(&units);
}

int ipc_request(struct outbuf *o, enum ipc_command command, const void *payload, size_t len)
{
	if (len > IPC_MESSAGE_MAX - IPC_HEADER_BYTES)
		return -E2BIG;
	outbuf_put(o, ipc_magic, sizeof(ipc_magic));
	ipc_put_u16(o, (uint16_t)(len + IPC_HEADER_BYTES));
	ipc_put_u8(o, (uint8_t)(command >> 8));
	ipc_put_u8(o, (uint8_t)command);
	ipc_put_u16(o, 0);
	if (len)
		outbuf_put(o, payload, len);
	return o->error;
}

int ipc_header_parse(const void *data, size_t len, struct ipc_header *ret_header,
		     struct parse_error *err)
{
	struct reader r = reader_of(data, len);
	const void *magic = reader_bytes(&r, sizeof(ipc_magic));
	uint16_t bytes = reader_u16(&r);
	unsigned command = (unsigned)reader_u8(&r) << 8;

	command |= reader_u8(&r);
	if (r.failed)
		return parse_fail(err, -EBADMSG, "a reply is shorter than its header", r.fail_at);
	if (memcmp(magic, ipc_magic, sizeof(ipc_magic)))
		return parse_fail(err, -EBADMSG, "a reply does not follow the diagnostic protocol",
				  0);
	if (bytes < IPC_HEADER_BYTES)
		return parse_fail(err, -EBADMSG, "a reply claims to be shorter than its header",
				  sizeof(ipc_magic));
	if (command != IPC_REPLY_OK && command != IPC_REPLY_ERROR)
		return parse_fail(err, -EBADMSG, "a reply is neither success nor error",
				  sizeof(ipc_magic) + 2);
	*ret_header = (struct ipc_header){.bytes = bytes, .ok = command == IPC_REPLY_OK};
	return 0;
}

int ipc_hresult_parse(const void *payload, size_t len, uint32_t *ret_hresult,
		      struct parse_error *err)
{
	struct reader r = reader_of(payload, len);
	uint32_t hresult = reader_u32(&r);

	if (r.failed)
		return parse_fail(err, -EBADMSG, "a reply is too short for its result",
				  IPC_HEADER_BYTES);
	*ret_hresult = hresult;
	return 0;
}

/* Reads a text up to its first NUL; the caller frees it. */
static int ipc_text(struct reader *r, size_t max_units, char **ret_text, struct parse_error *err)
{
	uint32_t count = reader_u32(r), units = 0;

	if (r->failed)
		return parse_fail(err, -EBADMSG, "a reply ends within a text", r->fail_at);
	if (count > max_units)
		return parse_fail(err, -E2BIG, "a text in a reply is too long", r->pos);
	const unsigned char *at = reader_bytes(r, (size_t)count * 2);

	if (!at)
		return parse_fail(err, -EBADMSG, "a reply ends within a text", r->fail_at);
	while (units < count && (at[2 * units] || at[2 * units + 1]))
		units++;
	struct outbuf text = outbuf_to(-1);

	outbuf_utf16(&text, at, units);
	outbuf_char(&text, 0);
	if (text.error) {
		outbuf_close(&text);
		return parse_fail(err, -ENOMEM, "out of memory", r->pos);
	}
	*ret_text = text.data;
	return 0;
}

int ipc_error_text_parse(const void *payload, size_t len, char **ret_text, struct parse_error *err)
{
	struct reader r = reader_of(payload, len);

	reader_skip(&r, sizeof(uint32_t));
	return ipc_text(&r, IPC_TEXT_MAX, ret_text, err);
}

void ipc_process_info_free(struct ipc_process_info *info)
{
	char **texts[] = {&info->command_line,   &info->os,      &info->arch,
			  &info->entry_assembly, &info->version, &info->rid};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

int ipc_process_info_parse(enum ipc_command command, const void *payload, size_t len,
			   struct ipc_process_info *ret_info, struct parse_error *err)
{
	struct ipc_process_info info = {0};
	char **texts[] = {&info.command_line,   &info.os,      &info.arch,
			  &info.entry_assembly, &info.version, &info.rid};
	size_t ntexts = command == IPC_PROCESS_INFO3 ? 6 : command == IPC_PROCESS_INFO2 ? 5 : 3;
	struct reader r = reader_of(payload, len);
	int error = 0;

	if (command == IPC_PROCESS_INFO3)
		reader_skip(&r, sizeof(uint32_t)); /* the reply's version; later ones add fields */
	info.pid = reader_u64(&r);
	const void *cookie = reader_bytes(&r, sizeof(info.cookie));

	if (!cookie)
		return parse_fail(err, -EBADMSG, "a reply ends before its texts", r.fail_at);
	memcpy(info.cookie, cookie, sizeof(info.cookie));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !error; i++) {
		if (i < ntexts)
			error = ipc_text(&r, IPC_TEXT_MAX, texts[i], err);
		else if (!(*texts[i] = strdup("")))
			error = parse_fail(err, -ENOMEM, "out of memory", r.pos);
	}
	if (error) {
		ipc_process_info_free(&info);
		return error;
	}
	*ret_info = info;
	return 0;
}

void ipc_environment_free(struct ipc_environment *environment)
{
	for (size_t i = 0; i < environment->entries.len; i++)
		free(environment->entries.v[i]);
	vec_free(&environment->entries);
}

int ipc_environment_size(const void *payload, size_t len, size_t *ret_bytes,
			 struct parse_error *err)
{
	struct reader r = reader_of(payload, len);
	uint32_t bytes = reader_u32(&r);

	if (r.failed)
		return parse_fail(err, -EBADMSG, "a reply is too short for its size", r.fail_at);
	if (bytes > IPC_ENVIRONMENT_MAX)
		return parse_fail(err, -E2BIG, "its environment is too large", 0);
	*ret_bytes = bytes;
	return 0;
}

int ipc_environment_parse(const void *data, size_t len, struct ipc_environment *ret_environment,
			  struct parse_error *err)
{
	struct ipc_environment environment = {0};
	struct reader r = reader_of(data, len);
	uint32_t count = reader_u32(&r);
	int error =
		r.failed ? parse_fail(err, -EBADMSG, "its environment is cut off", r.fail_at) : 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		char *text = NULL;

		error = ipc_text(&r, IPC_VARIABLE_MAX, &text, err);
		if (!error && vec_push(&environment.entries, text)) {
			free(text);
			error = parse_fail(err, -ENOMEM, "out of memory", r.pos);
		}
	}
	if (error) {
		ipc_environment_free(&environment);
		return error;
	}
	*ret_environment = environment;
	return 0;
}

unsigned ipc_version_major(const char *version)
{
	unsigned long major = strtoul(version, NULL, 10);

	return major < IPC_VERSION_MAJOR_MAX ? (unsigned)major : 0;
}
