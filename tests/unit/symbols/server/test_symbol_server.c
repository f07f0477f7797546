#include "base/cleanup.h"
#include "base/file.h"
#include "symbols/server/symbol_server.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* Keys of files on Microsoft's server, in the form of dotnet-symbol. */
#define CORECLR_KEY "_.debug/elf-buildid-sym-79945f51fb2612f13b7667a10a8fd29122664791/_.debug"
#define CORELIB_KEY                                                            \
	"system.private.corelib.pdb/c0c9658169b7ba388a418680bc2a7220FFFFFFFF/" \
	"system.private.corelib.pdb"

static const struct symbol_file coreclr = {
	.kind = SYMBOL_FILE_ELF,
	.name = "libcoreclr.so",
	.build_id = {.bytes = {0x79, 0x94, 0x5f, 0x51, 0xfb, 0x26, 0x12, 0xf1, 0x3b, 0x76,
			       0x67, 0xa1, 0x0a, 0x8f, 0xd2, 0x91, 0x22, 0x66, 0x47, 0x91},
		     .len = 20}};
static const struct symbol_file corelib = {.kind = SYMBOL_FILE_PDB,
					   .name = "System.Private.CoreLib.pdb",
					   .id = {0x81, 0x65, 0xc9, 0xc0, 0xb7, 0x69, 0x38, 0xba,
						  0x8a, 0x41, 0x86, 0x80, 0xbc, 0x2a, 0x72, 0x20}};
static const struct symbol_file map = {.kind = SYMBOL_FILE_R2R_MAP,
				       .name = "X Y.ni.r2rmap",
				       .id = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01,
					      0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef},
				       .version = 1};

static void assert_key(const struct symbol_file *f, const char *wanted)
{
	char key[1024], name[NAME_MAX + 1];
	struct symbol_file back;

	assert_int_equal(symbol_file_key(f, key, sizeof(key)), 0);
	assert_string_equal(key, wanted);
	assert_int_equal(symbol_file_of_key(key, &back, name), 0);
	assert_int_equal(back.kind, f->kind);
	assert_memory_equal(back.build_id.bytes, f->build_id.bytes, BUILD_ID_MAX);
	assert_memory_equal(back.id, f->id, sizeof(f->id));
	assert_int_equal(back.version, f->version);
}

static void keys_equal_those_of_dotnet_symbol(void **state)
{
	struct symbol_file small = {.kind = SYMBOL_FILE_ELF,
				    .build_id = {.bytes = {0xab, 0xcd}, .len = 2}};
	char key[40];

	(void)state;
	assert_key(&coreclr, CORECLR_KEY);
	assert_key(&corelib, CORELIB_KEY);
	assert_key(&map, "x y.ni.r2rmap/r2rmap-v1-0123456789abcdef0123456789abcdef/x y.ni.r2rmap");
	assert_key(&small,
		   "_.debug/elf-buildid-sym-abcd000000000000000000000000000000000000/_.debug");
	assert_int_equal(symbol_file_key(&coreclr, key, sizeof(key)), -ENAMETOOLONG);
}

static void invalid_names_have_no_key(void **state)
{
	static const char *const bad[] = {NULL,       "",        ".",        "..",
					  "../x.pdb", "a/b.pdb", "a\\b.pdb", ".hidden.pdb"};
	static const char *const bad_keys[] = {
		"",
		"x",
		"x/y",
		"x/y/z",
		"_.debug/elf-buildid-sym-12/_.debug",
		"a.pdb/c0c9658169b7ba388a418680bc2a7220FFFFFFFF/b.pdb",
		CORECLR_KEY "x",
		"../elf-buildid-sym-79945f51fb2612f13b7667a10a8fd29122664791/.."};
	char key[1024], name[NAME_MAX + 1];
	struct symbol_file f = corelib;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		f.name = bad[i];
		assert_int_equal(symbol_file_key(&f, key, sizeof(key)), -EINVAL);
	}
	for (size_t i = 0; i < sizeof(bad_keys) / sizeof(*bad_keys); i++)
		assert_int_equal(symbol_file_of_key(bad_keys[i], &f, name), -EINVAL);
	assert_int_equal(
		symbol_file_key(&(struct symbol_file){.kind = SYMBOL_FILE_ELF}, key, sizeof(key)),
		-EINVAL);
}

static void assert_url(const struct symbol_server *s, const struct symbol_file *f,
		       const char *wanted)
{
	struct outbuf out = outbuf_to(-1);

	assert_int_equal(symbol_server_url(s, f, &out), 0);
	outbuf_char(&out, 0);
	assert_int_equal(out.error, 0);
	assert_string_equal(out.data, wanted);
	outbuf_close(&out);
}

static void addresses_have_the_layout_of_their_servers(void **state)
{
	struct symbol_servers servers = {0};
	const char *bad;

	(void)state;
	assert_int_equal(
		symbol_servers_add(&servers, SYMBOL_SERVER_SSQP, "http://a/b//", ";", &bad), 0);
	assert_int_equal(symbol_servers_add(&servers, SYMBOL_SERVER_DEBUGINFOD,
					    " ima:enforcing https://d/ ", " ", &bad),
			 0);
	assert_int_equal(servers.list.len, 2);
	assert_url(&servers.list.v[0], &coreclr, "http://a/b/" CORECLR_KEY);
	assert_url(&servers.list.v[0], &corelib, "http://a/b/" CORELIB_KEY);
	assert_url(&servers.list.v[0], &map,
		   "http://a/b/x%20y.ni.r2rmap/r2rmap-v1-0123456789abcdef0123456789abcdef/"
		   "x%20y.ni.r2rmap");
	assert_url(&servers.list.v[1], &coreclr,
		   "https://d/buildid/79945f51fb2612f13b7667a10a8fd29122664791/debuginfo");
	assert_true(symbol_server_accepts(&servers.list.v[1], &coreclr));
	assert_false(symbol_server_accepts(&servers.list.v[1], &corelib));
	symbol_servers_free(&servers);
}

static void servers_come_from_the_environment(void **state)
{
	struct symbol_servers servers = {0};
	const char *variable = NULL, *bad = NULL;

	(void)state;
	unsetenv("DOTNET_SYMBOL_SERVER");
	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(symbol_servers_add_environment(&servers, &variable, &bad), 0);
	assert_int_equal(servers.list.len, 1);
	assert_string_equal(servers.list.v[0].url, SYMBOL_SERVER_MICROSOFT);
	assert_true(servers.list.v[0].built_in);
	symbol_servers_free(&servers);
	setenv("DOTNET_SYMBOL_SERVER", "", 1);
	assert_int_equal(symbol_servers_add_environment(&servers, &variable, &bad), 0);
	assert_int_equal(servers.list.len, 0);
	setenv("DOTNET_SYMBOL_SERVER", "http://one; http://user:p@ss@two/x", 1);
	setenv("DEBUGINFOD_URLS", "https://three https://four", 1);
	assert_int_equal(symbol_servers_add_environment(&servers, &variable, &bad), 0);
	assert_int_equal(servers.list.len, 4);
	assert_string_equal(servers.list.v[1].url, "http://user:p@ss@two/x");
	assert_string_equal(servers.list.v[1].shown, "http://two/x");
	assert_false(servers.list.v[0].built_in);
	assert_int_equal(servers.list.v[3].kind, SYMBOL_SERVER_DEBUGINFOD);
	symbol_servers_free(&servers);
	/* The command line overrides the variable. */
	assert_int_equal(symbol_servers_add(&servers, SYMBOL_SERVER_SSQP, "http://mine", ";", &bad),
			 0);
	assert_int_equal(symbol_servers_add_environment(&servers, &variable, &bad), 0);
	assert_int_equal(servers.list.len, 3);
	symbol_servers_free(&servers);
	setenv("DEBUGINFOD_URLS", "https://three file:///x", 1);
	assert_int_equal(symbol_servers_add_environment(&servers, &variable, &bad), -EINVAL);
	assert_string_equal(variable, "DEBUGINFOD_URLS");
	assert_string_equal(bad, "file:///x");
	symbol_servers_free(&servers);
	setenv("DEBUGINFOD_URLS", "", 1);
}

/* The build id of a private program stays private. */
static void the_built_in_server_is_used_for_dotnet_files_only(void **state)
{
	static const char *const yes[] = {"libcoreclr.so",
					  "libclrjit.so",
					  "libSystem.Native.so",
					  "libhostfxr.so",
					  "dotnet",
					  "createdump",
					  "libSystem.Security.Cryptography.Native.OpenSsl.so"};
	static const char *const no[] = {"libshop.so",
					 "libcoreclr.so.1",
					 "xlibcoreclr.so",
					 "app",
					 "libc.so.6",
					 "libsystem.so",
					 ""};
	static const char *const pdb_yes[] = {"System.Private.CoreLib.pdb",
					      "Microsoft.AspNetCore.dll", "netstandard.pdb",
					      "System.pdb"};
	static const char *const pdb_no[] = {"Shop.pdb", "SystemShop.pdb", "My.System.pdb",
					     "Microsoft", "System.exe.config"};
	struct symbol_server built_in = {.built_in = true}, named = {0};
	struct symbol_file f = coreclr;

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		f.name = yes[i];
		assert_true(symbol_server_accepts(&built_in, &f));
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
		f.name = no[i];
		assert_false(symbol_server_accepts(&built_in, &f));
		assert_true(symbol_server_accepts(&named, &f));
	}
	f = corelib;
	for (size_t i = 0; i < sizeof(pdb_yes) / sizeof(*pdb_yes); i++) {
		f.name = pdb_yes[i];
		assert_true(symbol_server_accepts(&built_in, &f));
	}
	for (size_t i = 0; i < sizeof(pdb_no) / sizeof(*pdb_no); i++) {
		f.name = pdb_no[i];
		assert_false(symbol_server_accepts(&built_in, &f));
		assert_true(symbol_server_accepts(&named, &f));
	}
}

static int check(const struct symbol_file *f, const void *data, size_t len)
{
	AUTO_CLOSE int fd = memfd_create("symbols", MFD_CLOEXEC);
	const char *what = NULL;

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, data, len), 0);
	int r = symbol_file_check(f, fd, &what);

	assert_true(!r || what);
	return r;
}

static void a_pdb_is_identified_by_its_guid(void **state)
{
	/* A metadata root with two streams, #~ and #Pdb; #Pdb is at 64. */
	unsigned char pdb[64 + 20] = {
		'B',           'S', 'J', 'B', 1,   0,   1,   0,   0,   0,   0,   0,   8, 0, 0, 0,
		'P',           'D', 'B', ' ', 'v', '1', '.', '0', 0,   0,   2,   0,
		/* #~ */ 96,   0,   0,   0,   4,   0,   0,   0,   '#', '~', 0,   0,
		/* #Pdb */ 64, 0,   0,   0,   20,  0,   0,   0,   '#', 'P', 'd', 'b', 0, 0, 0, 0};

	(void)state;
	memcpy(pdb + 64, corelib.id, sizeof(corelib.id));
	assert_int_equal(check(&corelib, pdb, sizeof(pdb)), 0);
	pdb[64] ^= 1;
	assert_int_equal(check(&corelib, pdb, sizeof(pdb)), -EBADMSG);
	pdb[64] ^= 1;
	for (size_t cut = 0; cut < 64 + sizeof(corelib.id); cut++)
		assert_int_equal(check(&corelib, pdb, cut), -EBADMSG);
	pdb[26] = 1; /* streams */
	assert_int_equal(check(&corelib, pdb, sizeof(pdb)), -EBADMSG);
	assert_int_equal(check(&corelib, "<html>", 6), -EBADMSG);
}

static void a_map_is_identified_by_its_signature(void **state)
{
	static const char good[] = "FFFFFFFF 00 0123456789ABCDEF0123456789ABCDEF\nFFFFFFFE 00 1\n";

	(void)state;
	assert_int_equal(check(&map, good, strlen(good)), 0);
	assert_int_equal(check(&map, good, 40), -EBADMSG);
	assert_int_equal(check(&corelib, good, strlen(good)), -EBADMSG);
	assert_int_equal(check(&map, "FFFFFFFF 00 1123456789ABCDEF0123456789ABCDEF\n", 45),
			 -EBADMSG);
	assert_int_equal(check(&map, "<html>", 6), -EBADMSG);
}

static void debuginfod_has_limits_of_its_own(void **state)
{
	(void)state;
	unsetenv("DEBUGINFOD_TIMEOUT");
	unsetenv("DEBUGINFOD_MAXSIZE");
	assert_int_equal(symbol_server_debuginfod_limits().timeout_s, 90);
	assert_int_equal(symbol_server_debuginfod_limits().max_bytes, 0);
	setenv("DEBUGINFOD_TIMEOUT", "7", 1);
	setenv("DEBUGINFOD_MAXSIZE", "1000", 1);
	assert_int_equal(symbol_server_debuginfod_limits().timeout_s, 7);
	assert_int_equal(symbol_server_debuginfod_limits().max_bytes, 1000);
	setenv("DEBUGINFOD_TIMEOUT", "-1", 1);
	assert_int_equal(symbol_server_debuginfod_limits().timeout_s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_equal_those_of_dotnet_symbol),
		cmocka_unit_test(invalid_names_have_no_key),
		cmocka_unit_test(addresses_have_the_layout_of_their_servers),
		cmocka_unit_test(servers_come_from_the_environment),
		cmocka_unit_test(the_built_in_server_is_used_for_dotnet_files_only),
		cmocka_unit_test(a_pdb_is_identified_by_its_guid),
		cmocka_unit_test(a_map_is_identified_by_its_signature),
		cmocka_unit_test(debuginfod_has_limits_of_its_own),
	};

	return cmocka_run_group_tests_name("symbol_server", tests, NULL, NULL);
}
