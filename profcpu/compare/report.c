#include "profcpu/compare/report.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "profcpu/managed/framework.h"

#include <stdio.h>
#include <string.h>

#define REPORT_OWN_ROWS 12  /* methods by their own time */
#define REPORT_USER_ROWS 12 /* methods of the program, with all that they call */
#define REPORT_METHODS_MAX 5000
#define REPORT_UNKNOWN_PART 100 /* a larger part of unknown states deserves a line */

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static double seconds(uint64_t ns)
{
	return (double)ns / NS_PER_S;
}

double compare_cost(const struct compare_totals *t)
{
	uint64_t could = t->states[TIMELINE_RUNNING] + t->stopped_ns;

	return could ? (double)t->stopped_ns / (double)could : 0;
}

static void put_states(const char *what, const uint64_t states[TIMELINE_STATES], struct outbuf *out)
{
	uint64_t all = 0;

	for (int s = 0; s < TIMELINE_STATES; s++)
		all += states[s];
	outbuf_printf(out, "%-9s %6.2f %% running, %6.2f %% waiting for a CPU, %6.2f %% blocked",
		      what, percent(states[TIMELINE_RUNNING], all),
		      percent(states[TIMELINE_RUNNABLE], all),
		      percent(states[TIMELINE_BLOCKED], all));
	if (states[TIMELINE_UNKNOWN])
		outbuf_printf(out, ", %.2f %% unknown", percent(states[TIMELINE_UNKNOWN], all));
	outbuf_char(out, '\n');
}

static void put_clock(const struct compare_totals *t, struct outbuf *out)
{
	if (!t->clock_error_ns)
		outbuf_str(out,
			   "clocks    not checked: the recording does not say when the session "
			   "began\n");
	else if (t->clock_offset_ns)
		outbuf_printf(out,
			      "clocks    the runtime's is %.6f s ahead of the kernel's, known to "
			      "%.1f ms; "
			      "its samples were moved\n",
			      (double)t->clock_offset_ns / NS_PER_S,
			      (double)t->clock_error_ns / NS_PER_MS);
	else
		outbuf_printf(out,
			      "clocks    equal: the trace began within the %.1f ms that its "
			      "request took\n",
			      (double)t->clock_error_ns / NS_PER_MS);
}

static void put_row(const struct compare_methods *m, const struct profile *profile,
		    const struct compare_method *method, const uint64_t parts[COMPARE_PARTS],
		    struct outbuf *out)
{
	struct compare_shares s = compare_shares(m, parts);
	uint64_t claims = compare_claims(parts);
	char cpu[32] = "-", bias[32] = "-";

	if (m->all[COMPARE_ON_CPU]) {
		snprintf(cpu, sizeof(cpu), "%.2f", 100 * s.cpu);
		snprintf(bias, sizeof(bias), "%+.2f", 100 * (s.claimed - s.cpu));
	}
	outbuf_printf(out, "  %7s %9.2f %9.2f %8s %8.1f %8.1f %8.1f  ", cpu, 100 * s.claimed,
		      100 * s.claimed_running, bias,
		      percent(parts[COMPARE_CLAIMS + TIMELINE_RUNNING], claims),
		      percent(parts[COMPARE_CLAIMS + TIMELINE_RUNNABLE], claims),
		      percent(parts[COMPARE_CLAIMS + TIMELINE_BLOCKED], claims));
	outbuf_str(out, profile_text_of(profile, method->name, NULL));
	outbuf_char(out, '\n');
}

static void put_head(const char *what, struct outbuf *out)
{
	outbuf_printf(out,
		      "\n%s\n  %% of CPU  %% of all  %% of its     bias  its samples, in %%:\n"
		      "     time   samples   running           running  waiting  blocked  method\n",
		      what);
}

/* Whether a method is the program's, and no stub. */
static bool is_of_program(const char *name)
{
	return *name != '[' && !managed_is_framework(name);
}

static double larger_share(const struct compare_methods *m, const struct compare_method *method)
{
	struct compare_shares s = compare_shares(m, method->total);

	return s.cpu > s.claimed ? s.cpu : s.claimed;
}

/* The methods of the program, with the largest shares first. Returns their number. */
static size_t choose_methods(const struct compare_methods *m, const struct profile *profile,
			     const struct compare_method *rows[REPORT_USER_ROWS])
{
	size_t n = 0;

	for (size_t i = 0; i < m->v.len; i++) {
		const struct compare_method *method = &m->v.v[i];
		size_t at = n;

		if (!is_of_program(profile_text_of(profile, method->name, NULL)))
			continue;
		while (at && larger_share(m, rows[at - 1]) < larger_share(m, method))
			at--;
		if (at == REPORT_USER_ROWS)
			continue;
		n += n < REPORT_USER_ROWS;
		memmove(rows + at + 1, rows + at, (n - at - 1) * sizeof(*rows));
		rows[at] = method;
	}
	return n;
}

static void put_methods(const struct compare_methods *m, const struct profile *profile,
			struct outbuf *out)
{
	const struct compare_method *rows[REPORT_USER_ROWS];
	size_t n = choose_methods(m, profile, rows);

	put_head("own time of methods, with the native code that they call", out);
	for (size_t i = 0; i < m->v.len && i < REPORT_OWN_ROWS; i++)
		put_row(m, profile, &m->v.v[i], m->v.v[i].self, out);
	if (n)
		put_head("methods of the program, with all that they call", out);
	for (size_t i = 0; i < n; i++)
		put_row(m, profile, rows[i], rows[i]->total, out);
}

void compare_report_text(const struct compare *c, const struct compare_methods *methods,
			 const struct profile *profile, struct outbuf *out)
{
	const struct compare_totals *t = compare_totals(c);
	double s = seconds(t->to_ns - t->from_ns);

	outbuf_printf(out,
		      "compared  %.1f s of process %d: %llu samples of its runtime's sampler, %.0f "
		      "rounds a second\n",
		      s, compare_pid(c), (unsigned long long)t->samples,
		      s > 0 ? (double)t->rounds / s : 0);
	put_states("sampled", t->claims, out);
	put_states("threads", t->states, out);
	outbuf_printf(out,
		      "cost      the sampler stopped all threads for %.3f s; running threads lost "
		      "%.3f s, "
		      "%.1f %% of their time; the sampler itself ran for %.3f s\n",
		      seconds(t->suspended_ns), seconds(t->stopped_ns), 100 * compare_cost(t),
		      seconds(t->sampler_ns));
	put_clock(t, out);
	if (t->claims[TIMELINE_UNKNOWN] * REPORT_UNKNOWN_PART > t->samples)
		outbuf_printf(out,
			      "lost      the state of %.1f %% of the samples is unknown: switches "
			      "were lost, or not all were recorded\n",
			      percent(t->claims[TIMELINE_UNKNOWN], t->samples));
	if (t->lost)
		outbuf_printf(out, "lost      the runtime dropped %llu events\n",
			      (unsigned long long)t->lost);
	if (t->left_out)
		outbuf_printf(out, "lost      %llu samples are left out, because memory is short\n",
			      (unsigned long long)t->left_out);
	if (t->is_cut)
		outbuf_str(out, "lost      the end of the trace is missing\n");
	put_methods(methods, profile, out);
}

static void json_states(struct json_writer *w, const char *key,
			const uint64_t states[TIMELINE_STATES], const char *unknown)
{
	struct json_writer o = json_put_object(w, key);

	json_put_u64(&o, "running", states[TIMELINE_RUNNING]);
	json_put_u64(&o, "waiting_for_cpu", states[TIMELINE_RUNNABLE]);
	json_put_u64(&o, "blocked", states[TIMELINE_BLOCKED]);
	json_put_u64(&o, unknown, states[TIMELINE_UNKNOWN]);
	json_put_end(&o);
}

static void json_parts(struct json_writer *w, const char *key, const struct compare_methods *m,
		       const uint64_t parts[COMPARE_PARTS])
{
	struct compare_shares s = compare_shares(m, parts);
	struct json_writer o = json_put_object(w, key);

	if (m->all[COMPARE_ON_CPU])
		json_put_f64(&o, "cpu_share", s.cpu, 6);
	json_put_f64(&o, "eventpipe_share", s.claimed, 6);
	json_put_f64(&o, "eventpipe_running_share", s.claimed_running, 6);
	if (m->all[COMPARE_ON_CPU])
		json_put_f64(&o, "bias", s.claimed - s.cpu, 6);
	json_put_u64(&o, "running_ns", parts[COMPARE_ON_CPU]);
	json_put_u64(&o, "waiting_for_cpu_ns", parts[COMPARE_RUNNABLE]);
	json_put_u64(&o, "blocked_ns", parts[COMPARE_BLOCKED]);
	json_states(&o, "samples", parts + COMPARE_CLAIMS, "without_evidence");
	json_put_end(&o);
}

static void json_methods(struct json_writer *top, const struct compare_methods *m,
			 const struct profile *profile)
{
	struct json_writer list = json_put_array(top, "methods");

	for (size_t i = 0; i < m->v.len && i < REPORT_METHODS_MAX; i++) {
		struct json_writer o = json_put_object(&list, NULL);

		json_put_text(&o, "name", profile_text_of(profile, m->v.v[i].name, NULL));
		json_parts(&o, "self", m, m->v.v[i].self);
		json_parts(&o, "total", m, m->v.v[i].total);
		json_put_end(&o);
	}
	json_put_end(&list);
	json_put_u64(top, "methods_left_out",
		     m->v.len > REPORT_METHODS_MAX ? m->v.len - REPORT_METHODS_MAX : 0);
}

static void json_threads(struct json_writer *top, const struct compare *c,
			 const struct profile *profile)
{
	struct json_writer list = json_put_array(top, "threads");
	size_t n;
	const struct compare_thread *threads = compare_threads(c, &n);

	for (size_t i = 0; i < n; i++) {
		const struct compare_thread *t = &threads[i];
		struct json_writer o = json_put_object(&list, NULL);

		json_put_i64(&o, "tid", t->tid);
		json_put_text(&o, "name",
			      t->thread == PROFILE_NONE
				      ? NULL
				      : profile_text_of(profile,
							profile_thread_of(profile, t->thread)->comm,
							NULL));
		json_states(&o, "ns", t->states, "unknown");
		json_states(&o, "samples", t->samples, "without_evidence");
		json_put_end(&o);
	}
	json_put_end(&list);
}

static void json_sampler(struct json_writer *top, const struct compare_totals *t)
{
	struct json_writer o = json_put_object(top, "sampler");

	json_put_u64(&o, "rounds", t->rounds);
	json_put_u64(&o, "suspended_ns", t->suspended_ns);
	json_put_u64(&o, "stopped_ns", t->stopped_ns);
	json_put_u64(&o, "own_cpu_ns", t->sampler_ns);
	json_put_f64(&o, "cost", compare_cost(t), 6);
	json_put_end(&o);
}

void compare_report_json(const struct compare *c, const struct compare_methods *methods,
			 const struct profile *profile, struct outbuf *out)
{
	const struct compare_totals *t = compare_totals(c);
	struct json_writer top = json_put_document(out, 3), clock;

	json_put_u64(&top, "format", COMPARE_JSON_FORMAT);
	json_put_i64(&top, "pid", compare_pid(c));
	json_put_u64(&top, "from_ns", t->from_ns);
	json_put_u64(&top, "to_ns", t->to_ns);
	clock = json_put_object(&top, "clock");
	json_put_bool(&clock, "checked", t->clock_error_ns != 0);
	json_put_i64(&clock, "offset_ns", t->clock_offset_ns);
	json_put_u64(&clock, "error_ns", t->clock_error_ns);
	json_put_end(&clock);
	json_put_u64(&top, "samples", t->samples);
	json_put_u64(&top, "samples_outside_managed_code", t->outside);
	json_put_u64(&top, "samples_left_out", t->left_out);
	json_put_u64(&top, "lost_events", t->lost);
	json_put_bool(&top, "is_cut", t->is_cut);
	json_states(&top, "states_of_samples", t->claims, "without_evidence");
	json_states(&top, "ns_of_threads", t->states, "unknown");
	json_sampler(&top, t);
	json_threads(&top, c, profile);
	json_methods(&top, methods, profile);
	json_put_end(&top);
}
