/* perf.data named from a store, as in a recording, twice: by single addresses, and by functions
 * only. Both must fold to the same. Bits of the size select options. covers: symbols/symbolizer.c
 * symbols/core/processes.c symbols/frames.c symbols/store/lookup_cache.c symbols/callchains.c
 * profcpu/post/import.c */
#include "flamegraph/collapse.h"
#include "profcpu/post/import.h"
#include "symbols/store/store_read.h"
#include "tests/fuzz/fuzz_dir.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names for the addresses in the seeds. */
static const char names[] =
	"profcpu-symbols 1\n"
	"image kernel - 0 0 0 0 0 [kernel.kallsyms]\n"
	"symbol ffffffff81000000 100 kallsyms [kernel.kallsyms] do_idle\n"
	"at 10 f\n"
	"symbol ffffffff81000200 100 kallsyms [ext4] asm_exc_page_fault\n"
	"at 0 10 f\n"
	"symbol ffffffff81000400 100 kallsyms [kernel.kallsyms] kthread\n"
	"at 10 f\n"
	"image jit - 0 0 0 0 5 /memfd:doublemapper (deleted)\n"
	"symbol 7f0000000000 100 perf-map - void [app] Loop::Run()[Tier0]\n"
	"at 10 f\n"
	"image file - 0 0 7 0 0 /bin/app\n"
	"symbol 1000 10 symtab - _ZN3app1fEv\n"
	"at 4 3 f\n"
	"symbol 1030 10 symtab - __restore_rt\n"
	"at 0\n"
	"symbol 1060 20 bounds - 0x2060\n"
	"at 4 3\n"
	"symbol 1080 20 symtab - main\n"
	"at 4 3\n"
	"image file - 0 0 0 0 0 /lib/libcoreclr.so\n"
	"symbol 0 10 dynsym - coreclr_execute_assembly\n"
	"at 1 0\n"
	"image jit - 0 0 0 0 5 //anon\n"
	"symbol 7f1000000000 100 perf-map - instance void [app] A::C(int32)[OptimizedTier1]\n"
	"at 10 f\n"
	"end 15\n";

static int store_dir(void)
{
	static int made;
	struct lookup_cache lookup_cache = {0};
	struct store_notes notes;

	if (made)
		return fuzz_dir();
	made = 1;
	fuzz_dir_put(STORE_FILE, names, strlen(names));
	if (store_read(fuzz_dir(), UINT64_MAX, &lookup_cache, &notes, NULL))
		abort();
	lookup_cache_free(&lookup_cache);
	return fuzz_dir();
}

/* The folded recording; empty if it is refused. */
static struct outbuf fold(int fd, const struct symbolizer_options *symbols,
			  const struct collapse_options *options, struct audit *audit)
{
	const struct import_options import = {
		.symbols = *symbols, .write_store_dir_fd = -1, .ret_audit = audit};
	struct import_result result;
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;
	struct profile *profile;

	if (profile_new(&profile) || lseek(fd, 0, SEEK_SET))
		abort();
	if (!post_import_perfdata(fd, &import, profile, &result) &&
	    collapse_write(profile, options, &out, &stats))
		abort();
	profile_free(profile);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_options symbols = {
		.offline = true, .raw_names = size & 1, .mangled = size & 2};
	struct collapse_options options = {.names = size & 4 ? COLLAPSE_FULL : COLLAPSE_PERF,
					   .include_pid = size & 8,
					   .include_tid = size & 16,
					   .annotate_kernel = true,
					   .annotate_jit = true};
	struct audit exact = {0}, by_function = {0};
	struct outbuf a, b;
	int fd = memfd_create("ingest", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, data, size))
		abort();
	symbols.store_dir_fd = store_dir();
	a = fold(fd, &symbols, &options, &exact);
	symbols.by_function = true;
	symbols.perf_names_only = options.names == COLLAPSE_PERF;
	b = fold(fd, &symbols, &options, &by_function);
	if (a.len != b.len || (a.len && memcmp(a.data, b.data, a.len) != 0) ||
	    exact.samples != by_function.samples)
		abort();
	audit_free(&exact);
	audit_free(&by_function);
	outbuf_close(&a);
	outbuf_close(&b);
	close(fd);
	return 0;
}
