#include "profcpu/stacks/syscall_name.h"

#include <stddef.h>
#include <sys/syscall.h>

static const struct {
	int64_t number;
	const char *name;
} names[] = {
#define SYSCALL(name) {__NR_##name, #name},
#include "profcpu/stacks/syscalls.inc"
#undef SYSCALL
};

const char *syscall_name(int64_t number)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}
