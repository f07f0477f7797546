#include "base/pidset.h"

#include <errno.h>
#include <sys/mman.h>

int pidset_new(struct pidset *ret_set)
{
	void *words = mmap(NULL, PIDSET_MAX / 8, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (words == MAP_FAILED)
		return -ENOMEM;
	*ret_set = (struct pidset){.words = words};
	return 0;
}

void pidset_free(struct pidset *set)
{
	if (set->words)
		munmap(set->words, PIDSET_MAX / 8);
	*set = (struct pidset){0};
}

bool pidset_add(struct pidset *set, pid_t pid)
{
	if ((uint32_t)pid >= PIDSET_MAX || pidset_has(set, pid))
		return false;
	set->words[(uint32_t)pid / 64] |= 1ULL << ((uint32_t)pid & 63);
	set->len++;
	return true;
}

bool pidset_remove(struct pidset *set, pid_t pid)
{
	if (!pidset_has(set, pid))
		return false;
	set->words[(uint32_t)pid / 64] &= ~(1ULL << ((uint32_t)pid & 63));
	set->len--;
	return true;
}
