/*
 * A FUSE file system of type fuse.test with one file, FILE below DIR. With "silent" it never
 * takes a request. While SWITCH exists, it takes reads of the file but does not answer. Ends on
 * SIGTERM.
 *
 * usage: fuse_mount DIR FILE [SWITCH] | fuse_mount DIR silent   FILE: a program to show as
 * DIR/program
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME "program"
#define REQUEST_BYTES ((size_t)1 << 20)

static int fuse_fd, file_fd;
static const char *no_reads; /* SWITCH, or NULL */

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t bytes)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + bytes), .error = error, .unique = in->unique};
	struct iovec v[2] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, bytes}};

	if (writev(fuse_fd, v, 2) < 0 && errno != ENOENT)
		exit(1);
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr a = {.ino = node, .mode = S_IFDIR | 0755, .nlink = 1};
	struct stat st;

	if (node != FUSE_ROOT_ID && !fstat(file_fd, &st)) {
		a.mode = S_IFREG | 0755;
		a.size = (uint64_t)st.st_size;
	}
	return a;
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *read)
{
	char *data = malloc(read->size);
	ssize_t n = data ? pread(file_fd, data, read->size, (off_t)read->offset) : -1;

	answer(in, n < 0 ? -EIO : 0, data, n < 0 ? 0 : (size_t)n);
	free(data);
}

static void handle(const struct fuse_in_header *in)
{
	const void *arg = in + 1;
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = 31,
				     .max_readahead = 1 << 17,
				     .max_write = 1 << 17};
	struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 60, .attr_valid = 60};
	struct fuse_attr_out attr = {.attr_valid = 0, .attr = attr_of(in->nodeid)};
	struct fuse_open_out opened = {0};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .frsize = 4096, .namelen = 255}};

	switch (in->opcode) {
	case FUSE_INIT:
		answer(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		entry.attr = attr_of(2);
		if (strcmp(arg, NAME) != 0)
			answer(in, -ENOENT, NULL, 0);
		else
			answer(in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_STATFS:
		answer(in, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_OPEN:
		answer(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		if (!no_reads || access(no_reads, F_OK))
			read_file(in, arg);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(in, 0, NULL, 0);
		break;
	default:
		answer(in, -ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	char options[128], *request = malloc(REQUEST_BYTES);
	int silent = argc == 3 && !strcmp(argv[2], "silent");

	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	file_fd = argc >= 3 && !silent ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
		 fuse_fd);
	no_reads = argc == 4 ? argv[3] : NULL;
	if (argc < 3 || argc > 4 || !request || (file_fd < 0 && !silent) ||
	    mount("test", argv[1], "fuse.test", MS_NOSUID, options)) {
		fprintf(stderr, "usage: fuse_mount DIR FILE|silent: %s\n", strerror(errno));
		return 77;
	}
	puts("mounted");
	fflush(stdout);
	for (;;) {
		if (silent) {
			pause();
			continue;
		}
		ssize_t n = read(fuse_fd, request, REQUEST_BYTES);

		if (n < (ssize_t)sizeof(struct fuse_in_header)) {
			if (n < 0 && (errno == EINTR || errno == ENOENT))
				continue;
			return 0;
		}
		handle((const struct fuse_in_header *)(const void *)request);
	}
}
