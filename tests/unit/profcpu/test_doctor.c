#include "profcpu/doctor_report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CAPS_ALL 0x1ffffffffffULL
#define CAP(n) (1ULL << (n))
#define PTRACE CAP(19)
#define PERFMON CAP(38)

/* A machine that has everything. */
static struct doctor_facts good_facts(void)
{
	return (struct doctor_facts){
		.release = "6.1.0-37-amd64",
		.ring_bytes = DOCTOR_RING_WANTED,
		.rights = {.paranoid = 2,
			   .caps = CAPS_ALL,
			   .init_user_ns = true,
			   .has_perfmon = true},
		.mlock_kb = 516,
		.kptr_restrict = 0,
		.kallsyms_shown = true,
		.nofile_hard = 1024,
		.cpus = 8,
		.pmu = true,
		.event = "cycles",
		.init_pid_ns = true,
		.proc_is_ours = true,
		.tracefs_mounted = true,
		.processes = 100,
		.dotnet = 1,
	};
}

/* Returned for a row that does not exist. */
static const struct doctor_item missing = {
	.state = (enum doctor_state)99, .name = "", .effect = "", .remedy = ""};

static const struct doctor_item *reported(const struct doctor_facts *f,
					  struct doctor_report *report, const char *name)
{
	doctor_report_facts(f, report);
	for (size_t i = 0; i < report->len; i++)
		if (!strcmp(report->items[i].name, name))
			return &report->items[i];
	return &missing;
}

static void full_rights_give_all_yes(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	doctor_report_facts(&f, &report);
	assert_true(report.can_record);
	assert_true(report.len > 10);
	for (size_t i = 0; i < report.len; i++) {
		assert_int_equal(report.items[i].state, DOCTOR_YES);
		assert_null(report.items[i].effect);
		assert_null(report.items[i].remedy);
		assert_int_not_equal(report.items[i].found[0], 0);
	}
}

static void an_old_kernel_is_named(void **state)
{
	static const struct {
		const char *release;
		enum doctor_state state;
	} cases[] = {
		{"4.19.0", DOCTOR_NO},
		{"5.3.18-lp152", DOCTOR_NO},
		{"5.4.0-42-generic", DOCTOR_YES},
		{"5.10.0", DOCTOR_YES},
		{"6.0", DOCTOR_YES},
		{"", DOCTOR_NO},
	};
	struct doctor_report report;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct doctor_facts f = good_facts();

		strcpy(f.release, cases[i].release);
		assert_int_equal(reported(&f, &report, "kernel")->state, cases[i].state);
		assert_true(report.can_record);
	}
}

static void a_refused_event_names_its_cause(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;
	const struct doctor_item *item;

	(void)state;
	/* All capabilities and still EPERM: seccomp. */
	f.event_user_error = -EPERM;
	f.self.seccomp = 2;
	f.place = DOCTOR_DOCKER;
	item = reported(&f, &report, "perf_event_open");
	assert_int_equal(item->state, DOCTOR_FATAL);
	assert_non_null(strstr(item->remedy, "--security-opt seccomp=unconfined"));
	assert_false(report.can_record);
	assert_int_equal(reported(&f, &report, "seccomp")->state, DOCTOR_NO);
	f.place = DOCTOR_KUBERNETES;
	assert_non_null(strstr(reported(&f, &report, "perf_event_open")->remedy, "seccompProfile"));
	/* No capability either: seccomp and capability are possible. */
	f.rights.caps = 0;
	assert_non_null(strstr(reported(&f, &report, "perf_event_open")->remedy,
			       "add: [PERFMON]}, seccompProfile"));
	/* No capability, and perf_event_paranoid forbids everything: that is reported first. */
	f.rights.paranoid = 3;
	f.event_user_error = -EACCES;
	assert_non_null(strstr(reported(&f, &report, "perf_event_open")->remedy, "add: [PERFMON]"));
	f.place = DOCTOR_HOST;
	item = reported(&f, &report, "perf_event_open");
	assert_non_null(strstr(item->remedy, "sysctl kernel.perf_event_paranoid"));
	assert_non_null(strstr(item->found, "perf_event_paranoid is 3"));
	/* Such kernels of Debian and Ubuntu ignore CAP_PERFMON. */
	f.rights.admin_only = true;
	f.rights.caps = PERFMON;
	assert_non_null(
		strstr(reported(&f, &report, "perf_event_open")->remedy, "setcap cap_sys_admin,"));
	item = reported(&f, &report, "CAP_PERFMON");
	assert_int_equal(item->state, DOCTOR_NO);
	assert_non_null(strstr(item->found, "without effect"));
	assert_non_null(strstr(item->remedy, "cap_sys_admin"));
	f.rights.admin_only = false;
	f.rights.caps = 0;
	/* From 0 down the kernel allows events for whole CPUs to everybody, and collect reports the
	 * same. */
	f.event_user_error = 0;
	f.event_cpu_error = -EACCES;
	assert_non_null(strstr(reported(&f, &report, "whole CPUs")->remedy,
			       "sysctl kernel.perf_event_paranoid=0"));
	f.event_cpu_error = 0;
	f.event_user_error = -EACCES;
	/* A filter that returns "no such system call", and a kernel that lacks the call. */
	f.event_user_error = -ENOSYS;
	assert_non_null(strstr(reported(&f, &report, "perf_event_open")->remedy, "seccomp"));
	f.self.seccomp = 0;
	assert_non_null(
		strstr(reported(&f, &report, "perf_event_open")->remedy, "CONFIG_PERF_EVENTS"));
	/* Capabilities that have no effect here. */
	f = good_facts();
	f.rights.init_user_ns = false;
	f.place = DOCTOR_DOCKER;
	f.event_cpu_error = f.event_kernel_error = -EACCES;
	assert_non_null(strstr(reported(&f, &report, "whole CPUs")->remedy, "rootless"));
	assert_non_null(strstr(reported(&f, &report, "kernel frames")->remedy, "rootless"));
	assert_true(report.can_record);
}

static void each_capability_has_its_effect_and_flag(void **state)
{
	static const struct {
		const char *name;
		int bit;
	} caps[] = {
		{"CAP_PERFMON", 38},  {"CAP_SYS_PTRACE", 19},  {"CAP_SYSLOG", 34},
		{"CAP_IPC_LOCK", 14}, {"CAP_DAC_OVERRIDE", 1}, {"CAP_CHECKPOINT_RESTORE", 40},
	};
	struct doctor_report report;
	char flag[64];

	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct doctor_facts f = good_facts();

		f.place = DOCTOR_DOCKER;
		f.rights.caps = CAPS_ALL & ~CAP(caps[i].bit) & ~CAP(21);
		f.kallsyms_shown = false;
		f.ring_bytes = 256 << 10;
		const struct doctor_item *item = reported(&f, &report, caps[i].name);

		assert_int_equal(item->state, DOCTOR_NO);
		assert_non_null(item->effect);
		snprintf(flag, sizeof(flag), "--cap-add %s", caps[i].name + 4);
		assert_non_null(strstr(item->remedy, flag));
		assert_true(report.can_record);
	}
	/* SYS_ADMIN includes its narrower capabilities. */
	struct doctor_facts f = good_facts();

	f.rights.caps = CAP(21) | PTRACE;
	assert_int_equal(reported(&f, &report, "CAP_PERFMON")->state, DOCTOR_YES);
	assert_int_equal(reported(&f, &report, "CAP_CHECKPOINT_RESTORE")->state, DOCTOR_YES);
	/* Docker's capabilities do not reach processes of other users. */
	f.rights.caps = 0;
	f.self.uid = 1000;
	f.place = DOCTOR_DOCKER;
	assert_non_null(strstr(reported(&f, &report, "user")->remedy, "--user 0"));
	f.place = DOCTOR_HOST;
	assert_ptr_equal(reported(&f, &report, "user"), &missing);
}

static void hidden_kernel_names_report_the_setting_that_hides_them(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	f.kallsyms_shown = false;
	f.rights.caps = PERFMON;
	assert_non_null(strstr(reported(&f, &report, "kernel names")->remedy,
			       "kptr_restrict=0 kernel.perf_event_paranoid=1"));
	assert_non_null(strstr(reported(&f, &report, "kernel names")->found,
			       "kptr_restrict is 0, which has an effect only with "
			       "perf_event_paranoid 1"));
	f.kptr_restrict = 2;
	assert_string_equal(reported(&f, &report, "kernel names")->remedy,
			    "sysctl kernel.kptr_restrict=1");
	f.kptr_restrict = DOCTOR_UNKNOWN;
	assert_int_equal(reported(&f, &report, "kernel names")->state, DOCTOR_NO);
	assert_null(strstr(reported(&f, &report, "kernel names")->found, "-922"));
}

static void doctor_prints_the_flag_for_the_target_pid_namespace(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	f.init_pid_ns = false;
	f.dotnet = 0;
	f.processes = 1;
	f.place = DOCTOR_DOCKER;
	assert_non_null(strstr(reported(&f, &report, "PID namespace")->remedy, "--pid container:"));
	f.place = DOCTOR_KUBERNETES;
	assert_non_null(strstr(reported(&f, &report, "PID namespace")->remedy,
			       "shareProcessNamespace: true"));
	f.dotnet = 1;
	assert_int_equal(reported(&f, &report, "PID namespace")->state, DOCTOR_YES);
	f.proc_is_ours = false;
	assert_int_equal(reported(&f, &report, "/proc")->state, DOCTOR_FATAL);
	assert_false(report.can_record);
	f = good_facts();
	f.hidepid = 2;
	assert_int_equal(reported(&f, &report, "/proc hidepid")->state, DOCTOR_YES);
	f.rights.caps = 0;
	assert_int_equal(reported(&f, &report, "/proc hidepid")->state, DOCTOR_NO);
}

static void few_descriptors_and_small_rings_are_named(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	f.nofile_hard = 256;
	f.ring_bytes = 128 << 10;
	f.mlock_kb = DOCTOR_UNKNOWN;
	f.pmu = false;
	f.tracefs_error = -EACCES;
	assert_int_equal(reported(&f, &report, "open files")->state, DOCTOR_NO);
	assert_int_equal(reported(&f, &report, "ring buffers")->state, DOCTOR_NO);
	assert_int_equal(reported(&f, &report, "hardware counters")->state, DOCTOR_NO);
	assert_int_equal(reported(&f, &report, "tracepoints")->state, DOCTOR_NO);
	assert_true(report.can_record);
}

static void waits_and_wakers_have_separate_rows(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	doctor_report_facts(&f, &report);
	assert_true(report.can_off_cpu);
	f.rights.caps = 0;
	f.event_cpu_error = f.waking_error = -EACCES;
	assert_non_null(strstr(reported(&f, &report, "off-CPU")->remedy,
			       "sysctl kernel.perf_event_paranoid=0"));
	assert_non_null(
		strstr(reported(&f, &report, "off-CPU")->found, "perf_event_paranoid is 2"));
	assert_false(report.can_off_cpu);
	assert_true(report.can_record);
	/* At 0 they can be recorded, but the tracepoint needs more
	 * (kernel/trace/trace_event_perf.c). */
	f.rights.paranoid = 0;
	f.event_cpu_error = 0;
	assert_int_equal(reported(&f, &report, "off-CPU")->state, DOCTOR_YES);
	assert_non_null(strstr(reported(&f, &report, "off-CPU wakers")->remedy,
			       "sysctl kernel.perf_event_paranoid=-1"));
	assert_int_equal(reported(&f, &report, "tracepoints")->state, DOCTOR_YES);
}

static void an_unreadable_tracefs_has_the_remedy_for_its_reason(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "off-CPU wakers" : "tracepoints";

		/* tracefs is mounted but not readable: the remedy is to open it, not to mount
		 * it. */
		f.tracefs_error = -EACCES;
		f.tracefs_mounted = true;
		assert_int_equal(reported(&f, &report, name)->state, DOCTOR_NO);
		assert_non_null(strstr(reported(&f, &report, name)->remedy,
				       "mount -o remount,gid=GID,mode=750 "));
		/* tracefs is not mounted: a user who may mount it need not become root. */
		f.tracefs_error = -ENOENT;
		f.tracefs_mounted = false;
		assert_string_equal(reported(&f, &report, name)->remedy,
				    "mount -t tracefs tracefs /sys/kernel/tracing");
		f.rights.caps = 0;
		assert_non_null(strstr(reported(&f, &report, name)->remedy,
				       "as root: mount -t tracefs -o gid=GID,mode=750 "));
		f.rights.caps = CAPS_ALL;
	}
	f.place = DOCTOR_DOCKER;
	assert_non_null(strstr(reported(&f, &report, "off-CPU wakers")->remedy,
			       "-v /sys/kernel/tracing:/sys/kernel/tracing:ro"));
	assert_true(report.can_off_cpu);
}

static struct doctor_facts dotnet_target(void)
{
	struct doctor_facts f = good_facts();

	f.target = (struct doctor_target){
		.pid = 4711,
		.status = {.comm = "dotnet", .state = 'S', .uid = 1654, .ns_pid = 1, .threads = 20},
		.dotnet = {.is_dotnet = true, .version = "10.0.12"},
		.perfmap_bytes = 1025,
		.port = DOTNET_PORT_OPEN,
		.port_path = "/tmp/dotnet-diagnostic-1-99-socket",
	};
	return f;
}

static void a_target_is_examined_completely(void **state)
{
	struct doctor_facts f = dotnet_target();
	struct doctor_report report;

	(void)state;
	doctor_report_facts(&f, &report);
	for (size_t i = 0; i < report.len; i++)
		assert_int_equal(report.items[i].state, DOCTOR_YES);
	assert_string_equal(reported(&f, &report, "target")->found,
			    "PID 4711: dotnet, uid 1654, 20 threads");
	assert_string_equal(reported(&f, &report, "target runtime")->found, ".NET 10.0.12");
	assert_string_equal(reported(&f, &report, "target perf map")->found,
			    "/tmp/perf-1.map, 2 KiB");
	assert_string_equal(reported(&f, &report, "target JIT names")->found,
			    "in the runtime's memory");
	f.target.memory_error = -ENOTSUP;
	f.target.memory_what = "the runtime does not tell";
	assert_string_equal(reported(&f, &report, "target JIT names")->found,
			    "through its port, because the runtime does not tell");
	f.target.perfmap_error = -ENOENT;
	f.target.port = DOTNET_PORT_NONE;
	assert_int_equal(reported(&f, &report, "target JIT names")->state, DOCTOR_NO);
	assert_non_null(strstr(reported(&f, &report, "target JIT names")->remedy,
			       "DOTNET_EnableDiagnostics=1"));
	f.target.perfmap_error = -EACCES;
	assert_non_null(strstr(reported(&f, &report, "target perf map")->remedy, "root owns"));
	f.target.port = DOTNET_PORT_DENIED;
	f.place = DOCTOR_DOCKER;
	assert_non_null(strstr(reported(&f, &report, "target port")->remedy, "DAC_OVERRIDE"));
	f.place = DOCTOR_HOST;
	assert_non_null(strstr(reported(&f, &report, "target port")->remedy,
			       "CAP_DAC_OVERRIDE, or as the target's user, or: setcap "
			       "cap_dac_override,cap_perfmon,"));
	assert_non_null(strstr(reported(&f, &report, "target port")->effect, "counters"));
	f.place = DOCTOR_DOCKER;
	f.target.root_error = f.target.maps_error = -EACCES;
	f.target.denial = (struct access_denial){.reason = ACCESS_OTHER_USER, .uid = 1654};
	assert_non_null(strstr(reported(&f, &report, "target files")->remedy, "SYS_PTRACE"));
	assert_string_equal(reported(&f, &report, "target files")->found,
			    "Permission denied: it belongs to user 1654");
	assert_int_equal(reported(&f, &report, "target maps")->state, DOCTOR_NO);
	assert_true(report.can_record);
	f.target.event_user_error = -EACCES;
	assert_int_equal(reported(&f, &report, "target samples")->state, DOCTOR_YES);
	assert_non_null(strstr(reported(&f, &report, "target samples")->found, "whole CPUs"));
	f.event_cpu_error = -EACCES;
	assert_int_equal(reported(&f, &report, "target samples")->state, DOCTOR_FATAL);
	assert_false(report.can_record);
}

static void the_denial_decides_the_remedy(void **state)
{
	struct doctor_facts f = dotnet_target();
	struct doctor_report report;

	(void)state;
	f.rights.caps = 0;
	f.event_cpu_error = -EACCES;
	f.target.root_error = f.target.maps_error = f.target.dotnet_error =
		f.target.event_user_error = -EACCES;
	f.target.denial = (struct access_denial){.reason = ACCESS_CAPABILITIES, .lacking = CAP(13)};
	for (int place = 0; place < DOCTOR_PLACES; place++) {
		static const char *const names[] = {"target files", "target maps",
						    "target runtime"};

		f.place = place;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			const struct doctor_item *item = reported(&f, &report, names[i]);

			assert_string_equal(
				item->found,
				"Permission denied: it holds CAP_NET_RAW, which we lack");
			assert_non_null(strstr(item->remedy, "that the target holds"));
		}
	}
	assert_non_null(strstr(reported(&f, &report, "target samples")->found, "CAP_NET_RAW"));
	/* If we may not even sample ourselves, the target is not the reason. */
	f.event_user_error = -EACCES;
	assert_null(strstr(reported(&f, &report, "target samples")->found, "CAP_NET_RAW"));
	f.event_user_error = 0;
	/* No capability is a remedy here. */
	f.target.denial = (struct access_denial){.reason = ACCESS_ELSEWHERE};
	f.place = DOCTOR_DOCKER;
	f.rights.caps = CAPS_ALL;
	assert_null(reported(&f, &report, "target files")->remedy);
	f.rights.init_user_ns = false;
	assert_non_null(strstr(reported(&f, &report, "target files")->remedy, "rootless"));
}

static void processes_are_counted_by_the_reason_of_denial(void **state)
{
	struct doctor_facts f = good_facts();
	struct doctor_report report;

	(void)state;
	f.denied.count = 6;
	f.denied.by[ACCESS_OTHER_USER].count = 5;
	memcpy(f.denied.by[ACCESS_OTHER_USER].pids, (pid_t[]){1, 7, 12}, 3 * sizeof(pid_t));
	f.denied.by[ACCESS_CAPABILITIES].count = 1;
	f.denied.by[ACCESS_CAPABILITIES].pids[0] = 80;
	assert_string_equal(
		reported(&f, &report, "processes")->found,
		"6 cannot be inspected: 5 belong to other users (PID 1, 7, 12 and 2 more), "
		"1 holds capabilities that we lack (PID 80)");
	assert_non_null(reported(&f, &report, "processes")->remedy);
	f.denied = (struct process_list_denied){.count = 1, .by[ACCESS_ELSEWHERE] = {1, {80}}};
	assert_null(reported(&f, &report, "processes")->remedy);
}

static void a_missing_target_is_fatal(void **state)
{
	struct doctor_facts f = dotnet_target();
	struct doctor_report report;

	(void)state;
	f.target.status_error = -ESRCH;
	assert_int_equal(reported(&f, &report, "target")->state, DOCTOR_FATAL);
	assert_ptr_equal(reported(&f, &report, "target samples"), &missing);
	assert_false(report.can_record);
	f = dotnet_target();
	f.target.status.state = 'Z';
	assert_int_equal(reported(&f, &report, "target")->state, DOCTOR_FATAL);
	f = dotnet_target();
	f.target.dotnet = (struct dotnet_runtime){0};
	f.target.perfmap_error = -ENOENT;
	assert_ptr_equal(reported(&f, &report, "target perf map"), &missing);
	assert_ptr_equal(reported(&f, &report, "target port"), &missing);
	f.target.dotnet_error = -EACCES;
	assert_int_equal(reported(&f, &report, "target runtime")->state, DOCTOR_NO);
}

static void probing_this_machine_works(void **state)
{
	struct doctor_facts f;

	(void)state;
	assert_int_equal(doctor_probe(0, &f), 0);
	assert_true(f.proc_is_ours);
	assert_true(f.cpus > 0);
	assert_true(f.release[0] >= '1' && f.release[0] <= '9');
	assert_true(f.nofile_hard > 0);
	assert_int_equal(doctor_probe(0x7ffffffe, &f), 0);
	assert_int_equal(f.target.status_error, -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_rights_give_all_yes),
		cmocka_unit_test(an_old_kernel_is_named),
		cmocka_unit_test(a_refused_event_names_its_cause),
		cmocka_unit_test(each_capability_has_its_effect_and_flag),
		cmocka_unit_test(hidden_kernel_names_report_the_setting_that_hides_them),
		cmocka_unit_test(doctor_prints_the_flag_for_the_target_pid_namespace),
		cmocka_unit_test(few_descriptors_and_small_rings_are_named),
		cmocka_unit_test(waits_and_wakers_have_separate_rows),
		cmocka_unit_test(an_unreadable_tracefs_has_the_remedy_for_its_reason),
		cmocka_unit_test(a_target_is_examined_completely),
		cmocka_unit_test(the_denial_decides_the_remedy),
		cmocka_unit_test(processes_are_counted_by_the_reason_of_denial),
		cmocka_unit_test(a_missing_target_is_fatal),
		cmocka_unit_test(probing_this_machine_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
