/* Payloads of the scheduler's tracepoints in the layouts of Linux 5.10 to 6.18, and senseless
 * payloads. */
#include "sampler/offcpu/sched_payload.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char format[] = "name: sched_waking\nID: 375\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
			     "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
			     "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n"
			     "print fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n";

static void a_field_is_found_by_its_whole_name(void **state)
{
	uint32_t offset = 7;

	(void)state;
	assert_int_equal(sched_payload_field(format, "pid", &offset), 0);
	assert_int_equal(offset, 24);
	assert_int_equal(sched_payload_field(format, "target_cpu", &offset), 0);
	assert_int_equal(offset, 32);
	offset = 7;
	assert_int_equal(sched_payload_field(format, "cpu", &offset), -EBADMSG);
	assert_int_equal(sched_payload_field(format, "common_type", &offset),
			 -EBADMSG); /* not an int */
	assert_int_equal(sched_payload_field("", "pid", &offset), -EBADMSG);
	assert_int_equal(sched_payload_field("field:pid_t pid;", "pid", &offset), -EBADMSG);
	assert_int_equal(sched_payload_field(" pid;\toffset:4097;\tsize:4;", "pid", &offset),
			 -EBADMSG);
	assert_int_equal(sched_payload_field("pid;\toffset:4;\tsize:4;", "pid", &offset), -EBADMSG);
	assert_int_equal(offset, 7);
}

static void put(unsigned char raw[36], uint8_t flags, int32_t current, int32_t pid)
{
	memset(raw, 0, 36);
	raw[0] = 0x77;
	raw[1] = 1;
	raw[2] = flags;
	memcpy(raw + 4, &current, 4);
	memcpy(raw + 24, &pid, 4);
}

static void a_waking_records_the_waker_and_its_stack(void **state)
{
	struct sched_waking waking;
	unsigned char raw[36];
	int32_t pid;

	(void)state;
	put(raw, 0x01, 4711, 815);
	assert_int_equal(sched_payload_waking(raw, sizeof(raw), 24, &waking), 0);
	assert_true(waking.pid == 815 && waking.by == 4711 && !waking.hardirq && !waking.softirq);
	assert_int_equal(sched_payload_current(raw, sizeof(raw), &pid), 0);
	assert_int_equal(pid, 4711);
	put(raw, 0x08, 4711, 815);
	assert_int_equal(sched_payload_waking(raw, sizeof(raw), 24, &waking), 0);
	assert_true(waking.hardirq && !waking.softirq);
	put(raw, 0x40, 4711, 815);
	assert_int_equal(sched_payload_waking(raw, sizeof(raw), 24, &waking), 0);
	assert_true(waking.hardirq);
	put(raw, 0x10, 0, 815);
	assert_int_equal(sched_payload_waking(raw, sizeof(raw), 24, &waking), 0);
	assert_true(!waking.hardirq && waking.softirq && !waking.by);
}

/* Each in memory of exactly its size, so that an overread is visible. */
static void short_payloads_are_refused(void **state)
{
	struct sched_waking waking = {.pid = -7};
	unsigned char raw[36];
	int32_t pid = -7;

	(void)state;
	put(raw, 0, 4711, 815);
	for (size_t bytes = 0; bytes <= sizeof(raw); bytes++) {
		unsigned char *part = malloc(bytes ? bytes : 1);

		assert_non_null(part);
		memcpy(part, raw, bytes);
		assert_int_equal(sched_payload_waking(part, bytes, 24, &waking),
				 bytes >= 28 ? 0 : -EBADMSG);
		assert_int_equal(sched_payload_waking(part, bytes, UINT32_MAX, &waking), -EBADMSG);
		assert_int_equal(sched_payload_current(part, bytes, &pid),
				 bytes >= 8 ? 0 : -EBADMSG);
		assert_int_equal(waking.pid, bytes >= 28 ? 815 : -7);
		assert_int_equal(pid, bytes >= 8 ? 4711 : -7);
		free(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_is_found_by_its_whole_name),
		cmocka_unit_test(a_waking_records_the_waker_and_its_stack),
		cmocka_unit_test(short_payloads_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
