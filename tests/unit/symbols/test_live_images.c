/* live_images: the symbols of this program, by the addresses of its functions. */
#include "symbols/live_images.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Not static, so that its name stays as it is. */
int live_images_sample(int x);

__attribute__((noinline)) int live_images_sample(int x)
{
	return x * 3 + 1;
}

static void check_sample(struct live_images *l)
{
	uint64_t addr = (uint64_t)(uintptr_t)live_images_sample;
	struct live_symbol s;
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = 0;
	for (uint64_t at = addr; at < addr + 3; at++) {
		assert_int_equal(live_images_find(l, at, &s), 0);
		assert_string_equal(s.name, "live_images_sample");
		assert_int_equal(s.name_len, strlen(s.name));
		assert_true(s.start == addr && s.end > at);
		assert_int_equal(s.source, SYMBOL_SYMTAB);
		assert_string_equal(s.path, self);
	}
}

static void addresses_of_a_process_have_symbols_of_its_files(void **state)
{
	struct live_images *l;
	struct live_symbol s;
	struct opener *o;
	int on_stack;

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(live_images_new(o, getpid(), &l), 0);
	assert_int_equal(live_images_find(l, (uint64_t)(uintptr_t)live_images_sample, &s), -ENOENT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(live_images_read_maps(l), 0);
		check_sample(l);
	}
	assert_int_equal(live_images_find(l, (uint64_t)(uintptr_t)&on_stack, &s), -ENOENT);
	assert_int_equal(live_images_find(l, 0, &s), -ENOENT);
	assert_int_equal(live_images_find(l, UINT64_MAX, &s), -ENOENT);
	live_images_free(l);
	opener_free(o);
}

static void the_maps_stay_after_the_end_of_the_process(void **state)
{
	struct live_images *l;
	struct opener *o;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (!child) {
		char byte;

		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	close(ends[0]);
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(opener_pin(o, child), 0);
	assert_int_equal(live_images_new(o, child, &l), 0);
	assert_int_equal(live_images_read_maps(l), 0);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(live_images_read_maps(l), -ESRCH);
	check_sample(l);
	live_images_free(l);
	opener_free(o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_of_a_process_have_symbols_of_its_files),
		cmocka_unit_test(the_maps_stay_after_the_end_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
