#include "sampler/procmap.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* Copied from Linux 6.11, because installed headers are often older than the kernel. */
enum {
	QUERY_READABLE = 0x01,
	QUERY_WRITABLE = 0x02,
	QUERY_EXECUTABLE = 0x04,
	QUERY_SHARED = 0x08,
	QUERY_COVERING_OR_NEXT = 0x10,
};

struct query {
	uint64_t size, flags, addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
_Static_assert(sizeof(struct query) == 104, "layout of struct procmap_query");

#define QUERY_IOCTL _IOWR('f', 17, struct query)

static int run_query(int maps_fd, struct query *q)
{
	int r;

	do
		r = ioctl(maps_fd, QUERY_IOCTL, q);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

int procmap_next(int maps_fd, uint64_t addr, struct procmap *ret_map)
{
	struct procmap *m = ret_map;
	struct query q = {
		.size = sizeof(q),
		.flags = QUERY_EXECUTABLE | QUERY_COVERING_OR_NEXT,
		.addr = addr,
		.name_size = sizeof(m->name),
		.name_addr = (uintptr_t)m->name,
	};
	int r = run_query(maps_fd, &q);

	if (r)
		return r == -ENOENT ? 0 : r;
	m->map = (struct proc_map){
		.start = q.vma_start,
		.end = q.vma_end,
		.pgoff = q.vma_offset,
		.ino = q.inode,
		.maj = q.dev_major,
		.min = q.dev_minor,
		.prot = (q.vma_flags & QUERY_READABLE ? PROT_READ : 0u) |
			(q.vma_flags & QUERY_WRITABLE ? PROT_WRITE : 0u) |
			(q.vma_flags & QUERY_EXECUTABLE ? PROT_EXEC : 0u),
		.flags = q.vma_flags & QUERY_SHARED ? MAP_SHARED : MAP_PRIVATE,
		.path = m->name,
		.path_len = q.name_size ? strnlen(m->name, q.name_size) : 0,
	};
	return 1;
}

void procmap_read_build_id(int maps_fd, struct procmap_build_id *id)
{
	struct query q = {
		.size = sizeof(q),
		.flags = QUERY_EXECUTABLE,
		.addr = id->start,
		.build_id_size = sizeof(id->bytes),
		.build_id_addr = (uintptr_t)id->bytes,
	};

	/* The process may have mapped another file meanwhile. */
	if (!run_query(maps_fd, &q) && q.inode == id->ino && q.dev_major == id->maj &&
	    q.dev_minor == id->min)
		id->len = (uint8_t)q.build_id_size;
}
