#include "profcpu/report.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

/* Self weight of one function name. */
struct report_self {
	uint32_t name;
	uint8_t kind;
	uint64_t weight;
};

static uint32_t report_main_event(const struct profile *profile, const struct profile_group *groups, size_t n)
{
	uint64_t best = 0;
	uint32_t event = 0;

	for (uint32_t e = 0; e < profile_nevents(profile); e++) {
		uint64_t samples = 0;

		for (size_t i = 0; i < n; i++)
			samples += groups[i].event == e ? groups[i].samples : 0;
		if (samples > best) {
			best = samples;
			event = e;
		}
	}
	return event;
}

static int report_by_weight(const void *a, const void *b, void *profile)
{
	const struct report_self *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(profile_text_of(profile, x->name, NULL), profile_text_of(profile, y->name, NULL));
}

int report_hottest(struct profile *profile, struct report_function *ret_functions, int max)
{
	AUTO_FREE struct profile_group *groups = NULL;
	AUTO_FREE struct report_self *selves = NULL;
	struct hashmap by_name = {0};
	size_t n, nselves = 0;
	uint64_t total = 0;
	int r = profile_groups(profile, NULL, &groups, &n);

	if (r)
		return r;
	if (!n)
		return 0;
	selves = calloc(n, sizeof(*selves));
	if (!selves)
		return -ENOMEM;
	uint32_t event = report_main_event(profile, groups, n);

	for (size_t i = 0; i < n && !r; i++) {
		uint32_t *place;
		int fresh;

		if (groups[i].event != event)
			continue;
		total += groups[i].weight;
		if (groups[i].stack == PROFILE_STACK_EMPTY)
			continue;
		const struct profile_frame *f =
			profile_frame_of(profile, profile_stack_frame(profile, groups[i].stack));

		r = hashmap_entry(&by_name, f->name, (uint32_t)nselves, &place, &fresh);
		if (!r && fresh)
			selves[nselves++] = (struct report_self){f->name, f->kind, 0};
		if (!r)
			selves[*place].weight += groups[i].weight;
	}
	hashmap_free(&by_name);
	if (r)
		return r;
	qsort_r(selves, nselves, sizeof(*selves), report_by_weight, profile);
	int count = nselves < (size_t)max ? (int)nselves : max;

	for (int i = 0; i < count; i++)
		ret_functions[i] = (struct report_function){selves[i].name, selves[i].kind,
							    (double)selves[i].weight / (double)(total ? total : 1)};
	return count;
}

static const char *const report_kinds[FRAME_KINDS] = {
	[FRAME_UNKNOWN] = "unmapped", [FRAME_KERNEL] = "kernel",   [FRAME_NATIVE] = "native",
	[FRAME_RUNTIME] = "runtime",  [FRAME_MANAGED] = "managed",
};

static void report_audit(const struct symbolizer_audit *a, struct outbuf *out)
{
	outbuf_printf(out, "names     %-9s %12s %8s %8s %8s\n", "code", "frames", "named", "placed", "unknown");
	for (int k = 0; k < FRAME_KINDS; k++) {
		const uint64_t *f = a->frames[k];
		uint64_t all = f[FRAME_IS_NAMED] + f[FRAME_IS_PLACED] + f[FRAME_IS_UNKNOWN];

		if (!all)
			continue;
		outbuf_printf(out, "          %-9s %12llu", report_kinds[k], (unsigned long long)all);
		for (int s = FRAME_IS_NAMED; s >= FRAME_IS_UNKNOWN; s--)
			outbuf_printf(out, " %6.2f %%", 100.0 * (double)f[s] / (double)all);
		outbuf_char(out, '\n');
	}
	const uint64_t *managed = a->frames[FRAME_MANAGED];

	if (!managed[FRAME_IS_NAMED] && managed[FRAME_IS_PLACED] + managed[FRAME_IS_UNKNOWN])
		outbuf_str(out, "          no perf map that could be read names the JIT-compiled code: the service writes one with "
				"DOTNET_PerfMapEnabled=1\n");
	if (a->jitdumps_early)
		outbuf_printf(out, "          %llu jitdump%s stopped while the process went on (.NET 10 is known for it): the perf map comes before it\n",
			      (unsigned long long)a->jitdumps_early, a->jitdumps_early > 1 ? "s" : "");
	if (a->jit_contradictions)
		outbuf_printf(out, "          %llu JIT-compiled functions have two names: that of the source that knows times was taken\n",
			      (unsigned long long)a->jit_contradictions);
	if (a->kallsyms_hidden)
		outbuf_str(out, "          kernel names are hidden here: CAP_SYSLOG or `sysctl kernel.kptr_restrict=0` "
				"shows them\n");
	uint64_t all_managed = managed[FRAME_IS_NAMED] + managed[FRAME_IS_PLACED] + managed[FRAME_IS_UNKNOWN];

	/* Less than a per cent is not worth a line. */
	if (managed[FRAME_IS_NAMED] && a->precompiled * 100 >= all_managed)
		outbuf_printf(out,
			      "          %.2f %% of managed is precompiled (ReadyToRun) code of images that could not be read: "
			      "with DOTNET_ReadyToRun=0 it is compiled and named\n",
			      100.0 * (double)a->precompiled / (double)all_managed);
}

static void report_losses(const struct perfdata_stats *d, bool damaged, struct outbuf *out)
{
	if (damaged)
		outbuf_str(out, " of a recording that is not whole");
	else if (!d->lost_events && !d->lost_samples && !d->throttled)
		outbuf_str(out, ", none lost");
	if (d->lost_events || d->lost_samples)
		outbuf_printf(out, ", %llu lost (lower -F, or record with CAP_IPC_LOCK, which gives larger rings)",
			      (unsigned long long)(d->lost_events + d->lost_samples));
	if (d->throttled)
		outbuf_printf(out, ", throttled %llu times (lower -F, or raise kernel.perf_event_max_sample_rate)",
			      (unsigned long long)d->throttled);
}

int report_write(struct profile *profile, const struct input_result *input, struct outbuf *out)
{
	struct report_function hot[REPORT_HOTTEST];
	int n = report_hottest(profile, hot, REPORT_HOTTEST);

	if (n < 0)
		return n;
	outbuf_printf(out, "samples   %llu", (unsigned long long)profile_nsamples(profile));
	if (input->kind != SOURCE_TEXT)
		report_losses(&input->data.data, input->damaged, out);
	outbuf_char(out, '\n');
	for (int i = 0; i < n; i++) {
		uint32_t len;
		const char *name = profile_text_of(profile, hot[i].name, &len);

		outbuf_printf(out, "%-9s %6.2f %%  ", i ? "" : "hottest", 100.0 * hot[i].share);
		outbuf_put(out, name, len);
		outbuf_char(out, '\n');
	}
	if (input->kind != SOURCE_TEXT && input->data.audit.samples) {
		const struct symbolizer_audit *a = &input->data.audit;

		report_audit(a, out);
		outbuf_printf(out, "stacks    %.2f %% reach the start of their thread, %.2f %% end before it\n",
			      100.0 * (double)a->stacks_complete / (double)a->samples,
			      100.0 * (double)a->stacks_truncated / (double)a->samples);
	}
	return out->error;
}
