/* container/vdso: the vdso of each kind of program is a whole ELF image, which is read once. */
#include "container/vdso.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include <cmocka.h>

static void ours_is_the_one_in_this_process(void **state)
{
	const void *own = (const void *)getauxval(AT_SYSINFO_EHDR), *data = NULL;
	size_t bytes = 0;
	int r = vdso_find("[vdso]", &data, &bytes);

	(void)state;
	assert_int_equal(r, own ? 0 : -ENOENT);
	assert_ptr_equal(data, own);
	assert_true(!own || (bytes > sizeof(Elf64_Ehdr) && bytes <= VDSO_BYTES_MAX));
	assert_int_equal(vdso_find("[vdsox32]", &data, &bytes), -ENOENT);
	assert_int_equal(vdso_find("", &data, &bytes), -ENOENT);
}

static long faults_of_children(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return usage.ru_minflt;
}

/* Only the first call starts a child. */
static void that_of_32_bits_is_copied_once(void **state)
{
	const void *data = NULL, *again = NULL;
	size_t bytes = 0;
	int r = vdso_find("[vdso32]", &data, &bytes);
	long faults = faults_of_children();

	(void)state;
	assert_int_equal(vdso_find("[vdso32]", &again, &bytes), r);
	assert_ptr_equal(again, data);
	assert_int_equal(faults_of_children(), faults);
	if (r == -ENOTSUP) {
		puts("the kernel has no vdso of 32 bits");
		return;
	}
	assert_int_equal(r, 0);
	assert_true(faults > 0);

	Elf32_Ehdr head;

	assert_true(bytes > sizeof(head));
	memcpy(&head, data, sizeof(head));
	assert_memory_equal(head.e_ident, ELFMAG, SELFMAG);
	assert_int_equal(head.e_ident[EI_CLASS], ELFCLASS32);
	assert_int_equal(head.e_machine, EM_386);
	assert_true(head.e_shoff + (size_t)head.e_shnum * head.e_shentsize <= bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours_is_the_one_in_this_process),
		cmocka_unit_test(that_of_32_bits_is_copied_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
