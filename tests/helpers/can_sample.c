/* Reports by its exit status whether this user may sample the CPU clock including the kernel, and
 * the reason if not. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 99,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
	};

	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0) {
		fprintf(stderr, "%s\n", strerror(errno));
		return 1;
	}
	return 0;
}
