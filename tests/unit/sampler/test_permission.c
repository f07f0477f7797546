#include "sampler/permission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PERFMON (1ULL << CAP_PERFMON)
#define ADMIN (1ULL << CAP_SYS_ADMIN)

static struct permission_facts facts_of(int64_t paranoid, uint64_t caps)
{
	return (struct permission_facts){.paranoid = paranoid,
					 .caps = caps,
					 .init_user_ns = true,
					 .has_perfmon = true,
					 .admin_only = paranoid > 2 && !(caps & ADMIN)};
}

/* Letters per use, in the order of enum permission_use: '-' nothing, P and A capabilities. */
static void each_use_lacks_what_the_kernel_demands(void **state)
{
	static const struct {
		int64_t paranoid;
		uint64_t caps;
		const char *lacks;
	} rows[] = {
		{-1, 0, "----"},
		{0, 0, "---P"},
		{1, 0, "--PP"},
		{2, 0, "-PPP"},
		{3, 0, "AAAA"},
		{4, 0, "AAAA"},
		{-1, PERFMON, "----"},
		{2, PERFMON, "----"},
		{3, PERFMON, "AAAA"},
		{2, ADMIN, "----"},
		{4, ADMIN, "----"},
		{4, ADMIN | PERFMON, "----"},
		{PERMISSION_UNKNOWN, 0, "PPPP"},
		{PERMISSION_UNKNOWN, PERFMON, "----"},
	};
	static const char letters[] = {[PERMISSION_BLOCKED] = '-',
				       [PERMISSION_PERFMON] = 'P',
				       [PERMISSION_ADMIN] = 'A',
				       [PERMISSION_USER_NS] = 'N'};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct permission_facts f = facts_of(rows[i].paranoid, rows[i].caps);
		char lacks[PERMISSION_USES + 1] = "";

		for (int use = 0; use < PERMISSION_USES; use++)
			lacks[use] = letters[permission_missing(&f, use)];
		assert_string_equal(lacks, rows[i].lacks);
	}
}

static void other_kernels_have_their_own_demands(void **state)
{
	struct permission_facts f = facts_of(3, PERFMON);

	(void)state;
	/* Other distributions treat 3 like 2. */
	f.admin_only = false;
	assert_int_equal(permission_missing(&f, PERMISSION_CPU), PERMISSION_BLOCKED);
	f.caps = 0;
	assert_int_equal(permission_missing(&f, PERMISSION_CPU), PERMISSION_PERFMON);
	/* Before Linux 5.8 */
	f.has_perfmon = false;
	assert_int_equal(permission_missing(&f, PERMISSION_CPU), PERMISSION_ADMIN);
	/* Capabilities in a user namespace */
	f = facts_of(1, PERFMON | ADMIN);
	f.init_user_ns = false;
	assert_int_equal(permission_missing(&f, PERMISSION_CPU), PERMISSION_USER_NS);
	assert_int_equal(permission_missing(&f, PERMISSION_KERNEL), PERMISSION_BLOCKED);
}

static void a_text_names_only_what_is_missing(void **state)
{
	static const struct {
		int64_t paranoid;
		uint64_t caps;
		enum permission_use use;
		const char *reason, *has, *has_not;
	} rows[] = {
		{2, 0, PERMISSION_KERNEL, NULL,
		 "is 2, and CAP_PERFMON is missing; run as root, or in a container with --cap-add "
		 "PERFMON, or set sysctl kernel.perf_event_paranoid=1",
		 "SYS_ADMIN"},
		{1, 0, PERMISSION_CPU, NULL, "perf_event_paranoid=0", "ADMIN"},
		{0, 0, PERMISSION_RAW, NULL, "perf_event_paranoid=-1", "ADMIN"},
		{4, PERFMON, PERMISSION_KERNEL, NULL,
		 "is 4, and CAP_SYS_ADMIN is missing (as on Debian and Ubuntu, CAP_PERFMON has no "
		 "effect at 3 or more); run as root, or in a container with --cap-add SYS_ADMIN",
		 "add PERFMON"},
		{0, 0, PERMISSION_CPU, NULL, "seccomp", "perf_event_paranoid"},
		{1, PERFMON, PERMISSION_CPU, NULL, "seccomp", "CAP_PERFMON"},
		{1, 0, PERMISSION_CPU, "it belongs to user 7",
		 "it belongs to user 7, and CAP_PERFMON is missing; run as root or its user, or",
		 "is 1"},
		{PERMISSION_UNKNOWN, 0, PERMISSION_CPU, NULL, "cannot be read, and CAP_PERFMON",
		 "-9223"},
	};
	char text[PERMISSION_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct permission_facts f = facts_of(rows[i].paranoid, rows[i].caps);

		permission_text(&f, rows[i].use, rows[i].reason,
				rows[i].reason ? " or its user" : "", text, sizeof(text));
		if (!strstr(text, rows[i].has) || strstr(text, rows[i].has_not))
			fail_msg("row %zu: %s", i, text);
	}
	struct permission_facts f = facts_of(1, ADMIN);

	f.init_user_ns = false;
	permission_text(&f, PERMISSION_CPU, NULL, "", text, sizeof(text));
	assert_non_null(strstr(text, "user namespace; run as the host's root, or set sysctl "
				     "kernel.perf_event_paranoid=0 on the host"));
}

static void advice_about_memory_names_only_missing_capabilities(void **state)
{
	const uint64_t ptrace = UINT64_C(1) << CAP_SYS_PTRACE, override = UINT64_C(1)
									  << CAP_DAC_OVERRIDE;
	const struct {
		uint64_t caps;
		const char *text;
	} rows[] = {
		{0,
		 "no permission; add CAP_SYS_PTRACE and CAP_DAC_OVERRIDE, or run as the target's "
		 "user"},
		{ptrace, "no permission; add CAP_DAC_OVERRIDE, or run as the target's user"},
		{override, "no permission; add CAP_SYS_PTRACE, or run as the target's user"},
		{ptrace | override, "a security module forbids it, despite CAP_SYS_PTRACE"},
	};
	char text[PERMISSION_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct permission_facts f = facts_of(2, rows[i].caps);

		permission_memory_text(&f, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	struct permission_facts f = facts_of(2, ptrace | override);

	f.init_user_ns = false;
	permission_memory_text(&f, text, sizeof(text));
	assert_non_null(strstr(text, "their user namespace or a security module forbids it"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_use_lacks_what_the_kernel_demands),
		cmocka_unit_test(other_kernels_have_their_own_demands),
		cmocka_unit_test(a_text_names_only_what_is_missing),
		cmocka_unit_test(advice_about_memory_names_only_missing_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
