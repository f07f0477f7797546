#include "profcpu/post/report_waits.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "profcpu/post/report_text.h"
#include "recording/manifest.h"

#include <errno.h>
#include <string.h>

/* Waits by name and caller. */
struct wait_list {
	struct report_wait *v;
	size_t len, cap;
};

static const struct profile_frame *frame_at(const struct profile *p, uint32_t stack)
{
	return stack == PROFILE_STACK_EMPTY ? NULL
					    : profile_frame_of(p, profile_stack_frame(p, stack));
}

static bool is_user_code(const struct profile_frame *f)
{
	return frame_kind_is_code(f->kind) && f->kind != FRAME_KERNEL && !f->is_mark;
}

/* Methods of .NET's own libraries are known by their namespaces: JIT-compiled code has no file. */
static bool is_framework(const struct profile *p, const struct profile_frame *f)
{
	const char *name = profile_text_of(p, f->name, NULL);

	return f->kind == FRAME_MANAGED &&
	       (!strncmp(name, "System.", 7) || !strncmp(name, "Microsoft.", 10));
}

static bool same_library(const struct profile *p, const struct profile_frame *a,
			 const struct profile_frame *b)
{
	if (a->kind == FRAME_MANAGED || b->kind == FRAME_MANAGED)
		return is_framework(p, a) && is_framework(p, b);
	return a->module == b->module;
}

/* The stack that ends at the innermost frame of user code: a method of .NET's libraries if that
 * called the native code, else the native code. PROFILE_STACK_EMPTY: none. */
static uint32_t innermost(const struct profile *p, uint32_t stack)
{
	uint32_t native = PROFILE_STACK_EMPTY;

	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(p, stack)) {
		const struct profile_frame *f = frame_at(p, stack);

		if (f->kind == FRAME_MANAGED)
			return is_framework(p, f) || native == PROFILE_STACK_EMPTY ? stack : native;
		if (native == PROFILE_STACK_EMPTY && is_user_code(f))
			native = stack;
	}
	return native;
}

/* The outermost function of the library that waits, and its caller. If no other library calls it,
 * the innermost one and its caller. */
static struct report_wait functions_of(const struct profile *p, uint32_t stack)
{
	uint32_t first = innermost(p, stack);

	if (first == PROFILE_STACK_EMPTY)
		first = stack;
	const struct profile_frame *wait = frame_at(p, first), *last = wait;
	uint32_t up = profile_stack_parent(p, first);
	const struct profile_frame *caller = frame_at(p, up);

	for (uint32_t s = up; s != PROFILE_STACK_EMPTY; s = profile_stack_parent(p, s)) {
		const struct profile_frame *f = frame_at(p, s);

		if (!is_user_code(f))
			break;
		if (!same_library(p, last, f)) {
			wait = last;
			caller = f;
			break;
		}
		last = f;
	}
	return (struct report_wait){.name = wait->name,
				    .caller = caller && frame_kind_is_code(caller->kind) &&
							      !caller->is_mark
						      ? caller->name
						      : PROFILE_NONE};
}

static void add_ns(uint64_t *sum, uint64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = UINT64_MAX;
}

static int add_wait(struct wait_list *list, struct hashmap *places, struct report_wait wait)
{
	uint32_t *place;
	int fresh, r = hashmap_entry(places, (uint64_t)wait.name << 32 | wait.caller,
				     (uint32_t)list->len, &place, &fresh);

	if (r)
		return r;
	if (fresh)
		return vec_push(list, wait);
	add_ns(&list->v[*place].ns, wait.ns);
	return 0;
}

static int add_group(const struct profile *p, struct idle *idle, const struct profile_group *g,
		     struct report_waits *sums, struct wait_list *list, struct hashmap *places)
{
	sums->samples += g->samples;
	add_ns(&sums->ns, g->weight);
	if (g->stack == PROFILE_STACK_EMPTY) {
		add_ns(&sums->blocked_ns, g->weight);
		return 0;
	}
	if (frame_at(p, g->stack)->kind == FRAME_RUNNABLE) {
		add_ns(&sums->runnable_ns, g->weight);
		return 0;
	}
	if (idle_is(idle, g->thread, g->stack)) {
		add_ns(&sums->idle_ns, g->weight);
		return 0;
	}
	struct report_wait wait = functions_of(p, g->stack);

	wait.ns = g->weight;
	add_ns(&sums->blocked_ns, g->weight);
	return add_wait(list, places, wait);
}

static int by_length(const void *a, const void *b, void *profile)
{
	const struct report_wait *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	int order = strcmp(profile_text_of(profile, x->name, NULL),
			   profile_text_of(profile, y->name, NULL));

	return order ? order : (x->caller > y->caller) - (x->caller < y->caller);
}

int report_waits_sum(struct profile *profile, struct idle *idle, struct report_waits *ret_waits)
{
	struct report_waits sums = {0};
	struct hashmap places = {0};
	struct wait_list list = {0};
	uint32_t event = profile_off_cpu_event(profile);
	size_t n;
	const struct profile_group *groups = profile_groups(profile, &n);
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		if (groups[i].event == event)
			r = add_group(profile, idle, &groups[i], &sums, &list, &places);
	if (!r && list.len) {
		qsort_r(list.v, list.len, sizeof(*list.v), by_length, profile);
		sums.ntop = list.len < REPORT_WAITS ? list.len : REPORT_WAITS;
		memcpy(sums.top, list.v, sums.ntop * sizeof(*list.v));
	}
	if (!r)
		*ret_waits = sums;
	hashmap_free(&places);
	vec_free(&list);
	return r;
}

static void write_parts(const struct report_waits *w, const struct import_result *data,
			struct outbuf *out)
{
	char share[REPORT_SHARE_BYTES];

	outbuf_printf(out, "off-CPU   %.*f s", CLOCK_SECONDS(w->ns));
	/* With windows, most waits are not recorded, and their number is not known. */
	if (!data->off_estimated_ns)
		outbuf_printf(out, " in %llu waits", (unsigned long long)data->waits);
	outbuf_printf(out, ": %.*f s blocked", CLOCK_SECONDS(w->blocked_ns));
	if (w->idle_ns) {
		report_text_share(w->idle_ns, w->ns, share);
		outbuf_printf(out, ", %.*f s (%s) idle", CLOCK_SECONDS(w->idle_ns), share);
	}
	if (w->runnable_ns)
		outbuf_printf(out, ", %.*f s waiting for a CPU", CLOCK_SECONDS(w->runnable_ns));
	outbuf_char(out, '\n');
}

static void write_trust(const struct import_result *data, const struct report_waits *waits,
			bool rings_free, struct outbuf *out)
{
	const struct wakeups_summary *w = &data->wakeups;
	char share[REPORT_SHARE_BYTES];

	if (data->off_estimated_ns) {
		report_text_share(data->off_estimated_ns, waits->ns, share);
		outbuf_printf(out,
			      "          the split of %.*f s (%s) among stacks is an estimate; the "
			      "sums per thread are exact\n",
			      CLOCK_SECONDS(data->off_estimated_ns), share);
	}
	if (w->ended_ns) {
		report_text_share(w->known_ns, w->ended_ns, share);
		outbuf_printf(out,
			      "          wakers known for %s of %.*f s in waits that ended%s\n",
			      share, CLOCK_SECONDS(w->ended_ns),
			      data->off_estimated_ns ? ", idle ones included; none between windows"
						     : ", idle ones included");
	}
	if (w->left_out)
		outbuf_printf(out,
			      "          %llu of these waits, %.*f s, are not in %s, because they "
			      "have too many stacks\n",
			      (unsigned long long)w->left_out, CLOCK_SECONDS(w->left_out_ns),
			      RECORDING_WAKEUP_FOLDED);
	/* More recorded switches would be lost too. */
	if (data->lost_switches)
		outbuf_printf(out, "          %llu switches and wakeups lost; %s%s\n",
			      (unsigned long long)data->lost_switches,
			      waits->compared ? "record while fewer threads switch"
					      : "use a lower --max-overhead",
			      report_text_larger_rings(rings_free));
	else if (data->off_estimated_ns)
		outbuf_str(out,
			   "          --max-overhead 100 records all switches, and costs more\n");
}

void report_waits_write(const struct profile *profile, const struct report_waits *waits,
			const struct post_result *input, struct outbuf *out)
{
	char share[REPORT_SHARE_BYTES];

	write_parts(waits, &input->data, out);
	write_trust(&input->data, waits, input->rings_free, out);
	for (size_t i = 0; i < waits->ntop; i++) {
		const struct report_wait *w = &waits->top[i];

		report_text_share(w->ns, waits->blocked_ns, share);
		outbuf_printf(out, "%-9s %8s  ", i ? "" : "blocked", share);
		report_text_name(profile_text_of(profile, w->name, NULL), out);
		if (w->caller != PROFILE_NONE) {
			outbuf_str(out, ", called by ");
			report_text_name(profile_text_of(profile, w->caller, NULL), out);
		}
		outbuf_char(out, '\n');
	}
}
