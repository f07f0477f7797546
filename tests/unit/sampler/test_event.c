#include "sampler/cpulist.h"
#include "sampler/event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* A tree of small files under a temporary directory. */
struct tree {
	char root[64];
};

static void tree_put(struct tree *t, const char *path, const char *text)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", t->root, path);
	char *slash = strrchr(full, '/');

	*slash = 0;
	assert_int_equal(file_mkdirs(full), 0);
	*slash = '/';
	FILE *f = fopen(full, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void tree_new(struct tree *t)
{
	snprintf(t->root, sizeof(t->root), "/tmp/profcpu-event.XXXXXX");
	assert_non_null(mkdtemp(t->root));
}

static void tree_remove(struct tree *t)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", t->root);
	assert_int_equal(system(command), 0);
}

static struct sampler_event parsed(const char *text)
{
	struct sampler_event e;
	struct sampler_problem p = {0};

	assert_int_equal(sampler_event_parse(NULL, text, &e, &p), 0);
	assert_string_equal(e.name, text);
	return e;
}

static void names_of_software_and_hardware_events_equal_perfs(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} wanted[] = {
		{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
		{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
		{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
		{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
		{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000},
		{"LLC-stores", PERF_TYPE_HW_CACHE, 0x102},
		{"dTLB-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10203},
		{"r1a8", PERF_TYPE_RAW, 0x1a8},
		{"rFFFFFFFFFFFFFFFF", PERF_TYPE_RAW, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct sampler_event e = parsed(wanted[i].name);

		assert_int_equal(e.type, wanted[i].type);
		assert_int_equal(e.config, wanted[i].config);
		assert_false(e.exclude_user || e.exclude_kernel || e.exclude_hv || e.precise_ip);
	}
}

static void modifiers_choose_levels_and_precision(void **state)
{
	(void)state;
	struct sampler_event e = parsed("cpu-clock:u");

	assert_true(!e.exclude_user && e.exclude_kernel && e.exclude_hv);
	e = parsed("cycles:k");
	assert_true(e.exclude_user && !e.exclude_kernel && e.exclude_hv);
	e = parsed("cycles:uk");
	assert_true(!e.exclude_user && !e.exclude_kernel && e.exclude_hv);
	e = parsed("cycles:uppp");
	assert_int_equal(e.precise_ip, 3);
	e = parsed("cycles:G");
	assert_true(!e.exclude_guest && e.exclude_host);
	e = parsed("cycles:H");
	assert_true(e.exclude_guest && !e.exclude_host);
	e = parsed("instructions:D");
	assert_true(e.pinned);
	e = parsed("cycles:");
	assert_false(e.exclude_user || e.exclude_kernel);
}

static void refused(const struct sampler_roots *roots, const char *text, int code, const char *word)
{
	struct sampler_event e = {.config = 77};
	struct sampler_problem p = {0};

	assert_int_equal(sampler_event_parse(roots, text, &e, &p), code);
	assert_int_equal(p.code, code);
	assert_non_null(p.what);
	assert_non_null(strstr(p.detail, word));
	assert_null(strchr(p.detail, '\n'));
	assert_int_equal(e.config, 77);
}

static void wrong_names_list_the_valid_ones(void **state)
{
	(void)state;
	char longer[SAMPLER_EVENT_NAME_MAX + 1];

	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	refused(NULL, "nosuch", -ENOENT, "cpu-clock");
	refused(NULL, "", -EINVAL, "not the name");
	refused(NULL, ":u", -EINVAL, "not the name");
	refused(NULL, "cpu clock", -EINVAL, "not the name");
	refused(NULL, "a/../b", -EINVAL, "not the name");
	refused(NULL, "..:x", -EINVAL, "not the name");
	refused(NULL, "cycles:x", -EINVAL, "modifier");
	refused(NULL, "cycles:pppp", -EINVAL, "modifier");
	refused(NULL, "cycles:u:k", -EINVAL, "colons");
	refused(NULL, "r", -ENOENT, "no such event");
	refused(NULL, "r12345678123456789", -ENOENT, "no such event");
	refused(NULL, "L1-dcache-nothing", -ENOENT, "no such event");
	refused(NULL, longer, -E2BIG, "longer");
	refused(NULL, "new\nline", -EINVAL, "not the name");
}

static void tracepoints_have_their_id_from_tracefs(void **state)
{
	(void)state;
	struct tree t;
	struct sampler_event e;
	struct sampler_problem p;

	tree_new(&t);
	tree_put(&t, "events/sched/sched_switch/id", "314\n");
	struct sampler_roots roots = {.tracefs = t.root};

	assert_int_equal(sampler_event_parse(&roots, "sched:sched_switch", &e, &p), 0);
	assert_int_equal(e.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(e.config, 314);
	assert_int_equal(sampler_event_parse(&roots, "sched:sched_switch:k", &e, &p), 0);
	assert_true(e.exclude_user);
	refused(&roots, "sched:nosuch", -ENOENT, "no such tracepoint");
	roots.tracefs = "/nonexistent";
	refused(&roots, "sched:sched_switch", -ENOENT, "not mounted");
	tree_remove(&t);
}

static void cycles_are_chosen_if_sysfs_shows_a_pmu(void **state)
{
	(void)state;
	struct sampler_event e[SAMPLER_DEFAULT_MAX];
	const char *why = NULL;
	struct tree t;
	size_t n = 0;

	tree_new(&t);
	struct sampler_roots roots = {.sysfs = t.root};

	tree_put(&t, "bus/event_source/devices/software/type", "1\n");
	sampler_event_default(&roots, e, &n, &why);
	assert_int_equal(n, 1);
	assert_string_equal(e[0].name, "cpu-clock");
	assert_non_null(strstr(why, "no PMU"));

	tree_put(&t, "bus/event_source/devices/cpu/type", "4\n");
	sampler_event_default(&roots, e, &n, &why);
	assert_int_equal(n, 1);
	assert_string_equal(e[0].name, "cycles");
	assert_int_equal(e[0].type, PERF_TYPE_HARDWARE);

	tree_put(&t, "bus/event_source/devices/cpu_core/type", "4\n");
	tree_put(&t, "bus/event_source/devices/cpu_core/cpus", "0-3\n");
	tree_put(&t, "bus/event_source/devices/cpu_atom/type", "10\n");
	tree_put(&t, "bus/event_source/devices/cpu_atom/cpus", "4-11\n");
	sampler_event_default(&roots, e, &n, &why);
	assert_int_equal(n, 2);
	assert_string_equal(e[1].cpus, "4-11");
	assert_int_equal(e[1].config, (uint64_t)10 << 32);
	tree_remove(&t);
}

static void lists_of_cpus_are_read_as_sysfs_writes_them(void **state)
{
	(void)state;
	AUTO_FREE int *cpus = NULL;
	size_t n = 0;

	assert_int_equal(cpulist_parse("0-2,5,8-9\n", &cpus, &n), 0);
	assert_int_equal(n, 6);
	assert_int_equal(cpus[3], 5);
	assert_int_equal(cpus[5], 9);
	assert_true(cpulist_has("0-2,5", 5));
	assert_false(cpulist_has("0-2,5", 4));
	int *none = NULL;

	assert_int_equal(cpulist_parse("", &none, &n), -EBADMSG);
	assert_int_equal(cpulist_parse("3-1", &none, &n), -EBADMSG);
	assert_int_equal(cpulist_parse("0-99999999999", &none, &n), -EBADMSG);
	assert_int_equal(cpulist_parse("0-", &none, &n), -EBADMSG);
	assert_int_equal(cpulist_parse("x", &none, &n), -EBADMSG);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_software_and_hardware_events_equal_perfs),
		cmocka_unit_test(modifiers_choose_levels_and_precision),
		cmocka_unit_test(wrong_names_list_the_valid_ones),
		cmocka_unit_test(tracepoints_have_their_id_from_tracefs),
		cmocka_unit_test(cycles_are_chosen_if_sysfs_shows_a_pmu),
		cmocka_unit_test(lists_of_cpus_are_read_as_sysfs_writes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
