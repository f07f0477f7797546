/* The state of running processes, from a directory as /proc whose mappings are readable as text
 * only. */
#include "sampler/sampler_impl.h"
#include "sampler/synth_maps.h"

#include "base/file.h"
#include "tests/unit/under_valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char root[64];
static char text[1 << 16]; /* the records, one line each */
static size_t text_len;
static unsigned rounds;
static uint64_t unread, cut;
static size_t bytes, enough; /* of records; enough: the listener wants no more */

static void put_file(const char *path, const char *content)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	char *slash = strrchr(full, '/');

	*slash = 0;
	assert_int_equal(file_mkdirs(full), 0);
	*slash = '/';
	FILE *f = fopen(full, "w");

	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

static void print_record(const struct perf_event_header *h)
{
	const uint32_t *w = (const void *)(h + 1);
	const uint64_t *q = (const void *)(h + 1);
	const unsigned char *end = (const unsigned char *)h + h->size;

	for (const unsigned char *p = end - sizeof(struct attr_sample_id); p < end; p++)
		assert_int_equal(*p, 0); /* sample_id of zeros */
	text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "%u/%x ", h->type,
				     h->misc);
	if (h->type == PERF_RECORD_FORK)
		text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len,
					     "%u %u %u %u\n", w[0], w[1], w[2], w[3]);
	if (h->type == PERF_RECORD_COMM)
		text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "%u %u %s\n",
					     w[0], w[1], (const char *)(w + 2));
	if (h->type == PERF_RECORD_MMAP)
		text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len,
					     "%d %llx+%llx@%llx %s\n", (int)w[0],
					     (unsigned long long)q[1], (unsigned long long)q[2],
					     (unsigned long long)q[3], (const char *)(q + 4));
	if (h->type == PERF_RECORD_MMAP2)
		text_len += (size_t)snprintf(
			text + text_len, sizeof(text) - text_len,
			"%u %llx+%llx@%llx %u:%u %llu %u/%u %s\n", w[0], (unsigned long long)q[1],
			(unsigned long long)q[2], (unsigned long long)q[3], w[8], w[9],
			(unsigned long long)q[5], w[14], w[15], (const char *)(q + 8));
}

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	(void)ctx;
	assert_int_equal(cpu, -1);
	assert_true(!enough || bytes < enough);
	bytes += len;
	if (enough)
		return bytes >= enough;
	for (size_t pos = 0; pos < len;) {
		const struct perf_event_header *h = (const void *)((const char *)data + pos);

		assert_true(h->size >= sizeof(*h) && h->size % 8 == 0 && h->size <= len - pos);
		print_record(h);
		pos += h->size;
	}
	return 0;
}

static int take_round(void *ctx)
{
	(void)ctx;
	rounds++;
	return 0;
}

static const char *synthesized(bool system_wide, pid_t pid)
{
	struct sampler s = {.options = {.roots = {.proc = root}, .system_wide = system_wide}};
	struct sampler_listener listener = {NULL, take_records, take_round, NULL, NULL};

	text_len = bytes = 0;
	rounds = 0;
	text[0] = 0;
	assert_int_equal(targets_new(&s.targets), 0);
	if (pid)
		assert_int_equal(targets_add(&s.targets, pid), 0);
	assert_int_equal(sampler_listen(&s, &listener), 0);
	assert_int_equal(sampler_synthesize(&s), 0);
	unread = s.stats.unread;
	cut = s.stats.cut_maps;
	sampler_free_early(&s);
	targets_free(&s.targets);
	return text;
}

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/profcpu-proc.XXXXXX");
	assert_non_null(mkdtemp(root));
	put_file("12/task/12/stat", "12 (a) b) c) S 1 12 12 0 -1 4194304 0 0");
	put_file("12/task/12/comm", "not read\n");
	put_file("12/task/13/comm", "worker\n");
	put_file("12/task/12/maps",
		 "00400000-00401000 r--p 00000000 08:01 77 /bin/app\n"
		 "00401000-00403000 r-xp 00001000 08:01 77 /bin/app\n"
		 "7f0000000000-7f0000001000 rwxs 00000000 00:05 9 /memfd:doublemapper (deleted)\n"
		 "7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n"
		 "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
	put_file("2/task/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0");
	put_file("2/task/2/maps", "00401000-00403000 r-xp 00001000 08:01 77 never read\n");
	put_file("30/task/30/stat", "nonsense");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static const char app_records[] =
	"7/2000 12 1 12 1\n"
	"3/0 12 12 a) b) c\n"
	"10/2 12 401000+2000@1000 8:1 77 5/2 /bin/app\n"
	"10/2 12 7f0000000000+1000@0 0:5 9 7/1 /memfd:doublemapper (deleted)\n"
	"10/2 12 7f0000002000+1000@0 0:0 0 7/2 //anon\n"
	"10/2 12 ffffffffff600000+1000@0 0:0 0 4/2 [vsyscall]\n"
	"7/2000 12 12 13 12\n"
	"3/0 12 13 worker\n";

static void a_process_comes_with_its_threads_and_executable_mappings(void **state)
{
	(void)state;
	assert_string_equal(synthesized(false, 12), app_records);
	assert_int_equal(rounds, 1);
}

static void each_of_many_threads_comes_once(void **state)
{
	char path[64], line[64];

	(void)state;
	put_file("40/task/40/stat", "40 (main) S 1 40 40 0 -1 4194304 0 0");
	for (int tid = 41; tid <= 150; tid++) {
		snprintf(path, sizeof(path), "40/task/%d/comm", tid);
		put_file(path, tid % 2 ? "odd\n" : "even\n");
	}
	const char *all = synthesized(false, 40);

	for (int tid = 41; tid <= 150; tid++) {
		snprintf(line, sizeof(line), "\n3/0 40 %d %s\n", tid, tid % 2 ? "odd" : "even");
		const char *found = strstr(all, line);

		assert_non_null(found);
		assert_null(strstr(found + 1, line));
	}
}

static void processes_that_ended_are_left_out(void **state)
{
	(void)state;
	assert_string_equal(synthesized(false, 99), "");
	assert_string_equal(synthesized(false, 30), "");
}

/* Without a descriptor for its directory, or for a file in it. */
static void processes_without_descriptors_are_counted(void **state)
{
	struct rlimit before, limit;
	int next = dup(0);

	(void)state;
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int more = 0; more < 2; more++) {
		limit = before;
		limit.rlim_cur = (rlim_t)(next + more);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		const char *records = synthesized(false, 12);

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_string_equal(records, "");
		assert_int_equal(unread, 1);
	}
	synthesized(false, 99);
	assert_int_equal(unread, 0);
}

/* A process with more mappings than are taken, all of a path of 4000 bytes. */
static void put_hostile_process(int pid)
{
	enum { PATH = 4000, MAPS = SYNTH_MAPS_BYTES_MAX / PATH + 100 };
	char path[64], *maps = malloc((size_t)MAPS * (PATH + 64)), *p = maps;

	assert_non_null(maps);
	for (unsigned long i = 1; i <= MAPS; i++) {
		p += sprintf(p, "%lx000-%lx000 r-xp 00000000 08:01 77 /", i, i + 1);
		p = memset(p, 'x', PATH);
		p[PATH] = '\n';
		p += PATH + 1;
	}
	*p = 0;
	snprintf(path, sizeof(path), "%d/task/%d/stat", pid, pid);
	put_file(path, "40 (hostile) S 1 40 40 0 -1 4194304 0 0");
	snprintf(path, sizeof(path), "%d/task/%d/maps", pid, pid);
	put_file(path, maps);
	free(maps);
}

static void mappings_of_a_process_are_limited(void **state)
{
	(void)state;
	put_hostile_process(40);
	enough = SIZE_MAX;
	synthesized(false, 40);
	assert_true(bytes > SYNTH_MAPS_BYTES_MAX / 2);
	assert_true(bytes < SYNTH_MAPS_BYTES_MAX + SYNTH_BUF_BYTES);
	assert_int_equal(cut, 1);
	assert_int_equal(unread, 0);
	/* Other processes have all. */
	synthesized(false, 12);
	assert_int_equal(cut, 0);
	enough = 0;
	assert_string_equal(synthesized(false, 12), app_records);
}

static void a_listener_that_has_enough_ends_it(void **state)
{
	(void)state;
	put_hostile_process(40);
	enough = 2 * SYNTH_BUF_BYTES;
	synthesized(true, 0);
	assert_true(bytes >= enough && bytes < enough + SYNTH_BUF_BYTES);
	assert_true(rounds > 0); /* before the memory of the records is freed */
	assert_int_equal(cut, 0);
	enough = 0;
}

static void the_machine_has_kernel_threads_without_mappings(void **state)
{
	(void)state;
	const char *all = synthesized(true, 0);

	assert_non_null(strstr(all, app_records));
	assert_non_null(strstr(all, "7/2000 2 0 2 0\n3/0 2 2 kthreadd\n"));
	assert_null(strstr(all, "never"));
}

static void the_kernel_and_its_modules_are_mapped_as_perf_does(void **state)
{
	(void)state;
	put_file("kallsyms", "0000000000001000 A per_cpu\n"
			     "ffffffff81000000 T __pi__text\n"
			     "ffffffff81000000 T _text\n"
			     "ffffffff81000100 T _stext\n"
			     "ffffffff82000000 T _etext\n"
			     "ffffffffc0000000 t init\t[ext4]\n");
	put_file("modules", "ext4 90112 1 - Live 0xffffffffc0000000\n"
			    "nothing 4096 0 - Live 0x0000000000000000\n");
	assert_string_equal(
		synthesized(false, 99),
		"1/1 -1 ffffffff81000100+ffff00@ffffffff81000000 [kernel.kallsyms]_text\n"
		"1/1 -1 ffffffffc0000000+16000@0 [ext4]\n");
	put_file("iomem", "00000000-00000fff : Reserved\n"
			  "01000000-08ffffff : System RAM\n"
			  "  01000000-01ffffff : Kernel code\n");
	assert_non_null(strstr(synthesized(false, 99), "ffffffff81000100+ffff00@ffffffff81000000"));
	put_file(
		"kallsyms",
		"0000000000000000 T _text\n0000000000000000 T _stext\n0000000000000000 T _etext\n");
	assert_string_equal(synthesized(false, 99), "");
}

static void queried_maps_agree_with_the_text_of_maps(void **state)
{
	(void)state;
	if (under_valgrind())
		skip(); /* it maps code meanwhile */
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct procmap *m = calloc(1, sizeof(*m));
	char *maps = NULL, *cursor;
	struct proc_map line;
	uint64_t addr = 0;
	size_t len, n = 0, build_ids = 0;

	assert_true(fd >= 0);
	assert_non_null(m);
	int r = procmap_next(fd, 0, m);

	if (r < 0) {
		assert_int_equal(r, -ENOTTY);
		close(fd);
		free(m);
		return;
	}
	assert_int_equal(file_read_fd(fd, 1 << 20, &maps, &len), 0);
	cursor = maps;
	while (proc_map_next(&cursor, &line)) {
		if (!(line.prot & 4) || line.start > INT64_MAX) /* vsyscall belongs to no process */
			continue;
		assert_int_equal(procmap_next(fd, addr, m), 1);
		assert_true(m->map.start == line.start && m->map.end == line.end);
		assert_true(m->map.pgoff == line.pgoff && m->map.ino == line.ino &&
			    m->map.min == line.min);
		assert_int_equal(m->map.prot, line.prot);
		assert_int_equal(m->map.flags, line.flags);
		assert_int_equal(m->map.path_len, line.path_len);
		assert_memory_equal(m->map.path, line.path, line.path_len);
		struct procmap_build_id id = {.start = m->map.start,
					      .ino = m->map.ino,
					      .maj = m->map.maj,
					      .min = m->map.min};

		procmap_read_build_id(fd, &id);
		assert_true(id.ino || !id.len);
		build_ids += id.len != 0;
		/* Another file is there meanwhile. */
		id.len = 0;
		id.ino++;
		procmap_read_build_id(fd, &id);
		assert_int_equal(id.len, 0);
		addr = m->map.end;
		n++;
	}
	assert_true(n > 2);
	assert_true(build_ids > 1); /* ours and the C library's */
	assert_int_equal(procmap_next(fd, addr, m), 0);
	free(maps);
	free(m);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_process_comes_with_its_threads_and_executable_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(each_of_many_threads_comes_once, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_that_ended_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_without_descriptors_are_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(mappings_of_a_process_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(a_listener_that_has_enough_ends_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_machine_has_kernel_threads_without_mappings,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_kernel_and_its_modules_are_mapped_as_perf_does,
						setup, teardown),
		cmocka_unit_test(queried_maps_agree_with_the_text_of_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
