/* covers: symbols/symbolizer.c symbols/processes.c symbols/frames.c symbols/answers.c profcpu/ingest.c */
#include "base/file.h"
#include "profcpu/ingest.h"
#include "symbols/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names for the addresses in the seeds. */
static const char names[] = "profcpu-symbols 1\n"
			    "image kernel - 0 0 0 0 0 [kernel.kallsyms]\n"
			    "symbol ffffffff81000000 100 kallsyms [kernel.kallsyms] do_idle\n"
			    "at 10 f\n"
			    "symbol ffffffff81000200 100 kallsyms [ext4] asm_exc_page_fault\n"
			    "at 0 10 f\n"
			    "image file - 0 0 7 0 0 /bin/app\n"
			    "symbol 1000 10 symtab - _ZN3app1fEv\n"
			    "at 4 3 f\n"
			    "symbol 1030 10 symtab - __restore_rt\n"
			    "at 0\n"
			    "symbol 1060 20 bounds - 0x2060\n"
			    "at 4 3\n"
			    "image jit - 0 0 0 0 5 //anon\n"
			    "symbol 7f1000000000 100 perf-map - void [app] A::B()[Tier0]\n"
			    "at 10 f\n"
			    "end f\n";

/* A directory that holds `names`, made once. */
static int store_dir(void)
{
	static int dir = -1;
	char path[] = "/tmp/fuzz_ingest.XXXXXX";
	int fd;

	if (dir >= 0 || !mkdtemp(path))
		return dir;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, STORE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || file_write_all(fd, names, strlen(names)))
		abort();
	close(fd);
	return dir;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ingest_options options = {
		.symbols = {.store_dir_fd = store_dir(), .offline = true},
		.write_store_dir_fd = -1,
	};
	struct ingest_result result;
	struct profile *profile;
	int fd = memfd_create("ingest", MFD_CLOEXEC);

	if (fd < 0 || profile_new(&profile)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (!file_write_all(fd, data, size) && !lseek(fd, 0, SEEK_SET))
		(void)ingest_perfdata(fd, &options, profile, &result);
	profile_free(profile);
	close(fd);
	return 0;
}
