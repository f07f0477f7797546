#include "container/access.h"

#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SOME_USER 4711

static struct proc_status status_of(uint32_t id, uint64_t caps)
{
	struct proc_ids ids = {id, id, id, id};

	return (struct proc_status){
		.uid = id, .uids = ids, .gids = ids, .cap_effective = caps, .cap_permitted = caps};
}

static const char *words(const struct access_denial *d)
{
	static char text[ACCESS_TEXT_BYTES];

	access_text(d, text, sizeof(text));
	return text;
}

static void the_reason_of_a_denial_is_reported(void **state)
{
	struct proc_status self = status_of(SOME_USER, 0), target = status_of(0, 0);
	struct access_denial d = access_report(&self, &target, true);

	(void)state;
	assert_int_equal(d.reason, ACCESS_OTHER_USER);
	assert_string_equal(words(&d), "it belongs to user 0");
	/* Each of the target's ids counts. */
	target = status_of(SOME_USER, 0);
	target.uids.saved = 0;
	assert_int_equal(access_report(&self, &target, true).reason, ACCESS_OTHER_USER);
	target = status_of(SOME_USER, 0);
	target.gids.real = 1;
	d = access_report(&self, &target, true);
	assert_int_equal(d.reason, ACCESS_OTHER_USER);
	assert_string_equal(words(&d), "its groups are not ours");
	target = status_of(SOME_USER, 1ULL << CAP_NET_RAW);
	d = access_report(&self, &target, true);
	assert_int_equal(d.reason, ACCESS_CAPABILITIES);
	assert_string_equal(words(&d), "it holds CAP_NET_RAW, which we lack");
	assert_int_equal(access_report(&self, &target, false).reason, ACCESS_NOT_DUMPABLE);
	/* A capability that both have is no reason. */
	self.cap_effective = 1ULL << CAP_NET_RAW | 1ULL << CAP_CHOWN;
	assert_int_equal(access_report(&self, &target, true).reason, ACCESS_ELSEWHERE);
	self.cap_effective = 1ULL << CAP_SYS_PTRACE;
	target = status_of(0, ~0ULL);
	assert_int_equal(access_report(&self, &target, false).reason, ACCESS_ELSEWHERE);
}

static void many_capabilities_are_counted(void **state)
{
	struct access_denial d = {.reason = ACCESS_CAPABILITIES, .lacking = ~0ULL};
	char small[16];

	(void)state;
	assert_string_equal(words(&d), "it holds CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH "
				       "and 61 more, which we lack");
	d.lacking = 1ULL << 40 | 1ULL << 39;
	assert_string_equal(words(&d), "it holds CAP_BPF, CAP_CHECKPOINT_RESTORE, which we lack");
	d.lacking = 1ULL << 63; /* of a newer kernel */
	assert_string_equal(words(&d), "it holds 1 newer capabilities, which we lack");
	access_text(&d, small, sizeof(small));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

/* Changes to a user with these capabilities, in all of its sets. */
static void become(uint64_t caps)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{(uint32_t)caps, (uint32_t)caps, 0},
		{(uint32_t)(caps >> 32), (uint32_t)(caps >> 32), 0}};

	prctl(PR_SET_KEEPCAPS, 1);
	if (setresgid(SOME_USER, SOME_USER, SOME_USER) ||
	    setresuid(SOME_USER, SOME_USER, SOME_USER) || syscall(SYS_capset, &header, data) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(99);
}

/* A process with these capabilities that signals when it is ready. */
static pid_t start_target(uint64_t caps, bool dumpable)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		become(caps);
		prctl(PR_SET_DUMPABLE, dumpable);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* The reason for a user without capabilities; 100 if the kernel allows access. */
static int reason_of(pid_t target)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct access_denial d;
		char path[64];

		become(0);
		snprintf(path, sizeof(path), "/proc/%d/maps", target);
		FILE *f = fopen(path, "re");

		_exit(f ? 100 : access_probe(target, &d) ? 101 : (int)d.reason);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void reasons_agree_with_the_kernel(void **state)
{
	static const struct {
		uint64_t caps;
		bool dumpable;
		int reason;
	} cases[] = {
		{0, true, 100},
		{1ULL << CAP_NET_RAW, true, ACCESS_CAPABILITIES},
		{0, false, ACCESS_NOT_DUMPABLE},
	};

	(void)state;
	if (geteuid()) {
		print_message("needs root\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t pid = start_target(cases[i].caps, cases[i].dumpable);
		int reason = reason_of(pid);

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_int_equal(reason, cases[i].reason);
	}
	assert_int_equal(reason_of(getpid()), ACCESS_OTHER_USER);
}

static void ended_processes_are_absent(void **state)
{
	struct access_denial d;

	(void)state;
	assert_int_not_equal(access_probe(0x7ffffffe, &d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reason_of_a_denial_is_reported),
		cmocka_unit_test(many_capabilities_are_counted),
		cmocka_unit_test(reasons_agree_with_the_kernel),
		cmocka_unit_test(ended_processes_are_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
