/* profcpu/stacks/kernel_stack and syscall_name: names of the kernel's functions and of system
 * calls. */
#include "profcpu/stacks/kernel_stack.h"
#include "profcpu/stacks/syscall_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

static void check_names(const char *text, int n, const char *names)
{
	struct outbuf out = outbuf_to(-1);

	assert_int_equal(kernel_stack_names(text, &out), n);
	assert_int_equal(out.len, strlen(names));
	assert_int_equal(out.error, 0);
	if (out.len)
		assert_memory_equal(out.data, names, out.len);
	outbuf_close(&out);
}

static void each_line_has_a_name(void **state)
{
	(void)state;
	check_names("[<0>] futex_wait_queue+0x60/0x90\n"
		    "[<0>] do_select.constprop.0+0x7a1/0x8c0\n"
		    "[<0>] nft_do_chain+0x12/0x30 [nf_tables]\n"
		    "[<ffffffff81055a90>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n",
		    4,
		    "futex_wait_queue\ndo_select.constprop.0\nnft_do_chain\n"
		    "entry_SYSCALL_64_after_hwframe\n");
	check_names("[<0>] last+0x1/0x2", 1, "last\n");
}

static void other_lines_are_left_out(void **state)
{
	(void)state;
	check_names("", 0, "");
	check_names("\n\n", 0, "");
	check_names("[<ffffffffffffffff>] 0xffffffffffffffff\n", 0, "");
	check_names("[<0>] name\n[<0>] +0x1/0x2\n[<0>]  blank+0x1/0x2\nname+0x1/0x2\n"
		    "[<0>] na\033me+0x1/0x2\n[<0>] good+0x1/0x2\n[<0>\n] split+0x1/0x2\n",
		    1, "good\n");
}

static void a_stack_has_a_limit(void **state)
{
	char text[32 * (KERNEL_STACK_FRAMES_MAX + 9) + 1] = "";
	struct outbuf out = outbuf_to(-1);

	(void)state;
	for (int i = 0; i < KERNEL_STACK_FRAMES_MAX + 9; i++)
		strcat(text, "[<0>] f+0x1/0x2\n");
	assert_int_equal(kernel_stack_names(text, &out), KERNEL_STACK_FRAMES_MAX);
	outbuf_close(&out);
}

static void wchan_is_a_name_or_nothing(void **state)
{
	(void)state;
	assert_true(kernel_stack_is_wchan("futex_wait_queue"));
	assert_true(kernel_stack_is_wchan("do_sys_poll.part.0"));
	assert_false(kernel_stack_is_wchan("0"));
	assert_false(kernel_stack_is_wchan(""));
	assert_false(kernel_stack_is_wchan("two words"));
	assert_false(kernel_stack_is_wchan("name\n"));
}

static void system_calls_have_the_names_of_this_architecture(void **state)
{
	(void)state;
	assert_string_equal(syscall_name(SYS_read), "read");
	assert_string_equal(syscall_name(SYS_futex), "futex");
	assert_string_equal(syscall_name(SYS_ppoll), "ppoll");
	assert_string_equal(syscall_name(SYS_epoll_pwait), "epoll_pwait");
	assert_null(syscall_name(-1));
	assert_null(syscall_name(INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_has_a_name),
		cmocka_unit_test(other_lines_are_left_out),
		cmocka_unit_test(a_stack_has_a_limit),
		cmocka_unit_test(wchan_is_a_name_or_nothing),
		cmocka_unit_test(system_calls_have_the_names_of_this_architecture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
