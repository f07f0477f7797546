#include "dotnet/startup_hook.h"

#include "base/file.h"
#include "tests/unit/metadata_builder.h"
#include "tests/unit/r2r_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define IS_STATIC 0x10u

static const char *why;

static uint32_t text(struct metadata_build *b, const char *s)
{
	return *s ? metadata_string(b, s) : 0;
}

/* An assembly with a class of two methods: Other, and this one. 0; the result of the check. */
static int check(const char *space, const char *type, const char *method, uint32_t flags,
		 const uint8_t *signature)
{
	struct metadata_build m = metadata_begin();
	struct r2r_build b = r2r_begin();
	uint32_t blob = metadata_blob(&m, signature, signature[1] ? 4 : 3);
	size_t len;

	metadata_row(&m, CLR_TYPE_DEF, "422222", 0, text(&m, "<Module>"), 0, 0, 1, 1);
	metadata_row(&m, CLR_TYPE_DEF, "422222", 0, text(&m, type), text(&m, space), 0, 1, 1);
	metadata_row(&m, CLR_METHOD_DEF, "422222", 0, 0, IS_STATIC, text(&m, "Other"), blob, 1);
	metadata_row(&m, CLR_METHOD_DEF, "422222", 0, 0, flags, text(&m, method), blob, 1);
	r2r_metadata(&b, &m);
	r2r_header(&b, 0);
	unsigned char *data = r2r_end(&b, &len);
	int fd = r2r_file(data, len);
	int r = startup_hook_check(&(struct pe_file){.fd = fd, .bytes = len}, &why);

	close(fd);
	return r;
}

static const uint8_t no_arguments[] = {0, 0, 1}, one_argument[] = {0, 1, 1, 8},
		     a_result[] = {0, 0, 8};

static void a_hook_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(check("", "StartupHook", "Initialize", IS_STATIC, no_arguments), 0);
	assert_int_equal(check("", "StartupHook", "Initialize", IS_STATIC | 6, no_arguments), 0);
}

static void other_assemblies_are_refused(void **state)
{
	static const char no_class[] = "it has no class StartupHook outside of namespaces",
			  no_method[] = "its class StartupHook has no static method Initialize() "
					"without a result";

	(void)state;
	assert_int_equal(check("", "Hook", "Initialize", IS_STATIC, no_arguments), -EINVAL);
	assert_string_equal(why, no_class);
	assert_int_equal(check("App", "StartupHook", "Initialize", IS_STATIC, no_arguments),
			 -EINVAL);
	assert_string_equal(why, no_class);
	assert_int_equal(check("", "StartupHook", "Init", IS_STATIC, no_arguments), -EINVAL);
	assert_string_equal(why, no_method);
	assert_int_equal(check("", "StartupHook", "Initialize", 0, no_arguments), -EINVAL);
	assert_string_equal(why, no_method);
	assert_int_equal(check("", "StartupHook", "Initialize", IS_STATIC, one_argument), -EINVAL);
	assert_int_equal(check("", "StartupHook", "Initialize", IS_STATIC, a_result), -EINVAL);
}

static void other_files_are_refused(void **state)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			startup_hook_check(&(struct pe_file){.fd = fd, .bytes = i ? 100 : 0}, &why),
			-EINVAL);
		assert_string_equal(why, "it is not a .NET assembly");
		assert_int_equal(write(fd,
				       "\x7f"
				       "ELF and so on",
				       14),
				 14);
	}
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hook_is_accepted),
		cmocka_unit_test(other_assemblies_are_refused),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
