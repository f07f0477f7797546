#include "dotnet/eventpipe/ipc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct outbuf out;

static void put_info(size_t texts, int version3)
{
	static const char *const values[] = {"dotnet run",    "Linux",   "x64",
					     "web\xc3\xa4pi", "10.0.12", "linux-x64"};

	out = outbuf_to(-1);
	if (version3)
		ipc_put_u32(&out, 1);
	ipc_put_u64(&out, 0x100000002ULL);
	outbuf_put(&out, "0123456789abcdef", 16);
	for (size_t i = 0; i < texts; i++)
		ipc_put_text(&out, values[i]);
}

static void a_request_has_magic_size_command_and_payload(void **state)
{
	static const unsigned char want[] = "DOTNET_IPC_V1\0\x18\0\x02\x01\0\0\x03\0\0";

	(void)state;
	out = outbuf_to(-1);
	assert_int_equal(ipc_request(&out, IPC_STOP_TRACING, "\3\0\0\0", 4), 0);
	assert_int_equal(out.len, 24);
	assert_memory_equal(out.data, want, 24);
	outbuf_close(&out);
	out = outbuf_to(-1);
	assert_int_equal(ipc_request(&out, IPC_STOP_TRACING, "", IPC_MESSAGE_MAX), -E2BIG);
	outbuf_close(&out);
}

static void texts_are_counted_utf16_with_their_nul(void **state)
{
	static const unsigned char want[] = {5,    0,    0,    0,    'a',  0, 0xac,
					     0x20, 0x3d, 0xd8, 0x00, 0xde, 0, 0};

	(void)state;
	out = outbuf_to(-1);
	ipc_put_text(&out, "a\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_int_equal(out.len, sizeof(want));
	assert_memory_equal(out.data, want, sizeof(want));
	outbuf_close(&out);
	/* An empty text has no NUL either. Each invalid byte of UTF-8 becomes one unit. */
	out = outbuf_to(-1);
	ipc_put_text(&out, "");
	ipc_put_text(&out, "\xff\xc3(");
	assert_int_equal(out.len, 4 + 4 + 8);
	assert_memory_equal(out.data + 8, "\xfd\xff\xfd\xff(\0\0\0", 8);
	outbuf_close(&out);
}

static void utf16_becomes_utf8_and_halves_of_pairs_are_replaced(void **state)
{
	static const unsigned char units[] = {'a',  0,    0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde,
					      0x3d, 0xd8, 'b',  0,    0x00, 0xde, 0x3d, 0xd8};

	(void)state;
	out = outbuf_to(-1);
	outbuf_utf16(&out, units, sizeof(units) / 2);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, "a\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd"
				      "b\xef\xbf\xbd\xef\xbf\xbd");
	outbuf_close(&out);
}

static void invalid_headers_are_refused(void **state)
{
	unsigned char head[IPC_HEADER_BYTES] = "DOTNET_IPC_V1\0\x18\0\xff\0";
	struct ipc_header h;
	struct parse_error err;

	(void)state;
	assert_int_equal(ipc_header_parse(head, sizeof(head), &h, &err), 0);
	assert_true(h.ok);
	assert_int_equal(h.bytes, 24);
	head[17] = 0xff;
	assert_int_equal(ipc_header_parse(head, sizeof(head), &h, &err), 0);
	assert_false(h.ok);
	for (size_t n = 0; n < sizeof(head) - 2; n++)
		assert_int_equal(ipc_header_parse(head, n, &h, &err), -EBADMSG);
	head[16] = 4;
	assert_int_equal(ipc_header_parse(head, sizeof(head), &h, &err), -EBADMSG);
	head[16] = 0xff;
	head[14] = IPC_HEADER_BYTES - 1;
	assert_int_equal(ipc_header_parse(head, sizeof(head), &h, &err), -EBADMSG);
	head[0] = 'd';
	assert_int_equal(ipc_header_parse(head, sizeof(head), &h, &err), -EBADMSG);
	assert_string_equal(err.what, "a reply does not follow the diagnostic protocol");
}

static void each_process_info_has_its_fields(void **state)
{
	static const enum ipc_command commands[] = {IPC_PROCESS_INFO, IPC_PROCESS_INFO2,
						    IPC_PROCESS_INFO3};
	static const size_t texts[] = {3, 5, 6};
	struct ipc_process_info info;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		put_info(texts[i], i == 2);
		assert_int_equal(
			ipc_process_info_parse(commands[i], out.data, out.len, &info, NULL), 0);
		assert_true(info.pid == 0x100000002ULL);
		assert_memory_equal(info.cookie, "0123456789abcdef", 16);
		assert_string_equal(info.command_line, "dotnet run");
		assert_string_equal(info.arch, "x64");
		assert_string_equal(info.entry_assembly, i ? "web\xc3\xa4pi" : "");
		assert_string_equal(info.version, i ? "10.0.12" : "");
		assert_string_equal(info.rid, i == 2 ? "linux-x64" : "");
		ipc_process_info_free(&info);
		outbuf_close(&out);
	}
}

static void a_cut_process_info_is_refused_wherever_it_is_cut(void **state)
{
	struct ipc_process_info info;
	struct parse_error err;

	(void)state;
	put_info(6, 1);
	for (size_t n = 0; n < out.len; n++)
		assert_int_equal(
			ipc_process_info_parse(IPC_PROCESS_INFO3, out.data, n, &info, &err),
			-EBADMSG);
	outbuf_put(&out, "more", 4); /* a field of a later version */
	assert_int_equal(ipc_process_info_parse(IPC_PROCESS_INFO3, out.data, out.len, &info, NULL),
			 0);
	ipc_process_info_free(&info);
	memset(out.data + 28, 0xff, 4);
	assert_int_equal(ipc_process_info_parse(IPC_PROCESS_INFO3, out.data, out.len, &info, &err),
			 -E2BIG);
	outbuf_close(&out);
}

static void an_environment_has_a_size_and_its_texts(void **state)
{
	struct ipc_environment environment;
	struct parse_error err;
	size_t bytes = 0;

	(void)state;
	assert_int_equal(ipc_environment_size("\2\1\0\0\0\0", 6, &bytes, &err), 0);
	assert_int_equal(bytes, 0x102);
	assert_int_equal(ipc_environment_size("\2\1\0", 3, &bytes, &err), -EBADMSG);
	assert_int_equal(ipc_environment_size("\xff\xff\xff\xff", 4, &bytes, &err), -E2BIG);
	out = outbuf_to(-1);
	ipc_put_u32(&out, 3);
	ipc_put_text(&out, "A=1");
	ipc_put_text(&out, "");
	ipc_put_text(&out, "\xc3\xa4=\xe2\x82\xac=x");
	assert_int_equal(ipc_environment_parse(out.data, out.len, &environment, &err), 0);
	assert_int_equal(environment.entries.len, 3);
	assert_string_equal(environment.entries.v[0], "A=1");
	assert_string_equal(environment.entries.v[1], "");
	assert_string_equal(environment.entries.v[2], "\xc3\xa4=\xe2\x82\xac=x");
	ipc_environment_free(&environment);
	for (size_t cut = 0; cut < out.len; cut++) {
		/* An exact allocation makes a read past the end visible. */
		void *copy = malloc(cut ? cut : 1);

		memcpy(copy, out.data, cut);
		assert_int_equal(ipc_environment_parse(copy, cut, &environment, &err), -EBADMSG);
		free(copy);
	}
	outbuf_close(&out);
	/* A text that is too long, and more texts than there are bytes. */
	assert_int_equal(ipc_environment_parse("\1\0\0\0\0\0\4\0", 8, &environment, &err), -E2BIG);
	assert_int_equal(ipc_environment_parse("\xff\xff\xff\xff\0\0\0\0", 8, &environment, &err),
			 -EBADMSG);
}

static void versions_and_results_have_texts(void **state)
{
	uint32_t hresult = 7;

	(void)state;
	assert_int_equal(ipc_version_major("10.0.12"), 10);
	assert_int_equal(ipc_version_major("8.0.0-rc.1"), 8);
	assert_int_equal(ipc_version_major(""), 0);
	assert_int_equal(ipc_version_major("99999999999999999999"), 0);
	assert_string_equal(ipc_hresult_text(IPC_E_UNKNOWN_COMMAND),
			    "it does not know this command");
	assert_string_equal(ipc_hresult_text(0x80001234), "it failed for an unknown reason");
	assert_int_equal(ipc_hresult_parse("\x85\x13\x13\x80", 4, &hresult, NULL), 0);
	assert_true(hresult == IPC_E_UNKNOWN_COMMAND);
	assert_int_equal(ipc_hresult_parse("\x85\x13\x13", 3, &hresult, NULL), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_magic_size_command_and_payload),
		cmocka_unit_test(texts_are_counted_utf16_with_their_nul),
		cmocka_unit_test(utf16_becomes_utf8_and_halves_of_pairs_are_replaced),
		cmocka_unit_test(invalid_headers_are_refused),
		cmocka_unit_test(each_process_info_has_its_fields),
		cmocka_unit_test(a_cut_process_info_is_refused_wherever_it_is_cut),
		cmocka_unit_test(an_environment_has_a_size_and_its_texts),
		cmocka_unit_test(versions_and_results_have_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
