#include "profcpu/managed/report.h"

#include "base/clock.h"

#define REPORT_LABELS 3
#define REPORT_PLACES 2
#define REPORT_CAUSE_PLACES 5
#define REPORT_CAUSE_LEAST 0.05 /* percent; report.json has all causes */
#define REPORT_JSON_SUMS 100
#define REPORT_NAME_MAX 200 /* bytes of a name in the text */

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static double per_second(uint64_t n, const struct managed_totals *t)
{
	return t->window_ns ? (double)n * NS_PER_S / (double)t->window_ns : 0;
}

/* The smallest weight that this part of all does not exceed. weights is sorted and not empty. */
static uint64_t percentile(const struct managed_profile *p, unsigned percent_of)
{
	size_t rank = (p->weights.len * percent_of + 99) / 100;

	return p->weights.v[rank ? rank - 1 : 0];
}

static double ms(uint64_t ns)
{
	return (double)ns / NS_PER_MS;
}

static void put_times(const struct managed_profile *p, const struct managed_totals *t,
		      const char *what, struct outbuf *out)
{
	outbuf_printf(out,
		      "%llu %s, %.1f a second, %.3f ms in all; half of them up to %.3f ms, 99 %% "
		      "up to %.3f ms, the longest %.3f ms\n",
		      (unsigned long long)p->events, what, per_second(p->events, t), ms(p->weight),
		      ms(percentile(p, 50)), ms(percentile(p, 99)), ms(percentile(p, 100)));
}

/* In windows, the number of waits is not known. */
static void put_waits(const struct managed_profile *p, const struct managed_totals *t,
		      struct outbuf *out)
{
	if (!t->estimated_ns)
		outbuf_printf(out, "%llu, ", (unsigned long long)p->events);
	outbuf_printf(out, "%.2f s in all, by cause\n", (double)p->weight / NS_PER_S);
}

static void put_total(enum managed_kind kind, const struct managed_profile *p,
		      const struct managed_totals *t, struct outbuf *out)
{
	outbuf_printf(out, "%-9s ", managed_kind_info(kind)->word);
	if (!p->events)
		outbuf_str(out, "none\n");
	else if (kind == MANAGED_CAUSES)
		put_waits(p, t, out);
	else if (kind == MANAGED_RUNTIME)
		outbuf_printf(out, "%.2f %% of the process's CPU samples, by work\n",
			      percent(p->weight, t->cpu_weight));
	else if (kind == MANAGED_ALLOC)
		outbuf_printf(out, "%.1f MB, %.1f MB a second: %s %llu samples\n",
			      (double)p->weight / 1e6, per_second(p->weight, t) / 1e6,
			      t->exact_samples ? "estimated from"
					       : "biased estimate (AllocationTick) from",
			      (unsigned long long)p->events);
	else if (kind == MANAGED_EXCEPTIONS)
		outbuf_printf(out, "%llu thrown, %.1f a second\n", (unsigned long long)p->events,
			      per_second(p->events, t));
	else
		put_times(p, t,
			  kind == MANAGED_GC    ? "pauses"
			  : kind == MANAGED_JIT ? "methods compiled"
						: "waits",
			  out);
	if (p->unpaired && kind != MANAGED_RUNTIME)
		outbuf_printf(out, "%10s%llu more have no begin or no end in the recording\n", "",
			      (unsigned long long)p->unpaired);
}

/* Writes the largest sums. least: their part of the whole, in percent. */
static void put_sums(const struct managed_sums *sums, const struct managed_profile *p, size_t max,
		     double least, const char *before, const struct profile *profile,
		     struct outbuf *out)
{
	for (size_t i = 0; i < sums->list.len && i < max; i++) {
		const struct managed_sum *s = &sums->list.v[i];
		uint32_t len;

		if (percent(s->weight, p->weight) < least)
			break;
		const char *name = profile_text_of(profile, s->name, &len);

		outbuf_printf(out, "%10s%6.2f %%  %s", "", percent(s->weight, p->weight), before);
		outbuf_printable(out, name, len, REPORT_NAME_MAX);
		outbuf_char(out, '\n');
	}
}

/* Warns of waits that were recorded only in windows. */
static void put_estimated(const struct managed_profile *p, const struct managed_totals *t,
			  struct outbuf *out)
{
	if (percent(t->estimated_ns, p->weight) >= REPORT_CAUSE_LEAST)
		outbuf_printf(
			out,
			"%10s%6.2f %%  are estimates: no event of the runtime explains them, so "
			"causes may be wrong. They began before the recording, or switches are "
			"missing: record longer, under less load, and with --max-overhead 100\n",
			"", percent(t->estimated_ns, p->weight));
}

/* Names the events that a runtime did not send, because it cannot send single ones. */
static void put_missing(const struct managed_profiles *m, enum managed_kind kind,
			struct outbuf *out)
{
	bool jit = managed_profile_of(m, MANAGED_JIT)->wanted,
	     alloc = managed_profile_of(m, MANAGED_ALLOC)->wanted;

	if (!managed_totals(m)->unlisted)
		return;
	if (kind == MANAGED_CAUSES && (jit || alloc))
		outbuf_printf(out,
			      "%10sNot known: pool starvation, which counts as sync over async. "
			      "Before .NET 10, leave out --jit and --alloc for it\n",
			      "");
	if (!jit)
		outbuf_printf(out, "%10sNot known: %s. Before .NET 10, add --jit for them\n", "",
			      kind == MANAGED_CAUSES ? "waits for compilations of other threads"
						     : "compiled methods");
}

static void put_cost(const struct managed_totals *t, struct outbuf *out)
{
	outbuf_printf(out, "events    %llu of the runtime, %.0f a second%s",
		      (unsigned long long)t->seen, per_second(t->seen, t),
		      t->cpu_weight ? "; " : ". ");
	if (t->cpu_weight)
		outbuf_printf(out,
			      "its thread that writes them took %.2f %% of the process's CPU "
			      "samples. ",
			      percent(t->writer_weight, t->cpu_weight));
	outbuf_str(out, "Not measured: the time that an event and its stack take in the thread "
			"that causes it\n");
	if (t->lost)
		outbuf_printf(out, "          %llu dropped by the runtime\n",
			      (unsigned long long)t->lost);
	if (t->left_out)
		outbuf_printf(out, "          %llu left out, because memory is short\n",
			      (unsigned long long)t->left_out);
	if (t->is_cut)
		outbuf_str(out, "          the end of the trace is missing\n");
}

void managed_report_text(const struct managed_profiles *m, const struct profile *profile,
			 struct outbuf *out)
{
	const struct managed_totals *t = managed_totals(m);

	for (unsigned k = 0; k < MANAGED_KINDS; k++) {
		const struct managed_profile *p = managed_profile_of(m, k);

		if (!p->wanted)
			continue;
		put_total(k, p, t, out);
		if (k == MANAGED_CAUSES || k == MANAGED_RUNTIME) {
			put_sums(&p->labels, p, CAUSES, REPORT_CAUSE_LEAST, "", profile, out);
			put_sums(&p->places, p, REPORT_CAUSE_PLACES, REPORT_CAUSE_LEAST, "",
				 profile, out);
			if (k == MANAGED_CAUSES)
				put_estimated(p, t, out);
			put_missing(m, k, out);
			continue;
		}
		put_sums(&p->labels, p, REPORT_LABELS, 0, "", profile, out);
		put_sums(&p->places, p, REPORT_PLACES, 0, "in ", profile, out);
	}
	put_cost(t, out);
}

static void json_sums(struct json_writer *w, const char *key, const struct managed_sums *sums,
		      const struct profile *profile)
{
	struct json_writer list = json_put_array(w, key);

	for (size_t i = 0; i < sums->list.len && i < REPORT_JSON_SUMS; i++) {
		const struct managed_sum *s = &sums->list.v[i];
		struct json_writer o = json_put_object(&list, NULL);

		json_put_text(&o, "name", profile_text_of(profile, s->name, NULL));
		json_put_u64(&o, "total", s->weight);
		json_put_u64(&o, "events", s->events);
		json_put_end(&o);
	}
	json_put_end(&list);
}

static void json_percentiles(struct json_writer *w, const struct managed_profile *p)
{
	static const struct {
		const char *key;
		unsigned percent;
	} shown[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"longest", 100}};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		json_put_u64(w, shown[i].key, percentile(p, shown[i].percent));
}

static void json_kind(struct json_writer *w, const struct managed_profiles *m,
		      enum managed_kind kind, const struct profile *profile)
{
	const struct managed_profile *p = managed_profile_of(m, kind);
	struct json_writer o = json_put_object(w, managed_kind_info(kind)->name);

	json_put_text(&o, "unit", managed_unit(m, kind));
	json_put_u64(&o, "events", p->events);
	json_put_u64(&o, "total", p->weight);
	json_put_u64(&o, "unpaired", p->unpaired);
	if (p->weights.len)
		json_percentiles(&o, p);
	json_sums(&o, "by", &p->labels, profile);
	json_sums(&o, "in", &p->places, profile);
	json_put_end(&o);
}

void managed_report_json(const struct managed_profiles *m, const struct profile *profile,
			 struct json_writer *w)
{
	const struct managed_totals *t = managed_totals(m);
	struct json_writer o = json_put_object(w, "managed");

	json_put_i64(&o, "pid", managed_profiles_pid(m));
	json_put_u64(&o, "runtime_events", t->seen);
	json_put_u64(&o, "window_ns", t->window_ns);
	json_put_u64(&o, "lost_events", t->lost);
	json_put_u64(&o, "left_out", t->left_out);
	json_put_bool(&o, "is_cut", t->is_cut);
	json_put_bool(&o, "unlisted_events", t->unlisted);
	json_put_u64(&o, "estimated_ns", t->estimated_ns);
	json_put_bool(&o, "exact_allocations", t->exact_samples);
	json_put_u64(&o, "process_cpu_weight", t->cpu_weight);
	json_put_u64(&o, "writer_cpu_weight", t->writer_weight);
	for (unsigned k = 0; k < MANAGED_KINDS; k++)
		if (managed_profile_of(m, k)->wanted)
			json_kind(&o, m, k, profile);
	json_put_end(&o);
}
