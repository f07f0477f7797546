#include "profcpu/record_hold.h"

#include "base/clock.h"
#include "container/proc.h"

#include <stdio.h>
#include <sys/stat.h>

/* 0: it has ended, or we may not look. */
static uint64_t mount_ns(const char *process)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", process);
	return stat(path, &st) ? 0 : st.st_ino;
}

void record_hold_new(struct record_hold *h, struct opener *opener, bool patient)
{
	*h = (struct record_hold){
		.opener = opener, .patient = patient, .own_mount_ns = mount_ns("self")};
}

static void put_off(struct record_hold *h, pid_t pid)
{
	size_t last = (h->first + h->count - 1) % RECORD_HOLD_PENDING;

	if (h->count == RECORD_HOLD_PENDING || (h->count && h->pending[last].pid == pid))
		return;
	h->pending[(last + 1) % RECORD_HOLD_PENDING] =
		(struct record_hold_pending){pid, clock_monotonic_ns()};
	h->count++;
}

/* One that has ended already is left: the opener says so, and there is nothing to be done. */
void record_hold_process(struct record_hold *h, pid_t pid)
{
	char text[16];

	if (!h->opener || h->looked++ >= RECORD_HOLD_A_ROUND)
		return;
	if (h->patient) {
		snprintf(text, sizeof(text), "%d", pid);
		uint64_t ns = mount_ns(text);

		if (!ns)
			return;
		if (ns == h->own_mount_ns) {
			put_off(h, pid);
			return;
		}
	}
	(void)opener_hold(h->opener, pid);
}

void record_hold_round(struct record_hold *h, uint64_t now_ns)
{
	char text[16];

	h->looked = 0;
	while (h->count && now_ns - h->pending[h->first].since_ns >= RECORD_HOLD_AFTER_NS) {
		pid_t pid = h->pending[h->first].pid;

		h->first = (h->first + 1) % RECORD_HOLD_PENDING;
		h->count--;
		snprintf(text, sizeof(text), "%d", pid);
		if (mount_ns(text))
			(void)opener_hold(h->opener, pid);
	}
}

static int hold_one(void *ctx, pid_t pid)
{
	(void)opener_hold(ctx, pid);
	return 0;
}

void record_hold_all(struct record_hold *h)
{
	if (h->opener)
		(void)proc_each_pid(hold_one, h->opener);
}
