#include "dotnet/eventpipe/event_signatures.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int put(struct event_signatures *s, uint64_t id, const char *path, uint32_t token)
{
	const struct rundown_module module = {
		.id = id, .assembly = "A", .il_path = path, .pdb_path = ""};
	struct outbuf out = outbuf_to(-1);
	int r = event_signatures_put(s, &module, token, "[A] T::M", 8, &out);

	assert_int_equal(out.len, 0);
	outbuf_close(&out);
	return r;
}

/* tests/dotnet/promises/agree.sh compares correct results with the runtime's own map. */
static void unreadable_modules_give_no_names(void **state)
{
	char path[] = "/tmp/event_signatures.XXXXXX";
	struct event_signatures *s;
	struct opener *o;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "MZ no image", 11), 11);
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(event_signatures_new(o, getpid(), NULL, &s), 0);
	assert_int_equal(put(s, 1, "", 0x06000001), -ENOENT);
	assert_int_equal(put(s, 2, "relative.dll", 0x06000001), -ENOENT);
	assert_int_equal(put(s, 3, "/no/such.dll", 0x06000001), -ENOENT);
	assert_int_equal(put(s, 4, path, 0x06000001), -EBADMSG);
	/* Not a method's token, so no file is opened. */
	assert_int_equal(put(s, 5, path, 0x02000001), -ENOENT);
	/* A module is opened once; its error is cached. */
	unlink(path);
	assert_int_equal(put(s, 4, path, 0x06000002), -EBADMSG);
	event_signatures_free(s);
	event_signatures_free(NULL);
	opener_free(o);
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreadable_modules_give_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
